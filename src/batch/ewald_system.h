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

#include "batch/batch_system.h"
#include "batch/images.h"
#include "batch/slab_box.h"
#include "batch/system_plan.h"
#include "batch/wave_sums.h"

namespace farfield
{

//! A direction in which a system changes, in the arrays of the caller; null where nothing changes.
template<class Real>
struct SystemDirection
{
    const Real* x;     //!< [n][3], nm
    const Real* q;     //!< [n][channels], e
    const double* box; //!< [3][3], nm
};

//! What is computed of a system, or derivatives of that.
template<class Real>
struct SystemResult
{
    double energy = 0; //!< kJ/mol; not a derivative
    double error  = 0; //!< what the sums were cut for, see BatchOutput; not a derivative
    Mat3 virial   = Mat3::Zero();
    Real* forces;     //!< [n][3], kJ/mol/nm
    Real* potentials; //!< [n][channels], kJ/mol/e, or null
    bool wantsVirial;
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
    /*! \brief Derivatives of forces, potentials and virial along a direction.
     *  \param[in] error  SystemResult::error of evaluate()
     *  \throws Error  as evaluate() */
    void evaluateTangent(const BatchSystem<Real>& system,
                         const SystemDirection<Real>& direction,
                         double error,
                         SystemResult<Real>* result);

private:
    //! One sum over pairs of particles, and all else with images.
    void sumPeriodic(const EwaldPlan& plan, SystemResult<Real>* result);
    void sumPairs(const EwaldPlan& plan, SystemResult<Real>* result);
    void sumOpen(SystemResult<Real>* result);
    //! Takes the direction of tangents.
    void head(const SystemDirection<Real>& direction);
    void addWaveTangents(const EwaldPlan& plan, SystemResult<Real>* result);
    void addTangentsOfConstants(const EwaldPlan& plan, SystemResult<Real>* result);
    void clear(SystemResult<Real>* result);
    //! Copies what has been summed up.
    void finish(const SystemResult<Real>& result) const;
    //! Adds what a target has of its pairs.
    void addPairs(int i, const PairSums<Real>& sums, SystemResult<Real>* result);
    void addWaves(const EwaldPlan& plan, SystemResult<Real>* result);
    //! Of a charge with itself, and with a background.
    void addConstants(const EwaldPlan& plan, SystemResult<Real>* result);
    //! What layers of a slab have of each other.
    void addSlab(SystemResult<Real>* result);
    void addTangentsOfSlab(SystemResult<Real>* result);
    SlabEnergy energyOfSlab() const
    {
        return { 2 * M_PI * options_.coulombConstant / box_.volume, slab_.height };
    }
    //! The place of a particle along the normal of a slab, from its middle, nm, and its change.
    double along(int i) const { return (f_[3 * static_cast<size_t>(i) + 2] - 0.5) * slab_.height; }
    double changeAlong(int i) const
    {
        return fractions_[3 * static_cast<size_t>(i) + 2] * slab_.height;
    }
    void look(const BatchSystem<Real>& system);
    //! See SystemTraits.
    double nearForce() const;
    //! Puts a slab into a box. \throws Error  InvalidArgument: it is too high
    void lookAtSlab();
    EwaldPlan plan(double error, double detour) const
    {
        return planFor(options_, traits(), error, detour, c_pairCostOfCpus);
    }
    //! But for the near force.
    SystemTraits traits() const
    {
        const double fullness = isSlab() ? slab_.fullness : 1;
        return { charged_, squaredCharges_, box_.volume * fullness, fullness };
    }
    //! Where two particles at one place have a distance of at most \p rounding, nm.
    void refuseContactOf(int target, double rounding, bool potentials) const;
    bool hasImages() const { return options_.boundary != Boundary::Open; }
    bool isSlab() const { return options_.boundary == Boundary::Slab; }

    BatchOptions options_;
    BatchSystem<Real> system_{};
    ReducedBox box_{ Mat3::Identity() };
    SlabBox slab_{};
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
    AlignedVector<Real> x_, y_, z_, carried_;
    //! What particles carry, see PairTask, [n][columns].
    const Real* sources_ = nullptr;
    int columns_         = 0;
    bool isTangent_      = false;
    Mat3 strain_         = Mat3::Zero(); //!< of the direction
    std::vector<double> fractions_;      //!< of the direction, but for the strain, [n][3]
    std::vector<Real> dCharges_;         //!< of the direction, e, [n][channels]
    std::vector<Real> withDirection_;    //!< what particles carry
};

} // namespace farfield

#endif
