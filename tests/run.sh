#!/usr/bin/env bash
# Builds kvd's tests and runs them.
#
#   tests/run.sh                    every test
#   tests/run.sh unit store         those whose label contains "unit" or "store"
#   tests/run.sh --config=asan ...  options go to bazel: asan, tsan, clang, debug, opt, --runs_per_test=10
#   tests/run.sh --list [WORD...]   print the labels and run nothing
#   tests/run.sh --help
#
# Environment: KVD_TEST_SEED=N repeats a run with the seed it printed; KVD_BAZEL_STARTUP holds startup
# options for bazel, such as --output_base=/tmp/mine.
#
# //tests/fuzz:fuzzers stands for tests/fuzz/run.sh, which is a build of its own: 20 s for each fuzzer,
# unless a --config is given.
#
# The output of a target that failed is shown in full.
# The last line is "N passed, N failed, N skipped", counted over test cases; above it stand the
# failed ones and the skipped ones with their reasons. A test target that does not build, crashes,
# times out or runs no test case counts as one failed case.
# Exit: 0 nothing failed and something passed, 1 otherwise, 2 usage or an argument that matches nothing.
#
# Every test target, in whatever language, reports its cases on standard output, one line each:
#   KVD_CASE passed NAME
#   KVD_CASE failed NAME
#   KVD_CASE skipped NAME: REASON
# and may print "KVD_CASE begins NAME" before it, by which a case that hung or crashed is named.
# C++ tests do so through //tests/support:catch2_main; a shell or Python test prints them itself,
# and exits with a status other than 0 when a case failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BAZEL_OPTIONS=(
  --noshow_progress --noshow_loading_progress "--ui_event_filters=-info,-debug"
  --color=no --curses=no
)
readonly FUZZERS=//tests/fuzz:fuzzers
read -ra STARTUP_OPTIONS <<<"${KVD_BAZEL_STARTUP:-}"

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//p}' tests/run.sh
}

# run_bazel COMMAND ARGUMENT...
run_bazel() {
  bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} "$@"
}

# Labels of all test targets but those tagged manual, sorted. Names the top folders instead of
# //..., which would follow a bazel-* link that another user's Bazel left here.
all_targets() {
  local folders tests
  folders=$(find . -mindepth 2 -name BUILD.bazel -printf '%P\n' | cut -d/ -f1 | sort -u |
    sed 's|.*|//&/...|')
  folders=${folders:-//...}
  tests="tests(set(${folders//$'\n'/ }))"
  run_bazel query --noshow_progress --ui_event_filters=-info --output=label \
    "$tests except attr(tags, \"\\bmanual\\b\", $tests)" | sort || return
  [[ ! -x tests/fuzz/run.sh ]] || echo "$FUZZERS"
}

# select_targets WORD... <labels: those that contain any of the words; exits 2 if a word has none.
select_targets() {
  local labels word
  labels=$(cat)
  if [[ $# -eq 0 ]]; then
    printf '%s\n' "$labels"
    return
  fi
  for word in "$@"; do
    if ! grep -F -e "$word" <<<"$labels"; then
      echo "run.sh: no test target matches '$word'; tests/run.sh --list shows them" >&2
      return 2
    fi
  done | sort -u
}

# status_of LABEL SUMMARY: the word that bazel's summary has for a target, such as PASSED.
status_of() {
  awk -v label="$1" '$1 == label { sub(/^[^ ]+ +/, ""); sub(/^\(cached\) /, ""); sub(/ in .*/, "");
    sub(/, .*/, ""); print; exit }' "$2"
}

# Counts of test cases, and a line for each failed or skipped one.
passed=0 failed=0 skipped=0
failures=() skips=()

add_failure() {
  failed=$((failed + 1))
  failures+=("FAILED: $1")
}

# unfinished_case LOG...: the case that began last and did not end, if there is one.
unfinished_case() {
  local log last
  for log in "$@"; do
    last=$(grep -aoE 'KVD_CASE (begins|passed|failed|skipped) .*' "$log" 2>/dev/null | tail -n 1)
    [[ $last != 'KVD_CASE begins '* ]] || printf '%s\n' "${last#KVD_CASE begins }"
  done | tail -n 1
}

# count_cases LABEL STATUS LOG...: adds up what a target reported.
count_cases() {
  local label=$1 status=$2 line outcome unfinished
  local cases=0 target_failed=0
  shift 2
  case $status in
    PASSED | FAILED | TIMEOUT | FLAKY) ;;
    *)  # the logs that may be there are of an earlier run
      add_failure "$label: ${status:-not run}"
      return
      ;;
  esac
  while IFS= read -r line; do
    cases=$((cases + 1))
    outcome=${line#KVD_CASE }
    case $outcome in
      passed*) passed=$((passed + 1)) ;;
      skipped*) skipped=$((skipped + 1)) && skips+=("SKIPPED: $label: ${outcome#skipped }") ;;
      failed*) target_failed=1 && add_failure "$label: ${outcome#failed }" ;;
    esac
  done < <(cat "$@" 2>/dev/null | grep -aoE 'KVD_CASE (passed|failed|skipped) .*' || true)
  if [[ $status != PASSED ]]; then
    unfinished=$(unfinished_case "$@")
    if [[ -n $unfinished ]]; then
      add_failure "$label: $status in $unfinished"
    elif [[ $target_failed -eq 0 ]]; then
      add_failure "$label: ${status:-not run}"
    fi
  elif [[ $cases -eq 0 ]]; then
    add_failure "$label: ran no test case"
  elif [[ $target_failed -eq 1 ]]; then
    echo "run.sh: $label reported a failed case and yet exited with 0" >&2
  fi
}

