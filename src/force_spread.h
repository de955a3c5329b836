/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error of forces, from what they are at several positions of the grid of cells.
 *
 *  The exact forces do not depend on where the grid lies, and the error of an expansion is all but
 *  uncorrelated between positions of it. So the spread of the forces about their mean is the error,
 *  for any system, with rounding in it, and without a reference.
 */
#ifndef FARFIELD_FORCE_SPREAD_H
#define FARFIELD_FORCE_SPREAD_H

#include <cmath>
#include <cstddef>
#include <vector>

namespace farfield
{

//! Mean and variance of forces over evaluations, by the recurrence of Welford, Technometrics 4, 419
//! (1962), doi:10.1080/00401706.1962.10490022.
class ForceSpread
{
public:
    //! \param[in] components  three per particle
    explicit ForceSpread(size_t components) : mean_(components, 0.0) {}

    //! Takes the forces of one more evaluation.
    template<class Real>
    void add(const std::vector<Real>& forces)
    {
        count_++;
        for (size_t i = 0; i < mean_.size(); i++)
        {
            const double before = static_cast<double>(forces[i]) - mean_[i];
            mean_[i] += before / count_;
            squares_ += before * (static_cast<double>(forces[i]) - mean_[i]);
        }
    }
    //! Sum over components of the variance of one evaluation; two evaluations at least.
    double variance() const { return squares_ / (count_ - 1); }
    //! Sum over components of the squared mean.
    double square() const
    {
        double sum = 0;
        for (const double f : mean_)
        {
            sum += f * f;
        }
        return sum;
    }

private:
    int count_ = 0;
    std::vector<double> mean_;
    double squares_ = 0;
};

} // namespace farfield

#endif
