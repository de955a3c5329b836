/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials at the particles: near and far field, excluded pairs and background in one go.
 *
 *  They are asked for rarely: forces are computed as ever, and this looks at the sorted particles
 *  and the local expansions once more.
 */
#ifndef FARFIELD_KERNELS_POTENTIALS_POTENTIALS_H
#define FARFIELD_KERNELS_POTENTIALS_POTENTIALS_H

#include "near/near.h"
#include "near_field.h"
#include "runtime/layout.h"
#include "runtime/ordered_sums.h"

namespace farfield
{

//! What potentials are computed from.
template<class Real>
struct PotentialInput
{
    SortedParticles<Real> particles;
    SortedParticles<Real> ofPairs; //!< see DeviceCells
    NearGrid where;
    typename DeviceExclusions<Real>::View exclusions;
    NearFunctionView<Real> functions; //!< in the order of the particles
    NearFunctionView<Real> given;     //!< the same in the caller's order
    FartherCells farther;             //!< of these functions
    const Real* x;                    //!< [n][3], in the caller's order
    const Real* q;                    //!< [n] scaled charges, the same
    int order;                        //!< of the expansions
    LevelView<Real> leaves;
    double unit;        //!< size of a leaf cell, nm
    double netCharge;   //!< scaled
    double background;  //!< strength per charge, of the leaves
    double rootCoulomb; //!< scale of the charges
    const Real* poison; //!< see ForceArrays
};

//! dE/dq of all particles, kJ/mol/e.
template<class Real>
class DevicePotentials
{
public:
    //! Room for what does not depend on the particles; not while a graph is captured.
    void prepare(cudaStream_t stream);
    //! Tables of an order. \param[in] order  of the expansions
    void setOrder(int order, cudaStream_t stream);
    /*! \brief Sum q |b|^2 about the centres of leaves, nm^2, for compute(), which needs it about
     *         those of level 0: the caller adds what is missing.
     *  \param[in] scratch  of the stream
     *  \returns where it is in device memory */
    double* sumSquares(const SortedParticles<Real>& particles,
                       OrderedSums* scratch,
                       cudaStream_t stream);
    /*! \brief Writes the potentials of the particles that take part.
     *  \param[out] potentials  in the caller's order, device memory */
    void compute(const PotentialInput<Real>& input, Real* potentials, cudaStream_t stream) const;

private:
    DeviceBuffer<Real> scale_, beta_; //!< see MonicRecurrence
    DeviceBuffer<double> squares_;    //!< sum q |b|^2 about the cells of level 0
};

} // namespace farfield

#endif
