/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory of the device, and page-locked memory of the host, that run out.
 *
 *  The linker gives calls of cudaMalloc(), cudaHostAlloc() and cudaGraphInstantiate() to the functions
 *  here (--wrap). In C++ cudaMallocHost() is an inline function that calls cudaHostAlloc(). What the
 *  libraries of CUDA allocate for themselves does not fail.
 */
#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "backend/gpu_backend.h"
#include "device_caller.h"
#include "device_messages.h"
#include "failing_allocations.h"
#include "in_process_ranks.h"

//! Graphs that were to be made while there was no memory for any; -1: there is.
static int g_graphsRefused = -1;

extern "C"
{
    cudaError_t __real_cudaMalloc(void** pointer, size_t size);
    cudaError_t __real_cudaHostAlloc(void** pointer, size_t size, unsigned int flags);
    cudaError_t __real_cudaGraphInstantiate(cudaGraphExec_t* run,
                                            cudaGraph_t graph,
                                            unsigned long long flags);

    cudaError_t __wrap_cudaMalloc(void** pointer, size_t size)
    {
        const bool fails = farfield::test::isArmed() && farfield::test::isTurnToFail();
        return fails ? cudaErrorMemoryAllocation : __real_cudaMalloc(pointer, size);
    }
    cudaError_t __wrap_cudaHostAlloc(void** pointer, size_t size, unsigned int flags)
    {
        const bool fails = farfield::test::isArmed() && farfield::test::isTurnToFail();
        return fails ? cudaErrorMemoryAllocation : __real_cudaHostAlloc(pointer, size, flags);
    }
    cudaError_t __wrap_cudaGraphInstantiate(cudaGraphExec_t* run,
                                            cudaGraph_t graph,
                                            unsigned long long flags)
    {
        if (g_graphsRefused >= 0)
        {
            g_graphsRefused++;
            return cudaErrorMemoryAllocation;
        }
        return __real_cudaGraphInstantiate(run, graph, flags);
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

//! Which arrays an evaluation of ranks has, and how its messages pass.
enum class RankKind
{
    HostArrays,             //!< through the hosts
    DeviceArrays,           //!< likewise
    HostArraysOwnMessages,  //!< by a DeviceCommunicator
    DeviceArraysOwnMessages //!< likewise
};

//! Of two ranks that share a GPU, and have half of the particles each.
class HalfOnDevice
{
public:
    HalfOnDevice(RankKind kind, Communicator* communicator) :
        onDevice_(kind == RankKind::DeviceArrays || kind == RankKind::DeviceArraysOwnMessages),
        system_(60), messages_(communicator),
        solver_(options(),
                communicator,
                kind == RankKind::HostArrays || kind == RankKind::DeviceArrays ? nullptr
                                                                               : &messages_),
        deviceX_(90), deviceForces_(90)
    {
        for (int i = communicator->rank(); i < system_.n; i += 2)
        {
            index_.push_back(i);
            x_.insert(x_.end(), system_.x.begin() + 3 * i, system_.x.begin() + 3 * i + 3);
        }
        deviceX_.put(x_);
        solver_.setSystem(
                { system_.n, system_.q.data(), system_.offsets.data(), system_.partners.data() });
        tellLocal();
        solver_.prepare(x_.data(), box_.data());
    }
    void tellLocal() { solver_.setLocal(index_.data(), static_cast<int>(index_.size())); }
    //! Writes over forces.
    void evaluate()
    {
        Request request;
        request.replaceForces = true;
        if (!onDevice_)
        {
            solver_.evaluate(x_.data(), box_.data(), forces.data(), request);
            return;
        }
        enqueue(solver_,
                deviceX_.data(),
                box_.data(),
                deviceForces_.data(),
                request,
                clock_.stream());
    }
    void synchronize()
    {
        if (onDevice_)
        {
            checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
            wait(solver_);
        }
    }
    //! Brings them to the host, if they are not there.
    void fetch()
    {
        synchronize();
        if (onDevice_)
        {
            forces = deviceForces_.get();
        }
    }
    //! So that the next evaluation is not the first one.
    void evaluateOnce()
    {
        evaluate();
        fetch();
        forces.assign(90, 42);
    }
    //! From here on the box is another one, of the same cells, for which operators are built anew.
    void shear() { box_.rows[1][0] = 0.05; }
    //! The same, to which operators are adapted.
    void stretch() { box_.rows[0][0] = 2.001; }
    std::vector<float> forces = std::vector<float>(90, 42);

private:
    static Options options()
    {
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
        return options;
    }
    struct Rows
    {
        double rows[3][3];
        const double (*data() const)[3] { return rows; }
    };

    bool onDevice_;
    Case<float> system_;
    ThroughHosts messages_;
    DistributedSolver<float> solver_;
    std::vector<int> index_;
    std::vector<float> x_;
    Rows box_ = { { { 2, 0, 0 }, { 0, 2.1, 0 }, { 0, 0, 2.2 } } };
    DeviceArray<float> deviceX_, deviceForces_;
    const Clock clock_;
};

class OutOfDeviceMemoryOfOneRank : public ::testing::TestWithParam<RankKind>
{
protected:
    void SetUp() override
    {
        if (const std::string why = whyUnavailable(Device::Gpu); !why.empty())
        {
            GTEST_SKIP() << why;
        }
    }
};

/*! \brief One of two ranks lacks memory for its k-th allocation in an evaluation: both throw, or neither does,
 *         and forces are untouched then; and both go on.
 *  \param[in] begin  what comes before the evaluation
 *  \returns how often a rank threw */
int expectErrorsOfBoth(RankKind kind, const std::function<void(HalfOnDevice*)>& begin)
{
    constexpr int c_poor = 1;
    std::atomic<int> failures{ 0 };
    std::atomic<bool> isOver{ false };
    for (long long k = 0; !isOver; k++)
    {
        SCOPED_TRACE("allocation " + std::to_string(k));
        std::array<std::atomic<bool>, 2> failed{};
        const auto run = [&](Communicator& communicator)
        {
            const int me = communicator.rank();
            HalfOnDevice half(kind, &communicator);
            begin(&half);
            isTrueOnAll(&communicator, true);
            bool hasFailed = false, isHeardByHost = true;
            if (me == c_poor)
            {
                isOver = !withFailure(k, Mode::Once, &hasFailed, [&] { half.evaluate(); });
            }
            else
            {
                t_isSpared = true; // and stays so, as the other may still be at work
                try
                {
                    half.evaluate();
                    half.synchronize();
                }
                catch (const Error& error)
                {
                    hasFailed     = true;
                    isHeardByHost = error.code() != ErrorCode::DeviceFailure;
                    EXPECT_TRUE(!isHeardByHost || error.code() == ErrorCode::OutOfMemory)
                            << error.what();
                }
            }
            if (!isTrueOnAll(&communicator, isHeardByHost))
            {
                EXPECT_EQ(kind, RankKind::DeviceArraysOwnMessages);
                half.tellLocal();
            }
            failed[me] = hasFailed;
            failures += hasFailed ? 1 : 0;
            if (hasFailed)
            {
                EXPECT_EQ(half.forces, std::vector<float>(90, 42));
                half.evaluate();
            }
            half.fetch();
            HalfOnDevice fresh(kind, &communicator);
            begin(&fresh);
            fresh.evaluate();
            fresh.fetch();
            EXPECT_EQ(half.forces, fresh.forces);
        };
        EXPECT_NO_THROW(onRanks(2, run));
        EXPECT_EQ(failed[0], failed[1]);
        isOver = isOver || ::testing::Test::HasFailure();
    }
    return failures;
}

//! In the first evaluation of a plan.
TEST_P(OutOfDeviceMemoryOfOneRank, IsAnErrorOfBoth)
{
    // A plan makes all room in the memory of the device. Evaluations on host arrays copy positions to
    // room of their own. On device arrays only page-locked room for messages is new.
    const int failures = expectErrorsOfBoth(GetParam(), [](HalfOnDevice* /*half*/) {});
    EXPECT_TRUE(failures > 0 || GetParam() == RankKind::DeviceArraysOwnMessages);
}

//! In a later one, in which hosts do not meet where arrays and messages are those of devices.
TEST_P(OutOfDeviceMemoryOfOneRank, ForOperatorsOfAnotherBoxIsAnErrorOfBoth)
{
    EXPECT_GT(expectErrorsOfBoth(GetParam(),
                                 [](HalfOnDevice* half)
                                 {
                                     half->evaluateOnce();
                                     half->shear();
                                 }),
              0);
}

//! Nothing is built there, and hosts do not meet: the other rank hears of it from its GPU.
TEST_P(OutOfDeviceMemoryOfOneRank, ForABoxThatChangesABitReachesBoth)
{
    EXPECT_GT(expectErrorsOfBoth(GetParam(),
                                 [](HalfOnDevice* half)
                                 {
                                     half->evaluateOnce();
                                     half->stretch();
                                 }),
              0);
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         OutOfDeviceMemoryOfOneRank,
                         ::testing::Values(RankKind::HostArrays,
                                           RankKind::DeviceArrays,
                                           RankKind::HostArraysOwnMessages,
                                           RankKind::DeviceArraysOwnMessages));

//! Evaluations that would be one go kernel by kernel, with the same results: nobody misses it.
TEST(OutOfDeviceMemoryOfGraphs, IsNoError)
{
    if (const std::string why = whyUnavailable(Device::Gpu); !why.empty())
    {
        GTEST_SKIP() << why;
    }
    Options options      = GpuFloat::options();
    options.reproducible = true;
    const System system  = rounded<float>(pseudoWater(namedBox("cube", 4.0), 47));
    const auto forces    = [&](bool isRefused)
    {
        Caller<float> caller(system, options);
        caller.prepare(system);
        g_graphsRefused = isRefused ? 0 : -1;
        for (int step = 1; step < 5; step++)
        {
            caller.enqueue(forcesAt(step));
        }
        const std::vector<Vector> result = caller.forces();
        EXPECT_TRUE(!isRefused || g_graphsRefused > 0) << "no graph was to be made";
        g_graphsRefused = -1;
        return result;
    };
    EXPECT_LT(relativeError(forces(true), forces(false)), 1e-6);
}

using OnDevice = ::testing::Types<FloatFft, FloatHierarchy, DoubleGemm, HelpedFloatFft>;
INSTANTIATE_TYPED_TEST_SUITE_P(Device, OutOfMemory, OnDevice);

} // namespace
} // namespace test
} // namespace farfield
