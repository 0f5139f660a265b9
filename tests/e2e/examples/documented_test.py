#!/usr/bin/env python3
"""documented_test.py client.md SOURCE...: the document shows each program exactly as it is compiled.

With --write first it puts the programs into the document instead:
  tests/e2e/examples/documented_test.py --write docs/client.md client/examples/*.cc
A program stands in a block of code that begins with its path: ```cpp client/examples/hello.cc
"""

import os
import re
import sys

BLOCK = re.compile(r"^```cpp client/examples/(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    arguments = sys.argv[1:]
    write = arguments[0] == "--write"
    document, *sources = arguments[1:] if write else arguments
    programs = {os.path.basename(path): read(path) for path in sources}
    text = read(document)
    if write:
        text = BLOCK.sub(lambda m: f"```cpp client/examples/{m[1]}\n{programs[m[1]]}```", text)
        with open(document, "w", encoding="utf-8") as file:
            file.write(text)
    shown = dict(BLOCK.findall(text))
    failures = 0
    for name in sorted(programs.keys() | shown.keys()):
        same = shown.get(name) == programs.get(name)
        failures += not same
        verdict = "passed" if same else "failed"
        print(f"KVD_CASE {verdict} Examples: docs/client.md shows {name} as it is", flush=True)
        if not same:
            print("  run", __doc__.splitlines()[3].strip())
    sys.exit(1 if failures else 0)


main()
