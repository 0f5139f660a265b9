#!/usr/bin/env python3
"""Counts the instructions of GETs and PUTs and compares them with what is written down.

usage: instructions_test.py DRIVER RECORDED.json [--record]

The counts do not depend on the clock, and hardly on the machine. RECORDED.json has the count of each case, per operation,
and how far above it a case may be, in percent. A case that needs more fails; one that needs a lot less asks to be written
down anew, so that it stays guarded: --record does that, in the file that is named.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile


def dumps(driver):
    """What callgrind wrote of each case: its name, its operations, its interruptions, the text."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--dump-instr=no",
             f"--callgrind-out-file={folder}/out", driver],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{driver} under valgrind: exit status {run.returncode}\n{run.stdout}")
        for path in glob.glob(f"{folder}/out.*"):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            trigger = re.search(r"^desc: Trigger: Client Request: (\d+) (\d+) (.*)$", text, re.M)
            if trigger:
                operations, interruptions, name = trigger.groups()
                yield name, int(operations), int(interruptions), text


def count(driver):
    """Instructions per operation by case."""
    counts = {}
    interrupted = {}
    for name, operations, interruptions, text in dumps(driver):
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        counts[name] = int(total.group(1)) / operations
        interrupted[name] = interruptions / operations
    # What switching the counting off and on again costs is not kvd's.
    price = counts.pop("interruption")
    del interrupted["interruption"]
    return {name: counts[name] - price * interrupted[name] for name in interrupted}


def judge(counts, recorded):
    """Lines for tests/run.sh, and whether all cases passed."""
    margin = recorded["margin_percent"] / 100
    lines, passed = [], True
    for name, before in sorted(recorded["instructions"].items()):
        now = counts.get(name)
        problem = None
        if now is None:
            problem = "was not counted"
        elif now > before * (1 + margin):
            problem = f"{now:.0f} instructions, {before} are written down"
        elif now < before * (1 - 2 * margin):
            problem = f"{now:.0f} instructions, well below the {before} that are written down: --record"
        passed &= problem is None
        lines.append(f"KVD_CASE {'failed' if problem else 'passed'} Instructions: {name}" +
                     (f": {problem}" if problem else f": {now:.0f}"))
    for name in sorted(set(counts) - set(recorded["instructions"])):
        passed = False
        lines.append(f"KVD_CASE failed Instructions: {name}: nothing is written down: --record")
    return lines, passed


def main():
    driver, path = sys.argv[1:3]
    counts = count(os.path.abspath(driver))
    with open(path, encoding="utf-8") as file:
        recorded = json.load(file)
    if "--record" in sys.argv[3:]:
        recorded["instructions"] = {name: round(value) for name, value in sorted(counts.items())}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recorded, file, indent=2)
            file.write("\n")
        return 0
    lines, passed = judge(counts, recorded)
    print("\n".join(lines))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
