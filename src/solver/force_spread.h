/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error of forces, from what they are at several positions of the grid of cells.
 *
 *  The exact forces do not depend on where the grid lies, and the error of an expansion is all but
 *  uncorrelated between positions of it. So the spread of the forces about their mean is the error:
 *  for any system, with rounding in it, and without a reference. Where a box has few cells, part of
 *  the error may be the same at all positions, and takes operators of a higher order to see, or the
 *  exact forces, which few particles afford.
 */
#ifndef FARFIELD_SOLVER_FORCE_SPREAD_H
#define FARFIELD_SOLVER_FORCE_SPREAD_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace farfield
{

//! Sums over components of the forces of several evaluations.
struct ForceSpread
{
    double square = 0;        //!< of the mean
    double usual  = 0;        //!< mean square deviation of one evaluation from the exact forces
    double worst  = 0;        //!< the same of the evaluation that is farthest off
    std::vector<double> mean; //!< or the exact forces

    /*! \param[in] forces  of each evaluation
     *  \param[in] count   the first, two at least, are at positions of the grid that are spread
     *                     evenly; others count for the worst one alone */
    template<class Real>
    ForceSpread(const std::vector<std::vector<Real>>& forces, size_t count)
    {
        std::vector<double> deviations(forces.size(), 0.0);
        mean.resize(forces.front().size());
        for (size_t i = 0; i < mean.size(); i++)
        {
            double sum = 0;
            for (size_t k = 0; k < count; k++)
            {
                sum += static_cast<double>(forces[k][i]);
            }
            mean[i] = sum / static_cast<double>(count);
            square += mean[i] * mean[i];
            for (size_t k = 0; k < forces.size(); k++)
            {
                const double deviation = static_cast<double>(forces[k][i]) - mean[i];
                deviations[k] += deviation * deviation;
            }
        }
        // the mean has a part of every deviation
        const double correction = static_cast<double>(count) / static_cast<double>(count - 1);
        for (size_t k = 0; k < forces.size(); k++)
        {
            usual += k < count ? correction * deviations[k] / static_cast<double>(count) : 0.0;
            worst = std::max(worst, correction * deviations[k]);
        }
    }

    /*! \brief The same about forces that are known.
     *  \param[in] exact  their deviations are counted in full */
    template<class Real>
    ForceSpread(const std::vector<std::vector<Real>>& forces,
                size_t count,
                const std::vector<double>& exact) :
        mean(exact)
    {
        for (const double f : exact)
        {
            square += f * f;
        }
        for (size_t k = 0; k < forces.size(); k++)
        {
            double squares = 0;
            for (size_t i = 0; i < exact.size(); i++)
            {
                const double deviation = static_cast<double>(forces[k][i]) - exact[i];
                squares += deviation * deviation;
            }
            usual += k < count ? squares / static_cast<double>(count) : 0.0;
            worst = std::max(worst, squares);
        }
    }

    /*! \brief Adds what all evaluations have in common, by the mean of better ones.
     *
     *  Of the squared difference of the means, the part that the spreads explain is not counted. */
    void addBias(const ForceSpread& better, int count, int countOfBetter)
    {
        double bias = -usual / count - better.usual / countOfBetter;
        for (size_t i = 0; i < mean.size(); i++)
        {
            bias += (mean[i] - better.mean[i]) * (mean[i] - better.mean[i]);
        }
        usual += std::max(bias, 0.0);
        worst += std::max(bias, 0.0);
    }
};

} // namespace farfield

#endif
