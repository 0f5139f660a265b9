#!/usr/bin/env bash
# Fuzzes what takes bytes from outside, and the store, with libFuzzer (clang 14) under the address and
# undefined-behaviour sanitizers.
#
#   tests/fuzz/run.sh                       every target, 20 s each, as many at once as there are cores
#   tests/fuzz/run.sh --seconds=600 store   this target, for ten minutes
#   tests/fuzz/run.sh --seed=7              as another run that printed this seed
#   tests/fuzz/run.sh --keep                and put into corpus/ what reaches code that nothing there reaches
#   tests/fuzz/run.sh --list
#
# An input that breaks something is written to found-inputs/ (or KVD_FUZZ_FOUND), with the command that repeats
# it. When it has been mended, the input goes into found/TARGET/ under a name that says what it was:
# from then on every test run replays it (TARGET_replay_test).
# Prints a KVD_CASE line a target, with how often it ran. Exit: 0 nothing found, 1 something, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TARGETS=$(sed -n 's|^tests/fuzz/\(.*\)_fuzz\.cc$|\1|p' < <(ls tests/fuzz/*_fuzz.cc))
readonly TARGETS
seconds=20 seed=$RANDOM keep=0 chosen=()
read -ra STARTUP_OPTIONS <<<"${KVD_BAZEL_STARTUP:-}"
found=${KVD_FUZZ_FOUND:-found-inputs}

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
}

parse_arguments() {
  local argument
  for argument in "$@"; do
    case $argument in
      --seconds=*) seconds=${argument#*=} ;;
      --seed=*) seed=${argument#*=} ;;
      --keep) keep=1 ;;
      --list) echo "$TARGETS" && exit 0 ;;
      -h | --help) usage && exit 0 ;;
      *)
        if ! grep -qxF -e "$argument" <<<"$TARGETS"; then
          echo "run.sh: no target '$argument'; --list shows them" >&2
          exit 2
        fi
        chosen+=("$argument")
        ;;
    esac
  done
  if ! [[ $seconds =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ ]]; then
    echo "run.sh: --seconds and --seed want numbers" >&2
    exit 2
  fi
  [[ ${#chosen[@]} -gt 0 ]] || mapfile -t chosen <<<"$TARGETS"
}

run_bazel() {
  bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} "$@"
}

# fuzz PROGRAM TARGET: one target, its output in $work/TARGET.log.
fuzz() {
  local program=$1 target=$2 status=0 runs
  mkdir -p "$work/$target"
  echo "KVD_CASE begins fuzz $target"
  "$program" "-max_total_time=$seconds" "-seed=$seed" -print_final_stats=1 -timeout=20 \
    -rss_limit_mb=2048 "-artifact_prefix=$work/$target-" "$work/$target" \
    "tests/fuzz/corpus/$target" >"$work/$target.log" 2>&1 || status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$target.log")
  if [[ $status -eq 0 && ${runs:-0} -gt 0 ]]; then
    echo "KVD_CASE passed fuzz $target, $runs runs in $seconds s, seed $seed"
    return
  fi
  mkdir -p "$found"
  tail -n 40 "$work/$target.log"
  cp "$work/$target"-* "$found/" 2>/dev/null || true
  echo "to repeat it: $program $(find "$found" -name "$target-*" | head -n 1)"
  echo "KVD_CASE failed fuzz $target, after ${runs:-no} runs, seed $seed"
}

merge() {
  local program=$1 target=$2
  "$program" -merge=1 -max_len=512 "tests/fuzz/corpus/$target" "$work/$target" >/dev/null 2>&1
  echo "corpus/$target: $(find "tests/fuzz/corpus/$target" -type f | wc -l) inputs"
}

main() {
  parse_arguments "$@"
  if ! command -v clang-14 >/dev/null; then
    echo "KVD_CASE skipped fuzz: clang-14 is not installed; run deploy/install_dependencies.sh"
    exit 0
  fi
  local labels=() target binaries
  for target in "${chosen[@]}"; do labels+=("//tests/fuzz:${target}_fuzz"); done
  run_bazel build --config=fuzz --noshow_progress --ui_event_filters=-info,-debug "${labels[@]}" >&2
  binaries=$(run_bazel info --config=fuzz bazel-bin 2>/dev/null)/tests/fuzz
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for target in "${chosen[@]}"; do
    while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || true; done
    fuzz "$binaries/${target}_fuzz" "$target" &
  done | tee "$work/cases"
  if [[ $keep -eq 1 ]]; then
    for target in "${chosen[@]}"; do merge "$binaries/${target}_fuzz" "$target"; done
  fi
  ! grep -q '^KVD_CASE failed' "$work/cases"
}

main "$@"
