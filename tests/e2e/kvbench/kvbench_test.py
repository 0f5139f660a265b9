#!/usr/bin/env python3
"""kvbench against a kvd over shared memory: what it does, says and writes.

kvbench_test.py KVD KVCLI KVBENCH [DIRECTORY OF harness.py]
"""

import json
import os
import re
import signal
import subprocess
import sys

KVD, KVCLI, KVBENCH = (os.path.abspath(path) for path in sys.argv[1:4])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kvcli"))
import harness  # noqa: E402
from harness import check, check_equal  # noqa: E402

server = harness.Server(KVD, "--memory=64m")
kvcli = harness.Kvcli(KVCLI, server.target)
bench = harness.Kvcli(KVBENCH, server.target)  # takes its target from KVCLI_SERVER too

SHORT = ("--keys=2000", "--warmup=0")


def measure(*flags, operations=2000):
    """What a short run reports as JSON."""
    return json.loads(bench.ok(*SHORT, f"--operations={operations}", *flags, "--json=-"))


def counts(report):
    return {name: entry["count"] for name, entry in report["runs"][0]["operations"].items()}


def mixes():
    """kvbench: every mix does as many operations as asked, of the kinds it is made of"""
    kinds = {"95:5": {"get", "put"}, "a": {"get", "put"}, "b": {"get", "put"}, "c": {"get"},
             "d": {"get", "insert"}, "f": {"get", "rmw"}}
    for mix, expected in kinds.items():
        for flags in ((), ("--batch=16",), ("--depth=8",), ("--clients=3",),
                      ("--clients=2", "--processes"), ("--rmw=cas",)):
            found = counts(measure(f"--mix={mix}", *flags))
            check_equal(set(found), expected, mix, flags)
            # A batch may go beyond the end by less than itself, for each client.
            check(2000 <= sum(found.values()) < 2000 + 16, mix, flags, found)


def self_certifying():
    """kvbench: a value that is not the key's ends the run with status 6, naming the key"""
    bench.ok(*SHORT, "-n", "100", "--keys=1")
    key = kvcli.ok("scan", "--limit=100000").decode().split("\n")
    # One key is there alone if the store is fresh, so spoil all of them.
    for name in key:
        if len(name) == 8:
            kvcli.ok("put", "--", name, "not what kvbench stored")
    result = bench.run(*SHORT, "-n", "100", "--keys=1", "--load=false", "--mix=c")
    check_equal(result.exit, 6, result.err)
    check(re.match(r"kvbench: get \S+: a value of 23 bytes came", result.err), result.err)
    check_equal(result.err.count("\n"), 1, result.err)


def one_sided():
    """kvbench: GETs reach no server, and READs per GET are counted"""
    run = measure("--mix=c", "--read_whole_buckets", operations=5000)["runs"][0]
    check_equal(run["counters"]["gets"], 5000)
    check(1.0 <= run["figures"]["reads_per_get"] < 1.5, run["figures"])
    check_equal(run["counters"]["gets_by_request"], 0)
    for name in ("requests_get", "requests_put"):
        check_equal(run["server"]["before"][name], run["server"]["after"][name])
    warm = measure("--mix=c", "--location_cache=on", "--warmup=100ms", operations=50000)["runs"][0]
    check(warm["figures"]["location_hits_per_get"] > 0.5, warm["figures"])
    # Of four clients each learns a quarter of what they know together.
    cold = ("--mix=c", "--dist=uniform", "--clients=4", "--load=false", "--warmup=0", "--keys=4000")
    measure("--mix=c", "--keys=4000", operations=4)
    own = measure(*cold, "--location_cache=on", operations=4000)
    shared = measure(*cold, "--location_cache=shared", operations=4000)
    check_equal((own["location_cache_shared"], shared["location_cache_shared"]), (False, True))
    check_equal(own["location_cache_entries"], shared["location_cache_entries"])
    own, shared = (report["runs"][0]["figures"] for report in (own, shared))
    check(own["location_hits_per_get"] < 0.2 < 0.3 < shared["location_hits_per_get"], own, shared)
    check(shared["reads_per_get"] < own["reads_per_get"], own, shared)
    check(warm["figures"]["bytes_per_get"] < run["figures"]["bytes_per_get"], warm["figures"])


def misses():
    """kvbench: misses that are asked for are counted as such"""
    run = measure("--mix=c", "--misses=50", operations=4000)["runs"][0]
    check_equal(run["figures"]["not_found"], 0)
    check(1600 < run["figures"]["misses"] < 2400, run["figures"])


