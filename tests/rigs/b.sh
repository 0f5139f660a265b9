#!/usr/bin/env bash
# Rig B: faults against real processes over shared memory. Builds what it needs.
#
#   tests/rigs/b.sh --seconds=600 --seed=7     rounds until the time is up or one fails; the last line is a JSON object
#   tests/rigs/b.sh --seed=7 --round=12        one of them again
#   tests/rigs/b.sh --list                     kinds of rounds, with how often they come
#
# Environment: KVD_BAZEL_STARTUP as for tests/run.sh. Exit: 0 all passed, 1 one did not, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

read -ra STARTUP_OPTIONS <<<"${KVD_BAZEL_STARTUP:-}"
bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} build --noshow_progress --ui_event_filters=-info,-debug \
  //tests/rigs:rig_b_programs >&2
bin=$(bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} info --noshow_progress bazel-bin 2>/dev/null)
exec tests/rigs/rig.py b "--bin=$bin" "$@"
