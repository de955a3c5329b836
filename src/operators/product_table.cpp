/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/product_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/log_gamma.h"

namespace farfield
{
namespace
{

//! Orders of multipoles beyond the order in use that the virial takes into account, see
//! m2l_periodic.h.
constexpr int c_virialExtraOrders = 2;

//! Grows about as the factorials below, so that the factors stay in the range of float.
constexpr double c_growth = 8;

//! sqrt((l+m)! (l-m)!), times the square root of 2 for m = 0.
double normalisation(int l, int m)
{
    return rootOfFactorials(l, m) * (m == 0 ? std::sqrt(2.0) : 1.0);
}

} // namespace

int virialOrder(int order, int highOrder)
{
    return std::min(highOrder, order + c_virialExtraOrders);
}

template<class Real>
ProductTable<Real>::ProductTable(int p, const Reduction& reduction) :
    order(p), start{ 0 }, harmonicScale(coefficientCount(2 * p))
{
    for (int m = 0; m <= p; m++)
    {
        offset.push_back(places + 2 * (1 - m));
        places += 2 * (p - m + 3);
    }
    const int given = coefficientCount(reduction.order());
    for (int i = 0; i < coefficientCount(p); i++)
    {
        const int l        = degreeOf(i);
        const int m        = i - coefficientIndex(l, 0);
        const double scale = std::pow(c_growth, l) / normalisation(l, std::abs(m));
        place.push_back(offset[std::abs(m)] + 2 * l + (m < 0));
        if (i < given)
        {
            sources.push_back({ i, static_cast<Real>(scale) });
        }
        else
        {
            for (Eigen::SparseMatrix<double>::InnerIterator it(reduction.phasedC(), i - given); it;
                 ++it)
            {
                sources.push_back(
                        { static_cast<int>(it.row()), static_cast<Real>(scale * it.value()) });
            }
        }
        start.push_back(static_cast<int>(sources.size()));
    }
    for (int i = 0; i < coefficientCount(2 * p); i++)
    {
        // (-1)^l is the sign of M2L between coefficients with phases
        const int l      = degreeOf(i);
        harmonicScale[i] = static_cast<Real>(
                ((l % 2) ? -1 : 1) * normalisation(l, std::abs(i - coefficientIndex(l, 0)))
                / (std::sqrt(2.0) * std::pow(c_growth, l)));
    }
}

template struct ProductTable<float>;
template struct ProductTable<double>;

} // namespace farfield
