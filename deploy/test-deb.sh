#!/usr/bin/env bash
# Builds the packages and tries them in a Debian of their own: installs, uses, upgrades and purges them. Some minutes, and downloads.
#
#   deploy/test-deb.sh [--debs=DIRECTORY] [--keep]
#
#   --debs=DIRECTORY   tries those that deploy/build-deb.sh has put there
#   --keep             leaves the Debian where it is, and says where
#
# As root. Needs mmdebstrap besides what deploy/build-deb.sh needs, and the machine's own package sources. Of this machine nothing
# is changed. Its last line is "N passed, N failed, 0 skipped".
#
# Exit: 0 all passed, 1 not all, 2 usage.
# shellcheck disable=SC2016  # lines of shell are expanded in the other Debian
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

debs='' keep=0
passed=0 failed=0

fail() {
  echo "test-deb.sh: $*" >&2
  exit 1
}

# inside COMMAND: a line of shell in the other Debian, with processes of its own, all of which end with it.
inside() {
  unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" \
    bash -c 'mount --bind -o ro /sys "$0/sys" && exec chroot "$0" "$@"' "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$1" </dev/null
}

# check NAME COMMAND: the case passes if the line of shell succeeds there.
check() {
  if inside "$2" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    echo "KVD_CASE passed deb: $1"
  else
    failed=$((failed + 1))
    cat "$work/log"
    echo "KVD_CASE failed deb: $1"
  fi
}

