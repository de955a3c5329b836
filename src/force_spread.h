/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error of forces, from what they are at several positions of the grid of cells.
 *
 *  The exact forces do not depend on where the grid lies, and the error of an expansion is all but
 *  uncorrelated between positions of it. So the spread of the forces about their mean is the error:
 *  for any system, with rounding in it, and without a reference.
 */
#ifndef FARFIELD_FORCE_SPREAD_H
#define FARFIELD_FORCE_SPREAD_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace farfield
{

//! Sums over components of the forces of several evaluations.
struct ForceSpread
{
    double square = 0; //!< of the mean
    double usual  = 0; //!< mean square deviation of one evaluation from the exact forces
    double worst  = 0; //!< the same of the evaluation that is farthest off

    //! \param[in] forces  of each evaluation, two at least
    template<class Real>
    explicit ForceSpread(const std::vector<std::vector<Real>>& forces)
    {
        const size_t count = forces.size();
        std::vector<double> deviations(count, 0.0);
        for (size_t i = 0; i < forces.front().size(); i++)
        {
            double mean = 0;
            for (const auto& f : forces)
            {
                mean += static_cast<double>(f[i]);
            }
            mean /= static_cast<double>(count);
            square += mean * mean;
            for (size_t k = 0; k < count; k++)
            {
                const double deviation = static_cast<double>(forces[k][i]) - mean;
                deviations[k] += deviation * deviation;
            }
        }
        // the mean has a part of every deviation
        const double correction = static_cast<double>(count) / static_cast<double>(count - 1);
        for (const double deviation : deviations)
        {
            usual += correction * deviation / static_cast<double>(count);
            worst = std::max(worst, correction * deviation);
        }
    }
};

} // namespace farfield

#endif
