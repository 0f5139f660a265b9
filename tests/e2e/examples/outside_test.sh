#!/usr/bin/env bash
# outside_test.sh KVD LIBRARY HEADER PROGRAM CLIENT_MD: a program that knows of kvd the header and the shared library alone is
# built as docs/client.md says, by a compiler's command and by CMake, and talks to a kvd.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

kvd=$PWD/$1 library=$PWD/$2 header=$PWD/$3 program=$PWD/$4 document=$PWD/$5
work=$(mktemp -d /tmp/kvd-outside.XXXXXX)
kvd_pid=
trap '[[ -z $kvd_pid ]] || kill "$kvd_pid"; rm -rf "$work"' EXIT
failed=0

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "KVD_CASE passed outside: $name"
  else
    cat "$work/log"
    echo "KVD_CASE failed outside: $name"
    failed=1
  fi
}

# shown MARK: the block of code in the document whose first line holds MARK.
shown() {
  awk -v mark="$1" '/^```/ { if (inside) { if (found) exit; inside = 0 } else { inside = 1; text = "" } next }
    inside { if (text == "" && index($0, mark)) found = 1; text = text $0 "\n"; if (found) print }' "$document"
}

talks() {
  local said
  said=$("$1" "shm:$work/kvd.sock") && [[ $said == hello ]]
}

# The program names the library by its name: it is found by the rpath, whatever the directory, and where it has been moved to.
found_by_name() {
  (cd / && talks "$1") || return 1
  mkdir -p "$work/elsewhere" && mv "$work/kvd/bazel-bin/client/libkvd_client.so" "$work/elsewhere/" &&
    (cd / && LD_LIBRARY_PATH=$work/elsewhere talks "$1")
  local found=$?
  mv "$work/elsewhere/libkvd_client.so" "$work/kvd/bazel-bin/client/"
  return $found
}

by_command() {
  cd "$work/project" && mkdir -p bin && KVD=../kvd bash -euc "$(shown 'g++ -std=c++20')" && talks ./hello &&
    found_by_name "$work/project/hello"
}

by_cmake() {
  cd "$work/project" && shown '# CMakeLists.txt' >CMakeLists.txt && cmake -S . -B build -DKVD="$work/kvd" &&
    cmake --build build && talks build/hello && found_by_name "$work/project/build/hello"
}

mkdir -p "$work/kvd/client" "$work/kvd/bazel-bin/client" "$work/project"
cp "$header" "$work/kvd/client/"
cp "$library" "$work/kvd/bazel-bin/client/"
cp "$program" "$work/project/hello.cc"
"$kvd" --shm="$work/kvd.sock" --memory=64m --hugepages=off 2>"$work/kvd.log" &
kvd_pid=$!
until [[ -S $work/kvd.sock ]]; do
  kill -0 "$kvd_pid" 2>/dev/null || { cat "$work/kvd.log"; kvd_pid=; echo "KVD_CASE failed outside: kvd starts"; exit 1; }
done

check "by the compiler's command of docs/client.md" by_command
if command -v cmake >/dev/null; then
  check "by the CMakeLists.txt of docs/client.md" by_cmake
else
  echo "KVD_CASE skipped outside: by the CMakeLists.txt of docs/client.md: no cmake"
fi
exit $failed
