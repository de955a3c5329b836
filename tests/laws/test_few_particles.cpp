/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What is promised where few particles, or a single pair, decide on the error.
 */
#include <algorithm>
#include <limits>

#include "accuracy_case.h"
#include "system_building.h"

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class FewParticles : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(FewParticles, Configurations);

System cubeOf(double edge, const std::vector<Vector>& positions, const std::vector<double>& charges)
{
    System system;
    system.name = "few particles";
    for (int k = 0; k < 3; ++k)
    {
        system.box[k][k] = edge;
    }
    system.positions = positions;
    system.charges   = charges;
    return system;
}

//! RMS force error at one position of the grid, relative to what the accuracy is.
template<class Real>
double errorAt(Solver<Real>& solver,
               const System& system,
               const Evaluation& reference,
               const std::array<double, 3>& offset)
{
    Request request;
    request.energy = request.virial = false;
    request.gridOffset              = offset;
    const std::vector<Real> x       = flatPositions<Real>(system);
    std::vector<Real> forces(x.size());
    solver.evaluate(x.data(), Box(system.box).rows, forces.data(), request);
    return std::sqrt(meanSquareError(forces, reference.forces))
           / forceScale(system, reference.forces);
}

//! Rounding of their positions is all that two charges in contact may have of error: elsewhere the
//! accuracy is met, however little of the force comes from the far field at these positions.
TYPED_TEST(FewParticles, InContactHaveTheErrorOfRoundingAlone)
{
    using Real         = typename TypeParam::Real;
    const float beside = 0.9561325F;
    const System pair =
            cubeOf(3,
                   { { 0.9809169F, 2.9618306F, beside }, { 0.981161F, 2.9618306F, beside } },
                   { -1, 1 });
    Options options  = TypeParam::options();
    options.accuracy = 1e-4;
    Solver<Real> solver(options);
    load(solver, pair);
    evaluate(solver, pair);
    // four times the spacing of positions over the distance
    const double rounding = 4 * std::numeric_limits<float>::epsilon() * 0.5 / 2.44e-4;
    EXPECT_LE(solver.setup().largestError, std::max(rounding, options.accuracy));
}

//! Forces between neutral molecules far apart are so weak that rounding is all that is measured: it
//! says nothing of how far the box may be strained before operators are built anew.
TYPED_TEST(FewParticles, FollowTheBoxAsOthers)
{
    using Real          = typename TypeParam::Real;
    Options options     = TypeParam::options();
    options.order       = 12;
    options.directRange = 1;
    options.cellSize    = 30; // two cells, whose shape does not suit the other box
    options.threads     = 1;
    options.m2l         = M2lEngine::Fft;
    Matrix stretch      = unitMatrix();
    stretch[0][0]       = 0.78;
    stretch[1][1]       = 0.81;
    stretch[2][2]       = 1.25;
    for (unsigned seed = 1; seed <= 6; ++seed)
    {
        std::mt19937 random(seed);
        System waters = emptySystem(boxOf(39, 51, 31));
        scatter(&waters, threeSiteWater(), 8, 0.3, random);
        const System before = rounded<Real>(waters);
        const System after  = rounded<Real>(deformed(before, stretch));
        Solver<Real> solver(options), fresh(options);
        load(solver, before);
        evaluate(solver, before);
        load(fresh, after);
        const Evaluation reference = ewald(after);
        double worst = 0, worstAnew = 0;
        for (int k = 0; k < 100; ++k)
        {
            const auto offset = gridPosition(k);
            worst             = std::max(worst, errorAt(solver, after, reference, offset));
            worstAnew         = std::max(worstAnew, errorAt(fresh, after, reference, offset));
        }
        EXPECT_LE(worst, 3 * worstAnew) << "seed " << seed;
    }
}

//! A mean over positions of the grid, the same at others: also where all of them have an error in
//! common, and where rare ones have most of it.
TYPED_TEST(FewParticles, HaveTheErrorThatIsSaid)
{
    using Real          = typename TypeParam::Real;
    constexpr int c_all = 1200; // positions
    for (const char* name : { "ion pair in 30 nm",
                              "two waters in 20 nm",
                              "one water in 10 nm",
                              "far ion pair in 20 nm",
                              "three charges in 2 nm" })
    {
        for (const SystemKind& kind : systemKinds())
        {
            if (kind.name != name)
            {
                continue;
            }
            const ReferenceSystem reference = withReference<Real>(kind.make());
            for (const double accuracy : { 1e-2, 3e-4 })
            {
                SCOPED_TRACE(kind.name + ", " + std::to_string(accuracy));
                Options options  = TypeParam::options();
                options.accuracy = accuracy;
                options.threads  = 1;
                const Accuracy a = measureAccuracy<Real>(reference, options, c_all);
                ASSERT_EQ(a.refusal, "");
                EXPECT_LE(a.setup.estimatedError, 2 * a.measured);
                EXPECT_GE(a.setup.estimatedError, a.measured / 2);
            }
        }
    }
}

