#!/bin/sh
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Adds the FMM backend "farfield" to a GROMACS source tree. May be run again: what is up to date is
# left untouched, so nothing is compiled without need; an older version of the patch is replaced.
# With --check it changes nothing, and says of any version of GROMACS which hunks do not fit.

set -eu

fail()
{
    echo "apply.sh: $*" >&2
    exit 1
}

made_for=2026.3
check=
[ "${1:-}" != --check ] || { check=1; shift; }
[ $# -eq 1 ] || fail "usage: apply.sh [--check] SOURCE_TREE_OF_GROMACS"
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ -d "$1" ] || fail "'$1' is not a folder."
tree=$(CDPATH='' cd -- "$1" && pwd)
version=$(sed -n 's/^project(Gromacs VERSION \([0-9.]*\)).*/\1/p' "$tree/CMakeLists.txt" 2> /dev/null || true)
[ -n "$version" ] || fail "'$tree' is not a GROMACS source tree, name one of GROMACS $made_for."
command -v patch > /dev/null || fail "the program 'patch' is missing, install the package patch."

# Copies of the patches that the tree has, to recognise and to undo them
applied=$tree/.farfield

# $1: folder, $2: patch, $3...: options of patch
run_patch()
{
    folder=$1
    input=$2
    shift 2
    patch --directory="$folder" --strip=1 --force --no-backup-if-mismatch --reject-file=- --input="$input" "$@"
}

# Says what of the patches does not fit, and what fits not exactly, in a copy of the files that they change.
# Fails if there is a hunk that does not fit.
check_hunks()
{
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    sed -n 's|^+++ b/||p' "$here"/*.patch | sort -u | while read -r changed; do
        [ -f "$tree/$changed" ] || continue
        mkdir -p "$copy/$(dirname "$changed")"
        cat "$tree/$changed" > "$copy/$changed"
    done
    for undone in $( (cd "$applied" 2> /dev/null && ls -r) || true); do
        run_patch "$copy" "$applied/$undone" --reverse > /dev/null || fail "'$tree' was changed after $undone was applied."
    done
    for one in "$here"/*.patch; do
        echo "patch $(basename "$one") $(grep -c '^@@ ' "$one")"
        run_patch "$copy" "$one" 2>&1 || true
    done | LC_ALL=C awk -v version="$version" '
        $1 == "patch" && $2 ~ /\.patch$/ { patch = $2; hunks += $3 }
        $1 == "patching" { file = $3 }
        $1 == "|---" { file = substr($2, 3) }
        /^patch: \*\*\*\* / { failed++; print patch ": " substr($0, 13) "; the hunks behind it are not tried" }
        /^Hunk #[0-9]+ FAILED/ { failed++; print patch ": " file ": hunk " substr($2, 2) " does not fit at line " $5 + 0 }
        /^Hunk .* with fuzz/ { print patch ": " file ": hunk " substr($2, 2) " fits at line " $5 + 0 " with other lines around it" }
        /hunks? ignored$/ { failed += $1; print patch ": " file ": the file is missing, hunks: " $1 }
        END {
            if (failed) { print failed " of " hunks " hunks do not fit GROMACS " version } \
            else { print "all " hunks " hunks fit GROMACS " version }
            exit failed > 0
        }'
}

if [ -n "$check" ]; then
    check_hunks
    exit
fi
case $version in
    "$made_for") ;;
    "${made_for%.*}" | "${made_for%.*}".*)
        echo "apply.sh: the patch is made for GROMACS $made_for, and tried on $version" >&2 ;;
    *) fail "'$tree' is GROMACS $version, the patch is for GROMACS $made_for. To see what would fit: $0 --check $1" ;;
esac
[ -d "$tree/src/gromacs/fmm" ] || fail "'$tree' has no FMM module in src/gromacs/fmm."
[ -w "$tree/src/gromacs/fmm" ] || fail "'$tree' cannot be written to, copy it first."
mkdir -p "$applied"

# Patches build on those before them: from the first one on that is not up to date, all are undone,
# the last one first
undo=
for name in $( (cd "$here" && ls -- *.patch; cd "$applied" && ls) | sort -u); do
    [ -n "$undo" ] || ! cmp -s "$here/$name" "$applied/$name" || continue
    undo="$name $undo"
done
for name in $undo; do
    [ -f "$applied/$name" ] || continue
    run_patch "$tree" "$applied/$name" --reverse --dry-run > /dev/null \
        || fail "'$tree' was changed after an older $name was applied, unpack a fresh tree."
    run_patch "$tree" "$applied/$name" --reverse > /dev/null
    rm "$applied/$name"
done

for file in "$here"/*.patch; do
    name=$(basename "$file")
    [ ! -f "$applied/$name" ] || continue
    if run_patch "$tree" "$file" --reverse --dry-run > /dev/null 2>&1; then
        # Applied by hand, or by a run that was interrupted
        cp "$file" "$applied/$name"
        continue
    fi
    run_patch "$tree" "$file" --dry-run > /dev/null 2>&1 || {
        check_hunks >&2 || true
        fail "$name does not fit '$tree', GROMACS $version; unpack a fresh tree of GROMACS $made_for."
    }
    run_patch "$tree" "$file" > /dev/null
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
