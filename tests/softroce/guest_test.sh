#!/usr/bin/env bash
# guest.sh runs commands as it says, and fails as it says. What the guest is like inside is in
# inside_test.sh, which it runs.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
unset KVD_RDMA_DEVICES

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "KVD_CASE passed guest: $name"
  else
    echo "KVD_CASE failed guest: $name"
    failed=1
  fi
}

# run ARGUMENT...: guest.sh with them; sets status, leaves what it printed in output and errors.
run() {
  "$folder/guest.sh" "$@" >"$work/output" 2>"$work/errors"
  status=$?
}

# ended STATUS [TEXT]: the last run did so, and said the text on standard error.
ended() {
  if [[ $status -ne $1 ]] || ! grep -qF -- "${2:-}" <(cat "$work/errors" && echo); then
    echo "expected status $1 and '${2:-}', found $status and:" >&2
    sed 's/KVD_CASE/case/' "$work/errors" >&2
    return 1
  fi
}

output_is() {
  [[ $(od -An -c "$work/output") == "$(printf '%b' "$1" | od -An -c)" ]]
}

# What the init says may come in pieces, with time between them.
pieces() {
  (
    # shellcheck disable=SC1090,SC2154  # one function of guest.sh, which sets status_line
    source <(sed -n '/^await_status()/,/^}/p' "$folder/guest.sh")
    mkfifo "$work/status"
    (
      exec >"$work/status"
      printf 'e' && sleep 0.8 && printf 'xited 0 11 0\n'
    ) &
    # shellcheck disable=SC2034  # await_status looks at it
    qemu_pid=$!
    exec 5<"$work/status"
    await_status 10
    [[ $status_line == "exited 0 11 0" ]]
  )
}
check "a line that comes in pieces is taken whole" pieces

if ! reason=$("$folder/guest.sh" --prepare 2>&1); then
  echo "KVD_CASE skipped guest: $(tail -n 1 <<<"$reason")"
  exit 0
fi

run --hugepages=2000 --memory=1g -- true
check "more hugepages than memory is a usage error" ended 2 "too little"
run --share=/nonexistent -- true
check "a shared folder that is not there is a usage error" ended 2 "/nonexistent"
run --bogus -- true
check "an unknown option is a usage error" ended 2 "--bogus"
run </dev/null
check "no command and no terminal is a usage error" ended 2 "no terminal"

# No kernel can be fetched into this cache.
KVD_GUEST_CACHE=/dev/null run -- true
check "no kernel: 125 and the reason" ended 125 "there is no kernel"
reported=$(KVD_GUEST_CACHE=/dev/null TEST_TARGET=//some:verbs_test "$folder/run_in_guest.sh" -- true)
check "a test whose guest cannot be had reports that it was skipped" \
  grep -q "^KVD_CASE skipped verbs_test: .*there is no kernel" <<<"$reported"
# shellcheck disable=SC2016  # expanded by the test that it runs
reported=$(KVD_RDMA_DEVICES=real_0 "$folder/run_in_guest.sh" --two-devices -- \
  bash -c 'echo "$KVD_RDMA_DEVICES" "$@"' name 'an argument')
check "a machine with devices of its own runs the test itself" test "$reported" = "real_0 an argument"

# shellcheck disable=SC2016  # expanded in the guest
mkdir "$work/share"
reported=$(TEST_TIMEOUT=300 "$folder/run_in_guest.sh" "--share=$work/share" -- \
  bash -c 'echo once more >>"$1"/guests; [[ $(wc -l <"$1"/guests) -gt 1 ]] || exit 75; exit 3' name "$work/share")
check "a test whose guest's kernel is lost is run in another one" test $? -eq 3
check "which is told" grep -q "kernel of guest 1" <<<"$reported"

# A QEMU that hangs the first time that it is started.
mkdir "$work/hangs"
cat >"$work/hangs/qemu-system-x86_64" <<END
#!/bin/sh
echo started >>"$work/hangs/starts"
[ "\$(wc -l <"$work/hangs/starts")" -gt 1 ] || exec sleep 1000
exec $(PATH=$PATH:/usr/sbin command -v qemu-system-x86_64) "\$@"
END
chmod +x "$work/hangs/qemu-system-x86_64"
PATH=$work/hangs:$PATH KVD_GUEST_BOOT_LIMITS_S='2 180' run --kvm=off --timeout=60 -- sh -c 'echo booted; exit 5'
check "a guest that hangs before its command starts is booted again" ended 5 "silent; once more"
check "and its command runs once" output_is 'booted\n'

# Most of the guest's inside, in one boot.
echo "from the host" >"$work/share/host"
export KVD_GUEST_TEST_VARIABLE='with spaces and "quotes"'
"$folder/guest.sh" --two-devices --hugepages=16 --timeout=200 "--share=$work/share" \
  --env=KVD_GUEST_TEST_OPTION=set -- "$folder/inside_test.sh" "$work/share" ''
status=$?
check "a command's success is passed on" test "$status" -eq 0
check "what it wrote to a share is here" grep -q "from the guest" "$work/share/guest"
check "what it wrote elsewhere is not" test ! -e "$work/kept"

# Two at once; the files that each wrote to the same path are its own.
# shellcheck disable=SC2016  # expanded in the guest
script='printf "a\000b\r\n\377$1" ; echo errors >&2; test ! -e /var/tmp/mine && touch /var/tmp/mine || exit 1
  [[ $KVD_RDMA_DEVICES == rxea && $(ls /sys/class/infiniband) == rxea ]] || exit 2'
"$folder/guest.sh" --timeout=60 -- bash -c "$script; exit 7" name second >"$work/output2" 2>&1 &
second=$!
run --timeout=60 -- bash -c "$script; kill -KILL \$\$" name first
check "a command's signal is passed on, and its errors" ended 137 "errors"
check "its output is passed on byte by byte" output_is 'a\0b\r\n\0377first'
wait "$second"
status=$?
check "another guest at the same time ends with its own status" test "$status" -eq 7
mv "$work/output2" "$work/output"
check "and its own output" grep -qaF second "$work/output"

run --timeout=1 -- bash -c 'echo before; exec sleep 1000'
check "a command that takes too long: 124" ended 124 "more than 1 s"
check "and what it does is told" grep -qE '^process [0-9]+, child of 1: sleep 1000' "$work/errors"
check "and where in the kernel it is" grep -q 'nanosleep' "$work/errors"
check "what it printed until then is passed on" output_is 'before\n'

run --timeout=60 -- bash -c 'echo c >/proc/sysrq-trigger; exec sleep 1000'
check "a kernel panic: 125 and the console" ended 125 "Kernel panic"

run --timeout=60 -- bash -c 'head -c 20000000 /dev/zero; /nonexistent/command'
check "much output is passed on whole" test "$(stat -c %s "$work/output")" -eq 20000000
check "a command that cannot be started: 127" ended 127 "/nonexistent/command"

exit "$failed"
