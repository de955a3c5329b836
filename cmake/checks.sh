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

# Scripts by shellcheck, Python by ruff and mypy, whose rules are in pyproject.toml.
checkScripts()
{
    local failed=0
    step "Scripts and Python"
    (cd "$root" && "$checkTools/shellcheck" --check-sourced quickstart.sh .ci/run gromacs_patch/apply.sh \
        gromacs_patch/upstream/branches.sh packaging/prefix/GMXRC packaging/conda/*.sh packaging/wheel/dependencies.sh \
        packaging/try_root.sh) || failed=1
    (cd "$root" && "$checkTools/ruff" check --no-cache --quiet cmake docs examples packaging python regressiontests tests) || failed=1
    (cd "$root" && "$checkTools/mypy" --cache-dir "$build/mypy" --no-error-summary) || failed=1
    return $failed
}

# Mistakes in the library, the code of kernels for the host, the bindings, and the adapter in GROMACS where that has
# been built. What had no findings is remembered in the cache.
checkProgram()
{
    local headers=$build/check-headers python=$build/check-python gromacs builds
    step "Analysis of the program"
    # Of the headers that compilers bring, clang-tidy lacks this one only. It does not know gcc's
    # attribute for what memory is freed by.
    mkdir -p "$headers"
    sed 's/__malloc__ (omp_free)/__malloc__/' "$("${CC:-gcc}" -print-file-name=include)/omp.h" > "$headers/omp.h"
    cmake -G Ninja -S "$root" -B "$python" -DBUILD_TESTING=OFF -DFARFIELD_CUDA=OFF -DFARFIELD_PYTHON=ON \
        "-DPython_EXECUTABLE=$checkTools/python3" \
        "-Dnanobind_DIR=$("$checkTools/python3" -m nanobind --cmake_dir)" > "$python.log" 2>&1 \
        || { tail -n 30 "$python.log" >&2; return 1; }
    builds=(--build "$build" "^$root/(src|kernels)/" '/(src|kernels|tests)/[a-z_]+/'
        --build "$python" '/python/bindings/' '/python/bindings/')
    gromacs=$(cat "$build/share/gromacs/origin" 2> /dev/null || true)
    if [ -e "$gromacs/build/build.ninja" ]; then
        builds+=(--build "$gromacs/build" '/fmm/(farfield|dispersion)[a-z_]+\.cpp$' '/fmm/(farfield|dispersion)[a-z_]+\.h$')
    else
        note "without the adapter in GROMACS, which is not built"
    fi
    find "$cache/analysed" -type f -mtime +30 -delete 2> /dev/null || true
    python3 "$root/cmake/analysis.py" --tidy "$checkTools/clang-tidy" --checks "$root/.clang-tidy" \
        --headers "$headers" --remembered "$cache/analysed" --jobs "$jobs" "${builds[@]}"
}

# All of them, even if one fails. Needs checkTools and a configured build folder.
checkSources()
{
    local failed=0
    checkLayout || failed=1
    checkScripts || failed=1
    checkProgram || failed=1
    return $failed
}
