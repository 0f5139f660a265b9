#!/usr/bin/env python3
"""warnings_test.py .bazelrc: warnings are errors in kvd's own folders, and in no other."""

import re
import sys

OWN = ["//client:kv_client", "//client/cli:kvcli", "//common/base:clock", "//server:kvd",
       "//tests/unit/server/store:heap_test", "//third_party:absl"]
OTHERS = ["//hello:hello", "//:hello", "//clients:hello", "//my/client:hello"]


def is_error(label, options, exceptions):
    """Whether -Werror is the last word for a target, as Bazel reads `--per_file_copt`."""
    if "-Werror" not in options:
        return False
    for patterns, option in exceptions:
        wanted = [each for each in patterns if not each.startswith("-")]
        unwanted = [each[1:] for each in patterns if each.startswith("-")]
        if (option == "-Wno-error" and any(re.search(each, label) for each in wanted)
                and not any(re.search(each, label) for each in unwanted)):
            return False
    return True


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        words = [word for line in file if line.startswith("build ") for word in line.split()[1:]]
    options = [word.split("=", 1)[1] for word in words if word.startswith("--copt=")]
    exceptions = []
    for word in words:
        if word.startswith("--per_file_copt="):
            patterns, option = word.split("=", 1)[1].rsplit("@", 1)
            exceptions.append((patterns.split(","), option))
    failed = False
    for name, labels, expected in (("are errors in kvd's own folders", OWN, True),
                                   ("are warnings in others", OTHERS, False)):
        wrong = [label for label in labels if is_error(label, options, exceptions) != expected]
        failed = failed or bool(wrong)
        print(f"KVD_CASE {'failed' if wrong else 'passed'} Building: warnings {name}", flush=True)
        if wrong:
            print("  not so:", *wrong)
    sys.exit(1 if failed else 0)


main()
