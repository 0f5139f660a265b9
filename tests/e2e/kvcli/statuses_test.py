#!/usr/bin/env python3
"""statuses_test.py README_MD KVCLI KVBENCH: one vocabulary for exit statuses, wherever they are listed."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import check, check_equal, run_cases  # noqa: E402

README, KVCLI, KVBENCH = (os.path.abspath(path) for path in sys.argv[1:])


def of_readme():
    """Words by status, as README.md lists those of kvcli."""
    with open(README, encoding="utf-8") as file:
        text = " ".join(file.read().split())
    listed = re.search(r"Exit status: (0 done.*?)\.", text)
    check(listed, "README.md has no list of exit statuses")
    return dict(part.split(" ", 1) for part in listed[1].split(", "))


def of_help(*command):
    """The same as a program's help lists them."""
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    listed = text.split("Exit status:\n")[1]
    return dict(re.findall(r"^  (\d+) (.*)$", listed, re.MULTILINE))


def check_same_words(listed, words):
    for status, text in listed.items():
        check(status in words and text.startswith(words[status]), status, "is", repr(text),
              "and not", words.get(status))


def of_kvcli():
    """kvcli help: says of each exit status what README.md says"""
    words = of_readme()
    listed = of_help(KVCLI, "help")
    check_equal(sorted(listed), sorted(words))
    check_same_words(listed, words)


def of_kvbench():
    """kvbench --help: says of each exit status what README.md says of kvcli's"""
    listed = of_help(KVBENCH, "--help")
    check(len(listed) > 5, listed)
    check_same_words(listed, of_readme())


if __name__ == "__main__":
    run_cases([of_kvcli, of_kvbench])
