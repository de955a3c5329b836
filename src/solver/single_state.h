/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Evaluations of all particles on one process, with one set of charges.
 *
 *  A solver has one for its particles, one for those whose charges differ between two states, and one
 *  for particles with points among them.
 */
#ifndef FARFIELD_SOLVER_SINGLE_STATE_H
#define FARFIELD_SOLVER_SINGLE_STATE_H

#include <functional>
#include <optional>
#include <vector>

#include "choice/choice.h"
#include "solver/group_energies.h"

namespace farfield
{

//! Particles, their charges and excluded pairs, and evaluations of them.
template<class Real>
class SingleState
{
public:
    //! Evaluates the charges that are set then. \param[in] potentials  as those of the task, or null
    using Evaluation = std::function<Totals(Real* potentials)>;
    //! Does an evaluation, and what else belongs to it.
    using Around = std::function<Totals(const Evaluation&)>;
    //! Puts that into a stream.
    using Launch       = std::function<void(Real* potentials)>;
    using AroundLaunch = std::function<void(const Launch&)>;

    //! \throws Error  as Solver
    explicit SingleState(const Options& options);

    Evaluator<Real>& evaluator() { return evaluator_; }
    const Evaluator<Real>& evaluator() const { return evaluator_; }
    Choice<Real>& choice() { return choice_; }
    const Choice<Real>& choice() const { return choice_; }
    ChargeSet<Real>& charges() { return charges_; }
    const ChargeSet<Real>& charges() const { return charges_; }
    const Placement<Real>& placement() const { return placement_; }

    /*! \brief Of particles without a charge no potentials are wanted, only of those with the idle
     *         charge of a probe, which may be anywhere: Choice::countAllPlaces(). */
    void serveProbes();
    //! The charges are mixed; null: they are not.
    void setMixed(MixedCharges* mixed);

    //! Waits for what the caller has put into streams of his own.
    void settle();
    /*! \brief As Solver::prepare().
     *  \param[in] beside  is called before evaluations are rehearsed */
    void prepare(const Real* x, const double box[3][3], const std::function<void()>& beside = {});
    //! Choice::look() at these positions.
    void look(const Real* x, const double box[3][3]);
    /*! \brief As Solver::evaluate().
     *  \param[in] around  is called instead of the evaluation, which is handed to it */
    Totals evaluate(const Task<Real>& task, const Around& around = {});
    /*! \brief Evaluates other sources at the places of the last evaluation, with the operators in use.
     *  \param[in] charges, dipoles  in place of those that are set, [n] and [n][3] */
    void evaluateOthers(const Task<Real>& task,
                        const std::vector<Real>& charges,
                        const std::vector<Real>& dipoles);
    //! As Solver::groupEnergies(), checked. \param[in] states  see groupEnergies()
    std::vector<double> groupEnergies(const Task<Real>& task,
                                      const std::vector<WeightedCharges<Real>>& states,
                                      const int* group,
                                      int groups);

    //! As enqueue() of farfield_cuda.h. \param[in] around  as of evaluate()
    void enqueue(const Task<Real>& task, const AroundLaunch& around = {});
    //! As evaluateTangent() of farfield_cuda.h, checked.
    void evaluateTangentOnDevice(const Task<Real>& task,
                                 const Direction<Real>& direction,
                                 const Tangent<Real>& tangent);
    /*! \brief As wait() of farfield_cuda.h.
     *  \param[in] complete  adds what else belongs to the evaluation */
    Totals wait(const std::function<Totals(const Totals&)>& complete = {});
    //! Compares fields of the last evaluation in a stream anew: what errors are relative to has changed.
    void compareAgain() { mustLook_ = mustLook_ || !choice_.areFieldsAsMeasured(); }
    bool mustRecordAgain() const;
    //! Device time of each stage, s, [Stage::Count], of a task that enqueue() has had.
    std::vector<double> measureStages(const Task<Real>& task, int repeats);

private:
    //! Where positions in host memory are. \throws Error  as Placement
    Place<Real> placeOf(const Real* x, const double box[3][3]) const;
    //! Follows positions in host memory, which are checked if cells have to be chosen.
    //! \param[in] lambda  as of Choice::follow()
    void follow(const Place<Real>& place, const Real* x, std::optional<double> lambda);
    //! On a GPU, evaluates what was prepared: what is missing, memory above all, is missed now, and all
    //! kernels are loaded when the first is recorded. \param[in] x  as the stages get them
    void rehearse(const Real* x);
    bool look(const Place<Real>& place, const Real* x);
    //! Evaluates where cells suit, and again where forces turn out to be others than they were.
    Totals run(const Task<Real>& task, const Place<Real>& place);
    //! The stages, and the virial where they have none. Particles without a charge get no force.
    Totals runStages(const Task<Real>& task);
    void launch(const Task<Real>& task, const Place<Real>& place);
    //! Evaluates other sources in place of those that are set.
    void whileLent(const std::vector<Real>& charges,
                   const std::vector<Real>& dipoles,
                   const std::function<void()>& evaluate);
    //! \throws Error  Unsupported: layers of a slab are far from each other
    static void checkOtherSources(const Place<Real>& place);
    //! \throws Error  Unsupported: derivatives are wanted and a correction has none
    void checkDerivatives(const Task<Real>& task, const Place<Real>& place) const;
    //! Whether a virial is that of forces, see setOpenVirial(); the stages have none.
    bool needsOpenVirial(const Request& request) const;
    //! Whether the trace of the virial is that of pairs with 1/r.
    bool hasTraceOfEnergy() const { return !charges_.nearPairs().any() && !charges_.hasMoments(); }
    //! What the stages are asked for.
    Request ofStages(const Request& request) const;
    //! Potentials of all particles are wanted: those without a charge take part from here on, and
    //! cells are chosen for errors where they are, too.
    void letAllTakePart();

    Options options_;
    Evaluator<Real> evaluator_;
    ChargeSet<Real> charges_;
    Placement<Real> placement_;
    Choice<Real> choice_;
    bool servesProbes_ = false; //!< potentials of probes are wanted, not of uncharged particles
    bool mustLook_     = false; //!< before the next evaluation in a stream, see look()
    std::optional<Mat3> enqueuedVirial_; //!< of what was enqueued last, if the stages have none
    Totals enqueuedCorrection_;          //!< of what was enqueued last, see NarrowedSlab
};

} // namespace farfield

#endif
