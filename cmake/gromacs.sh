# shellcheck shell=bash
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Finds, checks, patches and builds GROMACS; sourced by quickstart.sh.
#
# The build lives in the cache folder, under a key made of all that determines its result:
# version, patch, public headers of farfield, options, compiler and processor. It links against a
# copy of farfield's library there and finds the one to use at run time, next to itself, so a
# change of the solver neither rebuilds nor relinks GROMACS.

gromacsVersion=2026.3

# The release archives and their SHA-256 sums. The .tar.gz are upstream's, which Debian's source
# package carries unchanged; the .tar.xz hold the same files.
gromacsSums='
d8b9444be5c96b2e9130a9cb8c7d42a34a666c0628806eed79eab828a1647cfb gromacs-2026.3.tar.xz
1094b7bbc6a3960223827114626657110b40096cdf9598a727935fc84ebf8aa0 gromacs-2026.3.tar.gz
ceb6531da3437f3ab39b98b1ebd305c15db993ab5898ec1d99baedd58eb9170b regressiontests-2026.3.tar.xz
ec28a220729e8ad5e2a668919d201b3f283d37ecd3d6e7aa0f7c8a2fa278fa6a regressiontests-2026.3.tar.gz'

# GROMACS's own choice of SIMD instructions holds: it examines the processor. chooseGromacsGpu()
# turns GMX_GPU on.
gromacsOptions=(
    -DCMAKE_BUILD_TYPE=Release
    -DGMX_USE_EXT_FMM=ON
    -DGMX_GPU=OFF
    -DGMX_MPI=OFF
    -DGMX_THREAD_MPI=ON
    -DGMX_FFT_LIBRARY=fftw3
    -DBUILD_SHARED_LIBS=OFF
    -DGMX_PREFER_STATIC_LIBS=OFF
    -DBUILD_TESTING=OFF
    -DGMXAPI=OFF
    -DGMX_INSTALL_NBLIB_API=OFF
    -DGMX_INSTALL_LEGACY_API=OFF
    -DGMX_USE_COLVARS=NONE
    -DGMX_USE_PLUMED=OFF
    -DGMX_HWLOC=OFF
    -DGMX_NNPOT=OFF
    -DGMX_BUILD_HELP=OFF
    -DCMAKE_INSTALL_LIBDIR=lib
)

# True if the file is a release archive, whatever its name.
# $1: file, $2: gromacs or regressiontests
isReleaseArchive()
{
    local sum
    sum=$(sha256sum < "$1" | cut -d ' ' -f 1)
    [[ $gromacsSums == *"$sum $2-$gromacsVersion.tar."* ]]
}

# $1: address, $2: file
download()
{
    local progress=-sS
    note "downloading $1"
    [ ! -t 2 ] || progress=--progress-bar
    # A connection that breaks off, or stands still for a minute, is tried again
    curl -fL "$progress" --retry 3 --retry-all-errors --connect-timeout 20 --speed-limit 1000 --speed-time 60 -o "$2" "$1"
}

# The Debian mirrors of this machine's apt configuration. apt downloads with its own proxies.
# $1: file below pool/main/g/gromacs, $2: file to write
downloadFromMirror()
{
    local repositories repository helper=/usr/lib/apt/apt-helper
    [ -x "$helper" ] || return 1
    note "trying the Debian mirror that apt is configured with"
    # shellcheck disable=SC2016 # a placeholder of apt
    repositories=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null | sort -u)
    for repository in $repositories; do
        if "$helper" download-file "${repository%/}/pool/main/g/gromacs/$1" "$2" > /dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

# Sets archive: a verified release archive.
# $1: gromacs or regressiontests, $2: folder of the download site, $3: Debian's name of the archive
findArchive()
{
    local name=$1-$gromacsVersion file
    for file in "$root/../shared/gromacs/$name".tar.{xz,gz} "$cache/downloads/$name".tar.{xz,gz}; do
        if [ -f "$file" ] && isReleaseArchive "$file" "$1"; then
            archive=$file
            return
        fi
    done
    mkdir -p "$cache/downloads"
    archive=$cache/downloads/$name.tar.gz
    rm -f "$archive.part"
    if download "https://ftp.gromacs.org/$2/$name.tar.gz" "$archive.part"; then
        if isReleaseArchive "$archive.part" "$1"; then
            mv "$archive.part" "$archive"
            return
        fi
        note "its SHA-256 is not that of the release; looking elsewhere"
    fi
    rm -f "$archive.part"
    if downloadFromMirror "$3" "$archive.part" && isReleaseArchive "$archive.part" "$1"; then
        mv "$archive.part" "$archive"
        return
    fi
    rm -f "$archive.part"
    fail "$name was found neither on the download site of GROMACS nor on a Debian mirror. Download the release and name it: $4=/path/to/$name.tar.gz"
}

