#!/usr/bin/env bash
# Latencies over RDMA in the guest, floor and kvd side by side in one boot:
#
#   bazel build --config=opt //server:kvd //client/bench:latency_benchmark //tests/softroce:guest_init
#   tests/softroce/guest.sh --two-devices --timeout=300 -- tests/softroce/latency.sh [ROUNDS]
#
# ib_read_lat and ib_send_lat print medians (t_typical); ib_send_lat's is one way, so a round trip is twice that. memcached
# runs too where it is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly SERVER=10.77.0.1
bin=${KVD_BIN:-bazel-bin}

# perftest NAME SIZE: the typical latency of ib_NAME between the two devices.
perftest() {
  "ib_$1" -d rxea -x 1 -s "$2" -n 3000 -F >/dev/null 2>&1 &
  local server=$!
  sleep 0.5
  "ib_$1" -d rxeb -x 1 -s "$2" -n 3000 -F "$SERVER" 2>/dev/null | awk -v name="ib_$1 $2 B" '$1 == '"$2"' {printf "%-22s p50 %9.2f us\n", name, $5}'
  wait "$server" || true
}

# bandwidth SIZE: the message rate of ib_read_bw between the two devices.
bandwidth() {
  ib_read_bw -d rxea -x 1 -s "$1" -n 5000 -F >/dev/null 2>&1 &
  local server=$!
  sleep 0.5
  ib_read_bw -d rxeb -x 1 -s "$1" -n 5000 -F "$SERVER" 2>/dev/null | awk '$1 == '"$1"' {printf "%-22s %9.0f messages/s\n", "ib_read_bw '"$1"' B", $5 * 1e6}'
  wait "$server" || true
}

main() {
  "$bin/server/kvd" --shm=/tmp/kvd.sock --listen="$SERVER:7711" --insecure --memory=64m 2>/tmp/kvd.log &
  local kvd=$! memcached=
  if command -v memcached >/dev/null; then
    memcached -u root -l "$SERVER" -p 11211 -t 1 &
    memcached=$!
  fi
  sleep 1
  local round
  for ((round = 1; round <= ${1:-3}; ++round)); do
    echo "round $round"
    perftest read_lat 64
    perftest read_lat 1024
    "$bin/client/bench/latency_benchmark" --server="rdma:$SERVER:7711"
    perftest send_lat 64
    bandwidth 1024
    bandwidth 96
    [[ -z $memcached ]] || "$bin/client/bench/latency_benchmark" --memcached="$SERVER:11211" --operations=2000
  done
  kill "$kvd" $memcached
}

main "$@"
