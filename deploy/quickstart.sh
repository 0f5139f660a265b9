#!/usr/bin/env bash
# Shows kvd at work on this machine, with real data, in one command.
#
#   deploy/quickstart.sh
#
# Installs what is missing (Debian 12), builds, starts a kvd of its own on a socket of its own, loads the Unicode character
# database, reads every item of it back byte for byte by one-sided GETs, shows what that cost the server, and stops
# what it started. Needs no RDMA device, no hugepages and, once the packages are installed, no root.
#
# Environment: KVD_BAZEL_STARTUP holds startup options for bazel, such as --output_base=/tmp/mine.
# Exit: 0 all of it worked; 1 something did not, and the last line says what.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly DATA=/usr/share/unicode/UnicodeData.txt
read -ra STARTUP_OPTIONS <<<"${KVD_BAZEL_STARTUP:-}"
work=$(mktemp -d /tmp/kvd-quickstart.XXXXXX)
kvd_pid=

say() { printf '\n%s\n' "$*"; }

fail() {
  echo "quickstart.sh: $*" >&2
  exit 1
}

clean_up() {
  if [[ -n $kvd_pid ]]; then
    kill "$kvd_pid" 2>/dev/null || true
    wait "$kvd_pid" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap clean_up EXIT

build() {
  bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} build --noshow_progress --ui_event_filters=-info,-debug \
    --color=no //server:kvd //client/cli:kvcli >"$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log" >&2; fail "the build failed; its last lines are above"; }
  local bin
  bin=$(bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} info --color=no bazel-bin 2>/dev/null)
  # By the links that Bazel leaves here, if these are of this build.
  if [[ bazel-bin -ef $bin ]]; then bin=bazel-bin; fi
  kvd=$bin/server/kvd
  kvcli=$bin/client/cli/kvcli
}

start() {
  "$kvd" --shm="$work/kvd.sock" --memory=64m >"$work/kvd.log" 2>&1 &
  kvd_pid=$!
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    if "$kvcli" ping --server="shm:$work/kvd.sock" >/dev/null 2>&1; then return; fi
    kill -0 "$kvd_pid" 2>/dev/null || { cat "$work/kvd.log" >&2; kvd_pid=; fail "kvd did not start; its log is above"; }
    sleep 0.1
  done
  fail "kvd does not answer; its log: $(tail -n 3 "$work/kvd.log")"
}

# Microseconds of processor time that all threads of kvd have used.
cpu_us() {
  awk '{sum += $1} END {printf "%d", sum / 1000}' /proc/"$kvd_pid"/task/*/schedstat
}

# Runs kvcli; KVCLI_SERVER says where.
cli() { "$kvcli" "$@"; }

main() {
  case ${1:-} in
    "") ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" && return ;;
    *) echo "quickstart.sh: takes no arguments; --help says what it does" >&2 && exit 2 ;;
  esac
  # What the user has set for kvcli is not meant for this.
  unset "${!KVCLI_@}"
  [[ $(uname -s) == Linux ]] || fail "kvd runs on Linux"
  deploy/install_dependencies.sh || fail "the packages above are needed"
  [[ -r $DATA ]] || fail "$DATA is missing; install Debian's package unicode-data"
  say "Building kvd and kvcli; the first time that is all of the sources ..."
  build

  say "Starting kvd on shared memory:"
  start
  sed 's/^/  /' "$work/kvd.log"
  export KVCLI_SERVER=shm:$work/kvd.sock

  say "Loading $DATA, keyed by code point:"
  cli load "$DATA" --format=delimited --separator=';' 2>&1 | sed 's/^/  /'

  say "A few GETs:"
  local key
  for key in 0041 20AC 1F600; do
    printf '  $ %s get %s\n  %s\n' "$kvcli" "$key" "$(cli get "$key")"
  done

  say "Reading everything back by one-sided GETs:"
  cut -d';' -f1 "$DATA" >"$work/keys"
  cut -d';' -f2- "$DATA" >"$work/expected"
  local items before one all
  items=$(wc -l <"$work/keys")
  before=$(cpu_us)
  cli get 0041 >/dev/null
  one=$(($(cpu_us) - before))
  before=$(cpu_us)
  xargs --arg-file="$work/keys" --max-args="$items" --max-chars=2000000 --exit "$kvcli" mget >"$work/actual"
  all=$(($(cpu_us) - before))
  cmp "$work/expected" "$work/actual" || fail "what was read is not what was loaded"
  echo "  $items values, byte for byte the same"
  echo "  processor time of kvd for a client that connects and GETs      1 key:  $one us"
  echo "  processor time of kvd for a client that connects and GETs $items keys: $all us"
  echo "  GETs do not reach kvd: what it spends, it spends on the connection (and the figure is noisy)."

  kill "$kvd_pid"
  wait "$kvd_pid" || fail "kvd did not stop cleanly: $(tail -n 3 "$work/kvd.log")"
  kvd_pid=
  say "Done; this kvd is stopped, and its items are gone. To go on by yourself, from here (README.md has more):
  cd $PWD
  $kvd --memory=256m &
  $kvcli put greeting hello && $kvcli get greeting"
}

main "$@"
