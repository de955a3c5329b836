/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Products of coefficients, for the virial of the periodic M2L.
 *
 *  sum_ij x_i T_ij x_j with T_ij a combination of harmonics v_LK, L = l_i + l_j, of the
 *  displacement is sum_LK v_LK g_LK, where g collects the products x_i x_j. For several T of that
 *  kind, such as the strain derivatives, g is needed once. In complex harmonics that are normalised
 *  suitably,
 *
 *      g_LK = sum_{l + l' = L} sum_{m + m' = K} x_lm x_l'm':
 *
 *  all factors are 1 (White and Head-Gordon, J. Chem. Phys. 101, 6593 (1994),
 *  doi:10.1063/1.468354). So products are summed over l at fixed m and m', a convolution of two
 *  sequences, and the sums alone are handed to the harmonics. In real harmonics, with c and s for
 *  those of m and -m,
 *
 *      L, m' + m:  cc - ss,  -(m' + m):  cs + sc,
 *      L, m' - m:  (-1)^m (cc + ss),  -(m' - m):  (-1)^m (cs - sc),
 *
 *  twice for m != m', and nothing for the sine of m = m'.
 */
#ifndef FARFIELD_OPERATORS_PRODUCT_TABLE_H
#define FARFIELD_OPERATORS_PRODUCT_TABLE_H

#include <vector>

#include "operators/reduction.h"

namespace farfield
{

/*! \brief Order of the coefficients of which the virial takes products, see m2l_periodic.h.
 *  \param[in] order      in use
 *  \param[in] highOrder  at which operators are made */
int virialOrder(int order, int highOrder);
inline int virialOrder(const Reduction& reduction)
{
    return virialOrder(reduction.order(), reduction.highOrder());
}

//! For coefficients with phases (-i)^l, see m2l_periodic.h.
template<class Real>
struct ProductTable
{
    //! One part of a coefficient.
    struct Source
    {
        int from;
        Real value;
    };

    ProductTable() = default;
    /*! \param[in] p          order of the coefficients
     *  \param[in] reduction  of its order are the coefficients that are given; those beyond are
     *                        what its C makes of them */
    ProductTable(int p, const Reduction& reduction);

    int order  = 0;
    int places = 0; //!< for cosines and sines
    //! [order + 1] For every m the place where degree 0 would be; degrees m to p are there, and
    //! room for a zero on either side of them.
    std::vector<int> offset;
    //! Sources of all coefficients, scaled: those of i are at start[i] to start[i + 1].
    std::vector<Source> sources;
    std::vector<int> start, place;   //!< place: a cosine's is even, its sine's one more
    std::vector<Real> harmonicScale; //!< [coefficientCount(2 order)] of the products
};

} // namespace farfield

#endif
