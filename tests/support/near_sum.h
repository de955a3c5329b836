/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over pairs that have another function of the distance than 1/r.
 */
#ifndef FARFIELD_TESTS_NEAR_SUM_H
#define FARFIELD_TESTS_NEAR_SUM_H

#include <functional>

#include "reference.h"

namespace farfield
{
namespace test
{

//! f(r) and -f'(r)/r, 1/nm and 1/nm^3.
struct NearTerms
{
    long double value, slope;
};
//! A function of the distance and the width of a pair, nm. \param[in] r  may be 0
using NearLaw = NearTerms (*)(long double r, long double b);
NearTerms smearedPair(long double r, long double b);  //!< erf(r/b)/r
NearTerms tholePair(long double r, long double b);    //!< (1 - (1 + r/2b) exp(-r/b))/r
NearTerms softCorePair(long double r, long double b); //!< (b^6 + r^6)^(-1/6)

/*! \brief The nearest image of r_i - r_j along the first box vectors, nm.
 *  \param[in] images  axes with images: 0, 2 or 3 of them */
Vector nearestImage(const System& system, int images, int i, int j);
/*! \brief Whether two images of r_i - r_j are equally near.
 *
 *  Which of the two is excluded, or has another function, is not defined then.
 *  \param[in] rounding  of distances, over the largest position or box vector */
bool hasTwoNearestImages(const System& system, int images, int i, int j, double rounding);

//! The width of two particles, nm; 0: they have 1/r.
using WidthOfPair = std::function<double(int i, int j)>;

/*! \brief The sum over all pairs, of which the nearest images have another function.
 *
 *  Pairs that are nearer than their width are left out of the sum of 1/r, which may not exist.
 *  \param[in] images   axes with images: 0, 2 or 3 of them
 *  \param[in] coulomb  the sum of 1/r of a system with excluded pairs */
Evaluation withNearLaw(const System& system,
                       NearLaw law,
                       const WidthOfPair& width,
                       int images,
                       const std::function<Evaluation(const System&)>& coulomb);

/*! \brief The sum over wave vectors of a neutral system whose pairs all have erf(r/b)/r:
 *
 *      E = 2 pi k/V sum |S(k)|^2 exp(-k^2 b^2/4)/k^2 - k sum q^2/(sqrt(pi) b)
 *
 *  No pair is summed. Excluded pairs are not left out. */
Evaluation smearedEwald(const System& system, double b);

} // namespace test
} // namespace farfield

#endif
