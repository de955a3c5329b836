/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief For which instruction sets kernels are not compiled. To be included before Highway.
 *
 *  One target per generation of x86 processors keeps the build short. ARM has the NEON that all of its
 *  processors have: vectors of SVE have no size that the compiler knows, so that kernels cannot have
 *  arrays of them.
 */
#ifndef FARFIELD_BASE_SIMD_TARGETS_H
#define FARFIELD_BASE_SIMD_TARGETS_H

#define HWY_DISABLED_TARGETS                                                                       \
    (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#endif