make_debian() {
  root=$work/root
  mmdebstrap --quiet --variant=apt --include=ca-certificates bookworm "$root" /etc/apt/sources.list.d/debian.sources 2>"$work/log" ||
    { cat "$work/log" >&2; fail "mmdebstrap could not make a Debian"; }
  mkdir -p "$root/debs"
  cp "$debs"/*.deb "$root/debs/"
}

# As kvd.service starts it; there is no systemd in here. Ends when the line of shell does.
readonly SERVE='
mkdir -p -m 755 /run/kvd && chown kvd:kvd /run/kvd
setpriv --reuid=kvd --regid=kvd --init-groups /usr/bin/kvd --shm=/run/kvd/kvd.sock --flagfile=/etc/kvd/kvd.flags 2>/tmp/kvd.log &
kvd=$!
for ((i = 0; i < 300; ++i)); do kvcli ping -c 1 >/dev/null 2>&1 && break; kill -0 $kvd || { cat /tmp/kvd.log; exit 1; }; sleep 0.1; done
'

run_cases() {
  check "the packages and what they depend on are installed" \
    'apt-get update -qq && apt-get install -y -qq --no-install-recommends /debs/*.deb g++ pkg-config >/dev/null && dpkg --audit'
  check "the user kvd is there, without a shell or a home" \
    'getent passwd kvd | grep -qE ":/nonexistent:/usr/sbin/nologin$" && getent group kvd >/dev/null'
  check "the unit is installed and enabled, and kvd@ is there" \
    'test -e /etc/systemd/system/multi-user.target.wants/kvd.service || test -L /etc/systemd/system/multi-user.target.wants/kvd.service
     test -e /lib/systemd/system/kvd@.service'
  check "the flag file is accepted as it is" \
    'mkdir -p /run/kvd && kvd --shm=/run/kvd/kvd.sock --flagfile=/etc/kvd/kvd.flags --check | grep "^memory: 64 MiB"'
  check "kvd serves as the user kvd, and root puts and gets" \
    "$SERVE"'test "$(stat -c %U:%a /run/kvd/kvd.sock)" = kvd:660
     kvcli put greeting hello && test "$(kvcli get greeting)" = hello'
  check "who is not of the group kvd is turned away by the socket, and its members are not" \
    "$SERVE"'kvcli put greeting hello
     useradd guest; useradd --groups kvd member
     as() { setpriv --reuid="$1" --regid="$1" --init-groups env KVCLI_SERVER=shm:/run/kvd/kvd.sock kvcli get greeting; }
     test "$(as member)" = hello
     if as guest; then exit 1; else test $? -eq 5; fi
     userdel guest; userdel member'
  check "kvd ends with 0 on SIGTERM and leaves no socket" \
    "$SERVE"'kill $kvd && wait $kvd && test ! -e /run/kvd/kvd.sock'
  check "kvbench runs" "$SERVE"'kvbench -n 1000 -k 1000 --warmup=0 | grep "GETs that found nothing  *0$"'
  check "kvd-hugepages counts, and changes nothing without --apply" 'kvd-hugepages --memory=4g | grep "needed: 2048 pages"'
  check "a page of the manual for each program" \
    'for page in man1/kvcli.1 man1/kvbench.1 man8/kvd.8 man8/kvd-hugepages.8 man5/kvd.flags.5; do zcat /usr/share/man/$page.gz | grep -q "^.TH"; done'
  check "bash completes kvcli and kvbench" \
    'for program in kvcli kvbench; do source /usr/share/bash-completion/completions/$program; done
     COMP_WORDS=(kvcli pla) COMP_CWORD=1; _kvcli; test "${COMPREPLY[*]}" = plan
     complete -p kvbench | grep -q kvbench
     head -n 1 /usr/share/zsh/vendor-completions/_kvcli | grep -x "#compdef kvcli"'
  check "a program is built by pkg-config and talks to kvd" \
    "$SERVE"'cd /tmp && g++ -std=c++20 $(pkg-config --cflags libkvd) /usr/share/doc/libkvd-dev/examples/hello.cc -o hello $(pkg-config --libs libkvd)
     readelf -d hello | grep -q "NEEDED.*libkvd_client.so.0.1"
     test "$(./hello shm:/run/kvd/kvd.sock)" = hello; rm hello'
  check "pkg-config and soname have the version of the programs" \
    'test "$(pkg-config --modversion libkvd)" = "$(kvd --version | cut -d" " -f2)"
     readelf -d /usr/lib/*/libkvd_client.so.0.1 | grep -q "SONAME.*libkvd_client.so.$(kvd --version | cut -d" " -f2 | cut -d. -f1-2)\]"'
  check "an upgrade leaves a kvd that runs as it is, and the flag file that was changed" \
    'echo "--max_clients=77" >>/etc/kvd/kvd.flags
     '"$SERVE"'kvcli put greeting hello
     dpkg --install /debs/kvd_*.deb >/dev/null
     test "$(kvcli get greeting)" = hello && grep -q max_clients=77 /etc/kvd/kvd.flags'
  check "removing keeps configuration, and the key file" \
    'install -o kvd -m 600 /dev/null /etc/kvd/kvd.keys
     apt-get remove -y -qq kvd >/dev/null && test -e /etc/kvd/kvd.flags && test -e /etc/kvd/kvd.keys && test ! -e /usr/bin/kvd'
  check "purging leaves nothing: no file, no user, no group" \
    'apt-get purge -y -qq kvd kvcli libkvd-dev libkvd-client0.1 >/dev/null
     rm -rf /debs /run/kvd /tmp/kvd.log
     left=$(find / -xdev -path /proc -prune -o -iname "*kvd*" -print -o -iname "*kvcli*" -print); echo "$left"; test -z "$left"
     ! grep -q kvd /etc/passwd /etc/group /etc/shadow /etc/gshadow && ! dpkg --list | grep kvd'
}

main() {
  local argument
  for argument in "$@"; do
    case $argument in
      --debs=?*) debs=$(realpath "${argument#--debs=}") ;;
      --keep) keep=1 ;;
      -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
      *) echo "test-deb.sh: unknown argument '$argument'; see --help" >&2 && exit 2 ;;
    esac
  done
  [[ $EUID -eq 0 ]] || fail "run it as root: it makes a Debian to change into"
  command -v mmdebstrap >/dev/null || fail "apt-get install mmdebstrap"
  work=$(mktemp -d /tmp/kvd-test-deb.XXXXXX)
  # mmdebstrap and apt change into another user, who has to reach it.
  chmod 755 "$work"
  if [[ $keep -eq 1 ]]; then trap 'echo "kept: $work/root"' EXIT; else trap 'rm -rf "$work"' EXIT; fi
  if [[ -z $debs ]]; then
    debs=$work/debs
    deploy/build-deb.sh --out="$debs"
  fi
  make_debian
  run_cases
  echo "$passed passed, $failed failed, 0 skipped"
  [[ $failed -eq 0 && $passed -gt 0 ]]
}

main "$@"
