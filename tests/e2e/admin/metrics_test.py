#!/usr/bin/env python3
"""metrics_test.py KVD KVCLI METRICS_MD RDMA_SOURCE...: /metrics keeps its formats, says what is so, and is documented.

RDMA_SOURCE: where the metrics are given that only a kvd with RDMA has.
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "kvcli")]
from harness import Kvcli, Server, Skipped, check, check_equal, run_cases  # noqa: E402
from http_peer import get, port_in  # noqa: E402
from metrics_format import lint, parse, values  # noqa: E402

KVD, KVCLI_BINARY, DOCUMENT, *RDMA_SOURCES = (os.path.abspath(path) for path in sys.argv[1:])
SERVER = Server(KVD, "--memory=64m", "--hugepages=off", "--admin=0", "--evict=lru")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def metrics(**headers):
    reply = get(port_in(SERVER.log()), "/metrics", **headers)
    check_equal(reply.status, 200)
    return reply


def formats():
    """/metrics: both formats are kept to the letter, and have the same samples"""
    plain = metrics()
    check_equal(plain.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
    families = parse(plain.text, openmetrics=False)
    lint(families, openmetrics=False)
    opened = metrics(**OPENMETRICS)
    check_equal(opened.headers["content-type"],
                "application/openmetrics-text; version=1.0.0; charset=utf-8")
    open_families = parse(opened.text, openmetrics=True)
    lint(open_families, openmetrics=True)
    check_equal(list(values(families)), list(values(open_families)))
    check(len(families) > 30, "only", len(families))


def checker_finds():
    """The checker of the formats finds what breaks them"""
    good = "# HELP kvd_a_total A.\n# TYPE kvd_a_total counter\nkvd_a_total{b=\"c\"} 1\n"
    lint(parse(good, openmetrics=False), openmetrics=False)
    for old, new in (("} 1\n", "} 1"), ("} 1", "} x"), ("} 1", "}1"), ("{b", "{1b"), ("\"c\"", "c"),
                     ("{b=\"c\"}", "{b=\"c\",b=\"d\"}"), ("A.\n", "\n"), ("counter", "gauge"),
                     ("kvd_a_total{", "kvd_b_total{"), ("kvd_a", "other_a"), ("kvd_a", "kvd_A"),
                     ("_total", ""), ("kvd_a", "kvd_a_us"), ("# TYPE kvd_a_total counter\n", ""),
                     ("1\n", "1\nkvd_a_total{b=\"c\"} 2\n")):
        bad = good.replace(old, new)
        try:
            lint(parse(bad, openmetrics=False), openmetrics=False)
        except Exception:  # pylint: disable=broad-except
            continue
        check(False, "found nothing against", repr(bad))


def checker_of_histograms_finds():
    """The checker of the formats finds what is wrong with a histogram"""
    good = ("# HELP kvd_a_seconds A.\n# TYPE kvd_a_seconds histogram\n"
            "kvd_a_seconds_bucket{le=\"5e-07\"} 1\nkvd_a_seconds_bucket{le=\"+Inf\"} 2\n"
            "kvd_a_seconds_sum 0.5\nkvd_a_seconds_count 2\n")
    lint(parse(good, openmetrics=False), openmetrics=False)
    for old, new in (("_count 2", "_count 3"), ("} 1\n", "} 3\n"), ("+Inf", "1e-09"), ("5e-07", "x"),
                     ("kvd_a_seconds_sum 0.5\n", ""), ("_bucket{le=\"+Inf\"}", "_bucket")):
        try:
            lint(parse(good.replace(old, new), openmetrics=False), openmetrics=False)
        except Exception:  # pylint: disable=broad-except
            continue
        check(False, "found nothing with", repr(new), "for", repr(old))


def times():
    """/metrics: requests are in the histogram by operation, as many as were counted"""
    before = values(parse(metrics().text, openmetrics=False))
    for i in range(20):
        KVCLI.ok("put", f"timed-{i}", "v")
    KVCLI.ok("incr", "timed-number")
    seen = values(parse(metrics().text, openmetrics=False))

    def more(name):
        return seen[name] - before[name]
    name = "kvd_request_duration_seconds"
    check_equal(more(name + '_count{operation="put"}'), 20)
    check_equal(more(name + '_count{operation="increment"}'), 1)
    check_equal(more(name + '_bucket{le="+Inf",operation="put"}'), 20)
    check(more(name + '_sum{operation="put"}') > 0, "they took no time")
    stat = json.loads(KVCLI.ok("-w", "json", "stat"))
    check(0 < stat["time_put_p50_ns"] <= stat["time_put_p99_ns"] <= stat["time_put_max_ns"], stat)


def promtool():
    """/metrics: promtool check metrics has nothing to say"""
    tool = shutil.which("promtool")
    if tool is None:
        raise Skipped("promtool is not installed (package prometheus)")
    done = subprocess.run([tool, "check", "metrics"], input=metrics().body, capture_output=True,
                          timeout=60, check=False)
    check_equal((done.returncode, done.stdout + done.stderr), (0, b""))


def truth():
    """/metrics: says what kvcli stat says, and the parts of the region are the region"""
    for i in range(50):
        KVCLI.ok("put", f"key-nobody-may-see-{i}", "v" * 1000 * i)
    KVCLI.ok("del", "key-nobody-may-see-1")
    text = metrics().text
    seen = values(parse(text, openmetrics=False))
    stat = dict(line.split(" ", 1) for line in KVCLI.ok("stat").decode().splitlines())
    for metric, name in (("kvd_items", "items"), ("kvd_writes_total", "puts"),
                         ("kvd_deletes_total", "deletes"), ("kvd_items_bytes", "user_bytes"),
                         ('kvd_requests_total{operation="put"}', "requests_put"),
                         ("kvd_sessions_max", "sessions_max"),
                         ('kvd_region_bytes{use="free"}', "free_bytes")):
        check_equal(seen[metric], float(stat[name]), metric)
    parts = sum(value for name, value in seen.items() if name.startswith("kvd_region_bytes{"))
    check_equal(parts, float(stat["memory_bytes"]))
    check_equal(seen["kvd_items"], 49)
    check("nobody-may-see" not in text, "keys of items are shown")
    check("nobody-may-see" not in metrics(**OPENMETRICS).text, "keys of items are shown")


def reported():
    """/metrics: has what clients report of their GETs, to the last one, and of the session that is there"""
    KVCLI.ok("put", "reported", "value")
    before = values(parse(metrics().text, openmetrics=False))
    for _ in range(5):
        check_equal(KVCLI.ok("get", "reported"), b"value")
    for _ in range(3):
        check_equal(KVCLI.run("get", "no-such-key").exit, 1)
    KVCLI.ok("put", "reported", "value")  # tells of nothing
    text = metrics().text
    seen = values(parse(text, openmetrics=False))

    def more(name):
        return seen[f"kvd_client_reported_{name}_total"] - before[f"kvd_client_reported_{name}_total"]
    check_equal([more(name) for name in ("gets", "hits", "misses", "torn_reads", "fallbacks", "read_errors")],
                [8, 5, 3, 0, 0, 0])
    check(more("reads") >= 8 and more("read_bytes") > 8 * 100, more("reads"), more("read_bytes"))
    for line in re.findall("# HELP kvd_client_reported_.*", text):
        check("report." in line, line)


def documented():
    """Names, each with unit and type, of docs/metrics.md."""
    rows = re.findall(r"^\| `(kvd_\w+)(?:\{[^}`]+\})?` \| ([^|]+) \| (\w+) \| [^|]+\|$", read(DOCUMENT),
                      re.MULTILINE)
    names = {name: (unit, kind) for name, unit, kind in rows}
    check_equal(len(names), len(rows), "a name is documented twice")
    return names


def document_shared_memory():
    """docs/metrics.md: has what a kvd exports that serves shared memory, and no more"""
    families = parse(metrics().text, openmetrics=False)
    names = {name: kind for name, (_, kind) in documented().items() if "_rdma_" not in name}
    check_equal({name: family.type for name, family in families.items()}, names)


def document_rdma():
    """docs/metrics.md: has what a kvd exports besides that serves RDMA, and no more"""
    source = "".join(read(path) for path in RDMA_SOURCES)
    given = {"kvd_" + name for name in re.findall(r'\bgauge\(\s*"(rdma_\w+)"', source)}
    given |= {"kvd_" + name + "_total" for name in re.findall(r'\bcount\(\s*"(rdma_\w+)"', source)}
    given |= {"kvd_" + name for name in
              re.findall(r'facts\.Gauge\(\s*"(rdma_\w+)"[^;]*?\{\.help', source)}
    given |= set(re.findall(r'"(kvd_rdma_\w+)"', source))
    check(len(given) > 15, "the source gives", given)
    check_equal(sorted(given), sorted(name for name in documented() if "_rdma_" in name))


def units():
    """docs/metrics.md: says the unit and the type that a name carries"""
    for name, (unit, kind) in documented().items():
        if kind != "histogram":
            check_equal(kind, "counter" if name.endswith("_total") else "gauge", name)
        base = name.removesuffix("_total")
        for ending, expected in (("_bytes", "bytes"), ("_seconds", "s"), ("_info", "1")):
            check_equal(base.endswith(ending), unit == expected, name)


if __name__ == "__main__":
    try:
        SERVER.start(KVCLI)
        run_cases([formats, checker_finds, checker_of_histograms_finds, promtool, truth, reported, times, document_shared_memory, document_rdma,
                   units])
    finally:
        SERVER.close()
