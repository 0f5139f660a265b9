#!/usr/bin/env python3
"""hugepages_test.py KVD KVD_HUGEPAGES: the helper, over a made-up /sys."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kvcli"))
from harness import Skipped, check, check_equal, run_cases  # noqa: E402

KVD, HELPER = (os.path.abspath(path) for path in sys.argv[1:])

# Stands for the kernel: what is written to a pool it gives as far as it has it, and no further than to $PAGES_MAX.
KERNEL = """#!/bin/bash
read -r wanted
echo "$wanted" >>"$WRITES"
[[ $1 == */nr_hugepages ]] || exit 0
directory=${1%/nr_hugepages}
had=$(<"$directory/nr_hugepages") free=$(<"$directory/free_hugepages")
gets=$((wanted < PAGES_MAX ? wanted : PAGES_MAX))
echo $gets >"$directory/nr_hugepages"
echo $((free + gets - had)) >"$directory/free_hugepages"
"""


class Machine:
    """A root directory with pools of 2 MiB on two nodes and of 1 GiB, in which others use some pages."""

    def __init__(self, total=10, free=4, available_kib=64 << 20):
        self.holder = tempfile.TemporaryDirectory()
        self.root = self.holder.name
        self.write("proc/meminfo", f"MemTotal: 99999999 kB\nMemAvailable: {available_kib} kB\n")
        for kind in ("2048kB", "1048576kB"):
            self.pool("sys/kernel/mm/hugepages/hugepages-" + kind, total, free)
            for node in (0, 1):
                self.pool(f"sys/devices/system/node/node{node}/hugepages/hugepages-{kind}", total // 2, free // 2)
        for node in (0, 1):
            self.write(f"sys/devices/system/node/node{node}/meminfo", f"Node {node} MemFree:  {available_kib // 2} kB\n")
        tee = self.write("bin/tee", KERNEL)
        os.chmod(tee, os.stat(tee).st_mode | stat.S_IXUSR)
        self.writes_path = os.path.join(self.root, "writes")

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def pool(self, directory, total, free):
        self.write(directory + "/nr_hugepages", f"{total}\n")
        self.write(directory + "/free_hugepages", f"{free}\n")

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    def writes(self):
        return self.read("writes").split() if os.path.exists(self.writes_path) else []

    def run(self, *arguments, pages_max=10**9):
        environment = {**os.environ, "PATH": self.root + "/bin:" + os.environ["PATH"], "WRITES": self.writes_path,
                       "PAGES_MAX": str(pages_max)}
        done = subprocess.run(["bash", HELPER, "--sysfs_root=" + self.root, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=environment)
        return done.returncode, done.stdout, done.stderr


POOL = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


def plan_changes_nothing():
    """kvd-hugepages: without --apply says what is needed, there and planned, and writes nothing"""
    machine = Machine()
    status, out, err = machine.run("--memory=64m")
    check_equal((status, err), (0, ""))
    check("needed: 32 pages of 2 MiB\n" in out and "pool: 10, of which free 4\n" in out, out)
    check("nr_hugepages from 10 to 38\n" in out, out)  # others keep their 6
    check_equal(machine.writes(), [])


def same_sizes_as_kvd():
    """kvd-hugepages --memory: takes the sizes that kvd takes, as so many bytes, and no others"""
    machine = Machine()
    compared = 0
    for text in ("64m", "64M", "1g", "1G", "65536k", "67108864", "0100m", "1t", "5000000000"):
        status, out, _ = machine.run("--memory=" + text)
        check_equal(status, 0, text)
        with tempfile.TemporaryDirectory() as directory:
            kvd = subprocess.run([KVD, "--check", "--memory=" + text, "--hugepages=require", "--shm=" + directory + "/s"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
        of_kvd = re.search(r"need(?:s)? (\d+) (?:x 2 MiB|.*2 MiB)", kvd)
        if of_kvd and "free" in kvd:
            check_equal(re.search(r"needed: (\d+) pages", out)[1], of_kvd[1], text, kvd)
            compared += 1
    check(compared >= 5, "kvd named the pages of", compared, "sizes")
    for text in ("", "m", "12q", "-1", "1.5g", "64mb", "0x40m", "64 m", "99999999999999999999g"):
        status, out, err = machine.run("--memory=" + text)
        kvd = subprocess.run([KVD, "--check", "--memory=" + text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             check=False)
        check_equal((status, kvd.returncode, out), (2, 2, ""), repr(text), err)
        check("--memory=" + text in err, err)


def applies():
    """kvd-hugepages --apply: grows the pool by what is missing, and looks at what there is then"""
    machine = Machine()
    status, out, err = machine.run("--memory=64m", "--apply")
    check_equal((status, err), (0, ""))
    check_equal(machine.read(POOL), "38\n")
    check(out.endswith("got: pool 38, of which free 32\n"), out)


def never_shrinks():
    """kvd-hugepages --apply: leaves a pool alone that has the pages"""
    machine = Machine(total=100, free=90)
    status, out, _ = machine.run("--memory=64m", "--apply")
    check_equal(status, 0)
    check("plan: nothing to do" in out, out)
    check_equal(machine.writes(), [])


def one_node():
    """kvd-hugepages --numa_node: pages of that node alone"""
    machine = Machine()
    status, out, err = machine.run("--memory=64m", "--numa_node=1", "--apply")
    check_equal((status, err), (0, ""))
    check_equal(machine.read("sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"), "35\n")
    check_equal(machine.read(POOL), "10\n")
    check("32 pages of 2 MiB of node 1" in out, out)
    status, _, err = machine.run("--memory=64m", "--numa_node=2", "--apply")
    check_equal(status, 1)
    check("no NUMA node 2" in err, err)


def gigantic():
    """kvd-hugepages --page_size=1g: counts those, and refuses what kvd would not put into them"""
    machine = Machine(total=0, free=0)
    status, out, _ = machine.run("--memory=3g", "--page_size=1g", "--apply")
    check_equal(status, 0)
    check("needed: 3 pages of 1 GiB" in out, out)
    check_equal(machine.read("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"), "3\n")
    status, _, err = machine.run("--memory=3000m", "--page_size=1g")
    check_equal(status, 2)
    check("not whole GiB" in err, err)


def fragmented():
    """kvd-hugepages --apply: fewer pages than asked for end with 1 and the kernel's command line"""
    machine = Machine()
    machine.write("proc/sys/vm/compact_memory", "")
    status, out, err = machine.run("--memory=64m", "--apply", pages_max=20)
    check_equal(status, 1)
    check("got: pool 20, of which free 14: 18 pages of 2 MiB too few" in out, out)
    check("not in one piece" in err and "hugepagesz=2M hugepages=38" in err, err)
    check_equal(machine.writes(), ["38", "1", "38"])  # once more after compaction


