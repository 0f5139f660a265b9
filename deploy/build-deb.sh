#!/usr/bin/env bash
# Builds the Debian packages kvd, kvcli, libkvd-client and libkvd-dev, and has lintian look at them.
#
#   deploy/build-deb.sh [--out=DIRECTORY]       default: ./debs
#
# Needs debhelper and lintian besides what kvd itself is built with. The version is that of deploy/debian/changelog, which is
# to be the programs' own.
#
# Environment: KVD_BAZEL_STARTUP holds startup options for bazel, KVD_BAZEL_OPTIONS those of its build.
# Exit: 0 built, and lintian has nothing to say; 1 otherwise; 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly TARGETS=(//server:kvd //client/cli:kvcli //client/bench/kvbench //client:libkvd_client.so.0.1)
read -ra STARTUP_OPTIONS <<<"${KVD_BAZEL_STARTUP:-}"
read -ra BUILD_OPTIONS <<<"${KVD_BAZEL_OPTIONS:-}"
out=$PWD/debs

fail() {
  echo "build-deb.sh: $*" >&2
  exit 1
}

build() {
  bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} build --noshow_progress --color=no --ui_event_filters=-info,-debug \
    ${BUILD_OPTIONS[@]+"${BUILD_OPTIONS[@]}"} "${TARGETS[@]}"
}

# What debian/rules finds beside debian/.
stage() {
  local bin
  bin=$(bazel ${STARTUP_OPTIONS[@]+"${STARTUP_OPTIONS[@]}"} info --color=no ${BUILD_OPTIONS[@]+"${BUILD_OPTIONS[@]}"} bazel-bin 2>/dev/null)
  mkdir -p "$tree/bin" "$tree/client/examples"
  cp "$bin/server/kvd" "$bin/client/cli/kvcli" "$bin/client/bench/kvbench/kvbench" "$bin/client/libkvd_client.so.0.1" "$tree/bin/"
  chmod u+w "$tree"/bin/*
  cp -r deploy docs "$tree/"
  mv "$tree/deploy/debian" "$tree/debian"
  cp deploy/systemd/kvd.service "$tree/debian/kvd.service"
  cp client/kv_client.h "$tree/client/"
  cp client/examples/*.cc "$tree/client/examples/"
}

check_version() {
  local packaged=$1 built
  built=$("$tree/bin/kvd" --version | awk '{ print $2 }')
  [[ $built == "$packaged" ]] || fail "deploy/debian/changelog says $packaged, and kvd --version says $built; make them the same"
}

main() {
  local argument
  for argument in "$@"; do
    case $argument in
      --out=?*) out=$(realpath -m "${argument#--out=}") ;;
      -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
      *) echo "build-deb.sh: unknown argument '$argument'; see --help" >&2 && exit 2 ;;
    esac
  done
  if ! command -v dh >/dev/null || ! command -v lintian >/dev/null; then fail "apt-get install debhelper lintian"; fi
  work=$(mktemp -d /tmp/kvd-deb.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  local version
  version=$(dpkg-parsechangelog --file deploy/debian/changelog --show-field Version)
  tree=$work/kvd-$version
  build
  stage
  check_version "$version"
  (cd "$tree" && DEB_BUILD_OPTIONS="noautodbgsym nocheck ${DEB_BUILD_OPTIONS:-}" \
    dpkg-buildpackage --build=binary --no-sign >"$work/log" 2>&1) || { tail -n 40 "$work/log" >&2; fail "dpkg-buildpackage failed; its last lines are above"; }
  mkdir -p "$out"
  mv "$work"/*.deb "$out/"
  ls "$out"/*_"$version"_*.deb
  lintian --fail-on=error,warning --display-level=">=warning" "$out"/*_"$version"_*.deb || fail "lintian has something to say, above"
  echo "lintian: nothing to say"
}

main "$@"
