#!/usr/bin/env bash
# Installs what kvd needs to be built and tested, from the packages of Debian 12.
#
#   deploy/install_dependencies.sh            install what is missing; say nothing if all is there
#   deploy/install_dependencies.sh --all      and what a few tests need that say "skipped" without: a browser,
#                                             Prometheus (for promtool; its package brings a service), zsh
#   deploy/install_dependencies.sh --check    only name what is missing; exit 1 if anything is
#   deploy/install_dependencies.sh --list     print the packages, one a line
#
# Exit: 0 all there, 1 something is missing or could not be installed, 2 usage.
set -euo pipefail

BUILD_PACKAGES=(
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto
  g++ pkg-config
  libabsl-dev libgflags-dev libgoogle-glog-dev libxxhash-dev libisal-dev
  libibverbs-dev librdmacm-dev ibverbs-providers
  libedit-dev nlohmann-json3-dev libmicrohttpd-dev libnuma-dev libssl-dev
)
TEST_PACKAGES=(
  catch2 librapidcheck-dev libbenchmark-dev libfiu-dev valgrind
  python3 curl unicode-data
  # tests/deploy
  mandoc python3-yaml shellcheck strace systemd
  # tests/softroce; the kernel of its guest is not installed
  qemu-system-x86 cpio kmod xz-utils iproute2 ibverbs-utils perftest
  # client/bench/compare; the servers that it compares with, and gnuplot, are not installed
  libmemcached-dev libhiredis-dev liblmdb-dev
  # tests/fuzz
  clang-14 libclang-rt-14-dev
)
# Only with --all.
LARGE_TEST_PACKAGES=(chromium prometheus zsh)
readonly BUILD_PACKAGES TEST_PACKAGES LARGE_TEST_PACKAGES

fail() {
  echo "install_dependencies.sh: $*" >&2
  exit 1
}

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0"
}

# missing_packages PACKAGE... : those that are not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null |
      grep -q '^ii' || echo "$package"
  done
}

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

# install PACKAGE... : quiet unless it fails.
install() {
  local log
  if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
    fail "not root and no sudo; as root run: apt-get install $*"
  fi
  log=$(mktemp)
  if ! { as_root apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: $*"
  fi
  rm -f "$log"
}

main() {
  local mode=${1:-install}
  local -a wanted=("${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}")
  case $mode in
    install | --check) ;;
    --all) wanted+=("${LARGE_TEST_PACKAGES[@]}") ;;
    --list) printf '%s\n' "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" && return ;;
    -h | --help) usage && return ;;
    *) usage >&2 && exit 2 ;;
  esac
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this is not Debian or one of its relatives; install by hand what --list prints"
  fi
  local -a missing
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  [[ $mode != --check ]] || fail "missing: ${missing[*]}; run deploy/install_dependencies.sh"
  echo "installing ${missing[*]}" >&2
  install "${missing[@]}"
}

main "$@"
