/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Expansions of cells in polynomials of a total degree, for any kernel.
 *
 *  With xi the coordinates in a cell, from -1/2 to 1/2, P_k(xi) = (2k+1)^(1/2) times Legendre's polynomial of 2 xi,
 *  and P_a(xi) = P_i(xi_x) P_j(xi_y) P_k(xi_z), i + j + k <= p:
 *
 *      M_a = sum q P_a(xi),   phi(xi) = sum_a L_a P_a(xi),   L = K M,
 *      K_ab(D) = int int P_a(xi) G(|(D + xi - eta) A|) P_b(eta),
 *
 *  the best approximation in both cells, with A the edges of a cell as rows and D the displacement of the target
 *  from the source. G depends on w = xi - eta alone, so that the integral over six dimensions is one over three:
 *
 *      K_ab(D) = int G(|(D + w) A|) c_ii'(w_x) c_jj'(w_y) c_kk'(w_z),   c_ij(w) = int P_i(xi) P_j(xi - w).
 *
 *  A reflection of a rectangular cell changes signs of coefficients; the inversion of any cell changes those of odd
 *  degree.
 */
#ifndef FARFIELD_PAIR_KERNELS_LEGENDRE_BASIS_H
#define FARFIELD_PAIR_KERNELS_LEGENDRE_BASIS_H

#include <functional>
#include <vector>

#include "base/vectors.h"

namespace farfield
{

//! The most that is supported.
constexpr int c_mostDegree = 14;

//! Coefficients of polynomials of a total degree.
constexpr int polynomialCount(int degree)
{
    return (degree + 1) * (degree + 2) * (degree + 3) / 6;
}

class LegendreBasis
{
public:
    explicit LegendreBasis(int degree);

    int count() const { return static_cast<int>(powers_.size()); }
    //! i, j and k of each coefficient, k the fastest.
    const std::vector<Int3>& powers() const { return powers_; }
    //! i + j + k of each coefficient.
    std::vector<int> degrees() const;
    //! Signs of the coefficients where axes are mirrored: bits 1 x, 2 y, 4 z.
    std::vector<int> signs(int axes) const;

    //! The coefficient with the powers of each one along other axes: of a_x, a_y, a_z that with a_axes[0], ...
    std::vector<int> permuted(const Int3& axes) const;

    /*! \brief K(D).
     *  \param[in] edges     of a cell, rows
     *  \param[in] function  G of the distance */
    Matrix interaction(const Mat3& edges,
                       const Int3& D,
                       const std::function<double(double)>& function) const;
    /*! \brief The same for several functions of the displacement of two points.
     *  \param[in] functions  called with the displacement, writes the value of each */
    std::vector<Matrix>
    interactions(const Mat3& edges,
                 const Int3& D,
                 int count,
                 const std::function<void(const Vec3&, double*)>& functions) const;
    //! M of the parent = this M of the child in an octant, see octantOf(); L of the child = its transpose L.
    Matrix childToParent(int octant) const;
    //! Integrals of P_a exp(i k xi) without their factors i^(i+j+k). \param[in] k  phase per edge of the cell
    std::vector<double> transforms(const Vec3& k) const;
    //! Those of P_0 to P_p along one axis.
    std::vector<double> transformsAlong(double k) const;

private:
    //! K(D) of values at the nodes, [x][y, z].
    Matrix projected(const Matrix& values) const;

    int degree_;
    std::vector<Int3> powers_;
    std::vector<double> nodes_; //!< of w
    Matrix products_;           //!< [(p+1)^2][nodes] c_ij(w) times the weight of the node
};

} // namespace farfield

#endif
