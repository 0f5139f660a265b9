#!/usr/bin/env bash
# packaging_test.sh KVD LIBRARY KVCLI DEPLOY_FILE...: what of the Debian recipe can be told without building it; deploy/test-deb.sh
# builds, installs, uses and purges the packages.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

kvd=$PWD/$1 library=$PWD/$2 kvcli=$PWD/$3
shift 3
deploy=$(dirname "$(dirname "$1")")
failed=0

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@" >"$TEST_TMPDIR/log" 2>&1; then
    echo "KVD_CASE passed packaging: $name"
  else
    cat "$TEST_TMPDIR/log"
    echo "KVD_CASE failed packaging: $name"
    failed=1
  fi
}

version() { "$kvd" --version | awk '{ print $2 }'; }

changelog_has_version() { head -n 1 "$deploy/debian/changelog" | grep -F "kvd ($(version)) "; }

soname_has_version() {
  readelf -d "$library" | grep -F "soname: [libkvd_client.so.$(version | cut -d. -f1-2)]" &&
    grep -Fx "Package: libkvd-client$(version | cut -d. -f1-2)" "$deploy/debian/control"
}

# Each line of a list of files is something that debian/rules makes.
lists_name_what_is_made() {
  local list line
  for list in "$deploy"/debian/*.install; do
    while read -r line; do
      line=${line//'/*/'/'/$(DEB_HOST_MULTIARCH)/'}
      line=${line%.\*}
      grep -F -e "debian/tmp/$line" -e "debian/tmp/$(dirname "$line")" "$deploy/debian/rules" || { echo "$list: $line"; return 1; }
    done <"$list"
  done
}

scripts_are_clean() { shellcheck "$deploy"/*.sh "$deploy"/debian/kvd.postinst "$deploy"/debian/kvd.postrm; }

scripts_refuse() {
  local script status
  for script in "$deploy/build-deb.sh" "$deploy/test-deb.sh" "$deploy/test-service.sh"; do
    bash "$script" --help | grep -q '^  deploy/' || return 1
    bash "$script" --nothing 2>"$TEST_TMPDIR/err"
    status=$?
    [[ $status -eq 2 ]] && grep -F "unknown argument '--nothing'" "$TEST_TMPDIR/err" || return 1
  done
}

# As the package installs it.
bash_completes() {
  local found
  found=$("$kvcli" completion bash >"$TEST_TMPDIR/completion" && bash -c "source '$TEST_TMPDIR/completion'
    COMP_WORDS=(kvcli plan --gro) COMP_CWORD=2; _kvcli; echo \"\${COMPREPLY[*]}\"")
  [[ $found == --growth= ]]
}

check "the changelog has the version of the programs" changelog_has_version
check "the library's soname and its package have the version of the programs" soname_has_version
check "what the packages hold is made by debian/rules" lists_name_what_is_made
check "build-deb.sh, test-deb.sh and test-service.sh refuse what they do not know, and have a help" scripts_refuse
check "completion knows a new command's flags" bash_completes
if command -v shellcheck >/dev/null; then
  check "shellcheck has nothing to say" scripts_are_clean
else
  echo "KVD_CASE skipped packaging: shellcheck has nothing to say: there is no shellcheck; install the package shellcheck"
fi
exit $failed
