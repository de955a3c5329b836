/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Shares of the near field follow the times of the devices.
 */
#include "plan/near_field_shares.h"

#include <cmath>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace farfield
{
namespace test
{
namespace
{

//! What devices take, ns.
struct Machine
{
    double far;                  //!< of the solver's GPU, beside its part of the near field
    double own;                  //!< of the whole near field there
    std::vector<double> helpers; //!< of the whole near field on each
    double way;                  //!< of cells and forces

    int count() const { return static_cast<int>(helpers.size()); }
    //! Sets the times of an evaluation.
    void evaluate(ShareState* state) const
    {
        constexpr double c_begin = 1e15;
        const double ownPart     = state->bounds[1] / static_cast<double>(c_wholeOfShares);
        const auto at = [](double time) { return static_cast<unsigned long long>(c_begin + time); };
        state->begin  = at(0);
        state->ready  = at(std::max(far, ownPart * own));
        for (int h = 0; h < count(); ++h)
        {
            state->arrived[h] = at(way + state->share[h] * helpers[h]);
        }
    }
    //! Shares after so many evaluations.
    ShareState after(int evaluations) const
    {
        ShareState state = firstShares(count());
        for (int k = 0; k < evaluations; ++k)
        {
            evaluate(&state);
            followTimes(&state, count());
        }
        return state;
    }
};

//! What has no share of some device is another's, and nothing is done twice.
void expectWhole(const ShareState& state, int helpers)
{
    double sum = 0;
    EXPECT_EQ(state.bounds[0], 0);
    EXPECT_EQ(state.bounds[helpers + 1], c_wholeOfShares);
    for (int h = 0; h < helpers; ++h)
    {
        EXPECT_GT(state.share[h], 0);
        EXPECT_LE(state.bounds[h], state.bounds[h + 1]);
        EXPECT_NEAR(state.bounds[h + 2] - state.bounds[h + 1],
                    state.share[h] * c_wholeOfShares,
                    helpers + 1);
        sum += state.share[h];
    }
    EXPECT_LE(sum, 1 + 1e-12);
}

TEST(Shares, BeginWithAWhole)
{
    for (int helpers = 1; helpers <= c_maxHelperDevices; ++helpers)
    {
        expectWhole(firstShares(helpers), helpers);
    }
    const ShareState none = firstShares(0);
    EXPECT_EQ(none.bounds[0], 0);
    EXPECT_EQ(none.bounds[1], c_wholeOfShares);
}

//! All are ready together, whatever they are: a slow helper gets less.
TEST(Shares, MakeDevicesReadyTogether)
{
    for (const Machine& machine : { Machine{ 300e3, 1000e3, { 1000e3 }, 20e3 },
                                    Machine{ 100e3, 1000e3, { 1000e3, 1000e3, 1000e3 }, 20e3 },
                                    Machine{ 100e3, 1000e3, { 1000e3, 2000e3 }, 20e3 } })
    {
        ShareState state = machine.after(200);
        expectWhole(state, machine.count());
        machine.evaluate(&state);
        const double span = static_cast<double>(state.ready - state.begin);
        for (int h = 0; h < machine.count(); ++h)
        {
            EXPECT_NEAR(static_cast<double>(state.arrived[h] - state.begin), span, 0.03 * span);
        }
    }
}

//! Where the far field takes longest, helpers have the near field; where they are slow, hardly any.
TEST(Shares, HaveBounds)
{
    const Machine slow      = { 10e3, 1000e3, { 1e9, 1e9 }, 20e3 },
                  idle      = { 1e6, 1000e3, { 1000e3, 1000e3 }, 20e3 };
    const ShareState little = slow.after(400), much = idle.after(400);
    expectWhole(little, 2);
    expectWhole(much, 2);
    EXPECT_TRUE(areAllLate(little, 2));
    EXPECT_FALSE(areAllLate(much, 2));
    EXPECT_LT(little.share[0] + little.share[1], 0.01);
    EXPECT_GT(std::min(little.share[0], little.share[1]), 0.001) << "their times say something";
    EXPECT_NEAR(much.share[0] + much.share[1], 1, 1e-9);
    EXPECT_NEAR(much.share[0], much.share[1], 1e-9);
}

//! A step changes little, however long it took, and nothing where times say nothing.
TEST(Shares, StayWithoutTimes)
{
    const ShareState first = firstShares(2);
    ShareState state       = first;
    followTimes(&state, 2);
    EXPECT_EQ(state.share[0], first.share[0]);
    EXPECT_EQ(state.share[1], first.share[1]);
    state.begin      = 1000;
    state.ready      = 2000;
    state.arrived[0] = 900; // before the evaluation: of another one
    state.arrived[1] = 1000000;
    followTimes(&state, 2);
    EXPECT_EQ(state.share[0], first.share[0]);
    EXPECT_LT(state.share[1], first.share[1]);
    EXPECT_GT(state.share[1], 0.9 * first.share[1]);
    expectWhole(state, 2);
}

//! One helper that is on time is enough to go on with all.
TEST(Shares, TellWhetherAllHelpersAreLate)
{
    const Machine busy = { 300e3, 1000e3, { 1e9, 1000e3 }, 20e3 };
    EXPECT_FALSE(areAllLate(busy.after(400), 2));
    EXPECT_FALSE(areAllLate(firstShares(1), 1));
    EXPECT_FALSE(areAllLate(firstShares(0), 0));
    // evaluations that were recorded with helpers that are none any more
    const Machine gone = { 300e3, 1000e3, { 1000e3, 1000e3 }, 20e3 };
    ShareState state   = firstShares(0);
    for (int k = 0; k < 2; ++k)
    {
        for (int bound = 1; bound <= 3; ++bound)
        {
            EXPECT_EQ(state.bounds[bound], c_wholeOfShares);
        }
        gone.evaluate(&state);
        followTimes(&state, 2);
    }
}

} // namespace
} // namespace test
} // namespace farfield
