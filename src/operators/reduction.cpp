/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/reduction.h"

#include <cmath>

namespace farfield
{

Reduction::Reduction(int order, bool leastSquares, const Eigen::Matrix3d& cell) :
    order_(order), highOrder_(leastSquares ? order + c_extraOrders : order)
{
    const int n = coefficientCount(order_);
    const int N = coefficientCount(highOrder_);
    C_.resize(n, N - n);
    phasedC_.resize(n, N - n);
    if (!leastSquares)
    {
        return;
    }
    const Matrix dense = leastSquaresReduction(order_, highOrder_, cell);
    std::vector<Eigen::Triplet<double>> plain, phased;
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j < N - n; j++)
        {
            // symmetries of the cell leave zeros, up to rounding
            if (std::abs(dense(i, j)) > 1e-12)
            {
                const double sign = ((degreeOf(n + j) - degreeOf(i)) / 2 % 2) ? -1 : 1;
                plain.emplace_back(i, j, dense(i, j));
                phased.emplace_back(i, j, sign * dense(i, j));
            }
        }
    }
    C_.setFromTriplets(plain.begin(), plain.end());
    phasedC_.setFromTriplets(phased.begin(), phased.end());
}

Matrix Reduction::reduce(const Matrix& K, bool phased) const
{
    const int n = coefficientCount(order_);
    const int N = coefficientCount(highOrder_);
    if (N == n)
    {
        return K;
    }
    const auto& C = phased ? phasedC_ : C_;
    Matrix right  = K.leftCols(n);
    if (8 * C.nonZeros() < 3 * C.size())
    {
        right += K.rightCols(N - n) * C.transpose();
        return right.topRows(n) + C * right.bottomRows(N - n);
    }
    // a sheared cell has inversion as its only symmetry, which leaves half of the elements
    const Matrix dense = C;
    right.noalias() += K.rightCols(N - n) * dense.transpose();
    return right.topRows(n) + dense * right.bottomRows(N - n);
}

} // namespace farfield
