#!/usr/bin/env bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The two commands of the README. Everything they install outside the tree goes to the cache
# folder; everything they build for this tree goes to build/, and the Python package to build-package/.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${FARFIELD_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME or FARFIELD_CACHE must be set}/.cache}/farfield}
build=$root/build
mpi=${FARFIELD_MPI:-OFF}
double=${FARFIELD_DOUBLE:-OFF}

usage()
{
    cat <<TEXT
Usage: ./quickstart.sh <command>

  run    build everything, then simulate a solvated protein with PME and with FMM and compare
  test   build everything, then run all tests
  test-long  build everything, then run what takes hours: a release passes both
  check  check the layout of all sources and look for mistakes in them; part of "test"
  gmx    build only: leaves the patched program at build/bin/gmx
  install PREFIX  build, then put GROMACS and the library into a folder of their own, which others may use
  upstream  build and run GROMACS's own test programs; part of "test"
  docs   the documentation as pages: build/docs/index.html; part of "test"
  help   this text

What is missing is installed or downloaded; what is there already is not built again. All
commands can be interrupted and repeated.

Environment:
  GROMACS_SOURCE           GROMACS 2026.3 as a source tree or a release tarball
  REGRESSIONTESTS_SOURCE   its regression tests, likewise (for "test")
  FARFIELD_CACHE           cache folder, now $cache
  FARFIELD_CUDA            CUDA backend: ON, OFF or AUTO; default AUTO: with an NVIDIA GPU and nvcc,
                           and compiled for "test" in any case. Without nvcc one comes from PyPI
  CUDAARCHS                with FARFIELD_CUDA=ON: architectures of GPUs, where none is in this machine, e.g. "90-real"
  FARFIELD_MPI             ON: also build, and test, build/bin/gmx_mpi with the system's MPI library; default OFF
  FARFIELD_DOUBLE          ON: also build build/bin/gmx_d, in double precision and without CUDA; default OFF
  GROMACS_OPTIONS          further options for the CMake of GROMACS, e.g. "-DGMX_SIMD=AVX2_256"
  FARFIELD_NCCL            messages between the GPUs of several ranks by NCCL, from PyPI, for CUDA 13: ON, OFF or AUTO;
                           default AUTO: where there are two GPUs or more; no other NCCL is used
  CUDA_HOME                CUDA toolkit; default: nvcc on PATH, /usr/local/cuda
  FARFIELD_JOBS            parallel compilations; default: what cores and memory allow
  CC, CXX                  compilers
TEXT
}

step() { printf '\n== %s\n' "$*"; }
note() { printf '   %s\n' "$*"; }
fail()
{
    printf '\nquickstart: %s\n' "$*" >&2
    exit 1
}

# $1: folder, $2: GB that must be left on its disk, $3: for what
checkSpace()
{
    local free
    free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "${free:-$2}" -ge "$2" ] \
        || fail "$3 needs $2 GB, but the disk of $1 has ${free} GB left; make room, or set FARFIELD_CACHE to a folder elsewhere."
}

# shellcheck source=cmake/packages.sh
. "$root/cmake/packages.sh"
# shellcheck source=cmake/gromacs.sh
. "$root/cmake/gromacs.sh"
# shellcheck source=cmake/checks.sh
. "$root/cmake/checks.sh"
# shellcheck source=cmake/install.sh
. "$root/cmake/install.sh"

# One compilation of GROMACS needs up to about 1 GiB.
numJobs()
{
    local cores memory
    if [ -n "${FARFIELD_JOBS:-}" ]; then
        echo "$FARFIELD_JOBS"
        return
    fi
    cores=$(nproc)
    memory=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || true)
    if [ -n "$memory" ] && [ "$memory" -lt "$cores" ]; then
        cores=$((memory > 0 ? memory : 1))
    fi
    echo "$cores"
}

# On a terminal ninja shows a running count; elsewhere one line in fifty is enough of it.
compile()
{
    if [ -t 1 ]; then
        cmake --build "$@" -j "$jobs"
    else
        cmake --build "$@" -j "$jobs" | awk '
            match($0, /^\[[0-9]+\/[0-9]+\]/) {
                split(substr($0, 2, RLENGTH - 2), count, "/")
                if (count[1] % 50 == 0 || count[1] == count[2]) { print; fflush() }
                next
            }
            { print; fflush() }'
    fi
}

