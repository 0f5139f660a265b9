#!/usr/bin/env bash
# Runs a command in a virtual machine that has real ibverbs devices (Soft-RoCE). Needs neither root nor
# KVM, and no network; several may run at once.
#
#   tests/softroce/guest.sh [OPTION]... [--] COMMAND [ARGUMENT]...
#   tests/softroce/guest.sh [OPTION]...               a shell in it, on this terminal
#   tests/softroce/guest.sh --prepare                 only see that all is there, fetching the kernel
#
#   --cpus=N             default 2
#   --memory=SIZE        default 2g; suffixes m, g
#   --hugepages=N        reserve N pages of 2 MiB (of the memory)
#   --numa_nodes=N       divide memory and processors among N emulated NUMA nodes, default 1
#   --two-devices        rxea and rxeb, joined by a wire, instead of rxea alone
#   --timeout=SECONDS    how long the command may run, default 600; after it, what each thread in the
#                        guest does is printed on standard error
#   --erms=on|off        whether the processor says that it copies fast by rep movsb, default off;
#                        emulated, "on" copies byte by byte, which tears READs most
#   --kvm=auto|on|off    auto uses /dev/kvm if a guest boots with it
#   --share=DIR          a folder that the command can write to; may be repeated
#   --env=NAME=VALUE     set a variable for the command; may be repeated
#
# The command runs as root, with this environment and in this directory, and sees the files of this
# machine at their own paths. What it writes is kept in the guest's memory and goes with it, but in
# shared folders. /tmp is empty but for those entries that the command, its arguments, this directory
# and Bazel's links lead to; /run and /dev are the guest's own. Standard input is empty. It finds the
# devices in KVD_RDMA_DEVICES and so on; see README.md.
#
# Exit: the command's status (128 + N if signal N ended it, 127 if it could not be started),
# 124 the time was up, 125 the guest failed or could not be started; 2 usage.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
readonly BOOT_LIMIT_KVM_S=10 END_LIMIT_S=10 LATE_LIMIT_S=60
# An emulated kernel hangs in its boot now and then; one that has run no command may be booted again.
# The first limit is some ten times what a boot takes, the last is for a machine that has much to do.
read -ra BOOT_LIMITS_S <<<"${KVD_GUEST_BOOT_LIMITS_S:-60 180}"
readonly BOOT_LIMITS_S
readonly FOREVER_S=999999999
readonly HUGEPAGE_MIB=2 GUEST_OWN_MIB=512
readonly KERNEL_OPTIONS=(
  console=ttyS0 quiet loglevel=4
  panic=-1 oops=panic reboot=t  # whatever goes wrong ends QEMU
  mitigations=off nokaslr norandmaps audit=0 cryptomgr.notests
  tsc=reliable no_timer_check  # not to be tested on a busy host, see the time stamp counter below
  random.trust_cpu=on
)

cpus=2 memory=2g hugepages=0 numa_nodes=1 devices=one timeout_s=600 erms=off kvm=auto
shares=() settings=() command=()
prepare_only=0 terminal='' run='' qemu_pid='' relay_pids=()

fail() {
  echo "guest.sh: $*" >&2
  exit 125
}

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
}

usage_error() {
  echo "guest.sh: $*" >&2
  usage >&2
  exit 2
}

parse_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --cpus=*) cpus=${1#*=} ;;
      --memory=*) memory=${1#*=} ;;
      --hugepages=*) hugepages=${1#*=} ;;
      --numa_nodes=*) numa_nodes=${1#*=} ;;
      --two-devices) devices=two ;;
      --timeout=*) timeout_s=${1#*=} ;;
      --erms=on | --erms=off) erms=${1#*=} ;;
      --kvm=auto | --kvm=on | --kvm=off) kvm=${1#*=} ;;
      --share=*) shares+=("${1#*=}") ;;
      --env=*=*) settings+=("${1#*=}") ;;
      --prepare) prepare_only=1 ;;
      -h | --help) usage && exit 0 ;;
      --) shift && break ;;
      -*) usage_error "unknown option $1" ;;
      *) break ;;
    esac
    shift
  done
  command=("$@")
  check_options
}

