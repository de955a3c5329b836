/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Ranks that share an evaluation, and what passes between them, for the choice of order and
 *         cells.
 */
#ifndef FARFIELD_PLAN_NETWORK_H
#define FARFIELD_PLAN_NETWORK_H

#include "farfield/options.h"

#include "base/vectors.h"

namespace farfield
{

struct Work;

/*! \brief How far particles may move before exchanges are planned anew, in cells along each axis.
 *
 *  A plan takes a GPU, which hosts have to wait for, far longer than an evaluation: there it should
 *  last from one pair search of a simulation to the next. */
constexpr double c_drift = 0.35, c_driftOnDevice = 1;

//! What a rank sends in an evaluation.
struct PredictedTraffic
{
    double messages, numbers;
};

//! Domains of ranks, and what a message between them costs.
struct Network
{
    Int3 parts     = { 1, 1, 1 }; //!< domains along the box vectors
    int threads    = 1;           //!< of a rank
    double message = 0;           //!< ns for each message of an exchange, whatever is in it
    double number  = 0;           //!< ns for each number in it
    int helpers    = 0;           //!< further GPUs for the near field of one rank

    int ranks() const { return parts[0] * parts[1] * parts[2]; }
    //! Time of what is sent, ns.
    double cost(const PredictedTraffic& traffic) const
    {
        return traffic.messages * message + traffic.numbers * number;
    }
};

//! Domains as even as their number allows. \param[in] box  rows, nm
Int3 evenDomains(int ranks, const Mat3& box);

/*! \brief Whether ranks close the coarsest level together, each a part of its coefficients and then of
 *         its wave vectors.
 *
 *  Hosts do so where it has the leaves. Each GPU closes the whole of it: of two, none gained by sharing. */
bool closesInShares(Device device, const Work& w, const Network& network);

//! Predicts it for domains that are filled evenly; docs/ranks-method.md has the formulas.
PredictedTraffic predictedTraffic(Device device, const Work& w, const Network& network);

//! Cells that a rank's particles may come to be in until exchanges are planned anew.
double reachedCells(Device device, const Work& w, const Network& network);

//! Part of the pairs of near particles that are of two ranks, and so are computed twice.
double pairsAcross(const Work& w, const Network& network);

} // namespace farfield

#endif
