# shellcheck shell=bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The programs and libraries that the build needs; sourced by quickstart.sh.

# $1: header, $2: its package for pkg-config, if compilers do not look in its folder by themselves
hasHeader()
{
    local flags=
    [ -z "${2:-}" ] || flags=$(pkg-config --cflags "$2" 2> /dev/null || true)
    # shellcheck disable=SC2086 # several words
    printf '#include <%s>\n' "$1" | "${CXX:-g++}" -x c++ -E $flags - > /dev/null 2>&1
}

# True if programs can be linked with libraries that pkg-config knows.
hasLibraries()
{
    local flags
    flags=$(pkg-config --cflags --libs "$@" 2> /dev/null) || return 1
    # shellcheck disable=SC2086 # several words
    printf 'int main() {}\n' | "${CXX:-g++}" -x c++ - -x none $flags -o /dev/null 2> /dev/null
}

# True if the compiler of MPI finds its headers: Debian's openmpi-bin, which gromacs brings, has the former alone.
hasMpi()
{
    printf '#include <mpi.h>\nint main() {}\n' | mpicxx -x c++ - -o /dev/null 2> /dev/null
}

# True if modules for python3 can be compiled.
hasPythonHeaders()
{
    python3 -c 'import os, sysconfig; exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2> /dev/null
}

# True if a toolkit has, beside the compiler, what the backend needs: distributions have them apart.
# $1: nvcc
hasCudaLibraries()
{
    printf '#include <cufft.h>\n#include <cublas_v2.h>\n' | "$1" -x cu -E - > /dev/null 2>&1
}

# True if clang finds its OpenMP, which tells the thread sanitizer what threads wait for.
hasClangOpenMp()
{
    printf '#include <omp.h>\nint main() {}\n' | clang++ -fopenmp -x c++ - -o /dev/null 2> /dev/null
}

# Prints the Debian packages that provide what is missing. What is needed is looked for itself,
# not its package, so that other distributions and hand-made installations do as well.
# $1: "test" adds what only the tests need, "long" what the long ones need beside, "docs" what the documentation needs
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
    [ "$mpi" = OFF ] || hasMpi || echo libopenmpi-dev
    [ "$mpi" = OFF ] || command -v mpirun > /dev/null || echo openmpi-bin
    { hasHeader fftw3.h && hasLibraries fftw3 fftw3f; } || echo libfftw3-dev
    hasHeader Eigen/Core eigen3 || echo libeigen3-dev
    { hasHeader hwy/highway.h && hasLibraries libhwy; } || echo libhwy-dev
    # Tests and documentation have the Python package.
    [ -z "${1:-}" ] || hasPythonHeaders || echo python3-dev
    # The documentation is one of the tests.
    [ -z "${1:-}" ] || doxygen --version > /dev/null 2>&1 || echo doxygen
    if [ "${1:-}" = long ]; then
        command -v clang++ > /dev/null || echo clang
        hasClangOpenMp || echo libomp-dev
    fi
    if [ "${1:-}" = test ]; then
        { hasHeader gtest/gtest.h && hasLibraries gtest; } || echo libgtest-dev
        # The reference for forces and energies is a double-precision gmx.
        command -v gmx_d > /dev/null || echo gromacs
        # Of reports in PDF
        python3 -c 'import ctypes.util; exit(not ctypes.util.find_library("pangoft2-1.0"))' || echo libpangoft2-1.0-0
    fi
}

# The packages above in Debian; in Fedora, RHEL and their relatives; in conda-forge.
packagesElsewhere='
clang clang clangxx
g++ gcc-c++ cxx-compiler
gcc gcc c-compiler
libeigen3-dev eigen3-devel eigen
libfftw3-dev fftw-devel fftw
libgtest-dev gtest-devel gtest
libhwy-dev highway-devel libhwy
libomp-dev libomp-devel llvm-openmp
libopenmpi-dev openmpi-devel openmpi
libpangoft2-1.0-0 pango pango
ninja-build ninja-build ninja
openmpi-bin openmpi-devel openmpi
pkg-config pkgconf-pkg-config pkg-config
python3-dev python3-devel python
python3-venv python3 python
xz-utils xz xz'

# Prints the names of a column above, each once. Packages without a row have the same name everywhere.
# $1: column, $2...: Debian packages
namesElsewhere()
{
    local package name names=()
    for package in "${@:2}"; do
        name=$(awk -v package="$package" -v column="$1" '$1 == package { print $column }' <<< "$packagesElsewhere")
        [ -n "$name" ] || name=$package
        [[ " ${names[*]} " == *" $name "* ]] || names+=("$name")
    done
    echo "${names[*]}"
}

# Ends with the commands that install what is missing.
# $1: why they are not run, $2...: Debian packages
failWithCommands()
{
    fail "$1. Install what is missing, and repeat the command:
  Debian, Ubuntu        apt-get install ${*:2}
  Fedora, RHEL          dnf install $(namesElsewhere 2 "${@:2}")
  without root rights   conda install -c conda-forge $(namesElsewhere 3 "${@:2}")"
}

