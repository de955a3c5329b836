/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Evaluations with charges of two states, see perturbation.h.
 */
#ifndef FARFIELD_SOLVER_PERTURBED_CHARGES_H
#define FARFIELD_SOLVER_PERTURBED_CHARGES_H

#include <functional>
#include <memory>
#include <vector>

#include "backend/gpu_backend.h"
#include "solver/charge_set.h"
#include "solver/group_energies.h"
#include "solver/perturbation.h"
#include "solver/stage_times.h"

namespace farfield
{

/*! \brief The charges of both states, mixed ones in the set of charges of a solver, and a second
 *         solver for those particles alone whose charges differ. */
template<class Real>
class PerturbedCharges
{
public:
    /*! \param[in] options  of the solver, and of the second one but that it does not tune
     *  \param[in] charges  of the solver: receives mixed ones
     *  \param[in] gpu      backend of the solver, null on the CPU */
    PerturbedCharges(const Options& options,
                     ChargeSet<Real>* charges,
                     GpuBackend<Real>* gpu,
                     StageTimes* times) :
        options_(options),
        charges_(charges), gpu_(gpu), times_(times)
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
    void forgetExclusions() { isStale_ = true; }
    //! Mixes charges for which cells are chosen, whatever lambda.
    void mixForChoice() { mix(perturbation_->lambdaOfLargerCharges()); }
    //! Makes the charges those of a lambda.
    void mix(double lambda);
    //! Forces of the whole system, kJ/mol/nm: what those of the difference are added to.
    void setLeastForce(double force) { leastForce_ = force; }
    //! \param[in] x  [n][3], nm; checked
    void prepare(const Real* x, const double box[3][3]);

    /*! \brief Evaluates both states; what Solver::evaluate() says.
     *  \param[in] x         [n][3], nm; checked unless cells stand
     *  \param[in] evaluate  the solver's evaluation, which adds forces: of the charges that it has,
     *                       with the potentials that it is given, or null */
    Totals evaluate(const Real* x,
                    const double box[3][3],
                    Real* forces,
                    const Request& request,
                    Real* potentials,
                    const std::function<Totals(Real*)>& evaluate);

    /*! \brief Puts evaluations of both states into a stream; what farfield_cuda.h says.
     *  \param[in] x, forces   device memory
     *  \param[in] stream      cudaStream_t
     *  \param[in] potentials  device memory, or null
     *  \param[in] enqueue     the solver's, as that of evaluate() */
    void enqueue(const Real* x,
                 const double box[3][3],
                 Real* forces,
                 const Request& request,
                 void* stream,
                 Real* potentials,
                 const std::function<void(Real*)>& enqueue);
    //! Waits for what enqueue() has put there. \param[in] ofMixed  what the solver's gave
    Totals wait(const Totals& ofMixed);
    //! Whether graphs that hold evaluations must be recorded again.
    bool mustRecordAgain() const;
    //! Whether graphs of it may be updated.
    bool mayUpdateGraphs() const;
    //! Device time of an evaluation of the perturbed particles, s; 0 if enqueue() did without one.
    double measure(const double box[3][3], int repeats);

    //! That of the second solver, empty without one.
    std::vector<double> state() const;
    //! Takes it over; or later, when there is a second solver. \param[in] state  checked
    void restore(const std::vector<double>& state);

private:
    //! Gives the second solver its charges and excluded pairs.
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
    double leastForce_ = 0;
    ChargeSet<Real>* charges_;
    GpuBackend<Real>* gpu_;
    StageTimes* times_;
    std::unique_ptr<Perturbation<Real>> perturbation_; //!< null with one state
    double mixedAt_ = 0;                               //!< lambda of the charges
    std::unique_ptr<Solver<Real>> difference_;         //!< of the perturbed particles alone
    bool isStale_ = false;                             //!< its charges and pairs are old ones
    std::vector<double> state_;                        //!< restored before there is one
    std::vector<Real> potentials_;
    std::unique_ptr<PerturbedOnDevice<Real>> onDevice_; //!< null on the CPU
    Request enqueued_;                                  //!< the last one
};

} // namespace farfield

#endif
