#!/usr/bin/env python3
"""client/bench/compare: the runner's smoke mode, and the drivers of the peers.

compare_test.py KVD KVBENCH PEERBENCH POINTER_CHASE COMPARE.PY...
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

KVD, KVBENCH, PEERBENCH, CHASE = (os.path.abspath(path) for path in sys.argv[1:5])
COMPARE = next(os.path.abspath(path) for path in sys.argv[5:] if path.endswith("/compare.py"))
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "e2e", "kvcli"))
import harness  # noqa: E402
from harness import check, check_equal  # noqa: E402

work = tempfile.mkdtemp(prefix="kvd-compare-test.", dir="/tmp")


def programs():
    """A folder as Bazel's: with the programs where compare.py looks for them."""
    folder = os.path.join(work, "bin")
    for path, program in (("server/kvd", KVD), ("client/bench/kvbench/kvbench", KVBENCH),
                          ("client/bench/compare/peerbench", PEERBENCH),
                          ("client/bench/compare/pointer_chase", CHASE)):
        link = os.path.join(folder, path)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.exists(link):
            os.symlink(program, link)
    return folder


def compare(*flags, **environment):
    return subprocess.run([sys.executable, COMPARE, "--smoke", f"--bin={programs()}", *flags],
                          capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ, **environment})


def peer(target, *flags):
    """What a short run of peerbench reports."""
    done = subprocess.run([PEERBENCH, f"--server={target}", "--keys=500", "-n", "2000", "--warmup=0", "--json=-",
                           *flags], capture_output=True, text=True, check=False, timeout=300)
    check_equal(done.returncode, 0, target, flags, done.stderr)
    return json.loads(done.stdout)["runs"][0]


def in_process():
    """compare: the stores in process do every mix, one key at a time and in batches"""
    for number, mix in enumerate(("95:5", "a", "c", "d", "f")):
        for flags in ((), ("--batch=16",), ("--clients=2",)):
            folder = os.path.join(work, f"lmdb{number}{len(flags)}{''.join(flags)}")
            os.mkdir(folder)
            for target in ("map:", "lmdb:" + folder):
                run = peer(target, f"--mix={mix}", *flags)
                check(sum(entry["count"] for entry in run["operations"].values()) >= 2000, target, mix, flags)
                check_equal(run["figures"]["not_found"], 0, target, mix, flags)


def usage():
    """compare: peerbench names a target that it does not know"""
    for flags, words in ((("--server=oracle:",), "--server=oracle: is not understood"),
                         (("--server=redis:nowhere",), "give the path of a socket, or HOST:PORT"),
                         (("--server=map:", "--processes", "--clients=2"), "within one process")):
        done = subprocess.run([PEERBENCH, *flags], capture_output=True, text=True, check=False)
        check_equal(done.returncode, 2, done.stderr)
        check(words in done.stderr, done.stderr)
    done = subprocess.run([PEERBENCH, f"--server=redis:{work}/none.sock"], capture_output=True, text=True, check=False)
    check_equal(done.returncode, 3, done.stderr)


def smoke():
    """compare: one command measures every peer that is installed, and writes table, JSON and plots"""
    out = os.path.join(work, "out")
    done = compare(f"--out={out}")
    check_equal(done.returncode, 0, done.stdout, done.stderr)
    with open(os.path.join(out, "compare.json"), encoding="utf-8") as text:
        result = json.load(text)
    check("kvd, shared memory" in result["peers"], result["peers"])
    for name, reason in result["skipped"].items():
        check(f"skipped: {name}: {reason}" in done.stdout, done.stdout)
    check_equal(len(result["peers"]) + len(result["skipped"]), 6)
    for load, entries in result["loads"].items():
        for name in result["peers"]:
            check(entries[name]["median"]["ops_per_second"] > 0, load, name)
    # Over a dozen steps of filling, as it would be over RDMA.
    check_equal(len(result["reads"]), 12)
    for _, hits, misses, share in result["reads"]:
        check(1 <= hits < 2 and 1 <= misses < 2 and 0 < share < 1, result["reads"])
    with open(os.path.join(out, "compare.md"), encoding="utf-8") as text:
        table = text.read()
    for row in re.findall(r"^\| (?!---).*", table, re.M):
        check(row.count("|") in (3, 8), row)
    if shutil.which("gnuplot"):
        for name in ("latency", "clients", "growth", "reads"):
            with open(os.path.join(out, name + ".svg"), encoding="utf-8") as text:
                check("</svg>" in text.read(), name)
    else:
        check("skipped: plots: gnuplot is not installed" in done.stdout, done.stdout)


def not_installed():
    """compare: what is not installed is skipped, and named"""
    # Only what the runner itself needs can be found.
    done = subprocess.run([sys.executable, "-c", f"""
import sys
sys.path.insert(0, {os.path.dirname(COMPARE)!r})
import compare
compare.tool_path = lambda: "/nonexistent"
sys.argv = ["compare.py", "--smoke", "--bin={programs()}", "--out={work}/bare", "--only=redis,memcached,flat"]
compare.main()
"""], capture_output=True, text=True, check=False, timeout=600)
    check_equal(done.returncode, 0, done.stdout, done.stderr)
    for line in ("skipped: memcached, Unix socket: memcached is not installed",
                 "skipped: memcached, TCP: memcached is not installed",
                 "skipped: redis, Unix socket: redis-server is not installed",
                 "skipped: plots: gnuplot is not installed"):
        check(line in done.stdout, line, "\n", done.stdout)


def not_built():
    """compare: programs that are not built are named"""
    done = subprocess.run([sys.executable, COMPARE, "--bin=/nonexistent", f"--out={work}/x"], capture_output=True,
                          text=True, check=False)
    check(done.returncode != 0)
    check("/nonexistent/server/kvd is not built" in done.stderr, done.stderr)


if __name__ == "__main__":
    try:
        harness.run_cases([in_process, usage, smoke, not_installed, not_built])
    finally:
        shutil.rmtree(work, ignore_errors=True)
