/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The operators of a kernel between cells, for CellTree and CellConvolution.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_OPERATORS_H
#define FARFIELD_PAIR_KERNELS_KERNEL_OPERATORS_H

#include <array>
#include <functional>
#include <vector>

#include "base/aligned_vector.h"
#include "cells/interaction_list.h"
#include "cells/wave_vectors.h"
#include "pair_kernels/legendre_basis.h"
#include "pair_kernels/pair_kernel.h"

namespace farfield
{

//! L of a target from M of the source that is displaced from it.
template<class Real>
struct KernelOperator : ListDisplacement
{
    AlignedVector<Real> T; //!< row-major
};

/*! \brief a and b of derivatives by a strain: places x become x + x e with a matrix e, and K' = dK/de_ab.
 *
 *  Coordinates in cells stay as they are, and with them all expansions. */
constexpr std::array<std::array<int, 2>, 6> c_strains = {
    { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 0, 1 }, { 0, 2 }, { 1, 2 } }
};

//! What operators are made of: 0 the kernel, 1 + c its derivative by the strain c.
constexpr int c_derivatives = 1 + static_cast<int>(c_strains.size());

//! The sign that a derivative has where axes are mirrored, beside those of coefficients: bits 1 x, 2 y, 4 z.
constexpr int signOfDerivative(int derivative, int axes)
{
    const auto isMirrored = [&](int which)
    { return derivative > 0 && ((axes >> c_strains[derivative - 1][which]) & 1); };
    return isMirrored(0) == isMirrored(1) ? 1 : -1;
}

/*! \brief Those of interactionList().
 *  \param[in] scale        of the kernel
 *  \param[in] edges        of a cell, rows
 *  \param[in] derivatives  1, or c_derivatives
 *  \returns so many lists */
template<class Real>
std::vector<std::vector<KernelOperator<Real>>> kernelOperators(const LegendreBasis& basis,
                                                               const PairKernel& kernel,
                                                               double scale,
                                                               const Mat3& edges,
                                                               int ws,
                                                               int derivatives,
                                                               int threads);

/*! \brief The matrices kappa of CellConvolution: all cells with all of their images but the near ones.
 *
 *  Ewald sums of the basis: displacements D in real space, and waves.
 *
 *      kappa(k) = sum_D,far K_sharp(D) exp(-i k.D) - sum_D,near K_smooth(D) exp(-i k.D)
 *                 + sum_q smooth^(q) P^_a(q) P^_b(q)* / V,   q = k + reciprocal vectors of a cell.
 */
class PeriodicKernelSums
{
public:
    /*! \param[in] grid         cells of the box
     *  \param[in] ws           cells up to this displacement are near
     *  \param[in] scale        of the kernel
     *  \param[in] accuracy     of the sums, relative to their largest terms
     *  \param[in] derivatives  1, or c_derivatives
     *  \param[in] threads      OpenMP threads */
    PeriodicKernelSums(const LegendreBasis& basis,
                       const PairKernel& kernel,
                       const Grid& grid,
                       int ws,
                       double scale,
                       double accuracy,
                       int derivatives,
                       int threads);

    //! Takes all kappa of a representative, of the kernel and of its derivatives.
    using Use = std::function<void(int, const std::vector<Matrix>&)>;
    //! Calls use(k, kappas), by several threads, for the representatives [first, end).
    void forEach(const WaveVectors& waves, int first, int end, const Use& use) const;

private:
    //! Representatives whose wave vectors have two components in common.
    using Row = std::vector<int>;
    std::vector<Row> rowsOf(const WaveVectors& waves, int first, int end) const;
    //! Calls use(k, kappas) for a row.
    void kappas(const WaveVectors& waves, const Row& row, const Use& use) const;
    //! Sums over waves.
    std::vector<Matrix> sumsOverWaves(const Vec3& phases) const;

    const LegendreBasis& basis_;
    const PairKernel& kernel_;
    Grid grid_;
    double scale_;
    double splitting_   = 0; //!< b, 1/length
    double longestWave_ = 0; //!< 1/length
    int derivatives_, threads_;
    std::vector<int> degrees_;
    std::vector<Int3> displacements_;        //!< one of each pair D, -D
    std::vector<std::vector<Matrix>> terms_; //!< of real space, [derivatives][displacements]
};

} // namespace farfield

#endif
