#!/usr/bin/env python3
"""plan_test.py KVD KVCLI: what kvcli plan says, against a kvd that is filled accordingly."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Kvcli, Server, check, check_equal, run_cases, seeded_random  # noqa: E402

KVD, KVCLI = (os.path.abspath(path) for path in sys.argv[1:])
RANDOM = seeded_random()
OVERSIZED_MAX = 1.15


def plan(*flags):
    return json.loads(Kvcli(KVCLI, "").ok("plan", *flags, "-w", "json"))


def fill(items, sizes, value_size, *plan_flags, kvd_flags=()):
    """Loads `items` items of sizes() into a kvd of the memory that is planned; its statistics and the plan."""
    planned = plan(f"--items={items}", f"--value_size={value_size}", "--key_size=8", *plan_flags)
    server = Server(KVD, f"--memory={planned['memory_bytes']}", "--hugepages=off", *kvd_flags)
    kvcli = Kvcli(KVCLI, server.target)
    try:
        server.start(kvcli)
        path = server.path("items.tsv")
        filler = "v" * (1 << 20)
        with open(path, "w", encoding="ascii") as file:
            for number in range(items):
                file.write(f"{number:08x}\t{filler[:sizes()]}\n")
        loaded = kvcli.run("load", path, "--format=tsv")
        check_equal(loaded.exit, 0, value_size, planned, loaded.err)
        statistics = json.loads(kvcli.ok("stat", "-w", "json"))
        check_equal(statistics["items"], items)
        check_equal(statistics["no_space"], 0)
        return statistics, planned
    finally:
        server.close()


def check_fits(items, sizes, value_size, *plan_flags, kvd_flags=()):
    statistics, planned = fill(items, sizes, value_size, *plan_flags, kvd_flags=kvd_flags)
    used = statistics["memory_bytes"] - statistics["free_bytes"]
    oversized = planned["memory_bytes"] / used
    print(f"{items} x {value_size}: planned {planned['memory_bytes']}, used {used}: {oversized:.3f}; index "
          f"{planned['index_bytes']} and {statistics['index_bytes']}")
    check(oversized <= OVERSIZED_MAX, value_size, planned, used)


def of_64_bytes():
    """kvcli plan: 64 B values: a kvd of that memory refuses none, and at most 15 % of it is over"""
    check_fits(400_000, lambda: 64, "64")


def of_long_values():
    """kvcli plan: a kvd for values that are longer than it takes by itself is told so"""
    for size, flag in (("64m", ""), ("100m", " --max_value=100m"), ("64m..65m", " --max_value=65m")):
        said = Kvcli(KVCLI, "").ok("plan", "--items=3", f"--value_size={size}").decode()
        check(("--max_value" in said) == (flag != ""), said)
        check(flag in said, size, said)


def of_1_kb():
    """kvcli plan: 1 KB values: likewise"""
    check_fits(60_000, lambda: 1000, "1000")


def of_4_kib():
    """kvcli plan: 4 KiB values: likewise"""
    check_fits(15_000, lambda: 4096, "4k")


def of_100_kb():
    """kvcli plan: 100 KB values: likewise"""
    check_fits(600, lambda: 100_000, "100000")


def of_a_mix():
    """kvcli plan: a mix of sizes: likewise"""
    def size():
        return RANDOM.choices([64, RANDOM.randint(1000, 4000), 20_000], [70, 28, 2])[0]
    check_fits(40_000, size, "64:70,1000..4000:28,20000:2")


def with_pollers():
    """kvcli plan --pollers: each has its part; likewise"""
    check_fits(400_000, lambda: 64, "64", "--pollers=2", kvd_flags=("--pollers=2",))


def growth():
    """kvcli plan --growth: is for so many items more"""
    check_equal(plan("--items=1000000", "--value_size=64", "--growth=30"),
                plan("--items=1300000", "--value_size=64"))


def for_people():
    """kvcli plan: tells people the flag, the pages and the locked memory"""
    numbers = plan("--items=1000000", "--value_size=64")
    text = Kvcli(KVCLI, "").ok("plan", "--items=1000000", "--value_size=64").decode()
    check_equal(numbers["memory_bytes"] % (2 << 20), 0)
    mebibytes = numbers["memory_bytes"] >> 20
    for words in (f"kvd --memory={mebibytes}m", f"{mebibytes // 2} of 2 MiB", "LimitMEMLOCK=infinity",
                  "READs per GET", "how sure"):
        check(words in text, words, text)


def refused():
    """kvcli plan: what it cannot plan for is refused with cause and remedy"""
    for flags, words in (
            ((), "--items=N and --value_size=SIZES are needed"),
            (("--items=5",), "--items=N and --value_size=SIZES are needed"),
            (("--items=5", "--value_size=x"), "--value_size=x is not understood; give a size such as 64"),
            (("--items=5", "--value_size=64", "--key_size=5000"), "keys have at most 4096 bytes"),
            (("--items=2000000000000", "--value_size=64"), "more than 2^40"),
            (("--items=5", "--value_size=64", "--pollers=0"), "from 1 to 256"),
            (("--items=-5", "--value_size=64"), "--items=-5"),
            (("--items=5", "--value_size=64", "--growth=10001"), "at most 10000")):
        result = Kvcli(KVCLI, "").run("plan", *flags)
        check_equal((result.exit, result.out), (2, b""), flags, result.err)
        check(words in result.err and result.err.count("\n") == 1, flags, result.err)


if __name__ == "__main__":
    run_cases([of_long_values, of_64_bytes, of_1_kb, of_4_kib, of_100_kb, of_a_mix, with_pollers, growth, for_people, refused])
