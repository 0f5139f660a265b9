#!/usr/bin/env bash
# Rig C: faults over RDMA, between the two devices of the Soft-RoCE guest (tests/softroce). Builds what it needs.
#
#   tests/rigs/c.sh --seconds=600 --seed=7     rounds until the time is up or one fails; the last line is a JSON object
#   tests/rigs/c.sh --seed=7 --round=12        one of them again
#   tests/rigs/c.sh --list                     kinds of rounds, with how often they come
#
# Environment: KVD_BAZEL_STARTUP as for tests/run.sh. Exit: 0 all passed, 1 one did not, 2 usage, 125 no guest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

read -ra STARTUP_OPTIONS <<<"${KVD_BAZEL_STARTUP:-}"
bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} build --noshow_progress --ui_event_filters=-info,-debug \
  //tests/rigs:rig_c_programs //tests/softroce:guest_init >&2
bin=$(bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} info --noshow_progress bazel-bin 2>/dev/null)
[[ -e $bin/tests/softroce/guest_init.elf ]] && export KVD_GUEST_INIT=$bin/tests/softroce/guest_init.elf
seconds=60
for argument in "$@"; do [[ $argument != --seconds=* ]] || seconds=${argument#*=}; done
# A round that has begun is ended.
exec tests/softroce/guest.sh --two-devices "--timeout=$((seconds + 1200))" -- \
  "$PWD/tests/rigs/rig.py" c "--bin=$bin" "$@"
