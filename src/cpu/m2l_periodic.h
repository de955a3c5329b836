/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L over all far cells and their periodic images as one convolution over the cells of a
 *         box.
 *
 *  L(c) = sum_c' K(c - c') M(c') with K summed over the images of c' that are not near c.
 *  The matrices of cell_convolution.h follow from the lattice sums w of lattice_sums.h.
 *
 *  Conducting surroundings add -(4 pi / 3V) a.b to the harmonic part of the potential at b of a
 *  charge at a (both relative to their cell centres), a term at k = 0 only.
 *
 *  Virial: displacements of cells contribute half of the strain derivative of their energy,
 *  1/4 sum_k X* (d kappa / d strain) X. All elements of d kappa are combinations of the derivatives
 *  of a few lattice sums, so products of coefficients are added up by the sums that they multiply
 *  (product_table.h), and only those of each wave vector meet the five derivatives. With
 *  least-squares operators X is continued to higher orders first, as kappa does. Two of its four extra orders suffice: on water at orders 4
 *  to 16 the virial is then 1.05 to 1.9 times as far from the exact one as with all four (1.14 at
 *  order 8), where truncated operators would be 1.3 to 5 times as far, and the products, the dear
 *  part, are half as many.
 */
#ifndef FARFIELD_CPU_M2L_PERIODIC_H
#define FARFIELD_CPU_M2L_PERIODIC_H

#include <array>
#include <memory>
#include <vector>

#include "cpu/cell_convolution.h"
#include "operators/m2l_periodic_operators.h"

namespace farfield
{

//! The convolution for one grid of cells.
template<class Real>
class PeriodicM2l
{
public:
    /*! \brief Builds the operators (double precision).
     *  \param[in] grid       cells, slots in the order of Grid::slot()
     *  \param[in] boundary   which images they have
     *  \param[in] ws         direct range
     *  \param[in] reduction  order and least-squares operators
     *  \param[in] team       does the work
     *  \param[in] share      the wave vectors that multiply() works on */
    PeriodicM2l(const Grid& grid,
                Boundary boundary,
                int ws,
                const Reduction& reduction,
                Team* team,
                const Share& share = {});

    /*! \brief Local expansions of all cells from their multipoles.
     *  \param[in]  M  multipoles in units of Grid::unit(), [coefficients][stride]
     *  \param[out] L  local expansions in 1 / Grid::unit(), [coefficients][stride]
     *  \param[in]  stride  distance of coefficients, >= cells
     *  \param[out] virial  if not null, 1/2 dE / d strain of displacements, deviatoric part, in
     *                      1 / Grid::unit(), is added; periodic boundaries only */
    void apply(const Real* M, Real* L, int stride, std::array<double, StrainCount>* virial);

    /*! \name The three steps of apply(), for ranks that deal fields and wave vectors out among them
     *
     *  Spectra are complex numbers, spectrumStride() apart; multiply() needs those of all
     *  coefficients at the wave vectors of the share, and leaves the products there. */
    //!@{
    //! \param[in] fields  [last - first][stride] of the coefficients [first, last)
    void forward(const Real* fields, int stride, int first, int last)
    {
        convolution_.forward(fields, stride, first, last);
    }
    void multiply(std::array<double, StrainCount>* virial);
    //! \param[out] fields  [last - first][stride]
    void backward(Real* fields, int stride, int first, int last)
    {
        convolution_.backward(fields, stride, first, last);
    }
    //! [coefficients][2 spectrumStride()]
    Real* spectrum() { return convolution_.spectrum(); }
    int spectrumStride() const { return convolution_.spectrumStride(); }
    //! The wave vectors of a share, in an order that is the same for whoever asks.
    std::vector<int> waves(const Share& share) const { return convolution_.waves(share); }
    //!@}

    /*! \brief Follows a small change of the cell shape to first order.
     *  \param[in] strain  symmetric, traceless, from the shape at construction */
    void setStrain(const Mat3& strain);
    /*! \brief Interpolates what the virial needs between the shape at construction and this one.
     *  \param[in] strain  symmetric, traceless, not zero */
    void setVirialStrain(const Mat3& strain);

private:
    //! Work space of a thread, which keeps its memory.
    struct alignas(64) Scratch
    {
        typename CellConvolution<Real>::Scratch ofCopy;
        AlignedVector<Real> placed, sums, weights;
        std::array<AlignedVector<Real>, 4> products; //!< of the copies

        //! \param[in] harmonics  of the strain derivatives
        void resize(int lanes, int harmonics, int places);
    };
    //! Strain sums of the blocks as strainSums_.
    AlignedVector<Real> packed(const typename PeriodicM2lOperators<Real>::StrainSums& sums) const;
    //! Adds the virial of a block from the products of its copies.
    void addVirial(int block, Scratch* scratch, std::array<double, StrainCount>* virial) const;

    PeriodicM2lOperators<Real> operators_;
    Team& team_;
    CellConvolution<Real> convolution_;
    std::vector<Scratch> scratch_; //!< of the threads
    int lanes_;
    ProductTable<Real> products_;
    //! [blocks][coefficientCount(strainDegree())][StrainCount][lanes], times 1 / cells
    AlignedVector<Real> strainSums_;
    AlignedVector<Real> strainedSums_; //!< the same at the strain of setVirialStrain()
    Mat3 strain_       = Mat3::Zero(); //!< of setStrain()
    Mat3 virialStrain_ = Mat3::Zero(); //!< of setVirialStrain()
    std::vector<Real> unstrained_;     //!< operators without setStrain(); empty until it is called
};

} // namespace farfield

#endif
