/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief One system of a batch, by one thread.
 */
#ifndef FARFIELD_BATCH_EWALD_SYSTEM_H
#define FARFIELD_BATCH_EWALD_SYSTEM_H

#include <vector>

#include "farfield/farfield_batch.h"

#include "batch/images.h"
#include "batch/wave_sums.h"

namespace farfield
{

//! A system, in the arrays of the caller.
template<class Real>
struct BatchSystem
{
    const Real* x;     //!< [n][3], nm
    const Real* q;     //!< [n][channels], e
    const double* box; //!< [3][3], nm; null without images
    int n;
};

//! What is computed of a system.
template<class Real>
struct SystemResult
{
    double energy = 0; //!< kJ/mol
    Mat3 virial   = Mat3::Zero();
    Real* forces;     //!< [n][3], kJ/mol/nm
    Real* potentials; //!< [n][channels], kJ/mol/e, or null
    bool wantsVirial;
};

//! How accurate sums are.
struct Sharpness
{
    double tightening; //!< see BatchSetup
    double force;      //!< what errors are relative to, kJ/mol/nm; 0: decided by the forces
    double detour;     //!< factor of the splitting beside the fastest one
};

//! Evaluates a system; the arrays are kept for the next one.
template<class Real>
class EwaldSystem
{
public:
    explicit EwaldSystem(const BatchOptions& options) : options_(options) {}
    /*! \brief Forces, and all the rest.
     *  \returns what errors are relative to, kJ/mol/nm
     *  \throws Error  InvalidArgument, with a text that follows "System n " */
    double evaluate(const BatchSystem<Real>& system,
                    const Sharpness& sharpness,
                    SystemResult<Real>* result);

private:
    //! One sum over pairs of particles, and all else with images.
    void sumPeriodic(const EwaldPlan& plan, SystemResult<Real>* result);
    void sumOpen(SystemResult<Real>* result);
    //! Adds what a target has of its pairs.
    void addPairs(int i, const PairSums<Real>& sums, SystemResult<Real>* result);
    void addWaves(const EwaldPlan& plan, SystemResult<Real>* result);
    //! Of a charge with itself, and with a background.
    void addConstants(const EwaldPlan& plan, SystemResult<Real>* result);
    void look(const BatchSystem<Real>& system);
    //! \throws Error  the target and another particle are at one place, and it matters
    void refuseContact(int target, double rounding, bool potentials) const;
    //! RMS force of the particles that have a charge, kJ/mol/nm.
    double typicalForce() const;
    bool hasImages() const { return options_.boundary == Boundary::Periodic; }

    BatchOptions options_;
    BatchSystem<Real> system_{};
    ReducedBox box_{ Mat3::Identity() };
    std::vector<double> f_;          //!< fractional coordinates, 0 to 1, [n][3]
    std::vector<double> net_;        //!< [channels] charge, e
    std::vector<double> squared_;    //!< [channels] sums of squared charges, e^2
    int charged_           = 0;      //!< particles with a charge
    double squaredCharges_ = 0;      //!< of all channels, e^2
    std::vector<double> forces_;     //!< [n][3]
    std::vector<double> potentials_; //!< [n][channels]
    Images<Real> images_;
    WaveSums<Real> waves_;
    PairBuffers<Real> buffers_;
    std::vector<PairRow> rows_;
    std::vector<double> atTarget_; //!< [channels]
    AlignedVector<Real> x_, y_, z_, q_;
};

} // namespace farfield

#endif
