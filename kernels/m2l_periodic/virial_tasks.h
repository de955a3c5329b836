/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How the products of coefficients are shared out among threads.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_VIRIAL_TASKS_H
#define FARFIELD_KERNELS_M2L_PERIODIC_VIRIAL_TASKS_H

#include <algorithm>
#include <vector>

#include "base/host_device.h"

namespace farfield
{

//! So many degrees of products are added up side by side, as many as registers hold: what is loaded
//! serves all of them.
constexpr int c_virialBand = 5;
//! Zeros that this takes on either side of the coefficients of an order.
constexpr int c_virialMargin = c_virialBand - 1;

//! Products of coefficients of the orders ma <= mb whose degrees add up to those of a band.
struct VirialTask
{
    int ma, mb;
    int degree;      //!< the lowest of the band; that of the products may be higher
    int first, last; //!< degrees of the coefficients of ma
};

/*! \brief All products of coefficients up to an order.
 *
 *  Neighbouring tasks differ in mb alone as far as possible: threads of a warp then need the same
 *  coefficients of ma, and derivatives of harmonics that lie side by side. */
inline std::vector<VirialTask> virialTasks(int p)
{
    std::vector<VirialTask> tasks;
    for (int degree = 0; degree <= 2 * p; degree += c_virialBand)
    {
        const int highest = degree + c_virialMargin;
        for (int ma = 0; ma <= p; ma++)
        {
            for (int mb = ma; mb <= std::min(p, highest - ma); mb++)
            {
                const int first = std::max(ma, degree - p);
                const int last  = std::min(p, highest - mb);
                tasks.push_back({ ma, mb, degree, first, last });
            }
        }
    }
    return tasks;
}

/*! \brief Where the coefficients of a degree and an order lie among the cosines, or sines, of all.
 *
 *  As many places for every order, an odd number of them, so that neighbouring orders lie in other
 *  banks of shared memory; with zeros around the degrees that there are. */
struct VirialPlaces
{
    VirialPlaces() = default;
    explicit VirialPlaces(int p) : pitch((p + 1 + 2 * c_virialMargin) | 1), count(pitch * (p + 1))
    {
        count += (6 - count % 4) % 4; // other banks for the other half of the copies
    }
    //! Of degree 0 of an order.
    FARFIELD_HD int start(int m) const { return m * pitch + c_virialMargin; }

    int pitch = 0;
    int count = 0; //!< of all places
};

} // namespace farfield

#endif