def json_members():
    """kvbench: JSON holds workload, times, figures, counters and the server's statistics"""
    report = measure("--mix=a", "--value_size=64:3,1k..2k:1", "--seed=7")
    for name in ("program", "commit", "target", "machine", "location_cache_entries",
                 "location_cache_shared", "read_whole_buckets", "runs"):
        check(name in report, name)
    check_equal(set(report["machine"]), {"cpu", "cores", "kernel", "page_bytes", "clock_ns"})
    run = report["runs"][0]
    check_equal(run["workload"]["value_bytes"], "64:3,1k..2k:1")
    check_equal(run["workload"]["seed"], 7)
    times = run["operations"]["get"]["time_us"]
    ordered = [times[name] for name in ("min", "p50", "p90", "p99", "p99_9", "p99_99", "max")]
    check_equal(ordered, sorted(ordered))
    check(times["min"] <= times["mean"] <= times["max"], times)
    check(run["server"]["cpu_us"] >= 0, run["server"])
    check_equal(run["server"]["after"]["version"], run["server"]["before"]["version"])


def same_seed():
    """kvbench: the same seed, the same operations"""
    check_equal(counts(measure("--mix=a", "--seed=3")), counts(measure("--mix=a", "--seed=3")))
    check(counts(measure("--mix=a", "--seed=3")) != counts(measure("--mix=a", "--seed=4")))


def hgrm():
    """kvbench: percentile files count every operation that was timed"""
    prefix = server.path("times")
    found = counts(json.loads(bench.ok(*SHORT, "-n", "3000", "--mix=a", f"--hgrm={prefix}",
                                       "--json=-")))
    for kind in ("get", "put"):
        with open(f"{prefix}.{kind}.hgrm", encoding="ascii") as lines:
            text = lines.read()
        rows = [line.split() for line in text.splitlines()[2:] if not line.startswith("#")]
        check_equal(int(rows[-1][2]), found[kind])
        check_equal(float(rows[-1][1]), 1.0)
        values = [float(row[0]) for row in rows]
        check_equal(values, sorted(values))
        total = re.search(r"Total count    = +(\d+)\]", text)
        check_equal(int(total.group(1)), found[kind])


def open_loop():
    """kvbench: an open loop begins as many operations as its rate says"""
    for arrivals in ("constant", "poisson"):
        for flags in ((), ("--depth=4",), ("--batch=10",), ("--clients=2", "--processes")):
            run = json.loads(bench.ok(*SHORT, "--rate=2000", f"--arrivals={arrivals}", "-n", "500",
                                      "--json=-", *flags))["runs"][0]
            check_equal(run["workload"]["rate"], 2000.0)
            # 500 at 2000 a second take a quarter of a second at least; how much longer is up to the machine.
            check(run["seconds"] > 0.15, flags, run["seconds"])
            check("behind_ms" in run["figures"])


def table():
    """kvbench: a table with perftest's columns below a head that says where and how"""
    text = bench.ok(*SHORT, "-n", "1000").decode()
    for words in ("#bytes #iterations", "t_min[usec]", "t_typical[usec]", "99.99%[usec]", "t_max[usec]",
                  "BW average[MB/sec]", " Machine", " Workload  get 95 %, put 5 %", " Clients",
                  "READs per GET", "torn READs", "server's processor time per operation"):
        check(words in text, words, "\n", text)
    head = next(line for line in text.splitlines() if line.startswith(" op "))
    row = next(line for line in text.splitlines() if line.startswith(" get "))
    check_equal(len(row.split()), len(head.replace("BW average", "BW_average").split()))


def all_sizes():
    """kvbench: --all measures one size after the other, and takes the keys that kvd has room for"""
    for keys in ((), ("--keys=32",)):
        kvcli.ok("flush", "--yes")
        result = bench.run("--all", *keys, "-n", "64", "--mix=c", "--warmup=0")
        check_equal(result.exit, 0, result.err)
        sizes = [int(line.split()[1]) for line in result.out.decode().splitlines() if line.startswith(" get ")]
        check_equal(sizes, [2 ** power for power in range(1, 21)])
        check(re.match(r"kvbench: all: needs about [0-9.]+ MiB of the server's memory, which is 64 MiB: ",
                       result.err), result.err)
        check_equal(result.err.count("\n"), 1, result.err)
    kvcli.ok("flush", "--yes")
    small = harness.Server(KVD, "--memory=16m", "--hugepages=off")
    try:
        small.start(harness.Kvcli(KVCLI, small.target))
        result = harness.Kvcli(KVBENCH, small.target).run("--all")
        check_equal((result.exit, result.out), (5, b""), result.err)
        check("kvbench: all: needs about " in result.err and "--memory" in result.err, result.err)
    finally:
        small.close()


