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

//! What forces, energies and virials need of a function that is finite at r = 0: f = excess + r^2 s.
template<class Real>
struct SmoothTerms
{
    Real slope;  //!< s = -f'/r, 1/nm^3
    Real excess; //!< f - r^2 s, 1/nm; 1/r has none
};

//! The sum of (-u)^k 2/(k! (2k + 3)) by Horner's rule, k < n.
template<int k, int n, class Real>
FARFIELD_HD Real gaussianSeries(Real u)
{
    const Real term = Real(2) / (2 * k + 3);
    if constexpr (k + 1 < n)
    {
        return term - u * (Real(1) / (k + 1)) * gaussianSeries<k + 1, n>(u);
    }
    else
    {
        return term;
    }
}
//! The sum of 6 x^k/(k + 3)!, likewise.
template<int k, int n, class Real>
FARFIELD_HD Real tholeSeries(Real x)
{
    if constexpr (k + 1 < n)
    {
        return 1 + x * (Real(1) / (k + 4)) * tholeSeries<k + 1, n>(x);
    }
    else
    {
        return 1;
    }
}

/*! \brief erf(x)/r.
 *  \param[in] x        distance in widths
 *  \param[in] inverse  1/r, 1/nm
 *  \param[in] scale    1/b, 1/nm */
template<class Real>
FARFIELD_HD SmoothTerms<Real> gaussianTerms(Real x, Real inverse, Real scale)
{
    const Real u    = x * x;
    const Real edge = static_cast<Real>(M_2_SQRTPI) * std::exp(-u);
    if (x < Real(0.6))
    {
        // the difference below would cancel
        const Real sum = static_cast<Real>(M_2_SQRTPI) * gaussianSeries < 0,
                   sizeof(Real) == 4 ? 8 : 16 > (u);
        return { sum * (scale * scale * scale), edge * scale };
    }
    return { (std::erf(x) - x * edge) * inverse * (inverse * inverse), edge * scale };
}

//! (1 - (1 + x/2) exp(-x))/r; the same parameters.
template<class Real>
FARFIELD_HD SmoothTerms<Real> tholeTerms(Real x, Real inverse, Real scale)
{
    const Real decay  = std::exp(-x);
    const Real excess = (1 + x) * Real(0.5) * decay * scale;
    if (x < Real(1.2))
    {
        const Real sum = decay * (Real(1) / 6) * tholeSeries < 0, sizeof(Real) == 4 ? 11 : 20 > (x);
        return { sum * (scale * scale * scale), excess };
    }
    return { (1 - (1 + x * (1 + x * Real(0.5))) * decay) * inverse * (inverse * inverse), excess };
}

//! (b^6 + r^6)^(-1/6); the same parameters.
template<class Real>
FARFIELD_HD SmoothTerms<Real> softCoreTerms(Real x, Real inverse, Real scale)
{
    const bool inside = x < 1;
    const Real least  = inside ? x : 1 / x;
    const Real square = least * least;
    const Real u      = square * square * square;
    const Real power  = std::exp2(std::log2(1 + u) * (Real(-7) / 6));
    if (inside)
    {
        return { square * square * power * (scale * scale * scale), power * scale };
    }
    return { power * inverse * (inverse * inverse), u * power * inverse };
}

/*! \brief The terms of a function other than 1/r.
 *  \param[in] r2       squared distance, nm^2
 *  \param[in] inverse  1/r, 1/nm; any number at r = 0
 *  \param[in] scale    1/b, 1/nm */
template<class Real>
FARFIELD_HD SmoothTerms<Real> smoothTerms(PairFunction function, Real r2, Real inverse, Real scale)
{
    const Real x = r2 * inverse * scale;
    return function == PairFunction::Gaussian ? gaussianTerms(x, inverse, scale)
           : function == PairFunction::Thole  ? tholeTerms(x, inverse, scale)
                                              : softCoreTerms(x, inverse, scale);
}

/*! \brief What a function makes of 1/r and of its derivatives, which dipoles need.
 *
 *  With B0 = 1/r and B(k + 1) = -(1/r) dB(k)/dr, factor k is that of B(k). */
template<class Real>
struct DerivativeFactors
{
    Real of[4];
};

/*! \brief Those of Gaussian and Thole.
 *
 *  With E = exp(-x) of Thole, 1 - (1 + x + x^2/2 + x^3/6) E is the factor of B2, and its neighbours differ from it by
 *  single terms; those of Gaussian charges likewise. Where x is small the terms that are left are summed.
 *  \param[in] x  distance in widths */
template<class Real>
FARFIELD_HD DerivativeFactors<Real> derivativeFactors(PairFunction function, Real x)
{
    constexpr int c_terms = sizeof(Real) == 4 ? 18 : 40;
    const bool isThole    = function == PairFunction::Thole;
    const Real square     = x * x;
    const Real cube       = square * x;
    const Real e      = isThole ? std::exp(-x) : static_cast<Real>(M_2_SQRTPI) * std::exp(-square);
    const Real first  = isThole ? (x + square) / 2 * e : x * e;
    const Real second = static_cast<Real>(isThole ? 1.0 / 6 : 2.0 / 3) * cube * e;
    const Real third =
            static_cast<Real>(isThole ? 1.0 / 30 : 4.0 / 15) * cube * (isThole ? x : square) * e;
    Real ofB2 = 0;
    if (x < Real(1.5))
    {
        // of Thole the sum of x^k/k! from k = 4 on; of Gaussian that of 2^k x^(2k + 1)/(2k + 1)!!, from k = 2 on
        Real term = isThole ? cube * x / 24 * e : third;
        for (int k = 5; k < c_terms; k++)
        {
            ofB2 += term;
            term *= isThole ? x / static_cast<Real>(k) : 2 * square / static_cast<Real>(2 * k - 3);
        }
    }
    else
    {
        ofB2 = (isThole ? 1 - (1 + x + square / 2) * e : std::erf(x) - x * e) - second;
    }
    return { { ofB2 + second + first, ofB2 + second, ofB2, ofB2 - third } };
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
    const Real inverse = r2 > 0 ? 1 / std::sqrt(r2) : Real(1);
    const auto terms   = smoothTerms(function, r2, inverse, 1 / width);
    return { terms.excess + r2 * terms.slope, terms.slope };
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