def too_little_memory():
    """kvd-hugepages --apply: says so where the machine has not that much memory"""
    machine = Machine(available_kib=1024)
    status, _, err = machine.run("--memory=64m", "--apply", pages_max=20)
    check_equal(status, 1)
    check("more than this machine has free (1024 KiB)" in err and "smaller --memory" in err, err)


def persists():
    """kvd-hugepages --persist: writes what the next start of the machine reads"""
    machine = Machine()
    check_equal(machine.run("--memory=64m", "--persist")[0], 0)
    check("vm.nr_hugepages = 38\n" in machine.read("etc/sysctl.d/60-kvd-hugepages.conf"))
    check_equal(machine.run("--memory=64m", "--numa_node=0", "--persist")[0], 0)
    check("w /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages - - - - 35\n" in
          machine.read("etc/tmpfiles.d/kvd-hugepages-node0-2m.conf"))


def from_flag_file():
    """kvd-hugepages --flagfile: takes --memory from kvd's flag file"""
    machine = Machine()
    for line in ("--memory=64m", "  --memory = 64m # much", "--memory 64m"):
        path = machine.write("kvd.flags", "#--memory=1g\n" + line + "\n")
        status, out, err = machine.run("--flagfile=" + path)
        check_equal((status, err), (0, ""), line)
        check("needed: 32 pages" in out, line, out)
    path = machine.write("kvd.flags", "#--memory=1g\n")
    status, _, err = machine.run("--flagfile=" + path)
    check_equal(status, 1)
    check("has no --memory" in err, err)


def several():
    """kvd-hugepages: pages for several kvds are added up"""
    machine = Machine(total=0, free=0)
    check("needed: 48 pages" in machine.run("--memory=64m", "--memory=32m")[1])


def refuses():
    """kvd-hugepages: what it does not understand, or is not there, is refused and named"""
    machine = Machine()
    for arguments, exit_status, words in (
            ((), 2, "--memory=SIZE is missing"), (("--memory=1m",), 2, "less than a page"),
            (("--memory=1g", "--page_size=4k"), 2, "expected 2m or 1g"), (("--memory=1g", "stray"), 2, "'stray'"),
            (("--memory=1g", "--numa_node=x"), 2, "number of a node"), (("--flagfile=/none",), 1, "/none cannot be read")):
        status, out, err = machine.run(*arguments)
        check_equal((status, out), (exit_status, ""), arguments, err)
        check(words in err, arguments, err)
    os.rename(machine.root + "/sys/kernel/mm/hugepages", machine.root + "/gone")
    status, _, err = machine.run("--memory=1g")
    check_equal(status, 1)
    check("no pages of 2 MiB" in err and "--hugepages=off" in err, err)


def shellchecked():
    """kvd-hugepages: shellcheck has nothing to say"""
    if shutil.which("shellcheck") is None:
        raise Skipped("there is no shellcheck; install the package shellcheck")
    done = subprocess.run(["shellcheck", HELPER], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=60)
    check_equal((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    run_cases([plan_changes_nothing, same_sizes_as_kvd, applies, never_shrinks, one_node, gigantic, fragmented,
               too_little_memory, persists, from_flag_file, several, refuses, shellchecked])
