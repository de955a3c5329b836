/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Evaluations with charges of two states, see perturbation.h.
 */
#ifndef FARFIELD_SOLVER_PERTURBED_CHARGES_H
#define FARFIELD_SOLVER_PERTURBED_CHARGES_H

#include <memory>
#include <vector>

#include "solver/perturbation.h"
#include "solver/single_state.h"

namespace farfield
{

//! The charges of both states, and those particles alone whose charges differ.
template<class Real>
class PerturbedCharges final : public MixedCharges
{
public:
    /*! \param[in] options  of the solver
     *  \param[in] all      all particles: receive mixed charges */
    PerturbedCharges(const Options& options, SingleState<Real>* all) : options_(options), all_(all)
    {
    }
    //! Whether charges differ between two states.
    bool any() const { return perturbation_ && !perturbation_->perturbed().empty(); }

    //! Charges that were checked; if it fails, all is as it was. \param[in] chargesA, chargesB  [n]
    void set(const Real* chargesA, const Real* chargesB, int n);
    //! There is one state.
    void clear();
    //! Both states, and what they are mixed with.
    std::vector<WeightedCharges<Real>> states(double lambda) const;
    //! Excluded pairs are others.
    void forgetPairs() { isStale_ = true; }
    //! Mixes charges for which cells are chosen, whatever lambda.
    void mixForChoice() override { mix(perturbation_->lambdaOfLargerCharges()); }
    void mixForOtherState() override { mix(1 - perturbation_->lambdaOfLargerCharges()); }
    //! Makes the charges those of a lambda.
    void mix(double lambda) override;
    //! \param[in] x  [n][3], nm; checked
    void prepare(const Real* x, const double box[3][3]);

    //! Evaluates both states. \param[in] ofMixed  that of all particles
    Totals evaluate(const Task<Real>& task, const typename SingleState<Real>::Evaluation& ofMixed);
    //! Puts evaluations of both states into a stream. \param[in] ofMixed  that of all particles
    void enqueue(const Task<Real>& task, const typename SingleState<Real>::Launch& ofMixed);
    //! Waits for what enqueue() has put there. \param[in] ofMixed  what the solver's gave
    Totals wait(const Totals& ofMixed);
    //! Whether graphs that hold evaluations must be recorded again.
    bool mustRecordAgain() const;
    //! Whether graphs of it may be updated.
    bool mayUpdateGraphs() const;
    //! Device time of an evaluation of the perturbed particles, s; 0 if enqueue() did without one.
    double measure(const double box[3][3], int repeats);

    /*! \brief A set-up of all particles, with the error of E(D) where it is the larger one.
     *
     *  That error is relative to what E(D) is compared with. Here it is what forces of V have of it
     *  at lambda 1/2, relative to all forces. */
    Setup withErrorOfDifference(Setup all) const;
    //! That of the perturbed particles, empty without any.
    std::vector<double> state() const;
    //! Takes it over; or later, when there are any. \param[in] state  checked
    void restore(const std::vector<double>& state);

private:
    //! Gives the perturbed particles their charges and excluded pairs.
    void refresh();
    //! Throws for a position that is wrong, naming its particle as the caller does, who has all.
    void nameBadPosition(const Real* x, const double box[3][3]) const;
    //! E(D). \param[out] forces  on perturbed particles
    Totals evaluateDifference(const Real* x,
                              const double box[3][3],
                              const Request& request,
                              std::vector<Real>* forces);
    //! Adds what E(D) contributes to totals of mixed charges. \param[in] slope  sum D phi
    static void add(const Totals& difference, const Request& request, double slope, Totals* totals);

    Options options_;
    SingleState<Real>* all_;
    std::unique_ptr<Perturbation<Real>> perturbation_; //!< null with one state
    double typicalForce_ = 0; //!< of all, kJ/mol/nm, that errors of the difference are relative to
    double mixedAt_      = 0; //!< lambda of the charges
    std::unique_ptr<SingleState<Real>> difference_; //!< the perturbed particles alone
    bool isStale_ = false;                          //!< its charges and pairs are old ones
    std::vector<double> state_;                     //!< restored before there is one
    std::vector<Real> potentials_;
    std::unique_ptr<PerturbedOnDevice<Real>> onDevice_; //!< null on the CPU
    Request enqueued_;                                  //!< the last one
};

} // namespace farfield

#endif