# show_logs LABEL LOG...: the output of a target that failed.
show_logs() {
  echo "==== output of $1"
  shift
  cat "$@" 2>/dev/null | grep -avE '^(KVD_CASE (begins|passed) .*|)$' || true
}

# run_targets OPTION... -- LABEL...: builds and runs them, and counts their cases.
run_targets() {
  local -a options=() target_logs
  local summary logs label directory status
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  # A target's failure is seen in the summary, so bazel's own exit status is not needed.
  summary=$(mktemp)
  # shellcheck disable=SC2064  # the name is wanted as it is now
  trap "rm -f '$summary'" EXIT
  run_bazel test "${BAZEL_OPTIONS[@]}" --keep_going --test_output=summary --test_summary=short \
    ${options[@]+"${options[@]}"} -- "$@" 2>&1 </dev/null | tee "$summary" |
    grep -vE '^(//|FAIL: //|Executed |INFO: |Loading: |There were tests whose|  /|$)' || true
  logs=$(run_bazel info --noshow_progress ${options[@]+"${options[@]}"} bazel-testlogs 2>/dev/null)

  for label in "$@"; do
    directory=${label#//}
    directory=$logs/${directory/://}
    status=$(status_of "$label" "$summary")
    # Shards and repeated runs have a directory each below it.
    mapfile -t target_logs < <(find "$directory" -name test.log 2>/dev/null)
    case $status in
      FAILED | TIMEOUT | FLAKY) show_logs "$label" ${target_logs[@]+"${target_logs[@]}"} ;;
    esac
    count_cases "$label" "$status" ${target_logs[@]+"${target_logs[@]}"}
  done
}

# run_fuzzers: the same for them.
run_fuzzers() {
  local log status=PASSED
  log=$(mktemp)
  tests/fuzz/run.sh >"$log" </dev/null || status=FAILED
  [[ $status == PASSED ]] || show_logs "$FUZZERS" "$log"
  count_cases "$FUZZERS" "$status" "$log"
  rm -f "$log"
}

# finish: prints the result and exits.
finish() {
  [[ ${#failures[@]} -eq 0 ]] || printf '%s\n' "${failures[@]}"
  [[ ${#skips[@]} -eq 0 ]] || printf '%s\n' "${skips[@]}"
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed -eq 0 && $passed -gt 0 ]]
}

# Says what to install when something is missing.
check_dependencies() {
  if ! command -v bazel >/dev/null; then
    echo "run.sh: bazel is not installed; run deploy/install_dependencies.sh" >&2
    return 1
  fi
  if command -v dpkg-query >/dev/null && ! deploy/install_dependencies.sh --check; then
    return 1
  fi
}

main() {
  local -a words=() options=() targets=()
  local list=0 argument label
  for argument in "$@"; do
    case $argument in
      -h | --help) usage && exit 0 ;;
      --list) list=1 ;;
      -*) options+=("$argument") ;;
      *) words+=("$argument") ;;
    esac
  done

  if ! check_dependencies || ! label=$(all_targets) || [[ -z $label ]]; then
    add_failure "the tests could not be listed"
    finish || exit 1
  fi
  label=$(select_targets ${words[@]+"${words[@]}"} <<<"$label") || exit 2
  mapfile -t targets <<<"$label"
  if [[ $list -eq 1 ]]; then
    printf '%s\n' "${targets[@]}"
    exit 0
  fi

  # The fuzzers' label, if it was chosen, is no target of bazel's.
  local -a bazel_targets=()
  for label in "${targets[@]}"; do [[ $label == "$FUZZERS" ]] || bazel_targets+=("$label"); done
  if [[ ${#bazel_targets[@]} -gt 0 ]]; then
    run_targets ${options[@]+"${options[@]}"} -- "${bazel_targets[@]}"
  fi
  if [[ ${#bazel_targets[@]} -lt ${#targets[@]} && "${options[*]-}" != *--config=* ]]; then
    run_fuzzers
  fi
  finish
}

main "$@"
