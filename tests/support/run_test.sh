#!/usr/bin/env bash
# tests/run.sh counts what the test targets reported, finds each kind of failure, and passes its
# arguments on. A stand-in for bazel on PATH answers with what is planted here.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/logs"
failed=0

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "KVD_CASE passed run.sh: $name"
  else
    echo "KVD_CASE failed run.sh: $name"
    failed=1
  fi
}

cat >"$work/bin/bazel" <<EOF
#!/bin/sh
echo "\$@" >>"$work/calls"
case \$1 in
  query) cut -d' ' -f1 "$work/summary" ;;
  test) cat "$work/summary"; exit 3 ;;
  info) echo "$work/logs" ;;
esac
EOF
# All packages are installed, as far as run.sh is told.
printf '#!/bin/sh\necho "ii "\n' >"$work/bin/dpkg-query"
chmod +x "$work/bin/bazel" "$work/bin/dpkg-query"
export PATH="$work/bin:$PATH"
unset KVD_BAZEL_STARTUP

# forget: no targets, no logs.
forget() {
  rm -rf "$work/logs" "$work/calls"
  : >"$work/summary"
}

# plant TARGET STATUS LINE...: bazel's summary for //unit:TARGET, and what the target printed.
plant() {
  local target=$1 status=$2
  shift 2
  echo "//unit:$target   $status" >>"$work/summary"
  mkdir -p "$work/logs/unit/$target"
  printf '%s\n' "$@" | sed 's/^case /KVD_CASE /' >"$work/logs/unit/$target/test.log"
}

# run ARGUMENT...: sets output, last (its last line) and status.
run() {
  output=$(tests/run.sh "$@" 2>&1)
  status=$?
  last=$(tail -n 1 <<<"$output")
}

# show TEXT: says what went wrong, without what tests/run.sh would take for a case; returns 1.
show() {
  echo "${1//KVD_CASE/case}" >&2
  return 1
}

# result LAST_LINE STATUS
result() {
  [[ $last == "$1" && $status -eq $2 ]] || show "got status $status and: $output"
}

says() {
  grep -qF -- "$1" <<<"$output" || show "expected '$1' in: $output"
}

forget
plant a "PASSED in 0.1s" "case passed one" "noise" "case passed two"
plant b "(cached) PASSED in 0.1s" "no newline before KVD_CASE passed x" "case skipped y: no device"
run
check "passed and skipped cases are counted" result "3 passed, 0 failed, 1 skipped" 0
check "a skipped case is named with its reason" says "SKIPPED: //unit:b: y: no device"

plant c "FAILED in 0.1s" "case passed one" "expected 1 got 2" "case failed two"
run
check "a failed target's output is shown" says "expected 1 got 2"
check "a failed case fails the run" result "4 passed, 1 failed, 1 skipped" 1
check "a failed case is named" says "FAILED: //unit:c: two"

forget
plant a "PASSED in 0.1s" "case passed one"
plant d "FAILED in 0.1s" "case passed one"
run
check "a target that crashed counts as failed" result "2 passed, 1 failed, 0 skipped" 1
forget
plant a "PASSED in 0.1s" "case passed one"
plant e "TIMEOUT in 60.0s" "case passed one"
run
check "a target that timed out counts as failed" says "FAILED: //unit:e: TIMEOUT"
forget
plant a "PASSED in 0.1s" "case begins one" "case passed one"
plant e "TIMEOUT in 60.0s" "case begins one" "case passed one" "case begins it hangs: here" "noise"
run
check "a case that hung is named" says "FAILED: //unit:e: TIMEOUT in it hangs: here"
check "a case that hung counts once" result "2 passed, 1 failed, 0 skipped" 1
forget
plant e "FAILED in 0.1s" "case begins one" "case failed one" "case begins it crashes"
run
check "a crash after a failed case is a second failure" says "FAILED: //unit:e: FAILED in it crashes"
check "both count" result "0 passed, 2 failed, 0 skipped" 1
forget
plant a "PASSED in 0.1s" "case passed one"
plant f "FAILED TO BUILD" "case passed by an earlier run"
run
check "a target that does not build counts as failed" result "1 passed, 1 failed, 0 skipped" 1
forget
plant a "PASSED in 0.1s" "case passed one"
plant g "PASSED in 0.1s" "nothing"
run
check "a target that ran no case counts as failed" says "FAILED: //unit:g: ran no test case"
check "running no case fails the run" result "1 passed, 1 failed, 0 skipped" 1
forget
plant h "PASSED in 0.1s" "case failed one"
run
check "a failed case counts though the target exited with 0" result "0 passed, 1 failed, 0 skipped" 1
forget
plant i "PASSED in 0.1s" "case skipped one: why"
run
check "skipping everything is no success" result "0 passed, 0 failed, 1 skipped" 1

forget
plant alpha "PASSED in 0.1s" "case passed one"
plant beta "PASSED in 0.1s" "case passed two"
run alp
check "a word selects targets" result "1 passed, 0 failed, 0 skipped" 0
run alp gamma
check "a word that matches nothing is an error" test "$status" -eq 2
run --list bet
check "--list prints the labels alone" result "//unit:beta" 0
run --config=asan
check "options are passed on to test" grep -q '^test .*--config=asan .*-- //unit:alpha' "$work/calls"
check "options are passed on to info" grep -q '^info .*--config=asan' "$work/calls"
KVD_BAZEL_STARTUP="--output_base=/x" run
check "startup options come first" grep -q '^--output_base=/x' "$work/calls"
run --help
check "--help explains and succeeds" says "KVD_CASE skipped NAME: REASON"

# A tree that has fuzzers, which answer with what is planted here.
mkdir -p "$work/tree/tests/fuzz" "$work/tree/deploy"
cp -L tests/run.sh "$work/tree/tests/"
cp -L deploy/install_dependencies.sh "$work/tree/deploy/"
printf '#!/bin/sh\ncat "%s/fuzzed"; exec test ! -e "%s/broken"\n' "$work" "$work" \
  >"$work/tree/tests/fuzz/run.sh"
chmod +x "$work/tree/tests/fuzz/run.sh"
echo "KVD_CASE passed fuzz x, 7 runs" >"$work/fuzzed"
run_in_tree() {
  output=$("$work/tree/tests/run.sh" "$@" 2>&1)
  status=$?
  last=$(tail -n 1 <<<"$output")
}
run_in_tree
check "fuzzers run behind the other tests and are counted" result "3 passed, 0 failed, 0 skipped" 0
run_in_tree fuzzers
check "they can be chosen" result "1 passed, 0 failed, 0 skipped" 0
run_in_tree alpha
check "and left out" result "1 passed, 0 failed, 0 skipped" 0
run_in_tree --config=asan
check "another configuration leaves them out" result "2 passed, 0 failed, 0 skipped" 0
echo "KVD_CASE failed fuzz x, after 7 runs" >"$work/fuzzed"
touch "$work/broken"
run_in_tree
check "what they find fails the run" result "2 passed, 1 failed, 0 skipped" 1
check "and is named" says "FAILED: //tests/fuzz:fuzzers: fuzz x, after 7 runs"

forget
run
check "a tree without tests fails the run" result "0 passed, 1 failed, 0 skipped" 1
printf '#!/bin/sh\nexit 1\n' >"$work/bin/dpkg-query"
plant a "PASSED in 0.1s" "case passed one"
run
check "missing packages are named" says "bazel-bootstrap"
check "missing packages fail the run" result "0 passed, 1 failed, 0 skipped" 1

exit "$failed"
