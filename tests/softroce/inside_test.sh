#!/usr/bin/env bash
# What guest.sh promises of the guest's inside; run by guest_test.sh in a guest with two devices, with a
# shared folder as first argument and an empty second one.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

share=$1
failed=0
readonly POLLS=200

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "KVD_CASE passed inside the guest: $name"
  else
    echo "KVD_CASE failed inside the guest: $name"
    failed=1
  fi
}

# eventually COMMAND...: it succeeds before long.
eventually() {
  local poll
  for ((poll = 0; poll < POLLS; ++poll)); do
    ! "$@" || return 0
    read -r -t 0.02 <> <(:)
  done
  return 1
}

listening() {
  [[ -n $(ss -Hltn 'sport = :18515') ]]
}

# measure OPTION... ADDRESS: ib_read_lat from rxea to rxeb, options for both; sets typical_us to the
# whole microseconds of a typical READ of 64 bytes, and sent_bytes to what left by va for them.
measure() {
  local server before=0 after=0
  ib_read_lat -d rxeb -s 64 -n 50 -F "${@:1:$#-1}" >/tmp/server.log 2>&1 &
  server=$!
  eventually listening
  read -r before </sys/class/net/va/statistics/tx_bytes
  ib_read_lat -d rxea -s 64 -n 50 -F "$@" >/tmp/client.log 2>&1
  read -r after </sys/class/net/va/statistics/tx_bytes
  kill "$server" 2>/dev/null
  wait "$server"
  sent_bytes=$((after - before))
  typical_us=$(awk '$1 == 64 && $2 == 50 { print int($5); found = 1 } END { exit !found }' \
    /tmp/client.log) || typical_us=0
}

# measured: the last measurement worked, over the wire. A READ's request has 64 bytes with its headers.
measured() {
  [[ $typical_us -gt 0 && $sent_bytes -ge 3200 ]] ||
    { echo "typical $typical_us us, sent $sent_bytes bytes" && cat /tmp/client.log; } >&2
  [[ $typical_us -gt 0 && $sent_bytes -ge 3200 ]]
}

device_is_whole() {
  local info
  info=$(ibv_devinfo -d "$1")
  grep -q PORT_ACTIVE <<<"$info" && grep -q 'active_mtu:.*4096' <<<"$info"
}

check "the command is root" test "$EUID" -eq 0
check "variables come through" test "$KVD_GUEST_TEST_VARIABLE" = 'with spaces and "quotes"'
check "an option sets another" test "$KVD_GUEST_TEST_OPTION" = set
check "an empty argument comes through" test "$#" -eq 2 -a -z "${2-missing}"
check "standard input is empty" test -z "$(cat)"
check "the devices are named" \
  test "$KVD_RDMA_DEVICES $KVD_RDMA_ADDRESSES" = "rxea,rxeb 10.77.0.1,10.77.0.2"
check "a file of the host is there" test -x "$0"
check "it can be changed, for the guest alone" touch "$share/../kept"
check "the share has the host's files" grep -q "from the host" "$share/host"
echo "from the guest" >"$share/guest"
check "/tmp is empty and writable" touch /tmp/mine
check "two processors" test "$(nproc)" -eq 2
check "hugepages are reserved" grep -q '^HugePages_Free: *16$' /proc/meminfo
check "no limit of locked memory" test "$(ulimit -l)" = unlimited
check "nothing outside can be reached" test -z "$(ip route show default)"
check "modules can be loaded" modprobe dm-flakey

check "rxea is active with an MTU of 4096" device_is_whole rxea
check "rxeb is active with an MTU of 4096" device_is_whole rxeb
measure 10.77.0.2
check "READs go over the wire" measured
measure -R 10.77.0.2
check "READs of a connection by rdma_cm go over the wire" measured
measure -x 2 10.77.0.2
check "READs over IPv6 go over the wire" measured
measure -x 0 10.77.0.2
check "READs over link-local addresses go over the wire" measured

tc qdisc add dev va root netem delay 5ms
measure 10.77.0.2
check "a delay of 5 ms set by netem is seen" test "$typical_us" -ge 5000
tc qdisc del dev va root

# Root may lock any amount unless it gives up that right.
limited() {
  local said
  said=$(ulimit -l 64 && exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
    timeout 20 ibv_rc_pingpong -d rxea -g 1 -s 1048576 2>&1)
  grep -q "Couldn't register MR" <<<"$said"
}
check "a limit of locked memory is kept" limited

: >/tmp/events
stdbuf -oL ibv_asyncwatch -d rxea >/tmp/events 2>&1 &
watch=$!
eventually grep -q 'async event' /tmp/events
"$KVD_GUEST_NETWORK" down va
check "a link that goes down is an event" eventually grep -q PORT_ERR /tmp/events
"$KVD_GUEST_NETWORK" up va
check "a link that comes up is an event" eventually grep -q PORT_ACTIVE /tmp/events
kill "$watch"
measure 10.77.0.2
check "READs go over the wire again" measured
measure -x 2 10.77.0.2
check "READs over IPv6 do so too" measured

exit "$failed"
