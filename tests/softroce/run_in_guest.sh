#!/usr/bin/env bash
# Runs a test program where it has RDMA devices; see guest.bzl.
#
#   run_in_guest.sh [OPTION_OF_GUEST_SH]... -- PROGRAM [ARGUMENT]...
#
# With KVD_RDMA_DEVICES in the environment that is this machine, else the guest. Where no guest can be
# had, it reports the test as skipped. A program that exits with status 75 says that the guest's kernel is
# of no more use: it is run again in another guest, at most three times in all.
# Exit: the program's status, 124 and 125 as guest.sh says.
set -euo pipefail

readonly KERNEL_IS_LOST=75 GUESTS=3
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

for ((number = 1; ; number++)); do
  status=0
  "$guest" "--timeout=$((${TEST_TIMEOUT:-600} - ALLOWANCE_S - SECONDS))" "$@" || status=$?
  [[ $status -eq $KERNEL_IS_LOST && $number -lt $GUESTS ]] || exit "$status"
  echo "run_in_guest.sh: the kernel of guest $number is of no more use; the next one"
done
