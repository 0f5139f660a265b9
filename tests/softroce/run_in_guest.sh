#!/usr/bin/env bash
# Runs a test program where it has RDMA devices; see guest.bzl.
#
#   run_in_guest.sh [OPTION_OF_GUEST_SH]... -- PROGRAM [ARGUMENT]...
#
# With KVD_RDMA_DEVICES in the environment that is this machine, else the guest. Where no guest can be
# had, it reports the test as skipped. Exit: the program's status, 124 and 125 as guest.sh says.
set -euo pipefail

readonly ALLOWANCE_S=90  # to boot, and to say what hangs
guest=$(dirname "${BASH_SOURCE[0]}")/guest.sh
# Bazel starts a test of another folder by a link there, in the folder that holds all it needs.
[[ -e $guest ]] || guest=tests/softroce/guest.sh
if [[ ! -e $guest ]]; then
  echo "run_in_guest.sh: guest.sh is not beside it" >&2
  exit 125
fi

if [[ -n ${KVD_RDMA_DEVICES:-} ]]; then
  while [[ $1 != -- ]]; do
    shift
  done
  shift
  exec "$@"
fi

if ! reason=$("$guest" --prepare 2>&1); then
  name=${TEST_TARGET:-guest}
  echo "KVD_CASE skipped ${name##*:}: $(tail -n 1 <<<"$reason")"
  exit 0
fi

exec "$guest" "--timeout=$((${TEST_TIMEOUT:-600} - ALLOWANCE_S))" "$@"
