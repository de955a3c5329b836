/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What callers of several ranks may change at any time, the system: cells are chosen anew where
 *         that matters.
 */
#include <cmath>

#include <random>

#include "changing_systems.h"
#include "given_ranks.h"

namespace farfield
{
namespace test
{
namespace
{

//! Short dipoles at the points of a lattice; each a pair that may be excluded.
System dipoles(int across, double spacing, double length)
{
    System system;
    system.box = {
        { { across * spacing, 0, 0 }, { 0, across * spacing, 0 }, { 0, 0, across * spacing } }
    };
    for (int k = 0; k < across * across * across; k++)
    {
        // directions that no symmetry cancels
        const double z = std::cos(2.4 * k), phi = 1.7 * k, flat = std::sqrt(1 - z * z);
        const Vector u   = { flat * std::cos(phi), flat * std::sin(phi), z };
        const int cell[] = { k % across, k / across % across, k / across / across };
        for (const double sign : { 1.0, -1.0 })
        {
            Vector x;
            for (int c = 0; c < 3; c++)
            {
                x[c] = (cell[c] + 0.5) * spacing + 0.5 * sign * length * u[c];
            }
            system.positions.push_back(x);
            system.charges.push_back(sign);
        }
    }
    return system;
}

System withPairsExcluded(System system)
{
    for (int i = 0; i < system.size(); i += 2)
    {
        system.exclusions.emplace_back(i, i + 1);
    }
    return system;
}

//! Forces of two ranks that have evaluated systems one after the other, of the last one.
struct AfterOthers
{
    std::vector<Vector> forces;
    Setup setup;
    std::vector<double> state;
};

AfterOthers evaluateInTurn(const std::vector<System>& systems, const Options& options)
{
    AfterOthers result;
    result.forces.resize(systems.back().size());
    onRanks(2,
            [&](Communicator& communicator)
            {
                DistributedSolver<double> solver(options, &communicator);
                for (const System& system : systems)
                {
                    Given given(system, communicator.rank());
                    given.tellSystem(&solver);
                    given.tellLocal(&solver);
                    const std::vector<double> f = given.evaluate(&solver);
                    for (size_t k = 0; &system == &systems.back() && k < f.size(); k++)
                    {
                        result.forces[given.index[k / 3]][k % 3] = f[k];
                    }
                }
                if (communicator.rank() == 0)
                {
                    result.setup = solver.setup();
                    result.state = solver.state();
                }
            });
    return result;
}

Options toChoose()
{
    Options options;
    options.device  = Device::Cpu;
    options.threads = 1;
    options.tune    = false; // messages are not timed
    return options;
}

//! What is left of forces without the excluded pairs is far less than they were.
TEST(RankChoice, IsMadeAnewWhereExclusionsHaveCome)
{
    const System free = dipoles(9, 0.32, 0.025), excluded = withPairsExcluded(free);
    const Options options     = toChoose();
    const AfterOthers changed = evaluateInTurn({ free, excluded }, options);
    const AfterOthers fresh   = evaluateInTurn({ excluded }, options);
    EXPECT_EQ(changed.setup.order, fresh.setup.order);
    EXPECT_EQ(changed.setup.cells, fresh.setup.cells);
    EXPECT_LE(relativeError(changed.forces, ewald(excluded).forces), options.accuracy);
}

TEST(RankChoice, IsMadeAnewForOtherNumbersOfParticles)
{
    const System few          = pseudoWater(namedBox("cube", 8), 5),
                 many         = pseudoWater(namedBox("cube", 24), 5);
    const Options options     = toChoose();
    System stretched          = few; // in the box of the others, so that only numbers differ
    stretched.box             = many.box;
    const AfterOthers changed = evaluateInTurn({ stretched, many }, options);
    const AfterOthers fresh   = evaluateInTurn({ many }, options);
    EXPECT_EQ(changed.setup.order, fresh.setup.order);
    EXPECT_EQ(changed.setup.cells, fresh.setup.cells);
    EXPECT_EQ(changed.state, fresh.state);
}

/*! \brief Forces become weaker as ions that began anywhere settle, and stronger as a crystal melts: cells
 *         do then, and are no more expensive than those of a fresh start. */
TEST(RankChoice, IsMadeAnewWhereForcesHaveChanged)
{
    std::mt19937 random(7);
    const System crystal = rockSalt(4, 0.25), atRandom = scattered(crystal, random),
                 settled            = displaced(crystal, 0.02, random);
    Options options                 = toChoose();
    options.accuracy                = 1e-3;
    const std::vector<Vector> exact = fastEwald(settled).forces;
    for (const System* start : { &atRandom, &crystal })
    {
        SCOPED_TRACE(start == &crystal ? "crystal" : "at random");
        const AfterOthers changed = evaluateInTurn({ *start, settled }, options);
        const double error        = relativeError(changed.forces, exact);
        EXPECT_LE(error, options.accuracy);
        EXPECT_LT(error, 2 * changed.setup.estimatedError);
        EXPECT_GT(error, changed.setup.estimatedError / 2);
    }
}

//! By the same rule as that of Solver: a factor of 1.5; and the state tells the number of the choice.
TEST(RankChoice, StaysForLikeNumbers)
{
    const System all = pseudoWater(namedBox("cube", 12), 6);
    System fewer     = all;
    for (int i = 0; i < all.size() / 4; i++)
    {
        fewer.charges[i] = 0;
    }
    const Options options    = toChoose();
    const AfterOthers stayed = evaluateInTurn({ all, fewer }, options);
    EXPECT_EQ(stayed.state, evaluateInTurn({ all }, options).state);
    Solver<double> single(options);
    load(single, all);
    evaluate(single, all);
    const std::vector<double> ofSingle = single.state();
    loadCharges(single, fewer);
    evaluate(single, fewer);
    EXPECT_EQ(single.state(), ofSingle);
}

//! Charges that become zero, and come back.
TEST(RankChoice, OfChargesThatAreAllZeroIsNone)
{
    const System water = smallWater();
    System neutral     = water;
    neutral.charges.assign(water.size(), 0);
    const std::vector<Vector> none(water.size(), Vector{ 0, 0, 0 });
    EXPECT_EQ(evaluateInTurn({ neutral }, withCells()).forces, none);
    EXPECT_EQ(evaluateInTurn({ water, neutral }, withCells()).forces, none);
    EXPECT_EQ(evaluateInTurn({ water, neutral, water }, withCells()).forces,
              evaluateInTurn({ water }, withCells()).forces);
}

} // namespace
} // namespace test
} // namespace farfield
