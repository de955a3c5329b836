/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectorised inner loops of direct Ewald sums; the instruction set is chosen at run time.
 */
#ifndef FARFIELD_BATCH_BATCH_KERNELS_H
#define FARFIELD_BATCH_BATCH_KERNELS_H

#include "base/aligned_vector.h"
#include "batch/places.h"
#include "batch/wave_terms.h"

namespace farfield
{

//! Arrays over particles are padded to a multiple of this, at least the lanes of any vector.
constexpr int c_batchPadding = 16;

//! \p n with padding.
constexpr int padded(int n)
{
    return (n + c_batchPadding - 1) / c_batchPadding * c_batchPadding;
}

//! Sources [first, last) of a target.
struct PairRow
{
    int first, last;
};

//! The pairs of one target.
template<class Real, class Place>
struct PairTask
{
    //! Sources, with padding for a vector; a target is one of them.
    const Place *x, *y, *z;
    //! What sources carry: charges, e, [channels][stride]. For tangents their derivatives follow,
    //! [channels][stride], and those of the positions but for the strain, nm, [3][stride].
    const Real* carried;
    int columns; //!< channels, or with tangents 2 channels + 3
    int stride;
    int channels;
    Real strain[3][3]; //!< of tangents: a distance d has the derivative d strain besides
    Real unit;         //!< nm
    Real splitting;    //!< 1/nm; 0: pairs have 1/r at any distance
    Real squareCutoff; //!< in squared units
    bool virial;
};

//! What a target has of its pairs, without the Coulomb constant.
template<class Real>
struct PairSums
{
    double force[3];  //!< e^2/nm^2
    double virial[6]; //!< sum f r, e^2/nm: xx yy zz xy xz yz
    Real nearest;     //!< smallest squared distance, nm^2
};

//! Pairs within the cut-off, one after the other.
template<class Real>
struct PairBuffers
{
    AlignedVector<Real> dx, dy, dz, square, value, third; //!< [capacity]
    AlignedVector<Real> carried;                          //!< [columns][capacity]
    int capacity = 0;

    void resize(int sources, int columns)
    {
        capacity = padded(sources + c_batchPadding);
        for (auto* array : { &dx, &dy, &dz, &square, &value, &third })
        {
            array->resize(capacity);
        }
        carried.resize(static_cast<size_t>(capacity) * columns);
    }
};

/*! \brief Phases e^(2 pi i m f) of particles along the three reciprocal vectors.
 *
 *  Along each axis cosines and sines, [range + 1][2][padded n]. */
template<class Real>
struct PhaseTable
{
    const Real* axis[3];
    int n; //!< padded
};

//! Potentials of waves and their derivatives by the fractional coordinates over 2 pi, [padded n] each.
template<class Real>
struct WaveFields
{
    Real *potential, *gx, *gy, *gz;
    //! Second derivatives, over (2 pi)^2.
    Real *xx = nullptr, *yy = nullptr, *zz = nullptr, *xy = nullptr, *xz = nullptr, *yz = nullptr;
};

//! The kernels of one instruction set.
template<class Real>
struct BatchKernels
{
    /*! \brief The pairs of a target.
     *  \param[in]  target      index among the sources; not in any of the rows
     *  \param[out] potentials  e/nm, [channels] */
    PairSums<Real> (*pairsOfImages)(const PairTask<Real, typename PlaceOfImage<Real>::Type>& task,
                                    int target,
                                    const PairRow* rows,
                                    int rowCount,
                                    PairBuffers<Real>* buffers,
                                    double* potentials);
    //! The same of particles where they are.
    PairSums<Real> (*pairs)(const PairTask<Real, Real>& task,
                            int target,
                            const PairRow* rows,
                            int rowCount,
                            PairBuffers<Real>* buffers,
                            double* potentials);
    //! The derivatives of all that pairsOfImages() gives, along a direction.
    decltype(pairsOfImages) tangentsOfImages;
    //! The same of particles where they are.
    decltype(pairs) tangents;
    /*! \brief Phases along an axis.
     *  \param[in]  f       fractional coordinates, -1/2 to 1/2, [n]
     *  \param[in]  n       padded
     *  \param[out] phases  [range + 1][2][n] */
    void (*phases)(const Real* f, int n, int range, Real* phases);
    /*! \brief Sums over particles of charges times products of phases.
     *  \param[in]  q         e, [padded n], 0 behind the last
     *  \param      products  work space, [6][padded n]
     *  \param[out] sums      [waves of all columns][WaveProducts] */
    void (*structureFactors)(const PhaseTable<Real>& phases,
                             const WaveColumn* columns,
                             int columnCount,
                             const Real* q,
                             Real* products,
                             Real* sums);
    /*! \brief Sums over waves of weights times products of phases, for each particle.
     *  \param[in]  weights  [waves of all columns][WaveProducts]
     *  \param[out] fields   second derivatives only by waveCurvatures() */
    void (*waveFields)(const PhaseTable<Real>& phases,
                       const WaveColumn* columns,
                       int columnCount,
                       const Real* weights,
                       const WaveFields<Real>& fields);
    decltype(waveFields) waveCurvatures;
};

//! The kernels for this processor, for float and double.
template<class Real>
const BatchKernels<Real>& batchKernels();

} // namespace farfield

#endif
