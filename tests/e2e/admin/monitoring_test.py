#!/usr/bin/env python3
"""monitoring_test.py KVD KVCLI METRICS_MD RUNBOOK_MD RULES RULES_TEST SCRAPE DASHBOARD: alerts, runbook and dashboard fit kvd.

What a kvd exports without RDMA is asked of one; what it exports with RDMA docs/metrics.md says, which metrics_test compares with
the program.
"""

import json
import os
import re
import shutil
import subprocess
import sys

try:
    import yaml
except ImportError:
    yaml = None

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "kvcli")]
from harness import Kvcli, Server, Skipped, check, check_equal, run_cases  # noqa: E402
from http_peer import get, port_in  # noqa: E402
from metrics_format import parse  # noqa: E402

(KVD, KVCLI_BINARY, METRICS_MD, RUNBOOK_MD, RULES, RULES_TEST, SCRAPE, DASHBOARD) = (
    os.path.abspath(path) for path in sys.argv[1:])
SERVER = Server(KVD, "--memory=64m", "--hugepages=off", "--admin=0")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)

# Prometheus' own, which it adds to what it reads; and what the expressions themselves may name.
OF_PROMETHEUS = {"up": {"job", "instance"}}
LABELS_OF_PROMETHEUS = {"job", "instance"}
WORDS = {"and", "or", "unless", "on", "ignoring", "by", "without", "group_left", "group_right", "bool", "offset"}
FUNCTIONS = {"rate", "increase", "sum", "histogram_quantile", "max", "min", "avg", "label_values", "absent"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def load_yaml(path):
    if yaml is None:
        raise Skipped("there is no PyYAML; install the package python3-yaml")
    return yaml.safe_load(read(path))


def exported():
    """Sample names, each with its labels: {'kvd_requests_total': {'operation'}, ...}."""
    names = {}
    for family in parse(get(port_in(SERVER.log()), "/metrics").text, openmetrics=False).values():
        for name, labels in family.samples:
            names.setdefault(name, set()).update(label for label, _ in labels)
    documented = re.findall(r"^\| `(kvd_rdma_\w+)(?:\{([^}`]+)\})?` \|", read(METRICS_MD), re.MULTILINE)
    check(len(documented) > 15, "docs/metrics.md has", documented)
    for name, labels in documented:
        names[name] = set(labels.split(",")) - {""}
    return names


class Expression:
    """What a PromQL expression names: metrics, each with the labels that it is selected by, and labels alone."""

    def __init__(self, text):
        self.metrics = []
        self.labels = set()
        rest = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
        for words in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", rest):
            self.labels.update(word.strip() for word in words.split(",") if word.strip())
        rest = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", " ", rest)
        rest = re.sub(r"\[[^\]]*\]", " ", rest)
        for name, selector in re.findall(r"([a-zA-Z_:]\w*)\s*(\{[^}]*\})?", re.sub(r"\b\d[\w.]*", " ", rest)):
            if name in WORDS or name in FUNCTIONS:
                continue
            self.metrics.append((name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))))
            rest = rest.replace(selector, " ") if selector else rest

    def check_against(self, names, where):
        check(self.metrics, where, "names no metric")
        of_all = set(LABELS_OF_PROMETHEUS)
        for name, labels in self.metrics:
            check(name in names, where, "names", name, "which kvd does not export")
            unknown = labels - names[name] - LABELS_OF_PROMETHEUS
            check(not unknown, where, name, "has no label", sorted(unknown))
            of_all |= names[name]
        check(self.labels <= of_all, where, "groups by", sorted(self.labels - of_all))


def metrics_in(text):
    """Expressions within the text of an item, such as the query of a variable."""
    found = re.match(r"label_values\((\w+), (\w+)\)", text)
    return [(Expression(found[1]), found[2])] if found else [(Expression(text), None)]


def expressions_are_read():
    """The reader of expressions finds a metric and a label that kvd does not export"""
    names = {"kvd_a_total": {"kind"}, "kvd_b_bucket": {"le", "operation"}}
    for good in ('rate(kvd_a_total{kind="x"}[5m]) > 0', 'sum without (kind) (kvd_a_total) / kvd_a_total',
                 'histogram_quantile(0.99, sum by (le) (rate(kvd_b_bucket{operation!="o{}(", job="kvd"}[$__rate_interval])))',
                 'kvd_a_total >= 1e9 and on (job, instance) kvd_b_bucket{le="4 KiB"}'):
        Expression(good).check_against(names, good)
    for bad in ("kvd_c", "rate(kvd_a[5m])", 'kvd_a_total{colour="x"}', "sum by (colour) (kvd_a_total)", "1 > 0",
                'kvd_a_total / kvd_a_totals{kind="x"}'):
        try:
            Expression(bad).check_against(names, bad)
        except Exception:  # pylint: disable=broad-except
            continue
        check(False, "found nothing against", bad)


def alerts():
    return [rule for group in load_yaml(RULES)["groups"] for rule in group["rules"]]


