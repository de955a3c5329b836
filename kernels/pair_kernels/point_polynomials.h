/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Multipoles of leaves from points (P2M), and fields of points from local expansions (L2P), on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_POINT_POLYNOMIALS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_POINT_POLYNOMIALS_H

#include "pair_kernels/legendre_basis.h"
#include "pair_kernels/point_kernels.h"
#include "pair_kernels/points_in_leaves.h"

namespace farfield
{

//! The polynomials, for kernels. Plain data.
template<class Real>
struct PolynomialsView
{
    CellPolynomials<Real> cells;
    int coefficients;
    const int* powers;   //!< [coefficients] i | j << 8 | k << 16
    const Real* factors; //!< [coefficients] of polynomials, over those of the recurrence
    Real ofLast[c_mostDegree + 1],
            ofBefore[c_mostDegree + 1]; //!< P_k+1 = ofLast[k] t P_k - ofBefore[k] P_k-1
};

template<class Real>
class PolynomialsOnDevice
{
public:
    void set(const LegendreBasis& basis, cudaStream_t stream);
    PolynomialsView<Real> view(const CellPolynomials<Real>& cells) const;

private:
    DeviceBuffer<int> powers_;
    DeviceBuffer<Real> factors_;
};

/*! \brief Multipoles of leaves that hold points, from charges beside positions.
 *  \param[in]  slots  [leaves] where multipoles of each go; null: in order
 *  \param[out] M      [slots][stride] */
template<class Real>
void pointsToMultipoles(const PolynomialsView<Real>& polynomials,
                        const LeavesView<Real>& points,
                        const int* slots,
                        Real* M,
                        int stride,
                        cudaStream_t stream);

/*! \brief Adds potentials and fields of local expansions.
 *  \param[in]     L       [slots][stride]
 *  \param[in]     factor  of potentials; that of fields is divided by the unit of length
 *  \param[in,out] sums    [4][points] sorted */
template<class Real>
void localsToPoints(const PolynomialsView<Real>& polynomials,
                    const LeavesView<Real>& points,
                    const int* slots,
                    const Real* L,
                    int stride,
                    double factor,
                    double unit,
                    double* sums,
                    cudaStream_t stream);

} // namespace farfield

#endif
