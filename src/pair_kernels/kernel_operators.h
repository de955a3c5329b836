/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The operators of a kernel between cells, for CellTree and CellConvolution.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_OPERATORS_H
#define FARFIELD_PAIR_KERNELS_KERNEL_OPERATORS_H

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

//! Those of interactionList(). \param[in] scale  of the kernel \param[in] edges  of a cell, rows
template<class Real>
std::vector<KernelOperator<Real>> kernelOperators(const LegendreBasis& basis,
                                                  const PairKernel& kernel,
                                                  double scale,
                                                  const Mat3& edges,
                                                  int ws,
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
    /*! \param[in] grid      cells of the box
     *  \param[in] ws        cells up to this displacement are near
     *  \param[in] scale     of the kernel
     *  \param[in] accuracy  of the sums, relative to their largest terms
     *  \param[in] threads   OpenMP threads */
    PeriodicKernelSums(const LegendreBasis& basis,
                       const PairKernel& kernel,
                       const Grid& grid,
                       int ws,
                       double scale,
                       double accuracy,
                       int threads);

    //! Calls use(k, kappa), by several threads, for the representatives [first, end).
    void forEach(const WaveVectors& waves,
                 int first,
                 int end,
                 const std::function<void(int, const Matrix&)>& use) const;

private:
    //! Representatives whose wave vectors have two components in common.
    using Row = std::vector<int>;
    std::vector<Row> rowsOf(const WaveVectors& waves, int first, int end) const;
    //! Calls use(k, kappa) for a row.
    void kappas(const WaveVectors& waves,
                const Row& row,
                const std::function<void(int, const Matrix&)>& use) const;
    //! Adds the sum over waves.
    void addWaves(const Vec3& phases, Matrix* kappa) const;

    const LegendreBasis& basis_;
    const PairKernel& kernel_;
    Grid grid_;
    double scale_;
    double splitting_   = 0; //!< b, 1/length
    double longestWave_ = 0; //!< 1/length
    int threads_;
    std::vector<int> degrees_;
    std::vector<Int3> displacements_; //!< one of each pair D, -D
    std::vector<Matrix> terms_;       //!< of real space
};

} // namespace farfield

#endif