check_options() {
  local number share
  for number in "$cpus" "$hugepages" "$numa_nodes" "$timeout_s"; do
    [[ $number =~ ^[0-9]{1,9}$ ]] || usage_error "not a number: '$number'"
  done
  [[ $memory =~ ^([0-9]{1,6})([mg])$ ]] || usage_error "not a size such as 2g: '$memory'"
  local mib=${BASH_REMATCH[1]}
  [[ ${BASH_REMATCH[2]} == m ]] || mib=$((mib * 1024))
  if ((mib < hugepages * HUGEPAGE_MIB + GUEST_OWN_MIB)); then
    usage_error "--memory=$memory is too little: the guest needs $GUEST_OWN_MIB MiB beside hugepages"
  fi
  for share in ${shares[@]+"${shares[@]}"}; do
    [[ -d $share ]] || usage_error "no folder to share: '$share'"
  done
}

# The init, built by Bazel: KVD_GUEST_INIT, else beside this script in a test, else below bazel-bin.
find_init() {
  local path
  for path in "${KVD_GUEST_INIT:-}" "$HERE/guest_init.elf" \
    "$HERE/../../bazel-bin/tests/softroce/guest_init.elf"; do
    if [[ -x $path ]]; then
      realpath "$path"
      return
    fi
  done
  fail "the guest's init is not built; run: bazel build //tests/softroce:guest_init"
}

# Everything that a guest is made of; exits with the reason if something cannot be had.
prepare() {
  local tool
  for tool in qemu-system-x86_64 cpio ip rdma; do
    command -v "$tool" >/dev/null ||
      fail "no Soft-RoCE guest: $tool is not installed; run deploy/install_dependencies.sh"
  done
  init=$(find_init)
  kernel=$("$HERE/fetch_kernel.sh") || fail "no Soft-RoCE guest: there is no kernel for it"
}

