/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Operators built at a high order and reduced to the order in use.
 *
 *  K_p = A K_high A^T with A = [1 | C] instead of truncation: the multipoles beyond order p are
 *  estimated from those below, and the local expansion is fitted over the cell. The same A on both
 *  sides keeps forces conservative.
 */
#ifndef FARFIELD_OPERATORS_REDUCTION_H
#define FARFIELD_OPERATORS_REDUCTION_H

#include <Eigen/Sparse>

#include "operators/solid_harmonics.h"

namespace farfield
{

//! Orders at which operators are built beyond the order in use.
constexpr int c_extraOrders = 4;

//! A = [1 | C]; C is empty without least squares.
class Reduction
{
public:
    /*! \param[in] order         the order in use
     *  \param[in] leastSquares  false: plain truncation
     *  \param[in] cell          edges of a cell as rows, in units of its size */
    Reduction(int order, bool leastSquares, const Eigen::Matrix3d& cell);

    int order() const { return order_; }
    int highOrder() const { return highOrder_; }
    bool leastSquares() const { return highOrder_ > order_; }
    //! C, coefficientCount(order) x (coefficientCount(highOrder) - coefficientCount(order)).
    const Eigen::SparseMatrix<double>& C() const { return C_; }
    //! C between coefficients with phases (-i)^l.
    const Eigen::SparseMatrix<double>& phasedC() const { return phasedC_; }
    //! A K A^T; phased: K acts on coefficients with phases (-i)^l.
    Matrix reduce(const Matrix& K, bool phased) const;

private:
    int order_;
    int highOrder_;
    Eigen::SparseMatrix<double> C_, phasedC_;
};

} // namespace farfield

#endif
