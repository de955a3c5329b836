/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory of the device, and page-locked memory of the host, that run out.
 *
 *  The linker gives calls of cudaMalloc() and cudaMallocHost() to the functions here (--wrap). What
 *  the libraries of CUDA allocate for themselves does not fail.
 */
#include <cuda_runtime_api.h>

#include "backend/gpu_backend.h"
#include "failing_allocations.h"

extern "C"
{
    cudaError_t __real_cudaMalloc(void** pointer, size_t size);
    cudaError_t __real_cudaMallocHost(void** pointer, size_t size);

    cudaError_t __wrap_cudaMalloc(void** pointer, size_t size)
    {
        const bool fails = farfield::test::isArmed() && farfield::test::isTurnToFail();
        return fails ? cudaErrorMemoryAllocation : __real_cudaMalloc(pointer, size);
    }
    cudaError_t __wrap_cudaMallocHost(void** pointer, size_t size)
    {
        const bool fails = farfield::test::isArmed() && farfield::test::isTurnToFail();
        return fails ? cudaErrorMemoryAllocation : __real_cudaMallocHost(pointer, size);
    }
}

namespace farfield
{
namespace test
{
namespace
{

struct FloatFft : MemoryKind<float, M2lEngine::Fft, Device::Gpu>
{
};
struct FloatHierarchy : MemoryKind<float, M2lEngine::Hierarchy, Device::Gpu>
{
};
struct DoubleGemm : MemoryKind<double, M2lEngine::Gemm, Device::Gpu>
{
};
//! The device helps itself.
struct HelpedFloatFft : MemoryKind<float, M2lEngine::Fft, Device::Gpu>
{
    static DeviceList helpers()
    {
        letDevicesHelpThemselves(true);
        return { 0 };
    }
};
using OnDevice = ::testing::Types<FloatFft, FloatHierarchy, DoubleGemm, HelpedFloatFft>;
INSTANTIATE_TYPED_TEST_SUITE_P(Device, OutOfMemory, OnDevice);

} // namespace
} // namespace test
} // namespace farfield
