#!/bin/sh
# A checker that finds nothing proves nothing: with a safeguard left out, one of so many schedules must fail.
#
# usage: planted_faults_test.sh SCHEDULES PROGRAM...
set -u
schedules=$1
shift
failures=0
for planted in "$@"; do
  name=$(basename "$planted")
  "$planted" --seed=1 "--count=$schedules" >"$TEST_TMPDIR/out" 2>&1
  status=$?
  # A history that is wrong, or clients that are stuck; a program that does not run finds nothing.
  if [ "$status" -ne 3 ] && ! grep -q 'clients do not come to their end' "$TEST_TMPDIR/out"; then
    cat "$TEST_TMPDIR/out"
    echo "KVD_CASE failed Planted fault: $name is found within $schedules schedules"
    failures=$((failures + 1))
  else
    tail -n 1 "$TEST_TMPDIR/out"
    echo "KVD_CASE passed Planted fault: $name is found within $schedules schedules"
  fi
done
[ "$#" -gt 0 ] && [ "$failures" -eq 0 ]
