/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What is measured of messages, and that the choice of several ranks knows of it.
 */
#include "parallel/measured_network.h"

#include <gtest/gtest.h>

#include "in_process_ranks.h"
#include "reference.h"
#include "solver/single_state.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

TEST(MeasuredNetwork, IsTheSameOnAllRanks)
{
    constexpr int c_ranks = 3;
    std::vector<Network> found(c_ranks);
    onRanks(c_ranks,
            [&](Communicator& communicator)
            {
                Ranks ranks(&communicator);
                found[communicator.rank()] = measuredNetwork(&ranks, sizeof(double));
            });
    EXPECT_GT(found[0].message, 0);
    EXPECT_LE(found[0].message, 5e4);
    EXPECT_GE(found[0].number, 0);
    EXPECT_LE(found[0].number, 10 * sizeof(double));
    for (const Network& network : found)
    {
        EXPECT_EQ(network.message, found[0].message);
        EXPECT_EQ(network.number, found[0].number);
    }
}

TEST(MeasuredNetwork, OfOneRankCostsNothing)
{
    onRanks(1,
            [](Communicator& communicator)
            {
                Ranks ranks(&communicator);
                const Network network = measuredNetwork(&ranks, sizeof(float));
                EXPECT_EQ(network.message, 0);
                EXPECT_EQ(network.number, 0);
            });
}

//! What ranks choose is what one chooses for as many, and not what it chooses for itself.
TEST(MeasuredNetwork, IsWhatRanksChooseFor)
{
    constexpr int c_ranks = 12;
    const System system   = pseudoWater(namedBox("cube", 17), 5);
    Options options;
    options.device  = Device::Cpu;
    options.threads = 1;
    options.m2l     = M2lEngine::Fft;
    farfield::Setup chosen;
    onRanks(c_ranks,
            [&](Communicator& communicator)
            {
                DistributedSolver<double> solver(options, &communicator);
                const Portion<double> portion(
                        system, domains(system, c_ranks), communicator.rank());
                portion.giveTo(&solver);
                solver.prepare(portion.positions(system).data(), Box(system.box).rows);
                if (communicator.rank() == 0)
                {
                    chosen = solver.setup();
                }
            });
    const auto chosenFor = [&](const Network& network)
    {
        SingleState<double> one(options);
        one.choice().setNetwork(network);
        const std::vector<double> q(system.charges.begin(), system.charges.end());
        std::vector<int> offsets, partners;
        compressedRows(system, true, &offsets, &partners);
        one.charges().setCharges(q.data(), system.size());
        one.charges().setExclusions(offsets.data(), partners.data());
        one.prepare(flatPositions<double>(system).data(), Box(system.box).rows);
        return one.choice().setup();
    };
    Network usual       = usualNetwork(sizeof(double));
    usual.parts         = evenDomains(c_ranks, Mat3::Identity());
    const auto expected = chosenFor(usual), alone = chosenFor({});
    EXPECT_EQ(chosen.cells, expected.cells);
    EXPECT_EQ(chosen.order, expected.order);
    EXPECT_TRUE(alone.cells != expected.cells || alone.order != expected.order);
}

} // namespace
} // namespace test
} // namespace farfield
