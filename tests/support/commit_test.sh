#!/usr/bin/env bash
# commit_test.sh WORKSPACE_STATUS COMMIT_STAMP PROGRAM...: what the programs say of the commit they were built from.
# shellcheck disable=SC2317  # check calls its arguments
set -uo pipefail

status_script=$PWD/$1
stamp=$PWD/$2
shift 2
programs=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check NAME COMMAND...: the case passes if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "KVD_CASE passed commit: $name"
  else
    echo "KVD_CASE failed commit: $name"
    failed=1
  fi
}

# says DIRECTORY TEXT
says() {
  local said
  said=$(cd "$1" && GIT_CEILING_DIRECTORIES=$work "$status_script") || return 1
  [[ $said == "STABLE_KVD_COMMIT $2" ]] || { echo "says '$said', not '$2'"; return 1; }
}

# A program built outside of git says no commit; otherwise the one of the stamp.
names_the_commit() {
  local commit program version
  commit=$(sed -n 's/.*return "\(.*\)".*/\1/p' "$stamp")
  [[ $commit =~ ^([0-9a-f]{40}(-dirty)?|unknown)$ ]] || { echo "the stamp is '$commit'"; return 1; }
  for program in "${programs[@]}"; do
    version=$("$program" --version) || return 1
    if [[ $commit == unknown ]]; then
      [[ $version =~ ^[a-z]+\ [0-9.]+$ ]] || { echo "$version"; return 1; }
    else
      [[ $version == *"(commit $commit)" ]] || { echo "$version"; return 1; }
    fi
  done
}

check "kvd, kvcli and kvbench --version name the one that was found" names_the_commit

mkdir "$work/plain"
check "unknown where there is no git" says "$work/plain" unknown
if command -v git >/dev/null; then
  export HOME=$work GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
  mkdir -p "$work/checkout/below"
  git -C "$work/checkout" init -q
  echo 1 >"$work/checkout/file"
  git -C "$work/checkout" add file
  git -C "$work/checkout" commit -qm one
  commit=$(git -C "$work/checkout" rev-parse HEAD)
  check "the commit of a checkout" says "$work/checkout" "$commit"
  check "unknown for what lies in another's checkout" says "$work/checkout/below" unknown
  echo x >"$work/checkout/untracked"
  check "files that are not tracked change nothing" says "$work/checkout" "$commit"
  echo 2 >"$work/checkout/file"
  check "-dirty where a tracked file was changed" says "$work/checkout" "$commit-dirty"
else
  echo "KVD_CASE skipped commit: of a checkout: git is not installed"
fi
exit $failed
