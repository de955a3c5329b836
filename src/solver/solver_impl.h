/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a Solver is made of.
 */
#ifndef FARFIELD_SOLVER_SOLVER_IMPL_H
#define FARFIELD_SOLVER_SOLVER_IMPL_H

#include <vector>

#include "solver/perturbed_charges.h"
#include "solver/point_fields.h"
#include "solver/single_state.h"

namespace farfield
{

/*! \brief All particles, those whose charges have two states, and points among them.
 *
 *  Functions are those of Solver and of farfield_cuda.h. */
template<class Real>
class Solver<Real>::Impl
{
public:
    explicit Impl(const Options& options);

    void setCharges(const Real* q, int n);
    void setPerturbedCharges(const Real* chargesA, const Real* chargesB, int n);
    void setExclusions(const int* offsets, const int* partners, int n);
    void prepare(const Real* x, const double box[3][3]);
    Totals evaluate(const Task<Real>& task);
    void evaluateAt(const Task<Real>& task, const Points<Real>& points);
    std::vector<double> groupEnergies(const Task<Real>& task, const int* group, int groups);
    Setup setup() const { return all_.choice().setup(); }
    std::vector<double> state() const;
    void restore(std::vector<double> state);
    std::vector<StageTime> timings() const { return all_.evaluator().times().all(); }
    void resetTimings() { all_.evaluator().times().reset(); }

    //! \name On arrays in device memory
    //!@{
    void enqueue(const Task<Real>& task);
    Totals wait();
    void evaluateAtOnDevice(const Task<Real>& task, const Points<Real>& points);
    bool mustRecordAgain() const;
    bool mayUpdateGraphs() const;
    std::vector<StageTime> measureStages(const Task<Real>& task, int repeats);
    //!@}

private:
    //! The charges have been set: who has mixed them.
    void setMixed() { all_.setMixed(perturbed_.any() ? &perturbed_ : nullptr); }

    SingleState<Real> all_;
    PerturbedCharges<Real> perturbed_;
    PointFields<Real> pointFields_;
};

} // namespace farfield

#endif
