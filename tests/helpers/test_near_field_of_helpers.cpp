/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What helpers fetch and compute: charges, exclusions, near functions, cells of a share.
 */
#include <string>

#include "near_field_helping.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class NearFieldOfHelpers : public NearFieldHelping<Config>
{
};
TYPED_TEST_SUITE(NearFieldOfHelpers, GpuConfigurations);

//! Other charges, particles without one, and excluded pairs that are close and far.
TYPED_TEST(NearFieldOfHelpers, FollowsChargesAndExclusions)
{
    using Real         = typename TypeParam::Real;
    const System water = TestFixture::waterAt("cube", 0);
    System partly      = water;
    for (int i = 0; i < partly.size(); i += 3)
    {
        partly.charges[i] = (i / 3 % 4 == 0) ? 0 : partly.charges[i];
    }
    System chained = water;
    for (int i = 0; i + 40 < chained.size(); i += 7)
    {
        for (int k = 3; k < 40; k += 4)
        {
            chained.exclusions.push_back({ i, i + k });
        }
    }
    System few = water;
    few.positions.resize(3);
    few.charges.resize(3);
    few.exclusions.resize(3);
    for (const DeviceList& helpers : TestFixture::helpers())
    {
        Solver<Real> helped(TestFixture::optionsWith(M2lEngine::Fft, helpers));
        for (const System& system : { water, partly, chained, few, water })
        {
            const System exact = rounded<Real>(system);
            Solver<Real> alone(TestFixture::optionsWith(M2lEngine::Fft, {}));
            load(alone, exact);
            load(helped, exact);
            TestFixture::expectSame(evaluate(helped, exact), evaluate(alone, exact), exact);
        }
    }
}

//! Widths that are set and given up, of a range within near cells and of one beyond them.
TYPED_TEST(NearFieldOfHelpers, HasNearFunctions)
{
    using Real         = typename TypeParam::Real;
    const System water = TestFixture::waterAt("triclinic", 0);
    for (const bool reproducible : { false, true })
    {
        Options options      = TestFixture::optionsWith(M2lEngine::Fft, {});
        options.reproducible = reproducible;
        for (const DeviceList& helpers : TestFixture::helpers())
        {
            SCOPED_TRACE(std::to_string(helpers.size()) + " helpers"
                         + (reproducible ? ", reproducible" : ""));
            options.helperDevices = {};
            Solver<Real> alone(options);
            options.helperDevices = helpers;
            Solver<Real> helped(options);
            load(alone, water);
            load(helped, water);
            for (const double width : { 0.05, 0.12, 0.0 })
            {
                std::vector<Real> widths(water.size());
                for (int i = 0; i < water.size(); ++i)
                {
                    widths[i] = static_cast<Real>(i % 3 == 0 ? width : 0.5 * width);
                }
                for (Solver<Real>* solver : { &alone, &helped })
                {
                    solver->setNearFunction({ PairFunction::Gaussian, WidthRule::RootSumSquare },
                                            widths.data(),
                                            water.size());
                }
                const Evaluation wanted = evaluate(alone, water);
                for (int repeat = 0; repeat < 3; ++repeat)
                {
                    const Evaluation result = evaluate(helped, water);
                    TestFixture::expectSame(result, wanted, water);
                    if (reproducible)
                    {
                        EXPECT_EQ(result.forces, wanted.forces);
                    }
                }
            }
        }
    }
}

//! Cells that are mostly empty are listed.
TYPED_TEST(NearFieldOfHelpers, VisitsTheCellsOfADroplet)
{
    using Real     = typename TypeParam::Real;
    System droplet = TestFixture::waterAt("cube", 0);
    for (auto& row : droplet.box)
    {
        for (double& element : row)
        {
            element *= 3;
        }
    }
    droplet = rounded<Real>(droplet);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Solver<Real> alone(TestFixture::optionsWith(engine, {}));
        load(alone, droplet);
        const Evaluation wanted = evaluate(alone, droplet);
        for (const DeviceList& helpers : TestFixture::helpers())
        {
            Solver<Real> helped(TestFixture::optionsWith(engine, helpers));
            load(helped, droplet);
            for (int repeat = 0; repeat < 2; ++repeat)
            {
                TestFixture::expectSame(evaluate(helped, droplet), wanted, droplet);
            }
        }
    }
}

//! Many layers of cells, of which a helper has few with what is around them; shares wrap around.
TYPED_TEST(NearFieldOfHelpers, FetchesWhatItsPairsMeet)
{
    using Real         = typename TypeParam::Real;
    const Matrix box   = { { { 2.8, 0, 0 }, { 0.9, 2.8, 0 }, { 1.1, -1.2, 9 } } };
    const System water = rounded<Real>(pseudoWater(box, 7));
    for (const int range : { 1, 2 })
    {
        for (const bool reproducible : { false, true })
        {
            Options options      = TestFixture::optionsWith(M2lEngine::Fft, {});
            options.directRange  = range;
            options.reproducible = reproducible;
            Solver<Real> alone(options);
            load(alone, water);
            const Evaluation wanted = evaluate(alone, water);
            for (const DeviceList& helpers : TestFixture::helpers())
            {
                SCOPED_TRACE("range " + std::to_string(range) + ", "
                             + std::to_string(helpers.size()) + " helpers");
                options.helperDevices = helpers;
                Solver<Real> helped(options);
                load(helped, water);
                for (int repeat = 0; repeat < 5; ++repeat)
                {
                    TestFixture::expectSame(evaluate(helped, water), wanted, water);
                }
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
