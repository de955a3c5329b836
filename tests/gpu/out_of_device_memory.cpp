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
#include "in_process_ranks.h"

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
/*! Two ranks share a GPU, of which one lacks memory for its k-th allocation in an evaluation: both throw, or
 *  neither does, and both go on. */
TEST(OutOfDeviceMemoryOfOneRank, IsAnErrorOfAll)
{
    if (const std::string why = whyUnavailable(Device::Gpu); !why.empty())
    {
        GTEST_SKIP() << why;
    }
    const Case<float> system(60);
    const double box[3][3] = { { 2, 0, 0 }, { 0, 2.1, 0 }, { 0, 0, 2.2 } };
    Options options;
    options.device       = Device::Gpu;
    options.reproducible = true;
    options.threads      = 1;
    options.order        = 1;
    options.directRange  = 1;
    options.cellSize     = 0.7;
    options.accuracy     = 1e-2;
    options.m2l          = M2lEngine::Fft;
    options.leastSquares = false;
    int failures         = 0;
    std::atomic<bool> isOver{ false };
    for (long long k = 0; !isOver; k += 1 + k / 4)
    {
        SCOPED_TRACE("allocation " + std::to_string(k));
        std::array<std::atomic<bool>, 2> failed{};
        const auto run = [&](Communicator& communicator)
        {
            const int me = communicator.rank();
            DistributedSolver<float> solver(options, &communicator);
            solver.setSystem(
                    { system.n, system.q.data(), system.offsets.data(), system.partners.data() });
            std::vector<int> index;
            std::vector<float> x, forces[2];
            for (int i = me; i < system.n; i += 2)
            {
                index.push_back(i);
                x.insert(x.end(), system.x.begin() + 3 * i, system.x.begin() + 3 * i + 3);
            }
            Request request;
            request.replaceForces = true;
            const auto evaluate   = [&](std::vector<float>* to)
            {
                to->assign(x.size(), 0);
                solver.evaluate(x.data(), box, to->data(), request);
            };
            solver.setLocal(index.data(), static_cast<int>(index.size()));
            solver.prepare(x.data(), box);
            isTrueOnAll(&communicator, true);
            bool hasFailed = false;
            if (me == 1)
            {
                isOver = !withFailure(k, Mode::Once, &hasFailed, [&] { evaluate(&forces[0]); });
            }
            else
            {
                t_isSpared = true;
                try
                {
                    evaluate(&forces[0]);
                }
                catch (const Error& error)
                {
                    hasFailed = true;
                    EXPECT_EQ(error.code(), ErrorCode::OutOfMemory) << error.what();
                }
            }
            failed[me] = hasFailed;
            evaluate(&forces[1]);
            EXPECT_TRUE(hasFailed || forces[0] == forces[1]);
        };
        ASSERT_NO_THROW(onRanks(2, run));
        EXPECT_EQ(failed[0], failed[1]);
        failures += failed[1] ? 1 : 0;
    }
    EXPECT_GT(failures, 0);
}

using OnDevice = ::testing::Types<FloatFft, FloatHierarchy, DoubleGemm, HelpedFloatFft>;
INSTANTIATE_TYPED_TEST_SUITE_P(Device, OutOfMemory, OnDevice);

} // namespace
} // namespace test
} // namespace farfield