# $1: "all": with the tests
configureFarfield()
{
    local launcher=() testing=()
    if command -v ccache > /dev/null; then
        launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    fi
    if [ "$1" = all ]; then
        testing=(-DBUILD_TESTING=ON)
        [ "${FARFIELD_NCCL:-AUTO}" != OFF ] || testing+=(-DNCCL_INCLUDE_DIR=OFF)
    elif [ ! -e "$build/CMakeCache.txt" ]; then
        testing=(-DBUILD_TESTING=OFF)
    fi
    (cd "$root" && cmake --preset release "${launcher[@]}" "${cudaOptions[@]}" "${testing[@]}") > "$build/configure.log" 2>&1 \
        || { tail -n 30 "$build/configure.log" >&2; fail "configuring farfield failed; see $build/configure.log"; }
}

# $1: the CMake target
buildFarfield()
{
    step "farfield: building"
    configureFarfield "$1"
    compile "$build" --target "$1" || fail "building farfield failed; the messages are above."
    note "$build/lib/libfarfield.so"
}

buildGmx()
{
    setUpTools
    chooseCuda
    buildFarfield farfield
    buildGromacs
}

# $1: folder
runInstall()
{
    choosePrefix "$1"
    buildGmx
    installInto
}

runMainJob()
{
    buildGmx
    step "The main job: a solvated protein with PME and with FMM"
    (cd "$root" && python3 -m examples.protein)
}

runCheck()
{
    setUpTools
    setUpCheckTools
    cudaOptions=()
    [ -e "$build/compile_commands.json" ] || cudaOptions=(-DFARFIELD_CUDA=OFF)
    configureFarfield farfield
    checkSources || fail "the sources are not as they should be; the messages are above."
    step "No findings"
}

# Every link within the repository is followed, and a warning is an error. Needs packagePython.
buildDocumentation()
{
    step "Documentation"
    (cd "$root" && "$packagePython" -m sphinx -q -W --keep-going -b html docs "$build/docs") \
        && note "$build/docs/index.html"
}

runUpstream()
{
    buildGmx
    runUpstreamTests || fail "test programs of GROMACS failed; the messages are above."
}

runDocs()
{
    setUpTools docs
    installOwnPackage || fail "the Python package, whose pages are made from it, could not be built."
    buildDocumentation || fail "the documentation has mistakes; the messages are above."
}

# Builds what the tests run and tells them of it.
setUpTests()
{
    setUpTools test
    chooseCuda test
    buildFarfield all
    buildGromacs
    setUpTestPython
    fetchRegressionTests
    # Tests run side by side, each on its share of the cores: a core does most with one thread.
    workers=$(nproc)
    [ "$workers" -le 4 ] || workers=4

    export GMX=$build/bin/gmx
    [ "$mpi" = OFF ] || export GMX_MPI=$build/bin/gmx_mpi
    export GROMACS_REGRESSIONTESTS_DIR=$regressionTests
    GROMACS_SOURCE_DIR=$(cat "$build/share/gromacs/origin")/gromacs-patched
    export GROMACS_SOURCE_DIR

    # Threads of several tests share cores, see docs/choosing.md
    export GOMP_SPINCOUNT=2000
}

# Those of the release build, side by side.
# $1: threads of a team whose size a test leaves open, $2: seconds that a test may take
runUnitTests()
{
    OMP_NUM_THREADS=$1 ctest --test-dir "$build" --output-on-failure -j "$(nproc)" --timeout "$2"
}

# $1: marks of tests/mdrun/pytest.ini, $2: how many tests side by side
runGmxTests()
{
    (cd "$root" && FARFIELD_TEST_THREADS=$(($(nproc) / $2)) "$testPython" -m pytest tests/mdrun \
        -p no:cacheprovider -n "$2" --dist worksteal -m "$1" --durations=20)
}

runPythonTests()
{
    local run=("$packagePython" -m pytest -p no:cacheprovider -q -n "$workers" --dist worksteal --durations=10)
    # JAX, which has threads of its own, not in processes that other tests fork
    (
        cd "$root"
        export OMP_NUM_THREADS=$(($(nproc) / workers))
        failed=0
        "${run[@]}" tests/python --ignore=tests/python/test_jax.py || failed=1
        "${run[@]}" tests/python/test_jax.py || failed=1
        exit $failed
    )
}

# $1: ci or all
runRegressionCases()
{
    # Another gmx, in double precision, takes several ranks where there is one thread; shells need one rank
    (cd "$root" && FARFIELD_TEST_THREADS=2 "$testPython" -m regressiontests.run --select "$1" --jobs "$workers")
}

