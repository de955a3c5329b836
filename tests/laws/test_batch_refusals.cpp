/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What batches refuse, and the options that they share with a solver.
 */
#include <array>
#include <limits>

#include "batch_call.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class BatchRefusals : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(BatchRefusals, Configurations);

TYPED_TEST(BatchRefusals, NameWhatHasNoAnswer)
{
    using Real        = typename TypeParam::Real;
    const auto refuse = [](const std::vector<std::string>& words, const auto& change)
    {
        Call<Real> call({ ofShape(c_cube, 5, 1), ofShape(c_cube, 6, 2) });
        change(call);
        Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
        std::vector<Real> forces(call.x.size(), Real(7));
        const BatchInput<Real> input = {
            call.x.data(), call.q.data(), call.offsets.data(), call.boxes.data(), 2
        };
        expectError(ErrorCode::InvalidArgument,
                    words,
                    [&] {
                        batch.evaluate(input, { nullptr, forces.data(), nullptr, nullptr });
                    });
        EXPECT_EQ(forces, std::vector<Real>(call.x.size(), Real(7)));
    };
    const Real nan = std::numeric_limits<Real>::quiet_NaN();
    refuse({ "System 1", "position", "particle 2" }, [&](auto& call) { call.x[3 * 7 + 1] = nan; });
    refuse({ "System 1", "particle 0", "far away" },
           [&](auto& call) { call.x[3 * 5] = static_cast<Real>(1e20); });
    refuse({ "System 0", "charge", "particle 4" }, [&](auto& call) { call.q[4] = nan; });
    refuse({ "System 1", "box vectors", "volume" },
           [](auto& call) { std::fill_n(call.boxes.begin() + 12, 6, 1.0); });
    refuse({ "System 0", "ascend" }, [](auto& call) { call.offsets[1] = -1; });
    refuse({ "System 1", "particles 1 and 3", "one place" },
           [](auto& call)
           {
               // the next image, whose rounding may differ
               for (int k = 0; k < 3; ++k)
               {
                   call.x[3 * 8 + k] =
                           call.x[3 * 6 + k] + static_cast<Real>(k == 0 ? call.boxes[9] : 0);
               }
           });
}

TYPED_TEST(BatchRefusals, SayWhatToDoAboutBoxesWithTooManyImagesOrWaves)
{
    using Real        = typename TypeParam::Real;
    const auto refuse = [](const char* word, double waveCutoff, const std::array<double, 3>& edges)
    {
        Call<Real> call({ ofShape(c_cube, 5, 1), ofShape(c_cube, 6, 2) });
        for (int k = 0; k < 9; ++k)
        {
            call.boxes[9 + k] = k % 4 == 0 ? edges[k / 4] : 0;
        }
        BatchOptions options = withAccuracy<TypeParam>(1e-4);
        options.smearing     = waveCutoff > 0 ? 0.01 : 0;
        options.waveCutoff   = waveCutoff;
        expectError(ErrorCode::InvalidArgument,
                    { "System 1 needs", word, "Check its box vectors", "use a Solver" },
                    [&]
                    {
                        try
                        {
                            call.by(options);
                        }
                        catch (const Error& error)
                        {
                            EXPECT_STREQ(error.parameter(), "boxes");
                            throw;
                        }
                    });
    };
    refuse("images of its particles", 0, { 1e-5, 1e-5, 1e6 });
    refuse("waves", 1000, { 10, 10, 10 });
}

#ifndef FARFIELD_TESTS_WITH_CUDA
TEST(BatchOptions, HaveNoGpuWithoutCuda)
{
    BatchOptions options;
    options.device = Device::Gpu;
    expectError(ErrorCode::NotCompiled,
                { "'gpu'", "CUDA" },
                [&] { const Batch<float> batch(options); });
    options.device = Device::Auto;
    EXPECT_EQ(Batch<float>(options).setup().device, Device::Cpu);
}
#endif

//! Members that both have have the same defaults, and those of a Solver are taken over.
TEST(BatchOptions, AreThoseOfASolverWhereBothHaveThem)
{
    const auto expectEqual = [](const auto& a, const auto& b) { EXPECT_EQ(a, b); };
    Options solver;
    BatchOptions batch;
    detail::forSharedOptions(solver, batch, expectEqual);
    solver.coulombConstant = 1;
    solver.accuracy        = 1e-6;
    solver.boundary        = Boundary::Open;
    solver.device          = Device::Cpu;
    solver.deviceId        = 3;
    solver.threads         = 2;
    batch                  = batchOptions(solver);
    detail::forSharedOptions(solver, batch, expectEqual);
    EXPECT_EQ(batch.channels, BatchOptions().channels);
}

TEST(BatchOptions, AreCheckedByName)
{
    const auto refuse = [](ErrorCode code, const char* word, const auto& change)
    {
        BatchOptions options;
        options.device = Device::Cpu;
        change(options);
        expectError(code, { word }, [&] { const Batch<float> batch(options); });
    };
    refuse(ErrorCode::InvalidArgument, "deviceId", [](auto& o) { o.deviceId = -2; });
    refuse(ErrorCode::Unsupported,
           "periodic",
           [](auto& o)
           {
               o.boundary = Boundary::Slab;
               o.smearing = 0.1;
           });
    refuse(ErrorCode::InvalidArgument, "accuracy", [](auto& o) { o.accuracy = 1e-7; });
    refuse(ErrorCode::InvalidArgument, "channels", [](auto& o) { o.channels = 0; });
    refuse(ErrorCode::InvalidArgument, "smearing", [](auto& o) { o.smearing = -1; });
    refuse(ErrorCode::InvalidArgument, "waveCutoff", [](auto& o) { o.waveCutoff = 30; });
    refuse(ErrorCode::InvalidArgument, "threads", [](auto& o) { o.threads = -1; });
    refuse(ErrorCode::Unsupported,
           "Gaussian",
           [](auto& o)
           {
               o.smearing = 0.1;
               o.boundary = Boundary::Open;
           });
}

} // namespace
} // namespace test
} // namespace farfield
