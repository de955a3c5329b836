#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# branches.sh CLONE: makes a branch for each bug, named as its folder here, from what is checked out
# in a clone of GROMACS. Each has one commit: the mend ../NNNN-BUG.patch, BUG/test.patch if there is
# one, and the message BUG/message.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
cd "$1"
[ -z "$(git status --porcelain)" ] || { echo "'$1' has changes that are not committed" >&2; exit 1; }
start=$(git symbolic-ref -q --short HEAD || git rev-parse HEAD)

for message in "$here"/*/message; do
    folder=$(dirname "$message")
    bug=$(basename "$folder")
    git checkout -q -b "$bug" "$start"
    git apply --index "$here"/../????-"$bug".patch
    [ ! -e "$folder/test.patch" ] || git apply --index "$folder/test.patch"
    git commit -q -F "$message"
    git log -1 --format="$bug: %s"
done
git checkout -q "$start"
