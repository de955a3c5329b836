/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Local expansions of all cells of a box as a convolution of their multipoles, whatever the
 *         expansions are.
 *
 *  Transformed over the group of cells, the convolution is the product with a matrix per wave vector.
 *  With X_j = (-i)^l_j M_j and Y_i = i^l_i (kappa X)_i, kappa is real and symmetric where coefficients
 *  of degree l have the parity of l.
 */
#ifndef FARFIELD_CPU_CELL_CONVOLUTION_H
#define FARFIELD_CPU_CELL_CONVOLUTION_H

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/fft.h"
#include "base/team.h"
#include "cells/wave_vectors.h"
#include "cpu/cpu_kernels.h"
#include "operators/solid_harmonics.h"
#include "parallel/share.h"

namespace farfield
{

template<class Real>
class CellConvolution
{
public:
    //! Neighbouring representatives and their copies: lanes of one vector.
    struct Block
    {
        int members;      //!< lanes in use
        int waves[4][16]; //!< per copy and lane: the wave vector, -1 for none
    };
    //! Coefficients with their phases, see CpuKernels::multiply.
    struct Scratch
    {
        AlignedVector<Real> x, y;
    };

    /*! \param[in] grid     cells, slots in the order of Grid::slot()
     *  \param[in] waves    of the grid
     *  \param[in] degrees  l of each coefficient
     *  \param[in] signs    of the coefficients of each copy: signs[copy][i]
     *  \param[in] team     does the work
     *  \param[in] share    the wave vectors that multiply() works on */
    CellConvolution(const Grid& grid,
                    const WaveVectors& waves,
                    std::vector<int> degrees,
                    std::array<std::vector<Real>, 4> signs,
                    Team* team,
                    const Share& share = {});

    /*! \brief Takes the matrices of the representatives [first(), end()).
     *  \param[in] forEach  called with a function, to be called as use(representative, kappa), by
     *                      several threads, for each of them */
    template<class ForEach>
    void setOperators(const ForEach& forEach);
    //! Packed operators: [blocks][pairs of coefficients][lanes], see forPackedPairs().
    AlignedVector<Real>& packed() { return kappa_; }
    //! Room for others, and writes the matrix of a representative there.
    AlignedVector<Real> roomForPacked() const
    {
        return AlignedVector<Real>(blocks_.size() * pairs() * lanes_, Real(0));
    }
    void pack(int representative, const Matrix& K, AlignedVector<Real>* packed) const;

    //! \name The three steps
    //!@{
    //! \param[in] fields  [last - first][stride] of the coefficients [first, last)
    void forward(const Real* fields, int stride, int first, int last);
    void multiply();
    //! The product of a copy of a block. \param[in] use  called with the coefficients of the copy
    template<class Use>
    void multiply(int block, int copy, Scratch* scratch, const Use& use);
    //! \param[out] fields  [last - first][stride]
    void backward(Real* fields, int stride, int first, int last);
    //!@}

    /*! \brief Sums of M times L over all cells, after forward(), for several sets of operators.
     *  \param[in] packed  the sets
     *  \param[in] grid    the cells
     *  \param[in] signs   signs[set][copy]: operators of a copy have the sign beside those of coefficients
     *  \returns one sum for each set */
    std::vector<double> products(const std::vector<const AlignedVector<Real>*>& packed,
                                 const Grid& grid,
                                 const std::vector<std::array<int, 4>>& signs);

    //! [coefficients][2 spectrumStride()]
    Real* spectrum() { return spectrum_.data(); }
    int spectrumStride() const { return transform_.spectrumStride(); }
    //! The wave vectors of a share, in an order that is the same for whoever asks.
    std::vector<int> waves(const Share& share) const;

    const std::vector<Block>& blocks() const { return blocks_; } //!< of the share
    int lanes() const { return lanes_; }
    int first() const { return first_; } //!< representative
    int end() const
    {
        return std::max(first_,
                        std::min(first_ + static_cast<int>(blocks_.size()) * lanes_,
                                 waves_.representatives()));
    }

private:
    //! Blocks of wave vectors in all shares.
    int allBlocks() const { return (waves_.representatives() + lanes_ - 1) / lanes_; }
    int coefficients() const { return static_cast<int>(degrees_.size()); }
    //! Pairs of coefficients.
    size_t pairs() const { return degrees_.size() * (degrees_.size() + 1) / 2; }
    void listBlocks();
    //! Gathers a copy of a block, and makes room for what operators make of it. \returns whether it has wave vectors
    bool take(int block, int copy, Scratch* scratch) const;
    //! X_j = (-i)^l M_j of a copy of a block, with the signs of its reflection.
    void gather(const Block& block, int copy, Real* x) const;
    //! Y = i^l (kappa X) of a copy of a block, back to the spectrum.
    void scatter(const Block& block, int copy, const Real* y);

    WaveVectors waves_;
    std::vector<int> degrees_;
    std::array<std::vector<Real>, 4> signs_;
    Team& team_;
    std::vector<Scratch> scratch_; //!< of the threads
    int lanes_;
    Share share_;
    RealTransform<Real> transform_;
    std::vector<Block> blocks_;
    int first_ = 0;
    AlignedVector<Real> kappa_;
    AlignedVector<Real> spectrum_;
};

template<class Real>
template<class ForEach>
void CellConvolution<Real>::setOperators(const ForEach& forEach)
{
    kappa_ = roomForPacked();
    forEach([&](int representative, const Matrix& K) { pack(representative, K, &kappa_); });
}

template<class Real>
template<class Use>
void CellConvolution<Real>::multiply(int b, int copy, Scratch* scratch, const Use& use)
{
    if (!take(b, copy, scratch))
    {
        return;
    }
    cpuKernels<Real>().multiply(kappa_.data() + b * pairs() * lanes_,
                                coefficients(),
                                scratch->x.data(),
                                scratch->y.data());
    use(scratch->x.data());
    scatter(blocks_[b], copy, scratch->y.data());
}

} // namespace farfield

#endif
