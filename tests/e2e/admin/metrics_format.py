"""Checks and reads metrics in Prometheus' text format 0.0.4 and in OpenMetrics 1.0, as strictly as both are defined."""

import re

from harness import check, check_equal

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
FLOAT = re.compile(r"\d+(\.\d+)?(e-\d\d)?|\+Inf")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


class Family:
    def __init__(self, name):
        self.name = name
        self.help = self.type = self.unit = None
        self.samples = {}  # (name, labels) -> text of the value


def labels_of(text):
    labels, at = {}, 0
    while text and at < len(text):
        found = LABEL.match(text, at)
        check(found is not None, "labels", repr(text))
        check(found[1] not in labels, "twice", found[1])
        labels[found[1]] = found[2]
        at = found.end()
    return tuple(sorted(labels.items()))


def sample_names(family, openmetrics):
    if family.type == "histogram":
        return {family.name + ending for ending in ("_bucket", "_sum", "_count")}
    if not openmetrics:
        return {family.name}
    return {family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")}


def parse(text, openmetrics):
    """Families by name, in order; Failed says what breaks the format."""
    check(text.endswith("\n"), "the last line has no end")
    lines = text.split("\n")[:-1]
    if openmetrics:
        check_equal(lines.pop(), "# EOF")
    families, current = {}, None
    for line in lines:
        words = line.split(" ", 3)
        if words[0] == "#":
            check(len(words) == 4 and words[1] in ("HELP", "TYPE", "UNIT"), repr(line))
            if current is None or current.name != words[2]:
                check(words[2] not in families, "in two pieces:", words[2])
                check(NAME.fullmatch(words[2]), repr(line))
                current = families[words[2]] = Family(words[2])
            check(not current.samples, "after samples:", line)
            attribute = words[1].lower()
            check(getattr(current, attribute) is None, "twice:", line)
            setattr(current, attribute, words[3])
            continue
        found = SAMPLE.fullmatch(line)
        check(found is not None, repr(line))
        check(current is not None and found[1] in sample_names(current, openmetrics),
              "a sample outside of its family:", line)
        key = (found[1], labels_of(found[2]))
        check(key not in current.samples, "twice:", line)
        check(NUMBER.fullmatch(found[3]), "value of", line)
        current.samples[key] = found[3]
    return families


def lint_histogram(family):
    """For each set of labels: limits that grow up to +Inf, counts that do not shrink, a sum, the same count."""
    series = {}
    for (name, labels), value in family.samples.items():
        labels = dict(labels)
        limit = labels.pop("le", None)
        check_equal(limit is not None, name.endswith("_bucket"), name)
        check(limit is None or FLOAT.fullmatch(limit), "le of", name, limit)
        one = series.setdefault(tuple(sorted(labels.items())), {"buckets": []})
        if limit is None:
            one[name[len(family.name):]] = float(value)
        else:
            one["buckets"].append((float(limit), float(value)))
    for labels, one in series.items():
        buckets = one["buckets"]
        check(buckets == sorted(buckets) and len({limit for limit, _ in buckets}) == len(buckets),
              family.name, labels, buckets)
        check([count for _, count in buckets] == sorted(count for _, count in buckets), buckets)
        check_equal(buckets[-1], (float("inf"), one["_count"]), labels)
        check("_sum" in one, "no sum:", labels)
        check(len(buckets) <= 20, "too many buckets:", len(buckets))


def lint(families, openmetrics):
    """What Prometheus asks of names, and we of ourselves."""
    types = {"counter", "gauge", "histogram"} | ({"info"} if openmetrics else set())
    for family in families.values():
        check(family.help, "no HELP:", family.name)
        check(family.type in types, family.name, "is of type", family.type)
        check(family.samples, "no sample:", family.name)
        check(family.name.startswith("kvd_"), family.name)
        check(re.fullmatch(r"[a-z0-9_]+", family.name), family.name)
        if openmetrics:
            check(not family.name.endswith(("_total", "_info")), family.name)
            if family.unit is not None:
                check(family.name.endswith("_" + family.unit), family.name, family.unit)
        else:
            check_equal(family.name.endswith("_total"), family.type == "counter", family.name)
        if family.type == "histogram":
            lint_histogram(family)
        for unit in ("_ms", "_us", "_ns", "_kb", "_mib", "_milliseconds", "_microseconds"):
            check(unit not in family.name, "no base unit:", family.name)
        if family.type == "info" or family.name.endswith("_info"):
            check_equal(set(family.samples.values()), {"1"}, family.name)


def values(families):
    """{'kvd_requests_total{operation="put"}': 3.0, ...}"""
    return {name + ("{" + ",".join(f'{k}="{v}"' for k, v in labels) + "}" if labels else ""):
            float(value)
            for family in families.values() for (name, labels), value in family.samples.items()}
