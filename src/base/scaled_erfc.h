/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The polynomial that gives erfc() of pairs. For host and device.
 */
#ifndef FARFIELD_BASE_SCALED_ERFC_H
#define FARFIELD_BASE_SCALED_ERFC_H

namespace farfield
{

//! exp(x^2) erfc(x) for x >= 0, in powers of (1 - 3 x/8)/(1 + 3 x/8): Remez's algorithm with the weight
//! exp(-x^2), off by 1.5e-9 in erfc(x).
template<class Real>
struct ScaledErfc
{
    static constexpr int c_degree   = 6;
    Real coefficients[c_degree + 1] = { 0.1990711452F,   0.3555440365F,  0.2505634336F,
                                        0.1365073433F,   0.04858150104F, 0.0144088568F,
                                        -0.004676317763F };
};
//! The same, off by 6e-18.
template<>
struct ScaledErfc<double>
{
    static constexpr int c_degree     = 15;
    double coefficients[c_degree + 1] = { 0.199072630993863642,    0.355511831795289395,
                                          0.250830286495533812,    0.135363728378291363,
                                          0.051403748664281705,    0.0102831687450959752,
                                          -0.00125527662079070547, -0.00129453941548001616,
                                          -6.58398643517738559e-5, 1.53204142406099477e-4,
                                          1.96464561756348999e-5,  -2.47400463038415466e-5,
                                          -1.50293539387779208e-6, 5.19804021069529545e-6,
                                          -1.75417177399800473e-6, 2.09342945895130222e-7 };
};
template<class Real>
inline constexpr ScaledErfc<Real> c_scaledErfc = {};

} // namespace farfield

#endif
