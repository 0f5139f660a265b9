#!/usr/bin/env python3
"""man_test.py KVD KVCLI KVBENCH KVD_FLAGS GENERATE_MAN KVD_HUGEPAGES: the pages that are made of the programs' own help."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kvcli"))
from harness import Skipped, check, check_equal, run_cases  # noqa: E402

KVD, KVCLI, KVBENCH, FLAGS, GENERATE, HUGEPAGES = (os.path.abspath(path) for path in sys.argv[1:])
PAGES = ("kvd.8", "kvcli.1", "kvbench.1", "kvd-hugepages.8", "kvd.flags.5")
DIRECTORY = tempfile.TemporaryDirectory()


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()


def generate(directory, **environment):
    done = subprocess.run(
        [sys.executable, GENERATE, "--kvd=" + KVD, "--kvcli=" + KVCLI, "--kvbench=" + KVBENCH, "--flags=" + FLAGS,
         "--hugepages=" + HUGEPAGES, "--out=" + directory], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=120, env={**os.environ, **environment})
    check_equal((done.returncode, done.stdout), (0, ""))


def text_of(page):
    """The page without roff's escapes, in one line."""
    with open(os.path.join(DIRECTORY.name, page), encoding="ascii") as file:
        text = file.read()
    for roff, plain in (("\\fB", ""), ("\\fR", ""), ("\\&", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(ha", "^"),
                        ("\\(ti", "~"), ("\\(ga", "`"), ("\\e", "\\")):
        text = text.replace(roff, plain)
    return " ".join(text.split())


def check_has(page, *texts):
    page_text = text_of(page)
    for text in texts:
        check(" ".join(text.split()) in page_text, page, "lacks", repr(text))


def made():
    """man pages: all are written, and the same each time"""
    generate(DIRECTORY.name, SOURCE_DATE_EPOCH="1790000000")
    check_equal(sorted(os.listdir(DIRECTORY.name)), sorted(PAGES))
    with tempfile.TemporaryDirectory() as again:
        generate(again, SOURCE_DATE_EPOCH="1790000000", KVCLI_SERVER="shm:/elsewhere", XDG_RUNTIME_DIR="/run/user/5")
        for page in PAGES:
            with open(os.path.join(DIRECTORY.name, page), "rb") as one, open(os.path.join(again, page), "rb") as other:
                check_equal(one.read(), other.read(), page)


def kvd_page():
    """kvd(8): has every flag of kvd --help with its text, and the exit statuses"""
    text = output(KVD, "--help")
    flags = re.findall(r"^  (--\S+)(?:, -\w)? +(.*)$", text, re.MULTILINE)
    check(len(flags) > 25, flags)
    for usage, what in flags:
        check_has("kvd.8", usage, re.sub(r" \(default \S+kvd\.sock\)$", "", what))
    check_has("kvd.8", "78 --check failed", "2 usage", "SIGHUP")


def kvcli_page():
    """kvcli(1): has every command with its details, flags and examples"""
    overview = output(KVCLI, "--help")
    commands = [line.split()[0] for line in overview.split("Commands:\n")[1].split("\n\n")[0].split("\n")]
    check("plan" in commands and len(commands) > 25, commands)
    for command in commands:
        text = output(KVCLI, "help", command)
        check_has("kvcli.1", re.search(r"\nUsage:\n  kvcli (.*?)(?: \[FLAGS\])?\n", text)[1])
        for flag in re.findall(r"^  (?:-\w, |    )(--\S+)", text, re.MULTILINE):
            check_has("kvcli.1", flag)
        check_has("kvcli.1", *text.split("Examples:\n")[1].split("\n\n")[0].split("\n"))
    check_has("kvcli.1", "--deadline=TIME", "5 refused by the server", "141 nobody read the output")


def kvbench_page():
    """kvbench(1): has every flag, and the exit statuses"""
    flags = re.findall(r"^  (?:-\w, |    )(--\S+)", output(KVBENCH, "--help"), re.MULTILINE)
    check(len(flags) > 25, flags)
    check_has("kvbench.1", *flags, "141 nobody read the output")


def hugepages_page():
    """kvd-hugepages(8): has every option of its help"""
    for option in re.findall(r"(--[a-z_]+)", output("bash", HUGEPAGES, "--help")):
        check_has("kvd-hugepages.8", option)


def flags_page():
    """kvd.flags(5): has the file that the package brings"""
    with open(FLAGS, encoding="ascii") as file:
        check_has("kvd.flags.5", *filter(None, (line.strip() for line in file)))


def linted():
    """man pages: mandoc -Tlint has nothing to say"""
    if shutil.which("mandoc") is None:
        raise Skipped("there is no mandoc; install the package mandoc")
    for page in PAGES:
        done = subprocess.run(["mandoc", "-Tlint", os.path.join(DIRECTORY.name, page)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        # Of a file that is shown as it is, lines may be long.
        said = [line for line in done.stdout.splitlines() if page != "kvd.flags.5" or "longer than 80" not in line]
        check_equal(said, [], page)


if __name__ == "__main__":
    run_cases([made, kvd_page, kvcli_page, kvbench_page, hugepages_page, flags_page, linted])