# Copies a source tree, or unpacks an archive, into a new folder.
# $1: tree or archive, $2: folder; it exists only once it is complete
unpack()
{
    rm -rf "$2" "$2.part"
    mkdir -p "$2.part"
    if [ -d "$1" ]; then
        cp -R "$1/." "$2.part" || fail "$1 could not be copied to $2.part."
    else
        tar -xf "$1" -C "$2.part" --strip-components=1 || fail "$1 could not be unpacked into $2.part."
    fi
    # A tree that was read-only stays patchable and removable.
    chmod -R u+w "$2.part"
}

# $1: tree or archive that the user named, $2: the variable, $3: gromacs or regressiontests
checkGiven()
{
    local version
    if [ -d "$1" ]; then
        case $3 in
            gromacs)
                version=$(sed -n 's/^project(Gromacs VERSION \([0-9.]*\)).*/\1/p' "$1/CMakeLists.txt" 2> /dev/null || true)
                [ "$version" = "$gromacsVersion" ] \
                    || fail "$2=$1 is not a source tree of GROMACS $gromacsVersion (found: ${version:-no version})."
                ;;
            regressiontests)
                [ -d "$1/complex" ] || fail "$2=$1 has no folder \"complex\"."
                ;;
        esac
    elif [ -f "$1" ]; then
        isReleaseArchive "$1" "$3" \
            || fail "the SHA-256 of $2=$1 is not that of a release archive of $gromacsVersion. To use a changed source, unpack it and name the tree."
    else
        fail "$2=$1 is neither a folder nor a file."
    fi
}

# Checks what the user named, before any work is done.
checkGivenSources()
{
    [ -z "${GROMACS_SOURCE:-}" ] || checkGiven "$GROMACS_SOURCE" GROMACS_SOURCE gromacs
    [ -z "${REGRESSIONTESTS_SOURCE:-}" ] \
        || checkGiven "$REGRESSIONTESTS_SOURCE" REGRESSIONTESTS_SOURCE regressiontests
}

# GROMACS itself uses the GPU that was found, if farfield does; see chooseCuda(). Where there are several,
# or FARFIELD_NCCL is ON, ranks send each other messages from GPU to GPU.
chooseGromacsGpu()
{
    local gpus folder nccl
    if [ -n "$gpuFound" ]; then
        gromacsOptions+=(-DGMX_GPU=CUDA "-DCMAKE_CUDA_ARCHITECTURES=${gpuFound// /;}" "-DCMAKE_CUDA_COMPILER=$CUDACXX")
        note "GROMACS: with CUDA for ${gpuFound//-real/}"
        gpus=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU' || true)
        if [ "${FARFIELD_NCCL:-AUTO}" = ON ] || { [ "${FARFIELD_NCCL:-AUTO}" = AUTO ] && [ "$gpus" -gt 1 ]; }; then
            installPythonPackages "$root/cmake/nccl-cuda13.txt"
            folder=$(echo "$pythonPrefix"/lib/python3*/site-packages/nvidia/nccl)
            [ -e "$folder/lib/libnccl.so.2" ] || fail "NCCL is not where its package has it: $folder"
            nccl=("-DNCCL_INCLUDE_DIR=$folder/include" "-DNCCL_LIBRARY=$folder/lib/libnccl.so.2")
            note "GROMACS: with NCCL"
        else
            # Nor that of the system, which may be for another CUDA
            nccl=(-DNCCL_INCLUDE_DIR=OFF)
        fi
        gromacsOptions+=("${nccl[@]}")
    fi
}

