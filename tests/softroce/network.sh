#!/usr/bin/env bash
# The guest's Soft-RoCE devices. guest.sh runs it at boot; a suite that takes links down calls it for
# that, since the kernel forgets a link's routes and neighbours when it goes down.
#
#   network.sh one         rxea alone, on va 10.77.0.1, fd77::1
#   network.sh two         rxea as above and rxeb on vb 10.77.0.2, fd77::2, joined by a wire (veth)
#   network.sh down va|vb  take a link down: both ends of the wire lose it
#   network.sh up va|vb    bring it up again, routes and all; returns when both RDMA ports are active
#
# Both ends of the wire are in one kernel, which would rather not use it. Rules force it to: what is
# for 10.77.0.2 and not from 10.77.0.2 leaves by va, whether or not the sender has bound its address.
set -euo pipefail

readonly MTU=4200  # leaves room for an RDMA MTU of 4096
readonly MAC_A=02:00:00:77:00:01 MAC_B=02:00:00:77:00:02
readonly LINK_LOCAL_A=fe80::ff:fe77:1 LINK_LOCAL_B=fe80::ff:fe77:2
readonly PORT_POLLS=200

# set_parameter VALUE FILE... below /proc/sys/net
set_parameter() {
  local value=$1 file
  shift
  for file in "$@"; do
    echo "$value" >"/proc/sys/net/$file"
  done
}

set_parameters() {
  local name
  # Below about 1,000, veth drops packets of a large READ.
  set_parameter 100000 core/netdev_max_backlog
  for name in default all; do
    set_parameter 1 "ipv4/conf/$name/accept_local" "ipv4/conf/$name/arp_ignore"
    set_parameter 0 "ipv4/conf/$name/rp_filter" "ipv6/conf/$name/accept_dad"
    set_parameter 2 "ipv4/conf/$name/arp_announce"
    # Else its IPv6 addresses, and with them the GIDs, go when a link goes down.
    set_parameter 1 "ipv6/conf/$name/keep_addr_on_down"
  done
}

# The commands for ip that make rules: own address, own link; the other's address, the wire.
rules() {
  local family
  for family in 4 6; do
    local a=10.77.0.1 b=10.77.0.2
    [[ $family == 4 ]] || a=fd77::1 b=fd77::2
    run_ip "-$family" <<RULES
rule add pref 10 iif va lookup local
rule add pref 11 iif vb lookup local
rule add pref 20 from $a to $a lookup local
rule add pref 21 from $b to $b lookup local
rule add pref 22 to $b lookup 101
rule add pref 23 to $a lookup 102
rule add pref 32000 lookup local
rule del pref 0 lookup local
RULES
  done
}

# Neighbours that need no resolving, which takes seconds here, and the routes that the rules name.
routes() {
  run_ip <<ROUTES
neigh replace 10.77.0.2 lladdr $MAC_B nud permanent dev va
neigh replace 10.77.0.1 lladdr $MAC_A nud permanent dev vb
neigh replace fd77::2 lladdr $MAC_B nud permanent dev va
neigh replace fd77::1 lladdr $MAC_A nud permanent dev vb
neigh replace $LINK_LOCAL_B lladdr $MAC_B nud permanent dev va
neigh replace $LINK_LOCAL_A lladdr $MAC_A nud permanent dev vb
route replace 10.77.0.2/32 dev va src 10.77.0.1 table 101
route replace 10.77.0.1/32 dev vb src 10.77.0.2 table 102
route replace fd77::2/128 dev va src fd77::1 table 101
route replace fd77::1/128 dev vb src fd77::2 table 102
ROUTES
}

run_ip() {
  ip "$@" -batch -
}

# await_ports DEVICE... : returns when the ports are active.
await_ports() {
  local device poll state
  for device in "$@"; do
    for ((poll = 0; poll < PORT_POLLS; ++poll)); do
      read -r state <"/sys/class/infiniband/$device/ports/1/state"
      [[ $state != *ACTIVE ]] || continue 2
      read -r -t 0.01 <> <(:) || true
    done
    echo "network.sh: the port of $device is not active but '$state'" >&2
    return 1
  done
}

one() {
  set_parameters
  run_ip <<LINKS
link set lo up
link add va address $MAC_A mtu $MTU type dummy
addr add 10.77.0.1/24 dev va
addr add fd77::1/64 dev va
link set va up
LINKS
  rdma link add rxea type rxe netdev va
  await_ports rxea
}

two() {
  set_parameters
  run_ip <<LINKS
link set lo up
link add va address $MAC_A mtu $MTU type veth peer name vb address $MAC_B mtu $MTU
addr add 10.77.0.1/32 dev va
addr add 10.77.0.2/32 dev vb
addr add fd77::1/128 dev va
addr add fd77::2/128 dev vb
link set va up
link set vb up
LINKS
  rules
  routes
  rdma link add rxea type rxe netdev va
  rdma link add rxeb type rxe netdev vb
  await_ports rxea rxeb
}

main() {
  case ${1:-} in
    one) one ;;
    two) two ;;
    down) ip link set "$2" down ;;
    up)
      ip link set "$2" up
      if [[ -e /sys/class/infiniband/rxeb ]]; then
        routes
        await_ports rxea rxeb
      else
        await_ports rxea
      fi
      ;;
    *) sed -n '2,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
  esac
}

main "$@"
