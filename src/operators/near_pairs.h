/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which pairs of a system have another function than 1/r, and how far it differs.
 */
#ifndef FARFIELD_OPERATORS_NEAR_PAIRS_H
#define FARFIELD_OPERATORS_NEAR_PAIRS_H

#include <algorithm>
#include <limits>
#include <vector>

#include "operators/near_function.h"

namespace farfield
{

//! A near function, and the widths of particles.
template<class Real>
struct NearPairs
{
    NearFunction function;
    std::vector<Real> widths; //!< nm, [n]; empty where all pairs have 1/r
    long long wide = 0;       //!< particles whose width is not 0
    double largest = 0;       //!< width of any pair, at most, nm
    double range   = 0;       //!< nm: pairs that are farther apart have 1/r
    double whole   = 0;       //!< in widths of a pair, see wholeWithin2()

    NearPairs() = default;
    /*! \param[in] n         particles; their widths, nm, may be missing where the function is 1/r
     *  \param[in] accuracy  Options::accuracy: bounds the range */
    NearPairs(NearFunction wanted, const Real* widthsOf, int n, double accuracy)
    {
        if (wanted.function == PairFunction::Coulomb || n == 0)
        {
            return;
        }
        const Real most = *std::max_element(widthsOf, widthsOf + n);
        if (most == 0)
        {
            return;
        }
        // of the accuracy: what is cut off of a slow tail, or of a function that decays
        const double part  = wanted.function == PairFunction::SoftCore ? 1.0 / 30 : 1e-3;
        const double least = std::max(
                0.5 * static_cast<double>(std::numeric_limits<Real>::epsilon()), part * accuracy);
        function = wanted;
        widths.assign(widthsOf, widthsOf + n);
        countWide();
        largest = pairWidth<double>(wanted.rule, most, most);
        range   = largest * rangeInWidths(wanted.function, least);
        //! Part of 1/r that its correction may cancel.
        constexpr double c_cancelled = 0.9;
        whole                        = rangeInWidths(wanted.function, c_cancelled);
    }

    //! Whether any pair has another function than 1/r.
    bool any() const { return range > 0; }
    //! The width of a pair, nm; 0: it has 1/r.
    double width(int i, int j) const
    {
        return pairWidth<double>(function.rule, widths[i], widths[j]);
    }
    //! The same pairs of some of the particles, within the same range.
    NearPairs of(const std::vector<int>& particles) const
    {
        NearPairs result = *this;
        result.widths.clear();
        for (size_t k = 0; any() && k < particles.size(); k++)
        {
            result.widths.push_back(widths[particles[k]]);
        }
        result.countWide();
        return result;
    }

    /*! \brief Squared distance, nm^2, below which the function of a pair is computed as a whole: the
     *         correction of 1/r would cancel most of it.
     *  \param[in] width  nm, of the pair
     *  \param[in] most   nm, of the distance */
    double wholeWithin2(double width, double most = std::numeric_limits<double>::max()) const
    {
        const double distance = std::min(whole * width, most);
        return distance * distance;
    }
    //! The terms of a pair, of its squared distance, nm^2, and its width. \param[in] isWhole  or what is
    //! to be added to 1/r
    PairTerms<double> terms(double r2, double width, bool isWhole) const
    {
        return isWhole ? pairTerms(function.function, r2, width)
                       : pairCorrection(function.function, r2, width);
    }

private:
    void countWide()
    {
        wide = std::count_if(widths.begin(), widths.end(), [](Real w) { return w > 0; });
    }
};

} // namespace farfield

#endif
