#!/usr/bin/env python3
"""operating_test.py OPERATING_MD SECURITY_MD KVD KVCLI KVBENCH SOURCE...: docs/operating.md against what the programs say."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kvcli"))
from code_texts import texts_of  # noqa: E402
from harness import check, check_equal, run_cases  # noqa: E402

DOCUMENT, SECURITY, KVD, KVCLI, KVBENCH, *SOURCES = (os.path.abspath(path) for path in sys.argv[1:])


def flat(text):
    return " ".join(text.split())


def document(path=DOCUMENT):
    with open(path, encoding="utf-8") as file:
        return file.read()


def table_of_messages():
    return flat(document().split("\n## Messages, and what to do\n")[1])


def messages():
    """docs/operating.md: has every message of the checks, of connecting and of READs, as the code writes it"""
    table = table_of_messages()
    count = 0
    for source in SOURCES:
        texts = texts_of(source)
        check(len(texts) >= 2, source, "has", texts)
        for text in texts:
            count += 1
            check(flat(text) in table, "the table lacks", repr(text), "of", os.path.basename(source))
    check(count > 70, count)


def flags():
    """docs/operating.md, docs/security.md: the programs have each flag that they name"""
    known = set(re.findall(r"--([a-z_]+)", subprocess.run([KVD, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()))
    commands = [""] + re.findall(r"^  ([a-z]+) ", subprocess.run([KVCLI, "--help"], stdout=subprocess.PIPE,
                                                                check=True).stdout.decode().split("Commands:")[1]
                                 .split("\n\n")[0], re.MULTILINE)
    for command in commands:
        text = subprocess.run([KVCLI, "help", *([command] if command else [])], stdout=subprocess.PIPE, check=True)
        known |= set(re.findall(r"--([a-z_]+)", text.stdout.decode()))
    known |= set(re.findall(r"--([a-z_]+)", subprocess.run([KVBENCH, "--help"], stdout=subprocess.PIPE,
                                                           check=True).stdout.decode()))
    # kvd-hugepages' and build-deb.sh's, and other programs'.
    known |= {"apply", "persist", "page_size", "help", "out"}
    others = {"device", "ulimit", "memory", "cpunodebind", "membind", "interleave"}
    for path in (DOCUMENT, SECURITY):
        for flag in re.findall(r"(?<![\w-])--([a-z][a-z_]+)(?![\w-])", document(path)):
            check(flag in known | others, os.path.basename(path), "names --" + flag)


def sections():
    """docs/operating.md: each link into it leads to a section"""
    text = document()
    anchors = {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
               for title in re.findall(r"^## (.*)$", text, re.MULTILINE)}
    for path in (DOCUMENT, SECURITY):
        for anchor in re.findall(r"\]\((?:operating)?(?:\.md)?#([a-z0-9-]+)\)", document(path)):
            check(anchor in anchors, os.path.basename(path), "leads to", anchor, "and there is", sorted(anchors))


def columns():
    """docs/operating.md: lines of running text have up to 160 columns"""
    code = False
    for number, line in enumerate(document().split("\n"), 1):
        code ^= line.startswith("```")
        check(code or line.startswith(("|", "```")) or len(line) <= 160, number, len(line), line)


def plan_example():
    """docs/operating.md: shows kvcli plan's output as it is"""
    shown = re.search(r"^\$ kvcli (plan .*)\n((?:.+\n)+?)```", document(), re.MULTILINE)
    check(shown, "no example of kvcli plan")
    said = subprocess.run([KVCLI, *shown[1].split()], stdout=subprocess.PIPE, check=True).stdout.decode()
    check_equal(shown[2], said)


if __name__ == "__main__":
    run_cases([messages, flags, sections, columns, plan_example])
