#!/bin/sh
#
# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Builds FFTW in both precisions and Highway, and unpacks Eigen, into a prefix: what a manylinux image lacks for the
# wheel. Archives that lie in the folder DOWNLOADS already are not fetched.

set -eu

[ $# -eq 1 ] || { echo "usage: dependencies.sh PREFIX" >&2; exit 1; }
prefix=$1
downloads=${DOWNLOADS:-$prefix/downloads}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$downloads"

# $1: address, $2: name of the archive and, before the last dash, of its project, $3: SHA-256 sum
unpack()
{
    [ -f "$downloads/$2" ] || curl -fsSL --retry 3 -o "$downloads/$2" "$1"
    echo "$3  $downloads/$2" | sha256sum --check --quiet -
    mkdir "$work/${2%-*}"
    tar -xf "$downloads/$2" -C "$work/${2%-*}" --strip-components=1
}

unpack https://www.fftw.org/fftw-3.3.10.tar.gz fftw-3.3.10.tar.gz \
    56c932549852cddcfafdab3820b0200c7742675be92179e59e6215b340e26467
unpack https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz highway-1.2.0.tar.gz \
    7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343
unpack https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.bz2 eigen-3.4.0.tar.bz2 \
    b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626

case $(uname -m) in
    x86_64) double="--enable-sse2 --enable-avx2" single=$double ;;
    aarch64) double="" single=--enable-neon ;;
    *) double="" single="" ;;
esac
export CFLAGS="-O3 -fomit-frame-pointer" # without what suits this processor alone
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
for options in "$double" "--enable-float $single"; do
    mkdir "$work/build"
    # shellcheck disable=SC2086 # several options
    (cd "$work/build" && "$work/fftw/configure" --quiet --prefix="$prefix" --libdir="$prefix/lib" --enable-shared \
        --disable-static --disable-fortran --disable-doc $options && make -s -j "$jobs" && make -s install)
    rm -r "$work/build"
done

cmake -S "$work/highway" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DHWY_ENABLE_CONTRIB=OFF \
    -DHWY_ENABLE_EXAMPLES=OFF -DBUILD_SHARED_LIBS=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib
cmake --build "$work/build" -j "$jobs" --target install
rm -r "$work/build"

# Headers alone, and the file that tells CMake of them
cmake -S "$work/eigen" -B "$work/build" -DBUILD_TESTING=OFF -DEIGEN_BUILD_DOC=OFF -DCMAKE_INSTALL_PREFIX="$prefix"
cmake --build "$work/build" --target install
