# shellcheck shell=bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Checks that read the sources and run nothing; sourced by quickstart.sh.

# Prints the C++ and CUDA sources, each ended by a null byte.
listSources()
{
    find "$root"/{src,kernels,python,tests,gromacs_patch} -type f \
        \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0
}

checkLayout()
{
    step "Layout of the sources"
    listSources | xargs -0 "$checkTools/clang-format" --dry-run --Werror
}

# Mistakes in the library as the build folder compiles it.
checkLibrary()
{
    local headers=$build/check-headers
    step "Analysis of the library"
    # Of the headers that compilers bring, clang-tidy lacks this one only. It does not know gcc's
    # attribute for what memory is freed by.
    mkdir -p "$headers"
    sed 's/__malloc__ (omp_free)/__malloc__/' "$("${CC:-gcc}" -print-file-name=include)/omp.h" > "$headers/omp.h"
    printf '%s\0' "$root"/src/*/*.cpp \
        | xargs -0 -n 1 -P "$jobs" "$checkTools/clang-tidy" -p "$build" --quiet --extra-arg="-isystem$headers" 2>&1 \
        | sed '/^[0-9]* warnings\{0,1\} generated\.$/d'
}

# All of them, even if one fails. Needs checkTools and a configured build folder.
checkSources()
{
    local failed=0
    checkLayout || failed=1
    checkLibrary || failed=1
    return $failed
}