installPackages()
{
    local missing elevate=()
    mapfile -t missing < <(missingPackages "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    command -v apt-get > /dev/null \
        || failWithCommands "Only Debian packages are installed automatically, and there is no apt-get" "${missing[@]}"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null || failWithCommands "There are no root rights and no sudo" "${missing[@]}"
        elevate=(sudo)
    fi
    step "Installing Debian packages: ${missing[*]}"
    # Another apt may be at work, as unattended-upgrades is after a start
    elevate+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
    "${elevate[@]}" update \
        || note "apt-get update failed; trying with the package lists that are there"
    "${elevate[@]}" -y install --no-install-recommends "${missing[@]}" \
        || fail "apt-get could not install: ${missing[*]}; the messages are above."
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

# $1: as that of missingPackages()
setUpTools()
{
    installPackages "$@"
    (
        flock 9
        setUpCmake
    ) 9> "$cache/tools.lock"
    setUpCmake
}

# Prints the nvcc of a complete toolkit; fails if there is none. The newest of several installations counts.
findNvcc()
{
    local file
    for file in "${CUDACXX:-}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc \
        "$(printf '%s\n' /usr/local/cuda-*/bin/nvcc | sort -V | tail -n 1)"; do
        if [ -n "$file" ] && [ -x "$(command -v "$file")" ]; then
            if hasCudaLibraries "$file"; then
                command -v "$file"
                return
            fi
            note "$file: its toolkit has no cuFFT or cuBLAS, and is not used" >&2
        fi
    done
    return 1
}

# Architectures of the GPUs in this machine, as CMake writes them: "90-real". Nothing without GPU.
gpuArchitectures()
{
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null \
        | sed -n 's/^ *\([0-9][0-9]*\)\.\([0-9]\) *$/\1\2-real/p' | sort -u
}

# A CUDA toolkit from PyPI: compiler, headers and the libraries to link against.
# Sets CUDACXX.
installNvcc()
{
    local version=13.0 folder toolkit library
    folder=$cache/cuda-$version
    (
        flock 9
        if [ ! -e "$folder/complete" ]; then
            checkSpace "$cache" 4 "CUDA from PyPI"
            step "Installing CUDA $version from PyPI into $folder (0.8 GB)"
            rm -rf "$folder"
            python3 -m venv "$folder"
            "$folder/bin/python3" -m pip install -q --no-deps --disable-pip-version-check \
                nvidia-cuda-{nvcc,crt,runtime,cccl}=="$version.*" nvidia-nvvm=="$version.*" \
                nvidia-cublas=="$version.*" 'nvidia-cufft==12.0.*' \
                || fail "the CUDA compiler could not be installed from PyPI. Install the CUDA toolkit, or set FARFIELD_CUDA=OFF."
            toolkit=$(echo "$folder"/lib/python3*/site-packages/nvidia/cu13)
            # What linkers look for and the packages leave out.
            ln -s lib "$toolkit/lib64"
            for library in "$toolkit"/lib/*.so.*; do
                ln -s "${library##*/}" "${library%.so.*}.so"
            done
            touch "$folder/complete"
        fi
    ) 9> "$cache/cuda.lock"
    CUDACXX=$(echo "$folder"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
}

# Decides about the CUDA backend: with a GPU and a compiler it is built; the tests compile it even
# where it cannot run. Sets cudaOptions, for the CMake of farfield, and gpuFound; exports CUDACXX.
# $1: "test" for the tests
chooseCuda()
{
    local architectures found
    mapfile -t architectures < <(gpuArchitectures)
    gpuFound=${architectures[*]}
    cudaOptions=(-DFARFIELD_CUDA=OFF)
    found=$(findNvcc || true)
    case ${FARFIELD_CUDA:-auto} in
        0 | [Oo][Ff][Ff] | [Nn][Oo])
            gpuFound=
            note "CUDA backend: not built (FARFIELD_CUDA=$FARFIELD_CUDA)"
            return
            ;;
        [Aa][Uu][Tt][Oo])
            if [ "${1:-}" != test ] && [ -z "$gpuFound" ]; then
                note "CUDA backend: not built, no NVIDIA GPU found (FARFIELD_CUDA=ON builds it all the same)"
                return
            fi
            if [ "${1:-}" != test ] && [ -z "$found" ]; then
                gpuFound=
                note "CUDA backend: not built, no nvcc with its libraries found (FARFIELD_CUDA=ON fetches one; or set CUDA_HOME)"
                return
            fi
            ;;
        1 | [Oo][Nn] | [Yy][Ee][Ss]) ;;
        *) fail "FARFIELD_CUDA=$FARFIELD_CUDA is none of AUTO, ON and OFF." ;;
    esac
    export CUDACXX=$found
    if [ -z "$found" ]; then
        installNvcc
    fi
    if [ "${1:-}" = test ] && [ -z "$gpuFound" ]; then
        # The oldest whose instructions kernels choose by; those of newer ones are compiled where such a GPU is
        architectures=(80-real)
    fi
    if [ -n "${CUDAARCHS:-}" ]; then
        architectures=("$CUDAARCHS")
        # GROMACS, too, is built for the GPUs of another machine
        [ "${1:-}" = test ] || gpuFound=$CUDAARCHS
    fi
    [ "${1:-}" = test ] || [ -n "$gpuFound" ] \
        || fail "FARFIELD_CUDA=ON, but there is no GPU here to build GROMACS for. Name its architecture, such as CUDAARCHS=90-real for an H100."
    cudaOptions=(-DFARFIELD_CUDA=ON "-DCMAKE_CUDA_COMPILER=$CUDACXX")
    if [ ${#architectures[@]} -gt 0 ]; then
        cudaOptions+=("-DCMAKE_CUDA_ARCHITECTURES=$(IFS=';'; echo "${architectures[*]}")")
    fi
    note "CUDA backend: built with $CUDACXX for ${architectures[*]:-all architectures}"
}

# Installs Python packages into a folder of their own, once for each content of the list; sets
# pythonPrefix to it.
# $1: list of the packages
installPythonPackages()
{
    local key
    key=$({ python3 --version; cat "$1"; } | sha256sum | cut -c 1-12)
    pythonPrefix=$cache/python-$key
    (
        flock 9
        if [ ! -e "$pythonPrefix/complete" ]; then
            step "Installing the packages of ${1#"$root/"} into $pythonPrefix"
            rm -rf "$pythonPrefix"
            python3 -m venv "$pythonPrefix"
            "$pythonPrefix/bin/python3" -m pip install -q --disable-pip-version-check -r "$1" \
                || fail "pip could not install the packages of $1."
            touch "$pythonPrefix/complete"
        fi
    ) 9> "$cache/tools.lock"
}

# Sets testPython: an interpreter with the packages of regressiontests/requirements.txt.
setUpTestPython()
{
    installPythonPackages "$root/regressiontests/requirements.txt"
    testPython=$pythonPrefix/bin/python3
}

# Makes a wheel of the Python package of this tree, without CUDA, and installs it into a folder of its own,
# which has nothing of the tree; sets packagePython to an interpreter that has it. What the package, its tests and the
# documentation need is in the cache, once for each content of the lists, and found from there.
installOwnPackage()
{
    local folder=$build/python-package wheels=$build/python-wheel wheel needed compiler
    local quiet=(-q --disable-pip-version-check)
    step "Python package"
    # One that was interrupted has no pip
    "$folder/bin/python3" -m pip --version > /dev/null 2>&1 || python3 -m venv --clear "$folder"
    packagePython=$folder/bin/python3
    rm -rf "$wheels"
    # With the compiler of build/, and as deep in the tree: so ccache has the objects of the library from there
    compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt" 2> /dev/null || true)
    CXX=${compiler:-${CXX:-c++}} CMAKE_CXX_COMPILER_LAUNCHER=ccache "$packagePython" -m pip wheel "${quiet[@]}" --no-deps \
        --config-settings=cmake.define.FARFIELD_CUDA=OFF --config-settings=build-dir=build-package -w "$wheels" "$root" \
        || return 1
    wheel=$(echo "$wheels"/farfield-*.whl)
    needed=$cache/python-needed-$({ python3 --version; cat "$root/pyproject.toml" "$root/docs/requirements.txt"; } \
        | sha256sum | cut -c 1-12)
    (
        flock 9
        if [ ! -e "$needed/complete" ]; then
            rm -rf "$needed"
            # Of the wheel, as users have pip install them
            python3 -m venv "$needed" \
                && "$needed/bin/python3" -m pip install "${quiet[@]}" "${wheel}[ase,jax,tools,pdf]" openmm pytest pytest-xdist \
                    -r "$root/docs/requirements.txt" \
                && "$needed/bin/python3" -m pip uninstall "${quiet[@]}" -y farfield \
                && touch "$needed/complete"
        fi
    ) 9> "$cache/tools.lock" || return 1
    echo "$needed"/lib/python3*/site-packages > "$(echo "$folder"/lib/python3*/site-packages)/needed.pth"
    # Of the same version as the one before: pip would leave that
    "$packagePython" -m pip install "${quiet[@]}" --force-reinstall --no-deps "$wheel" \
        && (cd / && "$packagePython" -c 'import farfield; print("  ", farfield.__version__, farfield.__file__)')
}

# Sets checkTools: the folder of clang-format and clang-tidy, in the versions that count.
setUpCheckTools()
{
    installPythonPackages "$root/.ci/requirements.txt"
    checkTools=$pythonPrefix/bin
}
