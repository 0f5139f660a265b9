#!/bin/sh
# A checker that finds nothing proves nothing: with a safeguard left out, the hunt between threads must fail.
set -u
failures=0
for planted in "$@"; do
  case_name="Planted fault: $(basename "$planted") is found"
  if TEST_TARGET= "$planted" > "$TEST_TMPDIR/out" 2>&1; then
    cat "$TEST_TMPDIR/out"
    echo "KVD_CASE failed $case_name"
    failures=$((failures + 1))
  elif grep -qE 'stale: generation|torn' "$TEST_TMPDIR/out"; then
    echo "KVD_CASE passed $case_name"
  else
    cat "$TEST_TMPDIR/out"
    echo "KVD_CASE failed $case_name"
    failures=$((failures + 1))
  fi
done
[ "$#" -gt 0 ] && [ "$failures" -eq 0 ]
