/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Near functions by name, and systems with pairs that only they can have.
 */
#ifndef FARFIELD_TESTS_NEAR_SYSTEMS_H
#define FARFIELD_TESTS_NEAR_SYSTEMS_H

#include <cmath>

#include <algorithm>
#include <string>
#include <vector>

#include "near_sum.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

//! A function and a rule, with what the sums of the tests need of them.
struct Law
{
    std::string name;
    NearFunction function;
    NearLaw terms;

    double width(double v, double w) const
    {
        switch (function.rule)
        {
            case WidthRule::RootSumSquare:
                return std::sqrt(v * v + w * w);
            case WidthRule::GeometricMean:
                return std::sqrt(v * w);
            case WidthRule::Larger:
                break;
        }
        return std::max(v, w);
    }
    WidthOfPair widthOf(const std::vector<double>& widths) const
    {
        return [this, &widths](int i, int j) { return width(widths[i], widths[j]); };
    }
};

//! Every function, and every rule.
inline std::vector<Law> laws()
{
    return {
        { "smeared, root of the sum of squares",
          { PairFunction::Gaussian, WidthRule::RootSumSquare },
          smearedPair },
        { "smeared, the larger", { PairFunction::Gaussian, WidthRule::Larger }, smearedPair },
        { "Thole, geometric mean", { PairFunction::Thole, WidthRule::GeometricMean }, tholePair },
        { "soft core, the larger", { PairFunction::SoftCore, WidthRule::Larger }, softCorePair }
    };
}

/*! \brief Random charges, some of which are moved to others or very near to them.
 *  \param[in]  n       particles, at least 36
 *  \param[out] widths  nm: of a third of the particles 0, of those that are moved not */
inline System overlapping(const Matrix& box, double width, std::vector<double>* widths, int n = 150)
{
    System system = randomCharges(box, n, 77, 0, 0.1);
    widths->clear();
    for (int i = 0; i < system.size(); ++i)
    {
        widths->push_back(i % 3 == 0 ? 0 : width * (i % 2 == 0 ? 1 : 0.7));
    }
    const double distances[] = { 0, 1e-6, 1e-4, 0.01, 0.1, 0.3, 0.52, 0.54, 1 };
    for (int k = 0; k < 9; ++k)
    {
        const Vector direction = { 0.6, -0.48, 0.64 };
        for (int d = 0; d < 3; ++d)
        {
            system.positions[3 * k + 2][d] =
                    system.positions[3 * k + 1][d] + distances[k] * width * direction[d];
        }
    }
    // a third and a fourth one at one place
    system.positions[34] = system.positions[35] = system.positions[1];
    return system;
}

//! Widths as a solver gets them.
template<class Real>
std::vector<double> roundedWidths(std::vector<double> widths)
{
    for (double& w : widths)
    {
        w = static_cast<double>(static_cast<Real>(w));
    }
    return widths;
}

//! Gives them to a solver.
template<class Real>
void setWidths(Solver<Real>& solver,
               const NearFunction& function,
               const std::vector<double>& widths)
{
    const std::vector<Real> w(widths.begin(), widths.end());
    solver.setNearFunction(function, w.data(), static_cast<int>(w.size()));
}

} // namespace test
} // namespace farfield

#endif