# visible PATH: what of the host's /tmp must be seen for it: its first folder there, or it alone.
visible() {
  local path first
  for path in "$1" "$(realpath -m -- "$1" 2>/dev/null)"; do
    [[ $path == /tmp/?* ]] || continue
    first=${path#/tmp/}
    first=/tmp/${first%%/*}
    if [[ -d $first || -f $first ]]; then
      echo "$first"
    fi
  done
}

all_visible() {
  local path
  # Among Bazel's runfiles network.sh is a link into the source tree, which may lie in /tmp too.
  for path in "$PWD" "$HERE" "$HERE/network.sh" "$HERE/tasks.sh" "$init" "$kernel" "$HERE"/../../bazel-* "${TEST_SRCDIR:-/}" \
    ${shares[@]+"${shares[@]}"} ${command[@]+"${command[@]}"}; do
    visible "$path"
  done | sort -u
}

# print_config: see guest_config.h.
print_config() {
  local entry
  printf '%s\0' "modules=$kernel" "directory=$PWD" "timeout=$timeout_s" "late=$(realpath "$HERE/tasks.sh")"
  [[ -z $terminal ]] || printf '%s\0' "terminal=$terminal"
  printf 'setup=%s\0' "$(realpath "$HERE/network.sh")" "$devices"
  while read -r entry; do
    printf 'visible=%s\0' "$entry"
  done < <(all_visible)
  for entry in ${shares[@]+"${shares[@]}"}; do
    printf 'share=%s\0' "$(realpath "$entry")"
  done
  while IFS= read -r -d '' entry; do
    case $entry in
      TMPDIR=* | KVD_RDMA_*) ;;
      *) printf 'environment=%s\0' "$entry" ;;
    esac
  done < <(env -0)
  printf 'environment=%s\0' KVD_IN_GUEST=1 "KVD_GUEST_NETWORK=$(realpath "$HERE/network.sh")"
  if [[ $devices == two ]]; then
    printf 'environment=%s\0' KVD_RDMA_DEVICES=rxea,rxeb KVD_RDMA_NETDEVS=va,vb \
      KVD_RDMA_ADDRESSES=10.77.0.1,10.77.0.2 KVD_RDMA_ADDRESSES6=fd77::1,fd77::2
  else
    printf 'environment=%s\0' KVD_RDMA_DEVICES=rxea KVD_RDMA_NETDEVS=va \
      KVD_RDMA_ADDRESSES=10.77.0.1 KVD_RDMA_ADDRESSES6=fd77::1
  fi
  for entry in ${settings[@]+"${settings[@]}"}; do
    printf 'environment=%s\0' "$entry"
  done
  for entry in ${command[@]+"${command[@]}"}; do
    printf 'argument=%s\0' "$entry"
  done
}

# The kernel takes several cpio archives one after the other.
pack_initial_disk() {
  mkdir "$run/disk"
  cp "$init" "$run/disk/init"
  chmod 755 "$run/disk/init"
  print_config >"$run/disk/config"
  (cd "$run/disk" && printf '%s\n' init config | cpio --quiet -o -H newc -R 0:0) |
    cat "$kernel/boot_modules.cpio" - >"$run/initrd"
}

# run_qemu kvm|tcg: becomes QEMU; run in the background.
run_qemu() {
  local number=0 share line numa=''
  ((numa_nodes <= 1)) || numa="numa=fake=$numa_nodes"
  # shellcheck disable=SC2054  # the commas are QEMU's
  local -a arguments=(
    -nodefaults -no-user-config -display none -no-reboot
    -M "microvm,acpi=on,rtc=on" -smp "$cpus" -m "$memory"
    -kernel "$kernel/vmlinux" -initrd "$run/initrd"
    -append "${KERNEL_OPTIONS[*]} tsc_early_khz=$("$init") hugepages=$hugepages${numa:+ $numa}"
    -chardev "file,id=console,path=$run/console" -serial chardev:console
    -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap
    -device virtio-9p-device,fsdev=host,mount_tag=host
    -device virtio-serial-device,max_ports=8
  )
  case $1 in
    kvm) arguments+=(-accel kvm -cpu "host,erms=$erms") ;;
    tcg) arguments+=(-accel "tcg,thread=multi,tb-size=512" -cpu "max,erms=$erms") ;;
  esac
  for share in ${shares[@]+"${shares[@]}"}; do
    arguments+=(
      -fsdev "local,id=share$number,path=$(realpath "$share"),security_model=none,multidevs=remap"
      -device "virtio-9p-device,fsdev=share$number,mount_tag=share$number"
    )
    number=$((number + 1))
  done
  if [[ -n $terminal ]]; then
    arguments+=(-chardev "stdio,id=terminal,signal=off" -device "virtconsole,chardev=terminal")
  fi
  for line in output errors status; do
    arguments+=(-chardev "file,id=$line,path=$run/$line"
      -device "virtserialport,chardev=$line,name=kvd.$line")
  done
  # QEMU ends when this script does, however that happens.
  exec setpriv --pdeathsig KILL -- qemu-system-x86_64 "${arguments[@]}" 2>"$run/qemu"
}

# start kvm|tcg
start() {
  rm -f "$run/console" "$run/status"
  mkfifo "$run/status"
  exec 5<>"$run/status"
  : >"$run/output"
  : >"$run/errors"
  run_qemu "$1" <&6 &
  qemu_pid=$!
  relay output
  relay errors >&2
}

# relay FILE: prints what comes into it, until QEMU ended. A file takes all that QEMU has at once,
# where a pipe that nobody empties would hold it back and lose it at the end.
relay() {
  tail -c +1 -s 0.05 -f "--pid=$qemu_pid" "$run/$1" &
  relay_pids+=("$!")
}

stop() {
  [[ -n $qemu_pid ]] || return 0
  kill "$qemu_pid" 2>/dev/null || true
  wait "$qemu_pid" ${relay_pids[@]+"${relay_pids[@]}"} 2>/dev/null || true
  qemu_pid='' relay_pids=()
}

# shellcheck disable=SC2317  # called by a trap
clean_up() {
  stop
  [[ -z $run ]] || rm -rf "$run"
}

# await_status SECONDS: sets status_line to the next thing that the init says; to "ended" if the
# machine did, to "silent" after that time. What read has taken of a line when its time is up is kept.
await_status() {
  local deadline=$((SECONDS + $1)) piece=''
  status_line=''
  until read -r -t 0.5 -u 5 piece; do
    status_line+=$piece
    if ! kill -0 "$qemu_pid" 2>/dev/null; then
      read -r -t 0.01 -u 5 piece || true
      status_line+=$piece
      status_line=${status_line:-ended}
      return
    fi
    if ((SECONDS >= deadline)); then
      status_line=silent
      return
    fi
  done
  status_line+=$piece
}

# fail_guest REASON: with the last that kernel and QEMU said.
fail_guest() {
  stop
  cat "$run/qemu" >&2
  tail -n 60 "$run/console" 2>/dev/null | tr -d '\r' | sed 's/^/console: /' >&2
  fail "the guest failed: $1"
}

# boot kvm|tcg SECONDS: whether the command starts; else status_line says what happened.
boot() {
  start "$1"
  await_status "$2"
  [[ $status_line == ready ]]
}

# Boots with KVM where it works, which is tried once per run of this machine.
boot_somehow() {
  local unusable
  unusable=$(dirname "$kernel")/kvm-unusable-$(cat /proc/sys/kernel/random/boot_id)
  if [[ $kvm == on || ($kvm == auto && -w /dev/kvm && ! -e $unusable) ]]; then
    boot kvm "$BOOT_LIMIT_KVM_S" && return
    [[ $kvm == auto ]] || fail_guest "it did not boot with KVM: $status_line"
    stop
    touch "$unusable"
    echo "guest.sh: KVM does not work here; guests are emulated" >&2
  fi
  local limit
  for limit in "${BOOT_LIMITS_S[@]:0:${#BOOT_LIMITS_S[@]}-1}"; do
    boot tcg "$limit" && return
    echo "guest.sh: the guest did not boot in $limit s: $status_line; once more" >&2
    stop
  done
  boot tcg "${BOOT_LIMITS_S[-1]}" || fail_guest "it did not boot: $status_line"
}

# await_output BYTES FILE: QEMU writes what the guest sent in its own time.
await_output() {
  local deadline=$((SECONDS + END_LIMIT_S))
  while (($(stat -c %s "$run/$2") < $1)); do
    ((SECONDS < deadline)) || fail_guest "it lost what the command printed"
    sleep 0.01
  done
}

time_is_up() {
  echo "guest.sh: the command ran for more than $timeout_s s; the guest was ended" >&2
  exit 124
}

# Waits for the command's end and ends with its status.
finish() {
  local word status output_bytes error_bytes
  await_status $((timeout_s + LATE_LIMIT_S))
  read -r word status output_bytes error_bytes <<<"$status_line"
  case $word in
    exited | late)
      await_output "$output_bytes" output
      await_output "$error_bytes" errors
      stop
      [[ $word == late ]] || exit "$status"
      time_is_up
      ;;
    silent)
      tail -n 60 "$run/console" | tr -d '\r' | sed 's/^/console: /' >&2
      stop
      time_is_up
      ;;
    *) fail_guest "${status_line/#ended/it ended without a word}" ;;
  esac
}

main() {
  export PATH=$PATH:/usr/sbin:/sbin
  parse_arguments "$@"
  prepare
  [[ $prepare_only -eq 0 ]] || exit 0
  exec 6</dev/null
  if [[ ${#command[@]} -eq 0 ]]; then
    [[ -t 0 && -t 1 ]] || usage_error "no command, and no terminal for a shell"
    exec 6<&0
    terminal=$(stty size | tr ' ' x)
    command=(bash)
    timeout_s=$FOREVER_S
  fi
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  run=$(mktemp -d "${TMPDIR:-/tmp}/kvd-guest.XXXXXX")
  pack_initial_disk
  boot_somehow
  finish
}

main "$@"
