#!/bin/sh
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Adds the FMM backend "farfield" to a GROMACS source tree. May be run again: what is up to date is
# left untouched, so nothing is compiled without need; an older version of the patch is replaced.

set -eu

fail()
{
    echo "apply.sh: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: apply.sh SOURCE_TREE_OF_GROMACS_2026"
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ -d "$1" ] || fail "'$1' is not a folder."
tree=$(CDPATH='' cd -- "$1" && pwd)
version=$(sed -n 's/^project(Gromacs VERSION \([0-9.]*\)).*/\1/p' "$tree/CMakeLists.txt" 2> /dev/null || true)
case $version in
    2026 | 2026.*) ;;
    '') fail "'$tree' is not a GROMACS source tree, name one of GROMACS 2026." ;;
    *) fail "'$tree' is GROMACS $version, the patch is for GROMACS 2026." ;;
esac
[ -d "$tree/src/gromacs/fmm" ] || fail "'$tree' has no FMM module in src/gromacs/fmm."
[ -w "$tree/src/gromacs/fmm" ] || fail "'$tree' cannot be written to, copy it first."
command -v patch > /dev/null || fail "the program 'patch' is missing, install the package patch."

# Copies of the patches that the tree has, to recognise and to undo them
applied=$tree/.farfield
mkdir -p "$applied"

# $1: patch, $2...: options of patch
run_patch()
{
    input=$1
    shift
    patch --directory="$tree" --strip=1 --force --no-backup-if-mismatch --reject-file=- \
        --input="$input" "$@"
}

# Patches build on those before them: from the first one on that is not up to date, all are undone,
# the last one first
undo=
for name in $( (cd "$here" && ls -- *.patch; cd "$applied" && ls) | sort -u); do
    [ -n "$undo" ] || ! cmp -s "$here/$name" "$applied/$name" || continue
    undo="$name $undo"
done
for name in $undo; do
    [ -f "$applied/$name" ] || continue
    run_patch "$applied/$name" --reverse --dry-run > /dev/null \
        || fail "'$tree' was changed after an older $name was applied, unpack a fresh tree."
    run_patch "$applied/$name" --reverse > /dev/null
    rm "$applied/$name"
done

for file in "$here"/*.patch; do
    name=$(basename "$file")
    [ ! -f "$applied/$name" ] || continue
    if run_patch "$file" --reverse --dry-run > /dev/null 2>&1; then
        # Applied by hand, or by a run that was interrupted
        cp "$file" "$applied/$name"
        continue
    fi
    log=$(run_patch "$file" --dry-run 2>&1) || fail "$name does not fit '$tree' (GROMACS $version):
$log"
    run_patch "$file" > /dev/null
    cp "$file" "$applied/$name"
    echo "applied $name"
done

# $1: file, $2: its folder in the tree
copy_to()
{
    copy=$2/$(basename "$1")
    cmp -s "$1" "$copy" || cp "$1" "$copy"
}

for file in "$here"/fmm/*.h "$here"/fmm/*.cpp; do
    copy_to "$file" "$tree/src/gromacs/fmm"
done
# The options of the library, with their limits, for grompp in builds without the library
mkdir -p "$tree/src/gromacs/fmm/farfield"
copy_to "$here/../src/farfield/options.h" "$tree/src/gromacs/fmm/farfield"
echo "GROMACS $version in '$tree' has the FMM backend farfield"
