/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The polynomial that gives erfc() of pairs. For host and device.
 */
#ifndef FARFIELD_BATCH_SCALED_ERFC_H
#define FARFIELD_BATCH_SCALED_ERFC_H

namespace farfield
{

//! Of a polynomial in s = alpha - beta / (x + middle) for exp(x^2) erfc(x), 0 <= x <= 6.
template<class Real>
struct ScaledErfc
{
    static constexpr int c_degree = sizeof(Real) == 4 ? 9 : 18;
    Real coefficients[c_degree + 1];
    Real alpha, beta, middle;
};
template<class Real>
const ScaledErfc<Real>& scaledErfc();

} // namespace farfield

#endif
