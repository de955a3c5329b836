/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boundary::Slab with arrays in device memory: sums over the plane, wherever films go.
 */
#include <cmath>

#include <algorithm>
#include <string>
#include <vector>

#include "device_caller.h"
#include "open_systems.h"
#include "slab_sum.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_accuracy = 3e-4;

template<class Config>
class DeviceSlab : public ConfiguredTest<Config>
{
protected:
    static Options options(M2lEngine engine)
    {
        Options options  = Config::options();
        options.boundary = Boundary::Slab;
        options.m2l      = engine;
        options.accuracy = c_accuracy;
        return options;
    }
};
TYPED_TEST_SUITE(DeviceSlab, GpuConfigurations);

//! A film whose box is wider, and which is thicker, higher up and elsewhere in the plane.
System moved(const System& film, double ofPlane, double ofHeight, double shift)
{
    System result = film;
    for (int k = 0; k < 2; ++k)
    {
        for (int row = 0; row < 2; ++row)
        {
            result.box[row][k] *= ofPlane;
        }
        for (Vector& r : result.positions)
        {
            r[k] = ofPlane * r[k] - shift;
        }
    }
    for (Vector& r : result.positions)
    {
        r[2] = ofHeight * r[2] + shift;
    }
    return result;
}

//! At every step, with and without totals: evaporating, falling back, going away, a box that changes.
TYPED_TEST(DeviceSlab, FollowsTheParticlesAndTheBox)
{
    using Real        = typename TypeParam::Real;
    const System rest = film("film", { 8, 7, 4 }, 0.2, 0.002);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        const System start = rounded<Real>(rest);
        Caller<Real> caller(start, TestFixture::options(engine));
        Options precise  = CpuDouble::options();
        precise.boundary = Boundary::Slab;
        precise.accuracy = 1e-6;
        Solver<double> reference(precise);
        load(reference, start);
        const struct
        {
            double ofPlane, ofHeight, shift;
        } motions[]    = { { 1, 1, 0 },       { 1, 1.01, 0.1 },   { 1.001, 1.02, 7 },
                           { 1.02, 1.3, -9 }, { 1.02, 8, 0.3 },   { 1.3, 8.01, 300 },
                           { 0.98, 1, 3 },    { 0.98, 1.001, 3 }, { 0.981, 1, 3 } };
        long long step = 0;
        for (const auto& motion : motions)
        {
            const System system =
                    rounded<Real>(moved(rest, motion.ofPlane, motion.ofHeight, motion.shift));
            const Evaluation sum    = slabSum(system, 2);
            const Evaluation onHost = evaluate(reference, system);
            caller.put(system);
            SCOPED_TRACE(describe(system, caller.setup()) + ", height times "
                         + std::to_string(motion.ofHeight));
            for (const bool totalsToo : { false, true })
            {
                Request request       = forcesAt(step);
                request.energy        = totalsToo;
                request.virial        = totalsToo;
                request.mayHaveJumped = true;
                caller.enqueue(request);
                const Totals totals = caller.wait();
                EXPECT_LE(relativeError(caller.forces(), sum.forces), c_accuracy);
                if (totalsToo)
                {
                    const double tolerance = c_deviations * energyError(sum.forces, c_accuracy);
                    EXPECT_NEAR(totals.energy, sum.energy, tolerance);
                    const Matrix virial = evaluationOf(totals, std::vector<Real>()).virial;
                    EXPECT_LE(largestDifference(virial, onHost.virial),
                              std::max(1.0, motion.ofHeight) * tolerance);
                }
                ++step;
            }
        }
    }
}

//! Cells are not for empty layers; a charge that the film excludes flies away, too.
TYPED_TEST(DeviceSlab, HasNoCellsForEmptyLayers)
{
    using Real  = typename TypeParam::Real;
    System rest = film("film", { 5, 5, 3 }, 0.2, 0.02);
    rest.exclusions.emplace_back(4, rest.size() - 1);
    Caller<Real> caller(rounded<Real>(rest), TestFixture::options(M2lEngine::Auto));
    long long step = 0;
    for (const double height : { 30.0, 12000.0, 12500.0, -70.0, 20.0 })
    {
        System exact = rest;
        exact.positions.back()[2] += height;
        const System system  = rounded<Real>(exact);
        const Evaluation sum = slabSum(system, 2);
        caller.put(system);
        SCOPED_TRACE(describe(system, caller.setup()) + ", height " + std::to_string(height));
        for (const bool totalsToo : { false, true })
        {
            Request request       = forcesAt(step++);
            request.energy        = totalsToo;
            request.virial        = totalsToo;
            request.mayHaveJumped = true;
            caller.enqueue(request);
            const Totals totals = caller.wait();
            EXPECT_LE(caller.setup().leafCells, 4 * system.size());
            EXPECT_LE(relativeError(caller.forces(), sum.forces), c_accuracy);
            if (totalsToo)
            {
                EXPECT_NEAR(totals.energy,
                            sum.energy,
                            c_deviations * energyError(sum.forces, c_accuracy)
                                    + roundingFloor<Real>() * std::abs(sum.energy));
            }
        }
    }
}

//! Steps that follow one another, forces alone: evaluations that the solver may launch as graphs.
TYPED_TEST(DeviceSlab, RepeatsEvaluations)
{
    using Real        = typename TypeParam::Real;
    const System rest = film("film", { 8, 8, 3 });
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Caller<Real> caller(rounded<Real>(rest), TestFixture::options(engine));
        for (int step = 0; step < 12; ++step)
        {
            const System system = rounded<Real>(moved(rest, 1, 1 + 0.002 * step, 0.1 * step));
            caller.put(system);
            caller.enqueue(forcesAt(step));
            EXPECT_LE(relativeError(caller.forces(), slabSum(system, 2).forces), c_accuracy)
                    << step;
        }
        caller.wait();
    }
}

TYPED_TEST(DeviceSlab, IsNotRecorded)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(film("film", { 5, 5, 2 }));
    Caller<Real> caller(system, TestFixture::options(M2lEngine::Auto));
    caller.prepare(system);
    expectError(ErrorCode::Unsupported,
                { "'slab'", "CUDA graphs" },
                [&] { caller.record(forcesAt(0)); });
    caller.enqueue(forcesAt(0));
    EXPECT_LE(relativeError(caller.forces(), slabSum(system, 2).forces), c_accuracy);
    caller.wait();
}

} // namespace
} // namespace test
} // namespace farfield
