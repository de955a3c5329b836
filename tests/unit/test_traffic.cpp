/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What ranks send, against what the cost model expects of them.
 */
#include <mutex>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "in_process_ranks.h"
#include "plan/network.h"
#include "reference.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_cells   = 16; //!< leaf cells along an edge
constexpr double c_edge = 6.4;
constexpr int c_shifts  = 8; //!< of the borders of domains, within a cell of the coarsest level

//! Four charges a cell, anywhere.
System evenlyFilled()
{
    std::mt19937 random(31);
    std::uniform_real_distribution<double> inBox(0, c_edge);
    System system;
    system.box = namedBox("cube", c_edge * c_edge * c_edge);
    for (int i = 0; i < 4 * c_cells * c_cells * c_cells; i++)
    {
        system.positions.push_back({ inBox(random), inBox(random), inBox(random) });
        system.charges.push_back(i % 2 == 0 ? 1 : -1);
    }
    return system;
}

//! Domains whose borders are shifted, along each axis by another part of a length.
Division shiftedBricks(System system, const Int3& parts, int shift, double length)
{
    for (Vector& x : system.positions)
    {
        for (int k = 0; k < 3; k++)
        {
            x[k] += length / c_shifts * ((2 * k + 1) * shift % c_shifts);
        }
    }
    return bricks(system, parts);
}

//! Sums over all ranks and shifts. \param[out] setup  cells that are in use
Traffic sentBy(int ranks, const Int3& parts, const System& system, M2lEngine engine, Setup* setup)
{
    Options options;
    options.device      = Device::Cpu;
    options.threads     = 1;
    options.m2l         = engine;
    options.order       = 4;
    options.directRange = 1;
    options.cellSize    = c_edge / c_cells;
    options.tune        = false;
    Request request;
    request.energy = request.virial = false;
    Traffic all;
    std::mutex mutex;
    onRanks(ranks,
            [&](Communicator& communicator)
            {
                DistributedSolver<float> solver(options, &communicator);
                const double coarsest = c_edge / (engine == M2lEngine::Fft ? c_cells : c_cells / 2);
                for (int shift = 0; shift < c_shifts; shift++)
                {
                    const Portion<float> portion(system,
                                                 shiftedBricks(system, parts, shift, coarsest),
                                                 communicator.rank());
                    portion.giveTo(&solver);
                    const std::vector<float> x = portion.positions(system);
                    std::vector<float> f(x.size());
                    solver.evaluate(x.data(), Box(system.box).rows, f.data(), request);
                }
                const Traffic sent = solver.traffic();
                const std::lock_guard<std::mutex> lock(mutex);
                all.evaluations += sent.evaluations;
                all.messages += sent.messages;
                all.bytes += sent.bytes;
                all.expectedMessages = sent.expectedMessages;
                all.expectedBytes    = sent.expectedBytes;
                *setup               = solver.setup();
            });
    return all;
}

/*! \brief Messages exactly, as all halos here reach all domains.
 *
 *  Bytes up to half a cell in the width of what a domain reaches along an axis, at most on the coarsest
 *  level: the formulas do not know that particles are located to half a cell, which makes domains 0.3
 *  cells wider, and compare mean widths with that of the box, not each. Borders are shifted, as their
 *  places in a cell would count for up to a cell. */
TEST(Traffic, IsWhatTheCostModelExpects)
{
    const System system = evenlyFilled();
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        const int coarsest = engine == M2lEngine::Fft ? c_cells : c_cells / 2;
        for (const int ranks : { 2, 3, 8, 12 })
        {
            SCOPED_TRACE(nameOf(engine) + std::string(", ranks ") + std::to_string(ranks));
            const Int3 parts = evenDomains(ranks, Mat3::Identity());
            farfield::Setup setup;
            const Traffic sent = sentBy(ranks, parts, system, engine, &setup);
            ASSERT_EQ(setup.leafCells, c_cells * c_cells * c_cells);
            ASSERT_EQ(c_cells >> (setup.levels - 1), coarsest);
            double wider = 1;
            for (const int divided : parts)
            {
                const double width = static_cast<double>(coarsest) / divided + 2 + 2 * c_drift;
                wider *= divided > 1 ? 1 + 0.5 / width : 1;
            }
            const auto per = static_cast<double>(sent.evaluations);
            EXPECT_EQ(sent.evaluations, c_shifts * ranks);
            EXPECT_EQ(static_cast<double>(sent.messages) / per, sent.expectedMessages);
            EXPECT_NEAR(static_cast<double>(sent.bytes) / per / sent.expectedBytes, 1, wider - 1);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