# Ends with an error if there are arguments, the suites that failed.
tellOfTests()
{
    if [ $# -gt 0 ]; then
        fail "failed: $(printf '%s, ' "$@" | sed 's/, $//')."
    fi
    step "All tests passed"
}

# Each suite runs even if an earlier one failed, so that one run shows all that is wrong.
runTests()
{
    local failed=()
    setUpTests
    setUpCheckTools
    checkSources || failed+=("checks of the sources")
    step "Unit tests"
    runUnitTests 1 1200 || failed+=("unit tests")
    # Documented commands are tested with it
    installOwnPackage || failed+=("the Python package")
    step "Tests through gmx, side by side"
    runGmxTests "not long and not whole_machine" "$workers" || failed+=("tests through gmx")
    step "Tests through gmx that need the whole machine"
    runGmxTests "not long and whole_machine" 1 || failed+=("tests through gmx that need the whole machine")
    step "Tests of the Python package"
    runPythonTests || failed+=("tests of the Python package")
    buildDocumentation || failed+=("documentation")
    runUpstreamTests || failed+=("test programs of GROMACS")
    step "Regression cases of GROMACS"
    runRegressionCases ci || failed+=("regression cases")
    tellOfTests "${failed[@]}"
}

# A build with sanitizers by a preset of CMake, and the tests of that preset.
# $1: name of the preset, $2: threads of a team whose size a test leaves open
runSanitizedTests()
{
    local launcher=()
    step "Sanitizers: the preset $1"
    if command -v ccache > /dev/null; then
        launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    (
        cd "$root"
        # Slow enough without the long form, whose cases have no other code
        unset FARFIELD_TEST_LONG
        cmake --preset "$1" -DBUILD_TESTING=ON "${launcher[@]}" > "$build/$1.log" 2>&1 \
            || { tail -n 30 "$build/$1.log" >&2; return 1; }
        compile --preset "$1" && OMP_NUM_THREADS=$2 ctest --preset "$1" -j "$(nproc)"
    )
}

# What "test" leaves out: its unit tests with teams of threads, sanitizers, random calls, long runs, all cases.
runLongTests()
{
    local failed=()
    setUpTools long
    setUpTests
    # Tests have more cases then
    export FARFIELD_TEST_LONG=1
    step "Unit tests with all threads"
    # One fails every allocation of a rank, one after the other
    runUnitTests "$(nproc)" 14400 || failed+=("unit tests with all threads")
    runSanitizedTests sanitize 1 || failed+=("tests with the address and undefined-behaviour sanitizers")
    step "Random calls with sanitizers"
    "$build/sanitize/bin/farfield_fuzz" --seconds 1200 --memory 0 || failed+=("random calls with sanitizers")
    runSanitizedTests thread "$(nproc)" || failed+=("tests with the thread sanitizer")
    step "Random calls"
    "$build/bin/farfield_fuzz" --seconds 1200 --seed 100001 || failed+=("random calls")
    step "Long tests through gmx"
    runGmxTests long 1 || failed+=("long tests through gmx")
    step "All regression cases of GROMACS"
    runRegressionCases all || failed+=("regression cases")
    tellOfTests "${failed[@]}"
}

if [ "${1:-}" = install ]; then
    [ $# -eq 2 ] && [ -n "$2" ] || fail "install takes one folder, such as: ./quickstart.sh install $HOME/farfield"
else
    [ $# -le 1 ] || fail "one command is expected, not $#; try ./quickstart.sh help"
fi
case ${1:-help} in
    run | test | test-long | check | gmx | install | upstream | docs)
        trap 'printf "\nInterrupted; the same command continues where this one stopped.\n" >&2; exit 130' INT TERM
        mkdir -p "$cache" "$build" || fail "cannot write to $cache or $build."
        checkGivenSources
        case $mpi in ON | OFF) ;; *) fail "FARFIELD_MPI is '$mpi', set it to ON or OFF." ;; esac
        case $double in ON | OFF) ;; *) fail "FARFIELD_DOUBLE is '$double', set it to ON or OFF." ;; esac
        case ${FARFIELD_NCCL:-AUTO} in ON | OFF | AUTO) ;; *) fail "FARFIELD_NCCL is '$FARFIELD_NCCL', set it to ON, OFF or AUTO." ;; esac
        jobs=$(numJobs)
        # ccache takes the locale for a reason to compile anew, and messages are read by scripts.
        unset LC_ALL LC_CTYPE LC_MESSAGES
        export LANG=C.UTF-8
        # Paths below this folder are hashed relative to the working folder, so that every clone reuses
        # the objects of the others.
        export CCACHE_DIR=$cache/ccache CCACHE_MAXSIZE=5G CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$root
        case $1 in
            run) runMainJob ;;
            test) runTests ;;
            test-long) runLongTests ;;
            check) runCheck ;;
            gmx) buildGmx ;;
            install) runInstall "$2" ;;
            upstream) runUpstream ;;
            docs) runDocs ;;
        esac
        ;;
    help | -h | --help) usage ;;
    *) usage >&2; exit 2 ;;
esac
