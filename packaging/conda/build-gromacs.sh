#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# AVX2 is what every x86 processor of the last ten years has; ARM processors share one set of instructions.

set -eu
case $(uname -m) in
    x86_64) simd=AVX2_256 ;;
    aarch64) simd=ARM_NEON_ASIMD ;;
    *) simd=None ;;
esac
farfield/gromacs_patch/apply.sh gromacs
# shellcheck disable=SC2086 # several options
cmake -G Ninja -S gromacs -B build ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$PREFIX" -DGMX_SIMD="${GMX_SIMD:-$simd}" -DGMX_USE_EXT_FMM=ON \
    -DGMX_FFT_LIBRARY=fftw3 -DGMX_GPU=OFF -DGMX_HWLOC=OFF -DGMXAPI=OFF -DGMX_INSTALL_NBLIB_API=OFF
cmake --build build -j "${CPU_COUNT:-1}"
cmake --install build
