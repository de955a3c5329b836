/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The stages of an evaluation, declared once; every backend implements them.
 */
#ifndef FARFIELD_BACKEND_H
#define FARFIELD_BACKEND_H

#include <memory>

#include "discretisation.h"

namespace farfield
{

/*! \brief Stages of the FMM, in the order in which Solver::evaluate() calls them.
 *
 *  Level 0 is the coarsest; levels() - 1 holds the leaves. Arguments are validated by the caller.
 */
template<class Real>
class Backend
{
public:
    virtual ~Backend() = default;

    //! Charges, e, [n].
    virtual void setCharges(const Real* q, int n) = 0;
    //! Excluded pairs as compressed rows.
    virtual void setExclusions(const int* offsets, const int* partners, int n) = 0;
    //! Builds the operators.
    virtual void build(const Discretisation& discretisation) = 0;
    /*! \brief Adapts to a box.
     *
     *  Edges of cells are those of the reference box, in units of their size, times (1 + strain)
     * rotation. \param[in] box       current box \param[in] strain    symmetric and traceless: the
     * operators follow it to first order \param[in] rotation  exact: everything is computed in a
     * rotated frame */
    virtual void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) = 0;

    virtual void sort(const Real* x)       = 0; //!< wraps and bins the particles
    virtual void exclusions(const Real* x) = 0; //!< subtracts excluded pairs
    virtual void p2m()                     = 0; //!< particles to multipoles of the leaves
    virtual void m2m(int level) = 0; //!< multipoles of a level to those of the next coarser one
    virtual void m2l(int level) = 0; //!< multipoles to local expansions; level 0: periodic closure
    virtual void l2l(int level) = 0; //!< local expansions to the next finer level
    virtual void l2p()          = 0; //!< local expansions to forces
    virtual void p2p()          = 0; //!< near field
    //! Adds the forces to the caller's array and returns the totals.
    virtual Totals collect(Real* forces) = 0;

    //! What the following stages have to compute.
    void setRequest(const Request& request)
    {
        request_        = request;
        request_.energy = request.energy || request.virial;
    }

protected:
    Request request_;
};

//! The CPU backend.
template<class Real>
std::unique_ptr<Backend<Real>> makeCpuBackend(double coulombConstant, int threads);

} // namespace farfield

#endif
