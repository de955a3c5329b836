/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Functions of the distance that take the place of 1/r at short distance; for host and device.
 *
 *  With the width b of a pair, x = r/b and s = -f'/r:
 *
 *      Gaussian   f = erf(x)/r                     s = (erf(x)/r - 2 exp(-x^2)/(sqrt(pi) b))/r^2
 *      Thole      f = (1 - (1 + x/2) exp(-x))/r    s = (1 - (1 + x + x^2/2) exp(-x))/r^3
 *      SoftCore   f = (b^6 + r^6)^(-1/6)           s = r^4 (b^6 + r^6)^(-7/6)
 *
 *  The force on particle i of a pair is q_i q_j s (r_i - r_j). All functions are finite at r = 0.
 */
#ifndef FARFIELD_OPERATORS_NEAR_FUNCTION_H
#define FARFIELD_OPERATORS_NEAR_FUNCTION_H

#include <cmath>

#include "farfield/farfield.h"

#include "base/host_device.h"

namespace farfield
{

//! A function of the distance, and what forces need of it.
template<class Real>
struct PairTerms
{
    Real value; //!< f, 1/nm
    Real slope; //!< s = -f'/r, 1/nm^3
};

/*! \brief erf(x)/x and its slope.
 *  \param[in] u  x^2 */
template<class Real>
FARFIELD_HD PairTerms<Real> gaussianTerms(Real u)
{
    const Real edge = static_cast<Real>(M_2_SQRTPI) * std::exp(-u);
    Real slope      = 0;
    if (u < Real(0.1))
    {
        // the difference below would cancel: 2/sqrt(pi) sum of (-u)^k 2/(k! (2k + 3))
        Real term = static_cast<Real>(M_2_SQRTPI);
        for (int k = 0; k < 12; k++)
        {
            slope += term * 2 / static_cast<Real>(2 * k + 3);
            term *= -u / static_cast<Real>(k + 1);
        }
    }
    else
    {
        const Real x = std::sqrt(u);
        slope        = (std::erf(x) / x - edge) / u;
    }
    return { u * slope + edge, slope };
}

//! (1 - (1 + x/2) exp(-x))/x and its slope.
template<class Real>
FARFIELD_HD PairTerms<Real> tholeTerms(Real x)
{
    const Real decay = std::exp(-x);
    Real slope       = 0;
    if (x < 1)
    {
        // the difference below would cancel: exp(-x) sum of x^k/(k + 3)!
        Real term = decay / 6;
        for (int k = 0; k < 16; k++)
        {
            slope += term;
            term *= x / static_cast<Real>(k + 4);
        }
    }
    else
    {
        slope = (1 - (1 + x + x * x / 2) * decay) / (x * x * x);
    }
    return { x * x * slope + (1 + x) / 2 * decay, slope };
}

//! (1 + x^6)^(-1/6) and its slope. \param[in] u  x^2
template<class Real>
FARFIELD_HD PairTerms<Real> softCoreTerms(Real u)
{
    const Real sixth = 1 + u * u * u;
    const Real value = std::pow(sixth, Real(-1) / 6);
    return { value, u * u * value / sixth };
}

/*! \brief The function itself.
 *  \param[in] r2     squared distance, nm^2; of Coulomb not 0
 *  \param[in] width  b, nm, not 0; of Coulomb without meaning */
template<class Real>
FARFIELD_HD PairTerms<Real> pairTerms(PairFunction function, Real r2, Real width)
{
    if (function == PairFunction::Coulomb)
    {
        const Real value = 1 / std::sqrt(r2);
        return { value, value / r2 };
    }
    const Real scale = 1 / width;
    const Real u     = r2 * scale * scale;
    const auto terms = function == PairFunction::Gaussian ? gaussianTerms(u)
                       : function == PairFunction::Thole  ? tholeTerms(std::sqrt(u))
                                                          : softCoreTerms(u);
    return { terms.value * scale, terms.slope * (scale * scale * scale) };
}

/*! \brief The function minus 1/r, and its slope, without cancellation at large distance.
 *
 *  At small distance 1/r is most of it.
 *  \param[in] r2     squared distance, nm^2, not 0
 *  \param[in] width  b, nm, not 0; of Coulomb without meaning */
template<class Real>
FARFIELD_HD PairTerms<Real> pairCorrection(PairFunction function, Real r2, Real width)
{
    const Real r = std::sqrt(r2);
    const Real x = r / width;
    switch (function)
    {
        case PairFunction::Gaussian:
        {
            const Real value = std::erfc(x) / r;
            const Real edge  = static_cast<Real>(M_2_SQRTPI) * std::exp(-x * x) / width;
            return { -value, -(value + edge) / r2 };
        }
        case PairFunction::Thole:
        {
            const Real decay = std::exp(-x) / r;
            return { -(1 + x / 2) * decay, -(1 + x + x * x / 2) * decay / r2 };
        }
        case PairFunction::SoftCore:
        {
            // (1 + x^-6)^(-1/6) - 1 and (1 + x^-6)^(-7/6) - 1
            const Real logarithm = std::log1p(1 / (x * x * x * x * x * x));
            return { std::expm1(-logarithm / 6) / r, std::expm1(-7 * logarithm / 6) / (r2 * r) };
        }
        case PairFunction::Coulomb:
            break;
    }
    return { 0, 0 };
}

//! The width of a pair, nm, of those of its particles; 0: the pair has 1/r.
template<class Real>
FARFIELD_HD Real pairWidth(WidthRule rule, Real a, Real b)
{
    switch (rule)
    {
        case WidthRule::RootSumSquare:
            return std::sqrt(a * a + b * b);
        case WidthRule::GeometricMean:
            return std::sqrt(a * b);
        case WidthRule::Larger:
            break;
    }
    return a > b ? a : b;
}

/*! \brief The distance, in widths, beyond which forces are those of 1/r.
 *  \param[in] least  relative difference of forces that does not count */
double rangeInWidths(PairFunction function, double least);

} // namespace farfield

#endif
