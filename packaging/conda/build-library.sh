#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later

set -eu
# shellcheck disable=SC2086 # several options
cmake -G Ninja -S . -B build ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
    -DCMAKE_INSTALL_LIBDIR=lib -DFARFIELD_CUDA=OFF -DBUILD_TESTING=OFF
cmake --build build -j "${CPU_COUNT:-1}"
cmake --install build
