#!/usr/bin/env bash
# Tries the packages' units under a systemd of their own, with RDMA: in the virtual machine of tests/softroce, whose kernel makes two
# RoCE devices, a Debian starts in which kvd is installed. Some minutes, and downloads.
#
#   deploy/test-service.sh [--debs=DIRECTORY]
#
#   --debs=DIRECTORY   tries those that deploy/build-deb.sh has put there
#
# As root. Needs mmdebstrap, and what tests/softroce needs. Its last line is "N passed, N failed, 0 skipped".
#
# Environment: KVD_BAZEL_STARTUP, KVD_BAZEL_OPTIONS as for deploy/build-deb.sh; KVD_GUEST_INIT as tests/softroce/README.md says.
# Exit: 0 all passed, 1 not all, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

debs=''

fail() {
  echo "test-service.sh: $*" >&2
  exit 1
}

make_debian() {
  mkdir "$work/debs"
  cp "$debs"/kvd_*.deb "$debs"/kvcli_*.deb "$work/debs/"
  # shellcheck disable=SC2016  # $1 is the hook's own
  mmdebstrap --quiet --variant=apt --include=systemd,systemd-sysv,rdma-core,ibverbs-providers,kmod \
    --customize-hook='mkdir "$1/debs" "$1/out" && cp '"$work"'/debs/*.deb "$1/debs/"' \
    --customize-hook='chroot "$1" sh -c "apt-get install -y -qq --no-install-recommends /debs/*.deb"' \
    bookworm "$work/root" /etc/apt/sources.list.d/debian.sources >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; fail "mmdebstrap could not make a Debian"; }
  cp deploy/service_cases.sh "$work/root/service_cases.sh"
  cat >"$work/root/etc/systemd/system/cases.service" <<'UNIT'
[Unit]
After=kvd.service
[Service]
Type=oneshot
ExecStart=/bin/bash -c "bash /service_cases.sh >/out/cases 2>&1; touch /out/done"
UNIT
  ln -s ../cases.service "$work/root/etc/systemd/system/multi-user.target.wants/cases.service"
}

# What runs in the virtual machine: the configuration, and a systemd that is the first process of a namespace.
write_start() {
  cat >"$work/start.sh" <<START
set -eu
root=$work/root out=$work/out
START
  cat >>"$work/start.sh" <<'START'
echo 80 >/proc/sys/vm/nr_hugepages
umask 077
echo "key app read-write $(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')" >"$root/root/app.keys"
cp "$root/root/app.keys" "$root/etc/kvd/kvd.keys"
chroot "$root" chown kvd: /etc/kvd/kvd.keys
umask 022
printf -- '%s\n' --shm_mode=0660 --memory=64m --hugepages=require --listen=10.77.0.2:7711 --keys=/etc/kvd/kvd.keys \
  --audit=/var/log/kvd/audit.json --admin=7712 >"$root/etc/kvd/kvd.flags"
unshare --mount --pid --fork --kill-child --cgroup bash -eu -c '
  root=$1 out=$2
  # systemd makes namespaces of its own, for which / has to be where something is mounted.
  mount --make-rprivate / && mount --bind "$root" "$root"
  mount -t proc proc "$root/proc" && mount -t sysfs sysfs "$root/sys" && mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run" && mount -t tmpfs tmpfs "$root/tmp" && mount --bind "$out" "$root/out"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  cd "$root" && mkdir -p mnt && pivot_root . mnt && umount -l /mnt
  exec env container=kvd-test /lib/systemd/systemd --log-target=console' bash "$root" "$out" >"$out/console" 2>&1 &
while [ ! -e "$out/done" ] && kill -0 $!; do sleep 0.1; done
kill $! || true
START
}

main() {
  local argument passed failed
  for argument in "$@"; do
    case $argument in
      --debs=?*) debs=$(realpath "${argument#--debs=}") ;;
      -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
      *) echo "test-service.sh: unknown argument '$argument'; see --help" >&2 && exit 2 ;;
    esac
  done
  [[ $EUID -eq 0 ]] || fail "run it as root: it makes a Debian"
  command -v mmdebstrap >/dev/null || fail "apt-get install mmdebstrap"
  tests/softroce/guest.sh --prepare || fail "there is no virtual machine, see above"
  work=$(mktemp -d /tmp/kvd-test-service.XXXXXX)
  chmod 755 "$work"
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/out"
  if [[ -z $debs ]]; then
    debs=$work/built
    deploy/build-deb.sh --out="$debs"
  fi
  make_debian
  write_start
  tests/softroce/guest.sh --two-devices --timeout=300 --share="$work/out" -- bash "$work/start.sh" >"$work/log" 2>&1 || true
  [[ -e $work/out/done ]] || { tail -n 20 "$work/log" "$work/out"/* >&2; fail "the virtual machine did not get to the end"; }
  cat "$work/out/cases"
  passed=$(grep -c '^KVD_CASE passed ' "$work/out/cases" || true)
  failed=$(grep -c '^KVD_CASE failed ' "$work/out/cases" || true)
  echo "$passed passed, $failed failed, 0 skipped"
  [[ $failed -eq 0 && $passed -eq 12 ]]
}

main "$@"
