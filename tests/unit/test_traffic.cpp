/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What ranks send, against what the cost model expects of them.
 */
#include <string>

#include <gtest/gtest.h>

#include "plan/network.h"
#include "test_support.h"
#include "traffic_of_ranks.h"

namespace farfield
{
namespace test
{
namespace
{

/*! \brief Messages exactly, as all halos here reach all domains.
 *
 *  Bytes up to EvenTraffic::tolerance(): the formulas do not know that particles are located to half a
 *  cell, which makes domains 0.3 cells wider, and compare mean widths with that of the box, not each. */
TEST(Traffic, IsWhatTheCostModelExpects)
{
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        constexpr int c_cells = EvenTraffic::c_cells;
        const int coarsest    = engine == M2lEngine::Fft ? c_cells : c_cells / 2;
        for (const int ranks : { 2, 3, 8, 12 })
        {
            SCOPED_TRACE(nameOf(engine) + std::string(", ranks ") + std::to_string(ranks));
            const EvenTraffic even{ evenDomains(ranks, Mat3::Identity()), coarsest };
            const Options options = optionsOfEvenTraffic(Device::Cpu, engine);
            farfield::Setup setup;
            const Traffic sent = even.sent(
                    options, [](Communicator& /*host*/) { return nullptr; }, &setup);
            ASSERT_EQ(setup.leafCells, c_cells * c_cells * c_cells);
            ASSERT_EQ(c_cells >> (setup.levels - 1), coarsest);
            const auto per = static_cast<double>(sent.evaluations);
            EXPECT_EQ(sent.evaluations, EvenTraffic::c_shifts * ranks);
            EXPECT_EQ(static_cast<double>(sent.messages) / per, sent.expectedMessages);
            EXPECT_NEAR(static_cast<double>(sent.bytes) / per / sent.expectedBytes,
                        1,
                        even.tolerance(2 + 2 * c_drift));
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
