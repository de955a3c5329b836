# shellcheck shell=bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The programs and libraries that the build needs; sourced by quickstart.sh.

hasHeader()
{
    printf '#include <%s>\n' "$1" \
        | "${CXX:-g++}" -x c++ -E -I/usr/include/eigen3 - > /dev/null 2>&1
}

# Prints the Debian packages that provide what is missing. What is needed is looked for itself,
# not its package, so that other distributions and hand-made installations do as well.
# $1: "test" adds what only the tests need
missingPackages()
{
    local tool
    command -v "${CXX:-g++}" > /dev/null || echo g++
    command -v "${CC:-gcc}" > /dev/null || echo gcc
    for tool in ninja:ninja-build ccache:ccache curl:curl xz:xz-utils patch:patch \
        pkg-config:pkg-config flock:util-linux; do
        command -v "${tool%%:*}" > /dev/null || echo "${tool##*:}"
    done
    # CMake runs the compiler of its own test projects with make when asked for no generator.
    command -v make > /dev/null || echo make
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ ! -d /etc/apt ] || echo ca-certificates
    python3 -c 'import venv, ensurepip' 2> /dev/null || echo python3-venv
    hasHeader fftw3.h || echo libfftw3-dev
    hasHeader Eigen/Core || echo libeigen3-dev
    hasHeader hwy/highway.h || echo libhwy-dev
    if [ "${1:-}" = test ]; then
        hasHeader gtest/gtest.h || echo libgtest-dev
        # The reference for forces and energies is a double-precision gmx.
        command -v gmx_d > /dev/null || echo gromacs
    fi
}

installPackages()
{
    local missing elevate=()
    mapfile -t missing < <(missingPackages "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    step "Installing Debian packages: ${missing[*]}"
    command -v apt-get > /dev/null \
        || fail "this is not a Debian system (no apt-get); please install what these Debian packages contain: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null \
            || fail "no root rights and no sudo; please have someone run: apt-get install ${missing[*]}"
        elevate=(sudo)
    fi
    elevate+=(env DEBIAN_FRONTEND=noninteractive)
    "${elevate[@]}" apt-get -q update \
        || note "apt-get update failed; trying with the package lists that are there"
    "${elevate[@]}" apt-get -q -y install --no-install-recommends "${missing[@]}" \
        || fail "apt-get could not install: ${missing[*]}"
    mapfile -t missing < <(missingPackages "$@")
    [ ${#missing[@]} -eq 0 ] || fail "still missing after the installation: ${missing[*]}"
}

# GROMACS 2026 wants CMake 3.28; Debian 12 has 3.25.
setUpCmake()
{
    local wanted=3.28 have
    have=$(cmake --version 2> /dev/null | awk 'NR == 1 { print $3 }' || true)
    if [ -n "$have" ] && [ "$(printf '%s\n' "$wanted" "$have" | sort -V | head -n 1)" = "$wanted" ]; then
        return
    fi
    if [ ! -e "$cache/cmake/complete" ]; then
        step "Installing CMake into $cache/cmake (found ${have:-none}, GROMACS wants $wanted)"
        rm -rf "$cache/cmake"
        python3 -m venv "$cache/cmake"
        "$cache/cmake/bin/python3" -m pip install -q --disable-pip-version-check 'cmake>=3.28,<4' \
            || fail "CMake $wanted or newer could not be installed from PyPI; please install it, for example from the backports of your Debian release."
        touch "$cache/cmake/complete"
    fi
    export PATH=$cache/cmake/bin:$PATH
}

# $1: "test" adds what only the tests need
setUpTools()
{
    installPackages "$@"
    (
        flock 9
        setUpCmake
    ) 9> "$cache/tools.lock"
    setUpCmake
}

# Sets testPython: an interpreter with the packages of regressiontests/requirements.txt.
setUpTestPython()
{
    local requirements=$root/regressiontests/requirements.txt key folder
    key=$({ python3 --version; cat "$requirements"; } | sha256sum | cut -c 1-12)
    folder=$cache/python-$key
    (
        flock 9
        if [ ! -e "$folder/complete" ]; then
            step "Installing the tests' Python packages into $folder"
            rm -rf "$folder"
            python3 -m venv "$folder"
            "$folder/bin/python3" -m pip install -q --disable-pip-version-check -r "$requirements" \
                || fail "pip could not install the packages of $requirements."
            touch "$folder/complete"
        fi
    ) 9> "$cache/tools.lock"
    testPython=$folder/bin/python3
}
