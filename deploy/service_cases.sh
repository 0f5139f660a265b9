#!/bin/bash
# The cases of deploy/test-service.sh: run by systemd, where kvd's packages are installed and two RDMA devices are there.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail
failed=0

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@" >/tmp/log 2>&1; then
    echo "KVD_CASE passed service: $name"
  else
    cat /tmp/log
    journalctl -u 'kvd*' --no-pager -o cat | tail -n 15
    echo "KVD_CASE failed service: $name"
    failed=1
  fi
}

# of PROPERTY [UNIT]
of() { systemctl show -P "$1" "${2:-kvd}"; }

# until_true COMMAND...: for a minute and a half, which is a hundred times what it takes.
until_true() {
  local tries
  for ((tries = 0; tries < 900; ++tries)); do
    if "$@"; then return 0; fi
    read -rt 0.1 <><(:) || true
  done
  return 1
}

serves_by_rdma() { [[ $(of ActiveState) == active && $(of StatusText) == "serving shared memory at /run/kvd/kvd.sock and RDMA at 10.77.0.2:7711 by rxeb" && $(of NRestarts) == 0 ]]; }

has_few_rights() {
  local status limits
  status=$(</proc/"$(of MainPID)"/status)
  limits=$(</proc/"$(of MainPID)"/limits)
  echo "$status"
  [[ $status == *$'NoNewPrivs:\t1'* && $status == *$'Seccomp:\t2'* && $status == *$'CapBnd:\t0000000000000000'* ]] &&
    [[ $(stat -c %U /proc/"$(of MainPID)") == kvd ]] && grep -qE 'Max locked memory +unlimited' <<<"$limits"
}

rdma() { kvcli --server=rdma:10.77.0.2:7711 --key_file=/root/app.keys "$@"; }

puts_and_gets() { rdma put greeting hello && [[ $(rdma get greeting) == hello && $(kvcli get greeting) == hello ]]; }

reads_as_planned() { [[ $(kvcli stat rdma_windows) == 1 && $(kvcli stat page_kind) == "2 MiB" ]]; }

told() { journalctl -u "$1" --no-pager -o cat | grep -F "$2"; }

audits() { grep -F '"event":"admitted"' /var/log/kvd/audit.json && [[ $(stat -c %U:%a /var/log/kvd) == kvd:750 ]]; }

reloads() {
  local pid
  pid=$(of MainPID)
  echo "key second read $(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')" >>/etc/kvd/kvd.keys
  systemctl reload kvd && until_true told kvd "SIGHUP: 2 keys" && [[ $(of MainPID) == "$pid" ]]
}

back() { [[ $(of ActiveState) == active && $(of NRestarts) == 1 ]] && kvcli ping; }

comes_back() {
  local pid
  pid=$(of MainPID)
  [[ $pid -gt 1 ]] && kill -9 "$pid" && until_true back
}

stops() { systemctl stop kvd && [[ $(of Result) == success && $(of ExecMainStatus) == 0 && ! -e /run/kvd ]]; }

# fails_with STATUS: a start that fails, and is left at that if the status is 2.
fails_with() {
  if systemctl start kvd; then return 1; fi
  [[ $(of ExecMainStatus) == "$1" ]]
}

refuses_unknown_flag() {
  echo --no_such_flag >>/etc/kvd/kvd.flags
  fails_with 2 && [[ $(of ActiveState) == failed && $(of NRestarts) == 0 ]] &&
    told kvd "kvd: /etc/kvd/kvd.flags:$(wc -l </etc/kvd/kvd.flags): unknown flag --no_such_flag"
  local result=$?
  sed -i '/no_such_flag/d' /etc/kvd/kvd.flags
  systemctl reset-failed kvd
  return "$result"
}

# start_with DIRECTIVE: of a drop-in; then the unit is as before.
start_with() {
  mkdir -p /run/systemd/system/kvd.service.d
  printf '[Service]\nRestart=no\n%s\n' "$1" >/run/systemd/system/kvd.service.d/test.conf
  systemctl daemon-reload
  systemctl start kvd
  local result=$?
  systemctl stop kvd
  rm -r /run/systemd/system/kvd.service.d
  systemctl daemon-reload
  systemctl reset-failed kvd
  return "$result"
}

needs_its_devices() { ! start_with 'PrivateDevices=yes' && start_with '' && told kvd "there is no /dev/infiniband here"; }

writes_nowhere_else() {
  sed -i 's|^--audit=.*|--audit=/etc/kvd/audit.json|' /etc/kvd/kvd.flags
  fails_with 1
  local result=$?
  systemctl stop kvd
  sed -i 's|^--audit=.*|--audit=/var/log/kvd/audit.json|' /etc/kvd/kvd.flags
  systemctl reset-failed kvd
  [[ $result -eq 0 && ! -e /etc/kvd/audit.json ]]
}

serves_a_node() {
  printf -- '--memory=16m\n--shm_mode=0660\n' >/etc/kvd/kvd@0.flags
  systemctl start kvd@0 && [[ $(of StatusText kvd@0) == "serving shared memory at /run/kvd-0/kvd.sock" ]] &&
    kvcli --server=shm:/run/kvd-0/kvd.sock ping && ! systemctl start kvd@7
}

check "kvd is up after the start of the machine, and serves shared memory and RDMA" until_true serves_by_rdma
check "it is the user kvd, without capabilities, filtered, and may lock memory" has_few_rights
check "items are put and read by RDMA through the devices that the unit allows" puts_and_gets
check "hugepages and memory windows are had" reads_as_planned
check "the audit log is kvd's own" audits
check "reload reads the key file, and the process stays" reloads
check "killed, it comes back" comes_back
check "stop ends it with 0 and leaves no socket" stops
check "a flag that is not understood ends it once, with file and line" refuses_unknown_flag
check "without its devices it would not serve RDMA" needs_its_devices
check "it writes to its own directories alone" writes_nowhere_else
check "kvd@0 serves beside it, and kvd@7 without flags of its own is not started" serves_a_node
exit $failed
