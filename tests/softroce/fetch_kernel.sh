#!/usr/bin/env bash
# Makes the guest's kernel and modules ready in a cache folder and prints that folder. They come from
# Debian's kernel package, which is unpacked there and not installed; nothing needs root.
#
#   tests/softroce/fetch_kernel.sh            use what is cached, else fetch it
#   tests/softroce/fetch_kernel.sh --refresh  fetch the newest; guests that run keep what they have
#
# The cache is KVD_GUEST_CACHE, else kvd/guest in XDG_CACHE_HOME, else in ~/.cache; about 330 MB.
# In it: vmlinux, boot_modules.cpio (what the init loads), lib/modules/ (for modprobe in the guest).
# Exit: 0 with the folder on standard output, 1 with the reason on standard error, 2 usage.
set -euo pipefail

# Counts changes to what this script leaves in the cache.
readonly LAYOUT=1

# Loaded at every boot, in this order, each after what it depends on.
readonly BOOT_MODULES=(
  virtio_mmio virtio_console 9pnet_virtio 9p overlay veth dummy
  crc32_generic  # rdma_rxe asks for it by its crypto name only, so modprobe does not know
  rdma_rxe rdma_ucm ib_uverbs sch_netem
)

# Drivers of hardware that the guest does not have; two thirds of the package.
readonly UNNEEDED=(sound drivers/gpu drivers/media drivers/usb drivers/scsi drivers/iio
  drivers/staging drivers/net/ethernet drivers/net/wireless)

fail() {
  echo "fetch_kernel.sh: $*" >&2
  exit 1
}

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
}

# A test's HOME may be a folder of its own, so the user's real one is looked up.
cache_folder() {
  local home
  home=$(getent passwd "$(id -u)" | cut -d: -f6) || home=${HOME:-}
  echo "${KVD_GUEST_CACHE:-${XDG_CACHE_HOME:-${home:-/var/tmp}/.cache}/kvd/guest}"
}

# apt with package lists of its own, so that neither root nor an earlier update is needed.
private_apt() {
  local tool=$1
  shift
  "$tool" -qq -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" \
    -o APT::Sandbox::User= -o Acquire::Languages=none "$@"
}

# The package that linux-image-amd64 stands for today.
kernel_package() {
  private_apt apt-cache depends linux-image-amd64 |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1
}

download() {
  local package
  command -v apt-get >/dev/null || fail "no apt-get here to fetch Debian's kernel package with"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/download"
  private_apt apt-get update >&2 || fail "apt-get cannot fetch the package lists"
  package=$(kernel_package)
  [[ -n $package ]] || fail "the package sources have no linux-image-amd64"
  (cd "$work/download" && private_apt apt-get download "$package" >&2) ||
    fail "apt-get cannot download $package"
  dpkg -x "$work"/download/*.deb "$work/unpacked" || fail "cannot unpack $package"
}

# integer OFFSET FORMAT FILE: a number in the header of a bzImage.
integer() {
  od -An -j "$1" -N "${2#u}" -t "$2" "$3" | tr -d ' '
}

# extract_kernel BZIMAGE TO: the ELF image in it, which spares each boot the unpacking; the bzImage
# as it is where it is compressed with something else.
extract_kernel() {
  local image=$1 to=$2 start
  start=$((($(integer 497 u1 "$image") + 1) * 512 + $(integer 584 u4 "$image")))
  tail -c "+$((start + 1))" "$image" | head -c "$(integer 588 u4 "$image")" |
    xz -dc --single-stream >"$to" 2>/dev/null || true
  [[ $(head -c 4 "$to" | tail -c 3) == ELF ]] || cp "$image" "$to"
}

# pack_boot_modules VERSION: modules/NNN.ko in the order of loading, as a cpio archive.
pack_boot_modules() {
  local module file number=100
  mkdir -p "$work/archive/modules"
  for module in "${BOOT_MODULES[@]}"; do
    modprobe -d "$work/ready" -S "$1" --show-depends "$module" || fail "no module $module in $1"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/order"
  while read -r file; do
    number=$((number + 1))
    case $file in
      *.xz) xz -dc "$file" ;;
      *) cat "$file" ;;
    esac >"$work/module.ko"
    # Loading is faster without type information and signature; objcopy drops the latter anyway.
    objcopy --strip-debug --remove-section=.BTF "$work/module.ko" \
      "$work/archive/modules/$number.ko"
  done <"$work/order"
  (cd "$work/archive" && find . -mindepth 1 | sort | cpio --quiet -o -H newc -R 0:0) \
    >"$work/ready/boot_modules.cpio"
}

main() {
  local cache current version folder work
  case ${1:-} in
    '' | --refresh) ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  PATH=$PATH:/usr/sbin:/sbin
  cache=$(cache_folder)/$LAYOUT
  current=$cache/current
  mkdir -p "$cache" || fail "cannot make $cache"
  # One fetches, the others wait for it.
  exec 9>"$cache/lock"
  flock 9
  if [[ ${1:-} != --refresh && -e $current/vmlinux ]]; then
    realpath "$current"
    return
  fi
  for tool in dpkg modprobe depmod objcopy xz cpio; do
    command -v "$tool" >/dev/null || fail "$tool is missing; run deploy/install_dependencies.sh"
  done
  work=$(mktemp -d "$cache/work.XXXXXX")
  # shellcheck disable=SC2064  # the name is wanted as it is now
  trap "rm -rf '$work'" EXIT
  echo "fetching the guest's kernel into $cache" >&2
  download
  version=$(basename "$work"/unpacked/lib/modules/*)
  mkdir "$work/ready"
  mv "$work/unpacked/lib" "$work/ready/lib"
  (cd "$work/ready/lib/modules/$version/kernel" && rm -rf "${UNNEEDED[@]}")
  depmod -b "$work/ready" "$version"
  extract_kernel "$work/unpacked/boot/vmlinuz-$version" "$work/ready/vmlinux"
  pack_boot_modules "$version"
  folder=$cache/$version
  if [[ ! -e $folder ]]; then
    mv "$work/ready" "$folder"
  fi
  ln -sfn "$version" "$current"
  realpath "$current"
}

main "$@"
