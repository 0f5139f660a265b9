#!/usr/bin/env python3
"""statistics_test.py KVD KVCLI STATISTICS_MD SOURCE...: every name that stat prints is documented, and the other way round.

SOURCE: where the names are given that only a kvd with RDMA prints.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Kvcli, Server, check, check_equal, run_cases  # noqa: E402

KVD, KVCLI_BINARY, DOCUMENT, *SOURCES = (os.path.abspath(path) for path in sys.argv[1:])
SERVER = Server(KVD, "--memory=64m", "--hugepages=off")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documented():
    """Names, each with its unit."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+\|$", read(DOCUMENT), re.MULTILINE)
    check_equal(len({name for name, _ in rows}), len(rows), "a name is documented twice")
    return dict(rows)


def printed():
    return [line.split()[0] for line in KVCLI.ok("stat").decode().splitlines()]


def of_shared_memory():
    """docs/statistics.md: has what a kvd prints that serves shared memory, and no more"""
    names = {name for name in documented() if not name.startswith("rdma_")}
    check_equal(sorted(printed()), sorted(names))


def of_rdma():
    """docs/statistics.md: has what a kvd prints besides that serves RDMA, and no more"""
    given = set()
    for source in SOURCES:
        given |= set(re.findall(r'(?:Text|Gauge|gauge|count)\(\s*"(rdma_\w+)"', read(source)))
    check(len(given) > 10, "the sources give", given)
    check_equal(sorted(given), sorted(name for name in documented() if name.startswith("rdma_")))


def units():
    """docs/statistics.md: says the unit that a name carries"""
    for name, unit in documented().items():
        for ending, expected in (("_bytes", "bytes"), ("_ns", "ns"), ("_us", "us"), ("_seconds", "s")):
            if name.endswith(ending):
                check_equal(unit, expected, name)


if __name__ == "__main__":
    try:
        SERVER.start(KVCLI)
        run_cases([of_shared_memory, of_rdma, units])
    finally:
        SERVER.close()
