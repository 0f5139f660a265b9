#!/bin/sh
# A checker that finds nothing proves nothing: without the comparison of an item's checksum, inputs that are
# made of the corpus must come upon bytes that nobody wrote.
#
# usage: planted_fault_test.sh PROGRAM ARGUMENT...
set -u
case_name="Planted fault: the read path without checksums is found out"
if "$@" >"$TEST_TMPDIR/out" 2>&1; then
  status=0
else
  status=$?
fi
if [ "$status" -ne 0 ] && grep -q '^fuzz: does not hold: and was written for it' "$TEST_TMPDIR/out"; then
  echo "KVD_CASE passed $case_name"
else
  cat "$TEST_TMPDIR/out"
  echo "KVD_CASE failed $case_name"
  exit 1
fi
