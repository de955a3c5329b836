/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a Solver is made of.
 */
#ifndef FARFIELD_SOLVER_SOLVER_IMPL_H
#define FARFIELD_SOLVER_SOLVER_IMPL_H

#include <vector>

#include "solver/coulomb_impl.h"
#include "solver/perturbed_charges.h"
#include "solver/point_fields.h"
#include "solver/single_state.h"

namespace farfield
{

/*! \brief All particles, those whose charges have two states, and points among them.
 *
 *  Functions of its own are those of Solver and of farfield_cuda.h. */
template<class Real>
class Solver<Real>::Impl final : public CoulombSolver<Real>::Impl
{
public:
    explicit Impl(const Options& options);
    Evaluator<Real>& evaluator() override { return all_.evaluator(); }

    void setCharges(const Real* q, int n);
    void setPerturbedCharges(const Real* chargesA, const Real* chargesB, int n);
    void setExclusions(const int* offsets, const int* partners, int n);
    void setNearFunction(const NearFunction& function, const Real* widths, int n);
    void setDipoles(const Real* dipoles, int n);
    void setQuadrupoles(const Real* quadrupoles, int n);
    void evaluateTangent(const Task<Real>& task,
                         const Direction<Real>& direction,
                         const Tangent<Real>& tangent);
    //! The same with arrays in device memory.
    void evaluateTangentOnDevice(const Task<Real>& task,
                                 const Direction<Real>& direction,
                                 const Tangent<Real>& tangent);
    Induction induceDipoles(const Task<Real>& task,
                            const Real* polarisabilities,
                            double tolerance,
                            Real* dipoles);
    void evaluateAt(const Task<Real>& task, const Points<Real>& points);
    std::vector<double> groupEnergies(const Task<Real>& task, const int* group, int groups);

    //! \name On arrays in device memory
    //!@{
    ChargeSums setChargesOnDevice(const Real* q, int n, void* stream);
    void evaluateAtOnDevice(const Task<Real>& task, const Points<Real>& points);
    std::vector<StageTime> measureStages(const Task<Real>& task, int repeats);
    //!@}

    void prepare(const Real* x, const double box[3][3]) override;
    Totals evaluate(const Task<Real>& task) override;
    Setup setup() const override { return perturbed_.withErrorOfDifference(all_.choice().setup()); }
    std::vector<double> state() const override;
    void restore(const std::vector<double>& state) override;
    void enqueue(const Task<Real>& task) override;
    Totals wait() override;
    bool mustRecordAgain() const override;
    bool mayUpdateGraphs() const override;

private:
    //! That there are neither multipoles, nor anything else that they do not go with. \param[in] what  is wanted
    void checkNoMoments(const char* what) const;
    void checkSites(const char* what, bool virial = false) const;
    //! checkSites(), if there are multipoles or derivatives are wanted.
    void checkMomentsOf(bool wantsDerivatives, bool wantsVirial) const;
    //! The charges have been set: who has mixed them.
    void setMixed() { all_.setMixed(perturbed_.any() ? &perturbed_ : nullptr); }

    double accuracy_;        //!< Options::accuracy
    double coulombConstant_; //!< Options::coulombConstant
    SingleState<Real> all_;
    PerturbedCharges<Real> perturbed_;
    PointFields<Real> pointFields_;
};

} // namespace farfield

#endif
