#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later

set -eu
export CMAKE_BUILD_PARALLEL_LEVEL=${CPU_COUNT:-1}
"$PYTHON" -m pip install . --no-deps --no-build-isolation --config-settings=cmake.define.FARFIELD_CUDA=OFF -v
