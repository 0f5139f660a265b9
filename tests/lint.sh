#!/usr/bin/env bash
# clang-tidy with the reviewed checks (.clang-tidy) over C++ files: those that are named, or all that differ from
# main.
#
# usage: tests/lint.sh [FILE...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -eq 0 ]]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d main -- '*.cc')
  set -- "${files[@]}"
fi
[[ $# -gt 0 ]] || { echo "no files"; exit 0; }
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
status=0
for file in "$@"; do
  "$tidy" --quiet "$file" -- -std=c++20 -I. || status=1
done
exit "$status"
