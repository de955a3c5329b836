/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Marks of code that is compiled for the host and for the device.
 */
#ifndef FARFIELD_BASE_HOST_DEVICE_H
#define FARFIELD_BASE_HOST_DEVICE_H

#if defined(__CUDACC__)
#define FARFIELD_HD __host__ __device__ __forceinline__
#else
#define FARFIELD_HD inline
#endif

//! Before a loop of a rare case, so that it takes few of the registers of a kernel.
#if defined(__CUDA_ARCH__)
#define FARFIELD_ROLLED _Pragma("unroll 1")
#else
#define FARFIELD_ROLLED
#endif

#endif
