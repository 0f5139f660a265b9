#!/usr/bin/env bash
# The main function of the C++ tests reports how each test case ended, and takes the seed back.
# usage: main_test.sh PATH_OF_PLANTED_CASES
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

planted=$1
failed=0

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "KVD_CASE passed Main: $name"
  else
    echo "KVD_CASE failed Main: $name"
    failed=1
  fi
}

# run CASE...: runs these planted cases; sets output and status.
run() {
  output=$("$planted" "$@" 2>&1)
  status=$?
}

# show TEXT: says what went wrong, without what tests/run.sh would take for a case; returns 1.
show() {
  echo "${1//KVD_CASE/case}" >&2
  return 1
}

reported() {
  grep -qFx -- "$1" <<<"$output" || show "expected '$1' in: $output"
}

not_reported() {
  ! grep -qF -- "$1" <<<"$output"
}

export TEST_TARGET=//planted
unset KVD_TEST_SEED TESTBRIDGE_TEST_ONLY XML_OUTPUT_FILE

run passes
check "a case that passes" reported "KVD_CASE passed passes"
check "success is exit status 0" test "$status" -eq 0
run fails
check "a case that fails" reported "KVD_CASE failed fails"
check "failure is exit status 1" test "$status" -eq 1
run throws
check "an exception is a failure" reported "KVD_CASE failed throws"
run skips
check "a skipped case has its reason" reported "KVD_CASE skipped skips: no such device"
check "a skipped case is not a failure" test "$status" -eq 0
run "fails before it skips"
check "a failure is not hidden by a later skip" reported "KVD_CASE failed fails before it skips"
run aborts
check "a crash is seen in the exit status" test "$status" -ne 0
check "a crash leaves the name of its case" reported "KVD_CASE begins aborts"
run "no such case"
check "running nothing is an error" test "$status" -ne 0

KVD_TEST_SEED=1234 run "prints the seed"
check "the seed comes from the environment" reported "seed is 1234"
check "the seed is printed" reported "KVD_TEST_SEED=1234"
run "prints the seed" --rng-seed 77
check "the seed comes from the command line" reported "seed is 77"
KVD_TEST_SEED=12x run passes
check "a seed that is no number is an error" test "$status" -eq 2
TESTBRIDGE_TEST_ONLY='pass*' run
check "bazel's --test_filter selects cases" not_reported "KVD_CASE failed"
unset TEST_TARGET
run passes
check "no case lines outside of Bazel" not_reported "KVD_CASE"

exit "$failed"
