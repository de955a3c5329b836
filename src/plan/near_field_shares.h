/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Who has which part of the near field, and how the parts follow times; on the host, too.
 */
#ifndef FARFIELD_PLAN_NEAR_FIELD_SHARES_H
#define FARFIELD_PLAN_NEAR_FIELD_SHARES_H

#include <algorithm>

#include "base/host_device.h"
#include "farfield/options.h"

namespace farfield
{

//! Bounds of shares are multiples of 1/c_wholeOfShares of the cells.
constexpr int c_wholeOfShares = 1 << 16;

//! A helper keeps this share, so that its time says something.
constexpr double c_leastShare = 1.0 / 512;

//! Shares of the near field and the times that they follow; device memory of the solver's GPU.
struct ShareState
{
    double share[c_maxHelperDevices]; //!< of each helper
    //! Where shares begin and end, as CellShare::bounds: the solver's GPU is the first.
    int bounds[c_maxHelperDevices + 2];
    //! \name Of the last evaluation with forces alone, ns
    //!@{
    unsigned long long begin;                       //!< positions were there
    unsigned long long ready;                       //!< the solver's GPU needed nothing but helpers
    unsigned long long arrived[c_maxHelperDevices]; //!< forces of a helper had come
    //!@}
};

//! Sets the bounds by the shares, whose sum is at most 1.
FARFIELD_HD void setBounds(ShareState* state, int helpers)
{
    double sum = 0;
    for (int h = 0; h < helpers; h++)
    {
        sum += state->share[h];
    }
    double before    = 1 - sum;
    state->bounds[0] = 0;
    for (int b = helpers + 1; b < c_maxHelperDevices + 2; b++)
    {
        state->bounds[b] = c_wholeOfShares; // who is no helper has nothing
    }
    for (int h = 0; h < helpers; h++)
    {
        const int bound      = static_cast<int>(before * c_wholeOfShares);
        state->bounds[h + 1] = bound < 0 ? 0 : bound > c_wholeOfShares ? c_wholeOfShares : bound;
        before += state->share[h];
    }
}

//! Shares to begin with. \param[in] helpers  how many there are; 0: the solver's GPU has all
FARFIELD_HD ShareState firstShares(int helpers)
{
    //! Part of the solver's GPU, beside the far field.
    constexpr double c_ownOfTwo = 0.15, c_ownOfMore = 0.02;
    ShareState state = {};
    for (int h = 0; h < helpers; h++)
    {
        state.share[h] = (1 - (helpers == 1 ? c_ownOfTwo : c_ownOfMore)) / helpers;
    }
    setBounds(&state, helpers);
    return state;
}

/*! \brief Makes shares of helpers that were early larger, and those of helpers that were late smaller.
 *
 *  A helper is on time if its forces come when the solver's GPU has nothing else left to do. A share
 *  of zero stays: evaluations that were recorded with a helper are right without it. */
FARFIELD_HD void followTimes(ShareState* state, int helpers)
{
    //! How fast shares follow, and how much of a difference counts.
    constexpr double c_gain = 0.15, c_most = 0.5;
    const double span = static_cast<double>(static_cast<long long>(state->ready - state->begin));
    double sum        = 0;
    for (int h = 0; h < helpers; h++)
    {
        double& share = state->share[h];
        const double own =
                static_cast<double>(static_cast<long long>(state->arrived[h] - state->begin));
        if (span > 0 && own > 0)
        {
            const double early = (span - own) / (span > own ? span : own);
            share *= 1 + c_gain * (early < -c_most ? -c_most : early > c_most ? c_most : early);
        }
        share = share > 0 && share < c_leastShare ? c_leastShare : share;
        sum += share;
    }
    for (int h = 0; h < helpers && sum > 1; h++)
    {
        state->share[h] /= sum;
    }
    setBounds(state, helpers);
}

//! Whether no helper gets more than the least share: all of them come late, whatever they have to do.
inline bool areAllLate(const ShareState& state, int helpers)
{
    return helpers > 0
           && std::all_of(state.share,
                          state.share + helpers,
                          [](double share) { return share <= c_leastShare; });
}

} // namespace farfield

#endif
