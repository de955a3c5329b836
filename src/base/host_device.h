/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Marks functions that are compiled for the host and for the device.
 */
#ifndef FARFIELD_BASE_HOST_DEVICE_H
#define FARFIELD_BASE_HOST_DEVICE_H

#if defined(__CUDACC__)
#define FARFIELD_HD __host__ __device__ __forceinline__
#else
#define FARFIELD_HD inline
#endif

#endif