def rules():
    """kvd.rules.yml: each alert asks for what kvd exports, and says how grave it is, what is wrong and where to read on"""
    names = exported() | OF_PROMETHEUS
    rows = alerts()
    check(len(rows) >= 15, len(rows))
    check_equal(len({rule["alert"] for rule in rows}), len(rows), "an alert is there twice")
    for rule in rows:
        name = rule["alert"]
        check(re.fullmatch(r"Kvd[A-Za-z]+", name), name)
        check_equal(set(rule), {"alert", "expr", "for", "labels", "annotations"}, name)
        Expression(rule["expr"]).check_against(names, name)
        check(rule["labels"]["severity"] in ("info", "warning", "critical"), name, rule["labels"])
        check_equal(set(rule["annotations"]), {"summary", "description", "runbook_url"}, name)
        check_equal(rule["annotations"]["runbook_url"], "docs/runbook.md#" + name.lower())


def runbook():
    """docs/runbook.md: has an entry for each alert and no other, each of which says what it means, how to see it, what to do"""
    text = read(RUNBOOK_MD)
    entries = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    check_equal([entry.split("\n", 1)[0] for entry in entries], [rule["alert"] for rule in alerts()])
    stat = {line.split()[0] for line in KVCLI.ok("stat").decode().splitlines()}
    stat |= {"rdma_device_state", "rdma_port_state", "rdma_windows", "rdma_rejects", "rdma_refusals"}
    for entry in entries:
        check(re.search(r"\n\*\*Means\*\* .*\n\*\*See\*\* .*\n\*\*Do\*\* ", entry, re.DOTALL), entry)
    for words in re.findall(r"kvcli stat((?: [a-z_0-9]+)+)", text.replace("$(kvcli stat pid)", "kvcli stat pid")):
        check(set(words.split()) <= stat, "kvcli stat has no", sorted(set(words.split()) - stat))


def rules_are_tried():
    """kvd.rules.test.yml: tries each alert, at a kvd that has its fault and at one that is well"""
    tried, quiet = set(), set()
    for test in load_yaml(RULES_TEST)["tests"]:
        for row in test["alert_rule_test"]:
            (tried if row["exp_alerts"] else quiet).add(row["alertname"])
    names = {rule["alert"] for rule in alerts()}
    check_equal(tried, names)
    check_equal(quiet, names)


def promtool(*arguments):
    tool = shutil.which("promtool")
    if tool is None:
        raise Skipped("promtool is not installed (package prometheus)")
    done = subprocess.run([tool, *arguments], capture_output=True, timeout=120, check=False,
                          cwd=os.path.dirname(RULES))
    check_equal(done.returncode, 0, (done.stdout + done.stderr).decode(errors="replace"))


def promtool_rules():
    """promtool: the alerts are well-formed, and each fires when it should and only then"""
    promtool("check", "rules", RULES)
    promtool("test", "rules", RULES_TEST)


def promtool_scrape():
    """promtool: the sample of a configuration is one, and finds the rules"""
    promtool("check", "config", SCRAPE)


def scrape():
    """kvd.scrape.yml: has the job that the alerts and the dashboard ask for, and names the file of the alerts"""
    config = load_yaml(SCRAPE)
    check_equal([job["job_name"] for job in config["scrape_configs"]], ["kvd"])
    check_equal(config["rule_files"], [os.path.basename(RULES)])


def walk(part, key):
    """Every value under `key` in what JSON holds."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == key and isinstance(value, str):
                yield value
            yield from walk(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from walk(value, key)


def dashboard():
    """kvd.json: every expression names metrics and labels that kvd exports; every legend labels that they have"""
    names = exported()
    board = json.loads(read(DASHBOARD))
    count = 0
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            count += 1
            expression = Expression(target["expr"])
            expression.check_against(names, f"{panel['title']}: {target['expr']}")
            known = LABELS_OF_PROMETHEUS.union(*(names[name] for name, _ in expression.metrics))
            legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            check(legend <= known, panel["title"], "has a legend of", sorted(legend - known))
    check(count > 30, "only", count, "expressions")
    for text in list(walk(board["templating"], "query")) + list(walk(board["annotations"], "expr")):
        if "kvd" in text:
            for expression, label in metrics_in(text):
                expression.check_against(names, text)
                check(label in LABELS_OF_PROMETHEUS | {None}, text)


def dashboard_is_whole():
    """kvd.json: imports as it is: panels have a place of their own, one data source that is asked for, and say what they show"""
    board = json.loads(read(DASHBOARD))
    check_equal(board["title"], "kvd")
    check("id" not in board and "__inputs" not in board, "is bound to one Grafana")
    check_equal(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        check(at["x"] + at["w"] <= 24, panel["title"], "is beside the page")
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        check(not cells & taken, panel["title"], "lies on another")
        taken |= cells
        if panel["type"] != "row":
            check(panel["description"] and panel["targets"], panel["title"])
            check_equal(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    check_equal(rows, ["Overview", "Requests", "Latency in kvd", "Memory", "Sessions", "RDMA"])


if __name__ == "__main__":
    try:
        SERVER.start(KVCLI)
        run_cases([expressions_are_read, rules, runbook, rules_are_tried, promtool_rules, promtool_scrape, scrape,
                   dashboard, dashboard_is_whole])
    finally:
        SERVER.close()
