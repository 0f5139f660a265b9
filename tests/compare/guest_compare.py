#!/usr/bin/env python3
"""kvbench and compare.py --guest over verbs, with perftest beside them. Run in the Soft-RoCE guest.

guest_compare.py KVD KVBENCH COMPARE.PY
"""

import json
import os
import subprocess
import sys
import tempfile

KVD, KVBENCH = (os.path.abspath(path) for path in sys.argv[1:3])
COMPARE = next(os.path.abspath(path) for path in sys.argv[3:] if path.endswith("/compare.py"))
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "e2e", "kvcli"))
import harness  # noqa: E402
from harness import check, check_equal  # noqa: E402

work = tempfile.mkdtemp(prefix="kvd-compare-test.", dir="/tmp")


def across_devices():
    """compare --guest: kvd over verbs, and its ratios to perftest on the same devices"""
    folder = os.path.join(work, "bin")
    for path, program in (("server/kvd", KVD), ("client/bench/kvbench/kvbench", KVBENCH)):
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        os.symlink(program, os.path.join(folder, path))
    done = subprocess.run([sys.executable, COMPARE, "--guest", "--smoke", f"--bin={folder}", f"--out={work}"],
                          capture_output=True, text=True, check=False)
    check_equal(done.returncode, 0, done.stdout, done.stderr)
    with open(os.path.join(work, "guest.json"), encoding="utf-8") as text:
        rows = [row for row in json.load(text)["median"] if row["peer"] == "kvd over verbs"]
    check_equal(len(rows), 5, done.stdout, done.stderr)
    # A GET, cold and known, a batch of either kind, and a PUT: each beside what the devices do.
    for row, floor in zip(rows, ("ib_read_lat", "ib_read_lat", "ib_read_bw", "ib_read_bw", "2 x ib_send_lat")):
        check(row["p50_us"] > 0, row)
        names = list(row["ratios"])
        check(len(names) == 1 and names[0].startswith(floor), row, done.stdout)
        check(row["ratios"][names[0]] > 0, row)
        check(row["load"].startswith("PUT") or 1 <= row["reads_per_get"] < 1.5, row)


if __name__ == "__main__":
    harness.run_cases([across_devices])
