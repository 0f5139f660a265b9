#!/bin/sh
# The key file that kvd takes, from a secret as the kubelet mounts it: of root, with mode 0440 for the pod's group.
#
#   keys.sh copy     copies it, for its owner alone
#   keys.sh watch    copies it when it has changed, and tells kvd, which shares the namespace of processes
#
# Environment, for tests: KVD_SECRET and KVD_KEYS, the file and its copy; KVD_KEYS_INTERVAL, seconds between two looks; KVD_PROC, for /proc.
set -eu

secret=${KVD_SECRET:-/secret/kvd.keys}
keys=${KVD_KEYS:-/keys/kvd.keys}
interval=${KVD_KEYS_INTERVAL:-5}
proc=${KVD_PROC:-/proc}

# Never seen half written.
copy() {
  install -m 0600 "$secret" "$keys.new"
  mv -f "$keys.new" "$keys"
}

tell_kvd() {
  for comm in "$proc"/[0-9]*/comm; do
    [ "$(cat "$comm" 2>/dev/null)" = kvd ] || continue
    pid=${comm%/comm}
    # Of this pod's user; others cannot be told.
    kill -HUP "${pid##*/}" 2>/dev/null || true
  done
}

case ${1:-} in
  copy) copy ;;
  watch)
    trap 'exit 0' TERM INT
    while :; do
      if ! cmp -s "$secret" "$keys"; then
        copy
        tell_kvd
        echo "keys.sh: the secret has changed; told kvd" >&2
      fi
      sleep "$interval" &
      wait $!
    done
    ;;
  *)
    echo "keys.sh: expected copy or watch" >&2
    exit 2
    ;;
esac
