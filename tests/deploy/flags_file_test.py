#!/usr/bin/env python3
"""flags_file_test.py KVD KVD_FLAGS: the flag file of the package, against the flags that kvd has."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kvcli"))
from harness import check, check_equal, run_cases  # noqa: E402

KVD, FLAGS = (os.path.abspath(path) for path in sys.argv[1:])

# What is said on a command line alone.
ONLY_ON_COMMAND_LINES = {"check", "help", "version", "flagfile"}
# Whose default depends on the user, on the machine or on other flags: an example stands in the file.
NO_FIXED_DEFAULT = {"shm", "poller_cpus"}


def help_of_kvd():
    """Default by flag, None where it has none, and which are switches."""
    text = subprocess.run([KVD, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    defaults, switches = {}, set()
    for name, operand, rest in re.findall(r"^  --([a-z_]+)(=\S+)?(.*)$", text, re.MULTILINE):
        default = re.search(r"\(default (.*)\)$", rest)
        defaults[name] = default[1] if default else None
        if not operand:
            switches.add(name)
    return defaults, switches


def flags_of_file():
    """(name, value or None, whether it is commented out) of each."""
    with open(FLAGS, encoding="utf-8") as file:
        lines = re.findall(r"^(#?)--([a-z_]+)(?:=(.*))?$", file.read(), re.MULTILINE)
    with open(FLAGS, encoding="utf-8") as file:
        has_equals = re.findall(r"^#?--[a-z_]+(=?)", file.read(), re.MULTILINE)
    return [(name, value if equals else None, bool(comment))
            for (comment, name, value), equals in zip(lines, has_equals)]


def run(*flags):
    done = subprocess.run([KVD, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


def complete():
    """kvd.flags: has every flag of kvd --help, once, and no other"""
    defaults, _ = help_of_kvd()
    check(len(defaults) > 20, defaults)
    check_equal(sorted(name for name, _, _ in flags_of_file()), sorted(defaults.keys() - ONLY_ON_COMMAND_LINES))


def defaults_are_true():
    """kvd.flags: what is commented out stands there with kvd's default"""
    defaults, switches = help_of_kvd()
    for name, value, commented in flags_of_file():
        check_equal(value is None, name in switches, "--" + name, "with and without a value")
        default = defaults[name]
        # "64m, or what fits the memory": the first of several; words are no value.
        literal = default is not None and re.fullmatch(r"[a-z0-9]+(, or .*)?", default) and default != "none"
        if name == "evict" or (literal and default != "chosen"):
            if commented and name not in NO_FIXED_DEFAULT:
                check_equal(value, default.split(",")[0], "--" + name)


def accepted():
    """kvd.flags: kvd --check accepts it as it is"""
    with tempfile.TemporaryDirectory() as directory:
        status, out, err = run("--flagfile=" + FLAGS, "--shm=" + os.path.join(directory, "s"), "--check")
        check_equal((status, err), (0, ""))
        check("memory: 64 MiB" in out, out)


def defaults_are_accepted():
    """kvd.flags: with every default written out kvd plans the same as without the file"""
    defaults, _ = help_of_kvd()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "flags")
        shm = "--shm=" + os.path.join(directory, "s")
        # Those with an example in place of a default would ask for what is not here.
        examples = {"shm", "listen", "device", "gid_index", "keys", "audit", "insecure", "admin", "verbose", "max_value",
                    "poller_cpus"}
        written = [f"--{name}={value}" for name, value, commented in flags_of_file()
                   if commented and name not in examples and defaults[name] is not None]
        check(len(written) >= 12, written)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(written) + "\n")
        status, out, err = run("--flagfile=" + path, shm, "--check")
        check_equal((status, err), (0, ""))
        plain = run(shm, "--check")[1]
        check_equal(without_measurements(out), without_measurements(plain))


def without_measurements(plan):
    return [line for line in plan.splitlines() if not line.startswith(("ok: ", "warning: ", "failed: "))]


def unknown_flag():
    """kvd --flagfile: a flag that kvd has not is refused with file, line, cause and remedy; nothing is left"""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "kvd.flags")
        with open(FLAGS, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as copy:
            text = source.read()
            copy.write(text + "--max_cleints=5\n")
        line = text.count("\n") + 1
        for extra in ((), ("--check",)):
            status, out, err = run("--flagfile=" + path, "--shm=" + os.path.join(directory, "s"), *extra)
            check_equal((status, out), (2, ""), err)
            check_equal(err, f"kvd: {path}:{line}: unknown flag --max_cleints; did you mean --max_clients?\n")
        check_equal(os.listdir(directory), ["kvd.flags"])


if __name__ == "__main__":
    run_cases([complete, defaults_are_true, accepted, defaults_are_accepted, unknown_flag])