/*! The two ions of rock salt, whose forces cancel: at few positions of the grid the error is many
 *  times that of most. None of this is rounding, so what is not met there is refused. */
TYPED_TEST(FewParticles, OfACrystalGetWhatTheyAskForOrARefusal)
{
    using Real         = typename TypeParam::Real;
    const double edge  = 0.564 / std::sqrt(2.0); // of the primitive cell
    const Vector other = { edge, edge / std::sqrt(3.0), edge / std::sqrt(6.0) };
    System crystal     = cubeOf(edge, { { 0, 0, 0 }, other }, { 1, -1 });
    crystal.box[1]     = { edge / 2, edge * std::sqrt(0.75), 0 };
    crystal.box[2]     = { edge / 2, edge / std::sqrt(12.0), edge * std::sqrt(2.0 / 3) };
    const System salt  = rounded<Real>(crystal);
    Options options    = TypeParam::options();
    options.accuracy   = sizeof(Real) == 4 ? 2e-6 : 1e-8;
    options.threads    = 1;
    Solver<Real> solver(options);
    load(solver, salt);
    try
    {
        evaluate(solver, salt);
        EXPECT_FALSE(solver.setup().isBestEffort);
        EXPECT_LE(solver.setup().estimatedError, solver.setup().largestError);
        EXPECT_LE(solver.setup().largestError, options.accuracy);
    }
    catch (const Error& error)
    {
        EXPECT_EQ(error.parameter(), std::string("accuracy")) << error.what();
    }
}

/*! One pair has nearly all of the force, and its distance is rounded where it lies in two cells:
 *  at one position of the grid of thousands. */
TYPED_TEST(FewParticles, KeepTheAccuracyWhereACellFacePartsThem)
{
    using Real = typename TypeParam::Real;
    std::mt19937 engine(8);
    std::uniform_real_distribution<double> uniform(0, 14);
    System system = cubeOf(14, {}, {});
    for (int i = 0; i < 500; ++i)
    {
        system.positions.push_back({ uniform(engine), uniform(engine), uniform(engine) });
        system.charges.push_back(i % 2 == 0 ? 1 : -1);
    }
    // not among the first, and not in the corner of a cell by chance
    const int last             = system.size() - 1;
    const Vector one           = { 14 * 0.3123, 14 * 0.3812, 14 * 0.1456 };
    system.positions[last]     = one;
    system.positions[last - 1] = { one[0] + 0.00756, one[1] + 0.00636, one[2] - 0.00684 };
    system                     = rounded<Real>(system);
    Options options            = TypeParam::options();
    options.accuracy           = 1e-5;
    options.directRange        = 1;
    options.threads            = 1;
    Solver<Real> solver(options);
    load(solver, system);
    try
    {
        solver.prepare(flatPositions<Real>(system).data(), Box(system.box).rows);
    }
    catch (const Error& error)
    {
        EXPECT_STREQ(error.parameter(), "accuracy") << error.what();
        return;
    }
    const Evaluation reference = fastEwald(system);
    const auto& cells          = solver.setup().cells;
    for (const double part : { 0.1, 0.35, 0.5, 0.6, 0.8 })
    {
        std::array<double, 3> offset;
        for (int k = 0; k < 3; ++k)
        {
            const double x =
                    system.positions[last][k] * (1 - part) + system.positions[last - 1][k] * part;
            const double cell = x * cells[k][k] / system.box[k][k];
            offset[k]         = cell - std::floor(cell);
        }
        EXPECT_LE(errorAt(solver, system, reference, offset), options.accuracy)
                << part << ": " << describe(system, solver.setup());
    }
}

/*! A few hundred ions so far apart that a pair is just beyond the near cells where the ends of
 *  its cells that face each other lie at the ions: at one position of the grid of hundreds, here
 *  the 356th. */