# Everything that determines the result of the build, hashed. Release archives are all alike; a
# tree that the user names is identified by its contents.
gromacsKey()
{
    {
        echo "$gromacsVersion ${gromacsOptions[*]}"
        # The program asks for the library by it
        sed -n 's/^ *VERSION \([0-9]*\.[0-9]*\)\..*/SONAME \1/p' "$root/CMakeLists.txt"
        if [ -d "${GROMACS_SOURCE:-}" ]; then
            (cd "$GROMACS_SOURCE" && find . -type f -not -path './.git/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
        fi
        (cd "$root/gromacs_patch" && find . -type f -not -name '*.md' -not -path './bugs/*' -not -path './upstream/*' \
            -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
        cat "$root"/src/farfield/*.h | sha256sum
        if [ -n "$gpuFound" ]; then
            "$CUDACXX" --version
        fi
        "${CC:-gcc}" --version | head -n 1
        "${CXX:-g++}" --version | head -n 1
        uname -m
        grep -m 1 -E '^(flags|Features)' /proc/cpuinfo || true
    } | sha256sum | cut -c 1-16
}

# Leaves the patched program at build/bin/gmx, with the force fields where it looks for them, and if
# FARFIELD_MPI or FARFIELD_DOUBLE is ON also those with an MPI library and in double precision. Sets programs.
buildGromacs()
{
    local given withMpi=(-DGMX_MPI=ON -DGMX_THREAD_MPI=OFF) inDouble=(-DGMX_DOUBLE=ON -DGMX_GPU=OFF)
    chooseGromacsGpu
    read -ra given <<< "${GROMACS_OPTIONS:-}"
    gromacsOptions+=("${given[@]}")
    programs=()
    buildProgram gmx
    [ "$mpi" = OFF ] || buildProgram gmx_mpi "${withMpi[@]}"
    [ "$double" = OFF ] || buildProgram gmx_d "${inDouble[@]}"
    [ "$mpi" = OFF ] || [ "$double" = OFF ] || buildProgram gmx_mpi_d "${withMpi[@]}" "${inDouble[@]}"
}

# $1: name of the program, as the options make it, $2...: options of CMake, instead of those before
buildProgram()
{
    local name=$1 folder
    programs+=("$name")
    (
        gromacsOptions+=("${@:2}")
        if ! flock -n 9; then
            note "waiting for another quickstart.sh that builds GROMACS"
            flock 9
        fi
        folder=$cache/gromacs-$gromacsVersion-$(gromacsKey)
        if [ ! -e "$folder/complete" ]; then
            buildPatchedGromacs "$folder" "$name"
        fi
        touch "$folder"
        pruneGromacs
        collectGmx "$folder" "$name"
    ) 9> "$cache/gromacs.lock"
}

# $1: folder of this key, $2: name of the program
buildPatchedGromacs()
{
    local folder=$1 name=$2 launcher=() archive
    # This name enters ccache's hashes.
    local source=$folder/gromacs-patched
    # Sources under another key are the same relative to the build folder.
    export CCACHE_BASEDIR=$folder
    step "GROMACS $gromacsVersion: source"
    checkSpace "$cache" 2 "building GROMACS"
    mkdir -p "$folder"
    if [ ! -d "$source" ]; then
        if [ -n "${GROMACS_SOURCE:-}" ]; then
            archive=$GROMACS_SOURCE
        else
            findArchive gromacs gromacs "gromacs_$gromacsVersion.orig.tar.gz" GROMACS_SOURCE
        fi
        note "unpacking $archive"
        unpack "$archive" "$source"
        "$root/gromacs_patch/apply.sh" "$source.part" > "$folder/patch.log" 2>&1 \
            || { cat "$folder/patch.log" >&2; fail "the patch does not apply to $archive"; }
        mv "$source.part" "$source"
    fi
    note "$source"

    step "GROMACS $gromacsVersion: configuring"
    mkdir -p "$folder/build"
    # Inside GROMACS's build folder, so that CMake leaves its path out of the program's RPATH.
    cmake --install "$build" --prefix "$folder/build/farfield" > "$folder/configure.log" 2>&1 \
        || fail "installing farfield for GROMACS failed; see $folder/configure.log"
    if command -v ccache > /dev/null; then
        launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
            -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    fi
    cmake -G Ninja -S "$source" -B "$folder/build" "${gromacsOptions[@]}" "${launcher[@]}" \
        -Dfarfield_DIR="$folder/build/farfield/lib/cmake/farfield" >> "$folder/configure.log" 2>&1 \
        || { tail -n 30 "$folder/configure.log" >&2; fail "configuring GROMACS failed; see $folder/configure.log"; }

    # By these gmx would look for its data; tests of GROMACS, which need them, bring them back
    sed -i '/define CMAKE_\(SOURCE\|BINARY\)_DIR/d' "$folder/build/src/include/buildinfo.h"

    step "GROMACS $gromacsVersion: building $name with $jobs jobs (once; a quarter of an hour on two cores)"
    compile "$folder/build" --target gmx || fail "building GROMACS failed; the messages are above."
    touch "$folder/complete"
}

# Keeps the newest builds, two of each program, and no unfinished leftovers of others.
pruneGromacs()
{
    local old kept=4
    [ "$double" = OFF ] || kept=8
    while read -r old; do
        note "removing the old build $old"
        rm -rf "$old"
    done < <(find "$cache" -maxdepth 1 -type d -name "gromacs-*" -printf '%T@ %p\n' | sort -rn | tail -n +$((kept + 1)) | cut -d ' ' -f 2-)
}

# Copies only what differs; a gmx that is running keeps its file.
# $1: folder of this key, $2: name of the program
collectGmx()
{
    local folder=$1 name=$2
    mkdir -p "$build/bin" "$build/share/gromacs" "$build/share/farfield"
    if ! cmp -s "$folder/build/bin/$name" "$build/bin/$name"; then
        cp "$folder/build/bin/$name" "$build/bin/$name.new"
        mv "$build/bin/$name.new" "$build/bin/$name"
    fi
    if [ "$name" = gmx ] && [ "$(cat "$build/share/gromacs/origin" 2> /dev/null)" != "$folder" ]; then
        rm -rf "$build/share/gromacs/top"
        cp -R "$folder/gromacs-patched/share/top" "$build/share/gromacs/top"
        # Ribonuclease A, an input of GROMACS's own tests: the protein of the main job.
        cp "$folder/gromacs-patched/src/gromacs/trajectoryanalysis/tests/RNAseA.pdb" "$build/share/farfield/protein.pdb"
        echo "$folder" > "$build/share/gromacs/origin"
    fi
    "$build/bin/$name" -quiet -version > "$build/$name-version.log" 2>&1 \
        || { cat "$build/$name-version.log" >&2; fail "$build/bin/$name does not start."; }
    note "$build/bin/$name"
}

# Test programs of GROMACS: of the parts that the patches touch, and of mdrun.
upstreamTests=(fmm-interface-tests nbnxm-test listed_forces-test tool-test gmxpreprocess-test)
upstreamRunTests=(mdrun-test mdrun-io-test mdrun-non-integrator-test mdrun-single-rank-algorithms-test
    mdrun-mpi-pme-test minimize-test)

# $1: build folder, $2: program, $3...: its options
runUpstreamTest()
{
    local folder=$1 name=$2
    shift 2
    # Some leave files where they run. They look for libfarfield.so next to themselves, as gmx does
    if (cd "$folder" && LD_LIBRARY_PATH=$build/lib "bin/$name" "$@") > "$folder/$name.out" 2>&1; then
        note "$name: $(grep -F '[  PASSED  ]' "$folder/$name.out")"
    else
        note "$name failed; see $folder/$name.out"
        grep -F '[  FAILED  ]' "$folder/$name.out" >&2 || tail -n 20 "$folder/$name.out" >&2
        return 1
    fi
}

# Built beside gmx, from the same objects.
runUpstreamTests()
{
    local folder name failed=0
    folder=$(cat "$build/share/gromacs/origin")/build
    step "Test programs of GROMACS"
    (
        flock 9
        export CCACHE_BASEDIR=${folder%/build}
        cmake -DBUILD_TESTING=ON "$folder" > "$folder/../tests.log" 2>&1 \
            || { tail -n 30 "$folder/../tests.log" >&2; exit 1; }
        compile "$folder" --target "${upstreamTests[@]}" "${upstreamRunTests[@]}"
    ) 9> "$cache/gromacs.lock" || return 1
    for name in "${upstreamTests[@]}"; do
        runUpstreamTest "$folder" "$name" || failed=1
    done
    for name in "${upstreamRunTests[@]}"; do
        runUpstreamTest "$folder" "$name" -ntmpi 1 -ntomp "$(nproc)" || failed=1
    done
    return $failed
}

# Sets regressionTests: the unpacked regression tests of GROMACS.
fetchRegressionTests()
{
    local archive
    step "Regression tests of GROMACS $gromacsVersion"
    if [ -d "${REGRESSIONTESTS_SOURCE:-}" ]; then
        regressionTests=$REGRESSIONTESTS_SOURCE
        note "$regressionTests"
        return
    fi
    regressionTests=$cache/regressiontests-$gromacsVersion
    (
        flock 9
        if [ ! -d "$regressionTests" ]; then
            archive=${REGRESSIONTESTS_SOURCE:-}
            [ -n "$archive" ] || findArchive regressiontests regressiontests \
                "gromacs_$gromacsVersion.orig-regressiontests.tar.gz" REGRESSIONTESTS_SOURCE
            note "unpacking $archive"
            unpack "$archive" "$regressionTests"
            mv "$regressionTests.part" "$regressionTests"
        fi
    ) 9> "$cache/regressiontests.lock"
    note "$regressionTests"
}
