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
#ifndef FARFIELD_CHOICE_FORCE_SPREAD_H
#define FARFIELD_CHOICE_FORCE_SPREAD_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace farfield
{

//! Forces of several evaluations, and how far each is from the exact ones.
template<class Real>
class ForceSpread
{
public:
    //! Sums over components, (kJ/mol/nm)^2.
    struct Squares
    {
        double usual = 0; //!< mean square deviation of one evaluation from the exact forces
        double worst = 0; //!< the same of the evaluation that is farthest off
        double most  = 0; //!< the same of those at positions that are spread evenly
    };

    /*! \param[in] forces  of each evaluation, [3 n]
     *  \param[in] count   the first, two at least, are at positions of the grid that are spread
     *                     evenly; others count for the worst one alone
     *  \param[in] exact   the exact forces; empty if they are not known */
    ForceSpread(std::vector<std::vector<Real>> forces, size_t count, std::vector<double> exact) :
        forces_(std::move(forces)), count_(count), mean_(std::move(exact)), isExact_(!mean_.empty())
    {
        if (!isExact_)
        {
            mean_.resize(forces_.front().size());
            for (size_t i = 0; i < mean_.size(); i++)
            {
                double sum = 0;
                for (size_t k = 0; k < count_; k++)
                {
                    sum += static_cast<double>(forces_[k][i]);
                }
                mean_[i] = sum / static_cast<double>(count_);
            }
        }
    }

    //! At so many positions of the grid, spread evenly.
    size_t count() const { return count_; }

    //! [3 n], kJ/mol/nm: the exact forces, or the mean of those of the evaluations.
    const std::vector<double>& mean() const { return mean_; }

    /*! \brief How far the evaluations are from the exact forces.
     *  \param[in] weights   [n], how much the squares of a particle count; empty: all count in full
     *  \param[in] rounding  [n], deviation of a particle that is not counted, kJ/mol/nm; empty: none */
    Squares squares(const std::vector<double>& weights,
                    const std::vector<double>& rounding = {}) const
    {
        std::vector<double> deviations(forces_.size(), 0.0);
        for (size_t i = 0; i < mean_.size() / 3; i++)
        {
            const double weight = weights.empty() ? 1 : weights[i];
            const double known  = rounding.empty() ? 0 : rounding[i] * rounding[i];
            for (size_t k = 0; k < forces_.size(); k++)
            {
                double square = 0;
                for (size_t c = 3 * i; c < 3 * i + 3; c++)
                {
                    const double deviation = static_cast<double>(forces_[k][c]) - mean_[c];
                    square += deviation * deviation;
                }
                // not std::max(): what is not a number must not pass
                deviations[k] += square <= known ? 0 : weight * (square - known);
            }
        }
        // a mean has a part of every deviation
        const double n          = static_cast<double>(count_);
        const double correction = isExact_ ? 1 : n / (n - 1);
        Squares result;
        for (size_t k = 0; k < forces_.size(); k++)
        {
            result.usual += k < count_ ? correction * deviations[k] / n : 0.0;
            result.worst = std::max(result.worst, correction * deviations[k]);
            result.most  = k < count_ ? result.worst : result.most;
        }
        return result;
    }

    /*! \brief What all evaluations have in common, by the mean of better ones.
     *
     *  Of the squared difference of the means, the part that the spreads explain is not counted. */
    double bias(const ForceSpread& better, const std::vector<double>& weights) const
    {
        double bias = -squares(weights).usual / static_cast<double>(count_)
                      - better.squares(weights).usual / static_cast<double>(better.count_);
        for (size_t i = 0; i < mean_.size(); i++)
        {
            const double weight = weights.empty() ? 1 : weights[i / 3];
            bias += weight * (mean_[i] - better.mean_[i]) * (mean_[i] - better.mean_[i]);
        }
        return std::max(bias, 0.0);
    }

private:
    std::vector<std::vector<Real>> forces_;
    size_t count_;
    std::vector<double> mean_;
    bool isExact_;
};

} // namespace farfield

#endif
