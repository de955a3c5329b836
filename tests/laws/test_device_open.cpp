/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boundary::Open with arrays in device memory: sums over all pairs, wherever particles go.
 */
#include <limits>

#include "device_caller.h"
#include "open_systems.h"
#include "two_states.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_accuracy = 3e-4;

template<class Config>
class DeviceOpen : public ConfiguredTest<Config>
{
protected:
    static Options options(M2lEngine engine)
    {
        Options options  = Config::options();
        options.boundary = Boundary::Open;
        options.m2l      = engine;
        options.accuracy = c_accuracy;
        return options;
    }
};
TYPED_TEST_SUITE(DeviceOpen, GpuConfigurations);

Request withTotals(long long step)
{
    Request request = forcesAt(step);
    request.energy  = true;
    request.virial  = true;
    return request;
}

//! At every step, with and without energies: spreading, falling together, going away, a jump.
TYPED_TEST(DeviceOpen, FollowsTheParticles)
{
    using Real         = typename TypeParam::Real;
    const System block = molecules("block", { 0, 0, 0 }, { 10, 9, 9 }, 0.01);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Caller<Real> caller(rounded<Real>(block), TestFixture::options(engine));
        long long step = 0;
        for (const double scale : { 1.0, 1.01, 1.02, 1.2, 1.21, 3.0, 12.0, 12.01, 1.0 })
        {
            const double way       = 5.0 * static_cast<double>(step);
            const System system    = rounded<Real>(spread(block, scale, { way, -way, 0 }));
            const Evaluation exact = allPairs(system);
            caller.put(system);
            for (const bool totalsToo : { false, true })
            {
                Request request       = totalsToo ? withTotals(step) : forcesAt(step);
                request.mayHaveJumped = true;
                caller.enqueue(request);
                const Totals totals = caller.wait();
                SCOPED_TRACE(describe(system, caller.setup()) + ", times " + std::to_string(scale));
                EXPECT_LE(relativeError(caller.forces(), exact.forces), c_accuracy);
                if (totalsToo)
                {
                    const double tolerance = c_deviations * energyError(exact.forces, c_accuracy);
                    EXPECT_NEAR(totals.energy, exact.energy, tolerance);
                    const Matrix virial = evaluationOf(totals, std::vector<Real>()).virial;
                    // about a particle, so the levers of errors are those of the system
                    EXPECT_LE(largestDifference(virial, exact.virial),
                              std::max(1.0, scale) * 10 * tolerance);
                }
                ++step;
            }
        }
    }
}

//! Steps that follow one another, forces alone: evaluations that the solver may launch as graphs.
TYPED_TEST(DeviceOpen, RepeatsEvaluations)
{
    using Real         = typename TypeParam::Real;
    const System block = molecules("block", { 0, 0, 0 }, { 10, 9, 9 });
    Caller<Real> caller(rounded<Real>(block), TestFixture::options(M2lEngine::Hierarchy));
    for (int step = 0; step < 12; ++step)
    {
        const System system = rounded<Real>(spread(block, 1 + 0.002 * step, { 0.1 * step, 0, 0 }));
        caller.put(system);
        caller.enqueue(forcesAt(step));
        EXPECT_LE(relativeError(caller.forces(), allPairs(system).forces), c_accuracy) << step;
    }
    caller.wait();
}

TYPED_TEST(DeviceOpen, HasChargesOfTwoStates)
{
    using Real             = typename TypeParam::Real;
    const TwoStates states = discharged<Real>(molecules("block", { 0, 0, 0 }, { 8, 8, 8 }), 9);
    Caller<Real> caller(states.a, TestFixture::options(M2lEngine::Auto));
    load(caller.solver(), states);
    Request request        = withTotals(3);
    request.lambda         = 0.3;
    request.dEnergyDLambda = true;
    caller.enqueue(request);
    const Totals totals = caller.wait();
    const Evaluation a = allPairs(states.a), b = allPairs(states.b), exact = mixed(a, b, 0.3);
    EXPECT_LE(relativeError(caller.forces(), exact.forces), c_accuracy);
    const double tolerance = c_deviations * energyError(exact.forces, c_accuracy);
    EXPECT_NEAR(totals.energy, exact.energy, tolerance);
    EXPECT_NEAR(totals.dEnergyDLambda, b.energy - a.energy, tolerance);
    const Matrix virial = evaluationOf(totals, std::vector<Real>()).virial;
    EXPECT_LE(largestDifference(virial, exact.virial), 10 * tolerance);
}

TYPED_TEST(DeviceOpen, HasClearErrors)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(molecules("a few", { 0, 0, 0 }, { 6, 5, 5 }));
    Caller<Real> caller(system, TestFixture::options(M2lEngine::Auto));
    const Evaluation exact = allPairs(system);
    Request added          = withTotals(0);
    added.replaceForces    = false;
    expectError(ErrorCode::Unsupported,
                { "'open'", "virial", "replaceForces" },
                [&] { caller.enqueue(added); });
    caller.prepare(system);
    expectError(
            ErrorCode::Unsupported, { "open", "CUDA graphs" }, [&] { caller.record(forcesAt(0)); });
    System broken = system;
    for (const double value :
         { std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity() })
    {
        broken.positions[17][1] = value;
        caller.put(broken);
        expectError(ErrorCode::InvalidArgument,
                    { "particle 17", "not finite" },
                    [&] { caller.enqueue(forcesAt(0)); });
    }
    broken.positions[17][1] = 1e9;
    caller.put(broken);
    expectError(ErrorCode::InvalidArgument,
                { "nm apart", "flown away" },
                [&] { caller.enqueue(forcesAt(0)); });
    caller.put(system);
    caller.enqueue(forcesAt(0));
    EXPECT_LE(relativeError(caller.forces(), exact.forces), c_accuracy);
    caller.wait();
}

} // namespace
} // namespace test
} // namespace farfield
