#!/usr/bin/env python3
"""systemd_test.py KVD KVD_SERVICE KVD_AT_SERVICE SYSCTL LIMITS: the units, as systemd reads them and without it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kvcli"))
from harness import Skipped, check, check_equal, run_cases  # noqa: E402

KVD, UNIT, TEMPLATE, SYSCTL, LIMITS = (os.path.abspath(path) for path in sys.argv[1:])
EXPOSURE_MAX = 2.5


def directives(path):
    """Values by (section, name), in order, as systemd.syntax(7) has it."""
    found, section = {}, None
    with open(path, encoding="utf-8") as unit:
        for line in unit:
            line = line.strip()
            if not line or line[0] in "#;":
                continue
            if line[0] == "[":
                section = line.strip("[]")
                continue
            name, equals, value = line.partition("=")
            check(equals, path, "has a line that is no directive:", line)
            found.setdefault((section, name), []).append(value)
    return found


def flags_of_kvd():
    text = subprocess.run([KVD, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return set(re.findall(r"^  --([a-z_]+)", text, re.MULTILINE))


def analyze(*arguments):
    """systemd-analyze's run over copies of the units that start a kvd that is there."""
    if shutil.which("systemd-analyze") is None:
        raise Skipped("there is no systemd-analyze; install the package systemd")
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for unit in (UNIT, TEMPLATE):
            name = os.path.basename(unit).replace("@.", "@0.")
            paths.append(os.path.join(directory, name))
            with open(unit, encoding="utf-8") as source, open(paths[-1], "w", encoding="utf-8") as copy:
                copy.write(source.read().replace("/usr/bin/kvd", KVD))
        return subprocess.run(["systemd-analyze", *arguments, *paths], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=60)


def verified():
    """kvd.service, kvd@.service: systemd-analyze verify has nothing to say"""
    done = analyze("verify", "--man=no")
    check_equal((done.returncode, done.stdout), (0, ""))


def exposure():
    """kvd.service, kvd@.service: an exposure of 2.5 at most, by systemd-analyze security"""
    done = analyze("security", "--offline=true", "--no-pager")
    levels = re.findall(r"Overall exposure level for (\S+): ([0-9.]+)", done.stdout)
    check_equal(len(levels), 2, done.stdout)
    for unit, level in levels:
        print(unit, "has an exposure of", level)
        check(float(level) <= EXPOSURE_MAX, unit, level, done.stdout)


def service_directives():
    """kvd.service, kvd@.service: directives without which kvd would not run as it should stand"""
    for path in (UNIT, TEMPLATE):
        unit = directives(path)
        expected = {
            "Type": "notify", "ExecReload": "/bin/sh -c 'kill -HUP $MAINPID'", "User": "kvd", "LimitMEMLOCK": "infinity",
            "Restart": "on-failure", "RestartPreventExitStatus": "2 78", "TimeoutStartSec": "infinity",
            "NoNewPrivileges": "yes", "ProtectSystem": "strict", "DevicePolicy": "closed", "CapabilityBoundingSet": "",
            "OOMScoreAdjust": "-900", "RuntimeDirectoryMode": "0755",
        }
        for name, value in expected.items():
            check_equal(unit.get(("Service", name)), [value], path, name)
        check_equal(sorted(unit[("Service", "DeviceAllow")]),
                    ["/dev/infiniband/rdma_cm rw", "char-infiniband_verbs rw"], path)
        check_equal(sorted(unit[("Service", "RestrictAddressFamilies")][0].split()),
                    ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"], path)
        for name in ("PrivateDevices", "PrivateNetwork", "PrivateUsers", "ProcSubset", "MemoryMax", "IPAddressDeny"):
            check(("Service", name) not in unit, path, "has", name, "by which something of kvd's would not work")
        check_equal(unit[("Install", "WantedBy")], ["multi-user.target"], path)


def one_socket():
    """kvd.service, kvd@.service: the socket lies in the directory that systemd makes for it"""
    for path, socket in ((UNIT, "/run/kvd/kvd.sock"), (TEMPLATE, "/run/kvd-%i/kvd.sock")):
        unit = directives(path)
        start = unit[("Service", "ExecStart")][0].split()
        check("--shm=" + socket in start, path, start)
        check_equal("/run/" + unit[("Service", "RuntimeDirectory")][0], os.path.dirname(socket), path)


def known_flags():
    """kvd.service, kvd@.service: kvd has each flag that they give"""
    known = flags_of_kvd()
    for path in (UNIT, TEMPLATE):
        given = re.findall(r"--([a-z_]+)", directives(path)[("Service", "ExecStart")][0])
        check(len(given) >= 2, path, given)
        for flag in given:
            check(flag in known, path, "gives --" + flag, "and kvd has", sorted(known))


def same_but_for_the_node():
    """kvd@.service differs from kvd.service in what an instance has for itself"""
    own = {("Unit", "Description"), ("Unit", "AssertPathExists"), ("Service", "ExecStart"),
           ("Service", "RuntimeDirectory")}
    one, many = directives(UNIT), directives(TEMPLATE)
    differs = {key for key in one.keys() | many.keys() if one.get(key) != many.get(key)}
    check_equal(sorted(differs), sorted(own))


def system_calls():
    """kvd.service: kvd makes no system call that its filter forbids"""
    if shutil.which("strace") is None or shutil.which("systemd-analyze") is None:
        raise Skipped("strace or systemd-analyze is not there")
    allowed, denied = set(), set()
    for value in directives(UNIT)[("Service", "SystemCallFilter")]:
        (denied if value[0] == "~" else allowed).update(calls_of(value.lstrip("~")))
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace")
        process = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", trace, "-e", "trace=all", KVD, "--shm=" + os.path.join(directory, "s"),
             "--memory=8m", "--admin=0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        pid = None
        for line in process.stderr:
            if " serves " in line:
                pid = int(re.search(r"\(pid (\d+)\)", line)[1])
                os.kill(pid, 15)
        check_equal(process.wait(60), 0)
        check(pid is not None, "kvd did not serve")
        with open(trace, encoding="utf-8", errors="replace") as lines:
            made = {match[1] for match in (re.match(r"\d+ +([a-z0-9_]+)\(", line) for line in lines) if match}
    check(len(made) > 20, made)
    made.discard("execve")  # systemd's own, to start it
    check_equal(sorted(call for call in made if call not in allowed or call in denied), [])


def calls_of(group):
    """System calls of "@group", with the groups in it."""
    if not group.startswith("@"):
        return {group}
    done = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", group], stdout=subprocess.PIPE, text=True,
                          check=True)
    found = set()
    for line in done.stdout.splitlines()[1:]:
        word = line.strip()
        if word and word[0] != "#":
            found |= calls_of(word)
    return found


def small_files():
    """sysctl.d, limits.d: lines that their readers understand"""
    with open(SYSCTL, encoding="utf-8") as lines:
        for line in filter(None, (line.split("#")[0].strip() for line in lines)):
            name, equals, value = line.partition("=")
            check(equals and re.fullmatch(r"[a-z]+(\.[a-z_]+)+", name.strip()) and value.strip().isdigit(), line)
    with open(LIMITS, encoding="utf-8") as lines:
        rules = [line.split() for line in lines if line.strip() and line[0] != "#"]
    check(["@kvd", "-", "memlock", "unlimited"] in rules, rules)
    for rule in rules:
        check(len(rule) == 4 and rule[0] in ("kvd", "@kvd") and rule[1] == "-", rule)


if __name__ == "__main__":
    run_cases([verified, exposure, service_directives, one_socket, known_flags, same_but_for_the_node, system_calls,
               small_files])
