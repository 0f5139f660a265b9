#!/usr/bin/env bash
# Prints what every thread does, for a guest whose command does not end: first where in the kernel it
# is, of the kernel's own threads those that cannot be interrupted; then, where gdb is installed, where in
# the program.
set -u

for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [[ $pid -ne 1 && $pid -ne $$ ]] || continue
  # One that ends has no words any more; the kernel's own are children of thread 2.
  words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)
  parent=$(sed -n 's/^PPid:\t//p' "$process/status" 2>/dev/null)
  told=0
  for task in "$process"/task/*; do
    state=$(sed -n 's/^State:\t//p' "$task/status" 2>/dev/null)
    [[ $pid -ne 2 && $parent != 2 || $state == D* ]] || continue
    ((told++)) || echo "process $pid, child of $parent: ${words:0:200}"
    echo "  thread ${task##*/} $(cat "$task/comm" 2>/dev/null) $state"
    head -n 12 "$task/stack" 2>/dev/null | sed 's/^/    /'
  done
done

command -v gdb >/dev/null || exit 0
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [[ $pid -ne 1 && $pid -ne $$ && -n $(head -c 1 "$process/cmdline" 2>/dev/null | tr '\0' ' ') ]] || continue
  echo "in the program of process $pid:"
  timeout 20 gdb -nx -batch -p "$pid" -ex 'thread apply all backtrace 16' 2>/dev/null |
    grep -E '^(#|Thread )' | cut -c1-240 | sed 's/^/    /'
done
