#!/usr/bin/env python3
"""Shows where the instructions of a case go, by source file.

usage: where.py DRIVER CASE...

DRIVER is count_driver built with line numbers (bazel build --strip=never --copt=-g1 //tests/instructions:count_driver), CASE
the name of one as in recorded.json. What the compiler has inlined counts for the file that it comes from. Of the files
below tests/, whose share is marked with a star, most stands for the device or the other end.
"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from instructions_test import dumps  # pylint: disable=wrong-import-position

POSITION = re.compile(r"(fl|fi|fe|fn|cfi|cfl)=\((\d+)\)(?: (.*))?")
COST = re.compile(r"[+\-*\d]\S* (\d+)$")


def by_file(text):
    """Instructions by source file, from one of callgrind's dumps."""
    files, costs = {}, collections.Counter()
    file, of_call = None, False
    for line in text.splitlines():
        position = POSITION.match(line)
        if position:
            kind, number, name = position.groups()
            if kind == "fn":
                continue
            if name:
                files[number] = name
            if not kind.startswith("c"):
                file = files[number]
        elif line.startswith("calls="):
            of_call = True
        elif cost := COST.match(line):
            if not of_call:
                costs[short(file)] += int(cost.group(1))
            of_call = False
    return costs


def short(path):
    """The path below the project's root, or the last two parts of another one."""
    path = re.sub(r"^/proc/self/cwd/(\./)?", "", path or "?")
    return "/".join(path.split("/")[-2:]) if path.startswith("/") else path


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    wanted = set(sys.argv[2:])
    for name, operations, _, text in dumps(os.path.abspath(sys.argv[1])):
        if name not in wanted:
            continue
        wanted.remove(name)
        print(name)
        for file, cost in by_file(text).most_common():
            if cost / operations >= 0.5:
                print(f"{cost / operations:8.1f} {'*' if file.startswith('tests/') else ' '} {file}")
    return f"no such case: {', '.join(sorted(wanted))}" if wanted else 0


if __name__ == "__main__":
    sys.exit(main())
