/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The logarithm of the gamma function, for threads.
 */
#ifndef FARFIELD_BASE_LOG_GAMMA_H
#define FARFIELD_BASE_LOG_GAMMA_H

#include <cmath>

namespace farfield
{

//! ln Gamma(x), x > 0. std::lgamma() writes to a variable that all threads share.
inline double logGamma(double x)
{
    int sign = 0;
    return ::lgamma_r(x, &sign);
}

//! sqrt((l+m)! (l-m)!)
inline double rootOfFactorials(int l, int m)
{
    return std::exp(0.5 * (logGamma(l + m + 1.0) + logGamma(l - m + 1.0)));
}

} // namespace farfield

#endif
