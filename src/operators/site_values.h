/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What sites have: moments, values of the potential and of its derivatives, and their order in arrays.
 */
#ifndef FARFIELD_OPERATORS_SITE_VALUES_H
#define FARFIELD_OPERATORS_SITE_VALUES_H

namespace farfield
{

//! Components of moments up to a degree.
constexpr int momentCount(int degree)
{
    return degree == 0 ? 0 : degree == 1 ? 3 : 9;
}

/*! \brief The values of a site: potential, gradient, second derivatives xx yy zz xy xz yz, and with quadrupoles
 *         third derivatives times its own theta, three. */
constexpr int c_siteValues = 13;
//! Those without second derivatives, and those without third ones.
constexpr int c_flatValues = 4, c_curvedValues = 10;
//! How many there are. \param[in] degree  of moments \param[in] isCurved  whether there are second derivatives
constexpr int siteValueCount(int degree, bool isCurved)
{
    return !isCurved ? c_flatValues : degree < 2 ? c_curvedValues : c_siteValues;
}
//! Coefficients of an expansion that derivatives of a degree leave. \param[in] order  of the expansion
constexpr int derivativeCount(int order, int degree)
{
    return order > degree - 1 ? (order - degree + 1) * (order - degree + 1) : 0;
}
//! Axes of second derivatives, see above.
constexpr int firstAxis(int component)
{
    return component < 3 ? component : component < 5 ? 0 : 1;
}
constexpr int secondAxis(int component)
{
    return component < 3 ? component : component < 4 ? 1 : 2;
}
//! Which component has two axes.
constexpr int componentOf(int a, int b)
{
    return a == b ? a : a + b + 2;
}

/*! \brief Third derivatives that are independent: xxx xxy xxz xyy yyy yyz xyz, of second ones along an axis.
 *
 *  The trace over any two axes is 0. */
constexpr int c_thirds = 7;
constexpr int secondOfThird(int third)
{
    return third < 3 ? 0 : third < 6 ? 1 : 3;
}
constexpr int axisOfThird(int third)
{
    return third < 6 ? third % 3 : 2;
}

} // namespace farfield

#endif