def nothing_there():
    """kvbench: that every GET found nothing is said, with what to do; that some did is not"""
    never_stored = ("--key_size=9", "--load=false", "--warmup=0", "-n", "100")
    for flags in (("--mix=c",), ("--mix=c", "--batch=10"), ("--mix=c", "--misses=50")):
        result = bench.run(*never_stored, *flags)
        check_equal(result.exit, 0, flags, result.err)
        check(result.err.startswith("kvbench: get: every GET found nothing; leave out --load=false"),
              flags, result.err)
    bench.ok("--key_size=9", "--keys=50", "-n", "1")
    for flags in (("--keys=100",), ("--keys=50", "--misses=100")):
        result = bench.run(*never_stored, "--mix=c", *flags)
        check_equal((result.exit, result.err), (0, ""), flags)


def interrupted():
    """kvbench: Ctrl-C prints what was measured and exits with 130"""
    for flags in ((), ("--processes", "--clients=2")):
        process = started("--json=-", *flags)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=harness.TIMEOUT_S)
        check_equal(process.returncode, 130, err)
        run = json.loads(out)["runs"][0]
        check_equal(run["interrupted"], True)
        check(sum(entry["count"] for entry in run["operations"].values()) > 0)


def puts():
    """PUTs that the server has executed so far."""
    statistics = json.loads(kvcli.ok("stat", "-w", "json"))
    return int(statistics["puts"])


def started(*flags):
    """A run without an end that has put more than its load phase does: so it measures."""
    before = puts()
    process = bench.start(*SHORT, "--seconds=1h", *flags)
    while puts() < before + 2000 + 200:
        check(process.poll() is None, "it ended early")
    return process


def errors():
    """kvbench: what cannot be done is said in one line, with what is allowed, and a status"""
    for flags, status, words in (
            (("--dist=zpf",), 2, "--dist=zpf is not understood; give uniform, zipf:THETA"),
            (("--keys=0",), 2, "--keys=0 is not possible; give 1 to"),
            (("--mix=e",), 2, "--mix=e scans ranges"),
            (("extra",), 2, "one argument too many"),
            (("--server=shm:/nonexistent/kvd.sock",), 3, "/nonexistent/kvd.sock"),
            (("--keys=2000000", "--value_size=1k"), 5, "load: "),
            (("--json=/nonexistent/x",), 7, "/nonexistent/x"),
            (("--json=/",), 7, "cannot open /"),
            (("--hgrm=/nonexistent/x",), 7, "/nonexistent/x"),
            (("--keys", "--hex"), 2, "--keys needs a value, and --hex looks like a flag"),
            (("--nonsense",), 2, "unknown flag --nonsense; see 'kvbench --help'")):
        result = bench.run(*flags)
        check_equal(result.exit, status, flags, result.err)
        check(words in result.err, flags, result.err)
        check(result.err.startswith("kvbench: ") and result.err.count("\n") == 1, flags, result.err)
        # Before anything was measured.
        check_equal(result.out, b"", flags)
    kvcli.ok("flush", "--yes")


def help_and_completion():
    """kvbench: help, version and completion exit with 0"""
    check(b"--rate=OPS" in bench.ok("--help"))
    check(bench.ok("--version").startswith(b"kvbench "))
    script = bench.ok("--completion=bash").decode()
    probe = script + "\nCOMP_WORDS=(kvbench --loc); COMP_CWORD=1; compopt() { :; }; _kvbench; echo \"${COMPREPLY[@]}\"\n"
    check_equal(subprocess.run(["bash", "-c", probe], capture_output=True, check=True).stdout,
                b"--location_cache=\n")


def dead_client():
    """kvbench: a client process that is killed is reported, and ends the run"""
    process = started("--clients=2", "--processes")
    os.kill(children(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=harness.TIMEOUT_S)
    check(b"was ended by signal 9" in err, err)
    check_equal(process.returncode, 7)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as text:
        return [int(word) for word in text.read().split()]


if __name__ == "__main__":
    harness.seeded_random()
    try:
        server.start(kvcli)
        harness.run_cases([mixes, self_certifying, one_sided, misses, json_members, same_seed, hgrm,
                           open_loop, table, all_sizes, nothing_there, interrupted, errors, help_and_completion,
                           dead_client])
    finally:
        server.close()