TYPED_TEST(FewParticles, KeepTheAccuracyWhereAPairIsJustFar)
{
    using Real          = typename TypeParam::Real;
    std::seed_seq seeds = { 940086, 2 }; // of the fuzzer, which met it
    std::mt19937 random(seeds);
    const System system        = rounded<Real>(randomSystem(random, 3000));
    const Evaluation reference = fastEwald(system);
    Options options            = TypeParam::options();
    options.accuracy           = 2.09794e-5;
    options.threads            = 1;
    Solver<Real> solver(options);
    load(solver, system);
    solver.prepare(flatPositions<Real>(system).data(), Box(system.box).rows);
    for (int k = 350; k < 360; ++k)
    {
        ASSERT_LE(errorAt(solver, system, reference, gridPosition(k)), options.accuracy)
                << k << ": " << describe(system, solver.setup());
    }
}

/*! Ions in contact have large forces, and no part of them is that of expansions: what is chosen then
 *  has to do once they have parted, when nothing else is left. */
TYPED_TEST(FewParticles, KeepTheAccuracyWhenTheyPart)
{
    using Real = typename TypeParam::Real;
    for (const double edge : { 5.0, 30.0 })
    {
        for (const double accuracy : { 1e-3, 3e-5 })
        {
            Options options  = TypeParam::options();
            options.accuracy = accuracy;
            options.threads  = 1;
            Solver<Real> solver(options);
            for (const double distance : { 0.3, 0.06 * edge, 0.2 * edge, 0.35 * edge, 0.49 * edge })
            {
                const Vector one           = { 0.41 * edge, 0.32 * edge, 0.87 * edge };
                const Vector other         = { one[0] + 0.8 * distance,
                                               one[1] - 0.36 * distance,
                                               one[2] + 0.48 * distance };
                const System pair          = rounded<Real>(cubeOf(edge, { one, other }, { 1, -1 }));
                const Evaluation reference = ewald(pair);
                if (distance == 0.3)
                {
                    load(solver, pair);
                }
                double worst = 0;
                for (int k = 0; k < 60; ++k)
                {
                    worst = std::max(worst, errorAt(solver, pair, reference, gridPosition(k)));
                }
                EXPECT_LE(worst, accuracy) << distance << " nm: " << describe(pair, solver.setup());
            }
        }
    }
}

//! Of a few ions two are in contact: errors are relative to what is there once they have parted, and
//! so is the estimate.
TYPED_TEST(FewParticles, KnowTheErrorWhenTwoOfThemPart)
{
    using Real = typename TypeParam::Real;
    std::mt19937 random(16);
    std::uniform_real_distribution<double> place(0, 20);
    std::vector<Vector> x;
    std::vector<double> q;
    for (int i = 0; i < 16; ++i)
    {
        x.push_back({ place(random), place(random), place(random) });
        q.push_back(i % 2 == 0 ? 1 : -1);
    }
    const System apart         = rounded<Real>(cubeOf(20, x, q));
    const Evaluation reference = ewald(apart);
    x[1]                       = { x[0][0] + 1e-3, x[0][1], x[0][2] };
    const System start         = rounded<Real>(cubeOf(20, x, q));
    for (const int order : { -1, 0, 4 })
    {
        Options options = TypeParam::options();
        options.order   = order;
        options.threads = 1;
        Solver<Real> solver(options);
        load(solver, start);
        evaluate(solver, start);
        double worst = 0;
        for (int k = 0; k < 20; ++k)
        {
            worst = std::max(worst, errorAt(solver, apart, reference, gridPosition(k)));
        }
        EXPECT_LE(worst, order < 0 ? options.accuracy : 10 * solver.setup().estimatedError)
                << describe(apart, solver.setup());
    }
}

/*! Two ions that attract each other by millions of kJ/mol/nm, and next to nothing is left once the
 *  pair is excluded: the first choice of cells cannot know. */
TYPED_TEST(FewParticles, KeepTheAccuracyOncePairsAreExcluded)
{
    using Real = typename TypeParam::Real;
    System system =
            rounded<Real>(cubeOf(0.4, { { 0.11, 0.2, 0.3 }, { 0.153, 0.21, 0.31 } }, { 2, -1 }));
    Options options  = TypeParam::options();
    options.accuracy = 1e-3;
    options.threads  = 1;
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation before = fastEwald(system);
    EXPECT_LE(errorAt(solver, system, before, { 0, 0, 0 }), options.accuracy);
    system.exclusions = { { 0, 1 } };
    loadExclusions(solver, system, false);
    const Evaluation without = fastEwald(system);
    for (int k = 0; k < 40; ++k)
    {
        EXPECT_LE(errorAt(solver, system, without, gridPosition(k)), options.accuracy)
                << describe(system, solver.setup());
    }
    // and the other way round
    system.exclusions.clear();
    loadExclusions(solver, system, false);
    EXPECT_LE(errorAt(solver, system, before, { 0, 0, 0 }), options.accuracy);
}

} // namespace
} // namespace test
} // namespace farfield
