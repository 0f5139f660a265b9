#!/usr/bin/env bash
# Prints what every process does but those of the kernel, for a guest whose command does not end: each
# thread's state and its place in the kernel, and in the program where gdb is installed.
set -u

for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)
  [[ -n $words && $pid -ne 1 && $pid -ne $$ ]] || continue
  echo "process $pid: ${words:0:200}"
  for task in "$process"/task/*; do
    echo "  thread ${task##*/} $(sed -n 's/^State:\t//p' "$task/status" 2>/dev/null)"
    head -n 12 "$task/stack" 2>/dev/null | sed 's/^/    /'
  done
  command -v gdb >/dev/null || continue
  timeout 20 gdb -nx -batch -p "$pid" -ex 'thread apply all backtrace 16' 2>/dev/null |
    grep -E '^(#|Thread )' | cut -c1-240 | sed 's/^/    /'
done
