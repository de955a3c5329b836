/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Real solid harmonics and the operators on expansions in them, in double precision.
 *
 *  The basis. With Racah-normalised complex harmonics C_lm (Condon-Shortley phase), the regular
 *  functions are u_lm = sqrt(2) Re r^l C_lm and u_l,-m = sqrt(2) Im r^l C_lm (m > 0), u_l0 = r^l
 *  C_l0; the irregular ones are v_i = u_i / r^(2l+1). Then, for |a| < |r|,
 *
 *      1/|r - a| = sum_i u_i(a) v_i(r),
 *
 *  a multipole expansion is M_i = sum_a q_a u_i(a), a local expansion phi(b) = sum_i L_i u_i(b),
 *  and M2L is a real matrix T(D), L = T(D) M, with
 *
 *      1/|D + b - a| = sum_ij u_i(b) T_ij(D) u_j(a).
 *
 *  Lengths are in units of the edge of a cell, so that operators do not depend on the level.
 *  White and Head-Gordon, J. Chem. Phys. 101, 6593 (1994), doi:10.1063/1.468354;
 *  Gumerov and Duraiswami, J. Comput. Phys. 227, 8290 (2008), doi:10.1016/j.jcp.2008.05.023.
 */
#ifndef FARFIELD_OPERATORS_SOLID_HARMONICS_H
#define FARFIELD_OPERATORS_SOLID_HARMONICS_H

#include <array>
#include <vector>

#include "base/vectors.h"

namespace farfield
{

//! Number of coefficients of an expansion of order p.
constexpr int coefficientCount(int p)
{
    return (p + 1) * (p + 1);
}

//! Position of u_lm in an expansion, -l <= m <= l.
constexpr int coefficientIndex(int l, int m)
{
    return l * l + l + m;
}

//! Degree l of the coefficient at position i.
int degreeOf(int i);

//! Writes u_i(r), i < coefficientCount(p), to u.
void solidHarmonics(int p, const Vec3& r, double* u);

/*! \brief The recurrence by which kernels evaluate u_i without divisions.
 *
 *  u_lm = scale[i] A_lm with A_mm = (x + iy)^m, A_(l+1)m = z A_lm - beta_lm r^2 A_(l-1)m and
 *  beta_lm = (l^2 - m^2) / (4 l^2 - 1); m > 0 takes the real, m < 0 the imaginary part. */
struct MonicRecurrence
{
    explicit MonicRecurrence(int p);
    std::vector<double> scale; //!< [coefficientCount(p)]
    std::vector<double> beta;  //!< [(p+1)(p+1)], element l (p+1) + m
};

//! One term of a derivative: d u_from / d x_axis contains value * u_to.
struct DerivativeTerm
{
    int axis;
    int from;
    int to;
    double value;
};

//! All terms of the gradients of u_i, i < coefficientCount(p).
std::vector<DerivativeTerm> derivativeTerms(int p);

/*! \brief T_ij as a combination of at most two irregular harmonics.
 *
 *  T_ij(D) = sum_k value[k] v_index[k](D) with v of degree l_i + l_j. */
struct M2lEntry
{
    std::array<int, 2> index    = { 0, 0 };
    std::array<double, 2> value = { 0, 0 };
};

//! The entries of T for orders up to p: row-major, coefficientCount(p) squared.
std::vector<M2lEntry> m2lEntries(int p);

//! T(D) from the irregular harmonics v (up to degree 2p) of D.
Matrix m2lMatrix(const std::vector<M2lEntry>& entries, int p, const double* v);

//! Writes v_i(r), i < coefficientCount(p), to v; r != 0.
void irregularHarmonics(int p, const Vec3& r, double* v);

/*! \brief Translation of regular harmonics: u_i(a + s) = sum_j S_ij u_j(a).
 *
 *  Projected on the unit sphere, where the u_j are orthogonal with norm 4 pi / (2l + 1), by an
 *  exact quadrature. */
Matrix translation(int p, const Vec3& s);

/*! \brief Least-squares reduction of harmonics of degree <= high to degree <= p over a cell.
 *
 *  A = [1 | C]: over the parallelepiped spanned by the rows of cell, centred at the origin, u_j of
 *  degree > p is best replaced by sum_i C_ij u_i of degree <= p (L2 norm of the value).
 *  \returns C, coefficientCount(p) x (coefficientCount(high) - coefficientCount(p)) */
Matrix leastSquaresReduction(int p, int high, const Eigen::Matrix3d& cell);

} // namespace farfield

#endif
