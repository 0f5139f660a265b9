#!/usr/bin/env bash
# What a build knows of its source, for Bazel's --workspace_status_command: the commit of the checkout, with -dirty behind
# it if tracked files were changed since, or "unknown" where there is no git or this is no checkout. Never fails: a
# build does not depend on it. Bazel builds anew what shows the commit, and nothing else, when it changes.
set -uo pipefail

# safe.directory: the checkout may be another user's, as in containers.
git_here() { git -c safe.directory='*' --no-optional-locks "$@" 2>/dev/null; }

commit=unknown
# Not that of a checkout into which the source was only copied.
if [[ $(git_here rev-parse --show-prefix 2>&1) == "" ]] && found=$(git_here rev-parse --verify HEAD); then
  commit=$found
  [[ -z $(git_here status --porcelain --untracked-files=no) ]] || commit+=-dirty
fi
echo "STABLE_KVD_COMMIT $commit"
