/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Launches that start before the one ahead of them in the stream has ended (programmatic
 *         dependent launch), to fetch what does not depend on it.
 */
#ifndef FARFIELD_KERNELS_OVERLAP_CUH
#define FARFIELD_KERNELS_OVERLAP_CUH

#include "device.h"

namespace farfield
{

//! Until here a kernel must not touch what earlier kernels write; nothing to wait for otherwise.
__device__ __forceinline__ void waitForLaunchBefore()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

//! The next kernel may be started, if it was launched to overlap.
__device__ __forceinline__ void letNextLaunchPrepare()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/*! \brief Launches a kernel that calls waitForLaunchBefore().
 *  \param[in] overlap  it may start early */
template<class... Parameters, class... Arguments>
void launchAfter(bool overlap,
                 void (*kernel)(Parameters...),
                 int blocks,
                 int threads,
                 size_t shared,
                 cudaStream_t stream,
                 Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim            = dim3(blocks);
    config.blockDim           = dim3(threads);
    config.dynamicSmemBytes   = shared;
    config.stream             = stream;
    cudaLaunchAttribute early = {};
    early.id                  = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs                                     = &early;
    config.numAttrs                                  = overlap ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
          "launching a kernel");
}

} // namespace farfield

#endif
