"""The texts in C++ sources that people get to read: literals of several words, put together as the compiler does."""

import re

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def texts_of(path, least_bytes=18):
    with open(path, encoding="utf-8") as file:
        source = re.sub(r"^\s*//.*$|^#include.*$", "", file.read(), flags=re.MULTILINE)
    found = []
    for run in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', source):
        text = "".join(piece.replace('\\"', '"') for piece in LITERAL.findall(run[0]))
        if len(text) >= least_bytes and " " in text.strip() and not text.startswith("hugepages/"):
            found.append(text.strip())
    return found
