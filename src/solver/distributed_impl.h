/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a DistributedSolver is made of.
 */
#ifndef FARFIELD_SOLVER_DISTRIBUTED_IMPL_H
#define FARFIELD_SOLVER_DISTRIBUTED_IMPL_H

#include <cstdint>

#include <functional>
#include <memory>
#include <vector>

#include "farfield/farfield_parallel.h"

#include "choice/chosen.h"
#include "parallel/partition.h"
#include "plan/cost_model.h"
#include "solver/agreement.h"
#include "solver/coulomb_impl.h"

namespace farfield
{

/*! \brief The first rank chooses order and cells, with all particles; all plan what they exchange, and
 *         evaluate their own.
 *
 *  Functions of its own are those of DistributedSolver. */
template<class Real>
class DistributedSolver<Real>::Impl final : public CoulombSolver<Real>::Impl
{
public:
    //! \param[in] ranks  of the communicator, of which failures are watched for
    Impl(const Options& options,
         const Ranks& ranks,
         Communicator* communicator,
         DeviceCommunicator* onDevice);
    //! Has work of all ranks done, see farfield::together(). All that follows is such work, but for
    //! what evaluates, which sees to it.
    template<class Work>
    auto together(const Work& work) -> decltype(work())
    {
        return farfield::together(&ranks_, work);
    }

    Evaluator<Real>& evaluator() override { return *evaluator_; }
    //! Nothing: functions do it in work of which the other ranks hear if it fails.
    DeviceScope<Real> makeCurrent() override { return DeviceScope<Real>(nullptr); }

    void setSystem(const SystemOfRanks<Real>& system);
    void setLocal(const int* index, int count);
    Traffic traffic() const;

    void prepare(const Real* x, const double box[3][3]) override;
    Totals evaluate(const Task<Real>& task) override;
    Setup setup() const override { return chosen_.setup(evaluator_->setup()); }
    std::vector<double> state() const override { return chosen_.state(); }
    void restore(const std::vector<double>& state) override;
    void enqueue(const Task<Real>& task) override;
    Totals wait() override;
    bool mustRecordAgain() const override;
    bool mayUpdateGraphs() const override { return evaluator_->onDevice().mayUpdateGraphs(); }

private:
    //! Returns positions of our particles in host memory, [own][3], nm.
    using Positions = std::function<const Real*()>;

    //! What an evaluation needs before it, of all ranks if of one.
    enum class Need
    {
        Nothing,
        Plan,  //!< of exchanges
        Look,  //!< at the error of the operators, which may lead to a choice, and a plan
        Choice //!< of order and cells, and a plan
    };
    //! Why order and cells are chosen.
    enum class Why
    {
        OtherSystem, //!< or box, or for the first time
        OtherError   //!< of forces or operators that have changed: those in use may do
    };
    //! What a rank says of an evaluation before it.
    struct Readiness;

    //! Has all ranks make what evaluates, which none of them has if one cannot.
    std::unique_ptr<Evaluator<Real>> evaluatorOfAll();
    //! What evaluate() does, of all ranks together.
    Totals evaluation(const Task<Real>& task);
    //! That particles were dealt out.
    void checkLocal() const;
    //! That an evaluation of this rank has not failed, as others do not know of it.
    void checkNotFailed() const;
    /*! \brief Does a part of an evaluation. Whoever fails sends what GPUs of others wait for, and says so.
     *  \param[in] allHear  whether the others hear of it, from their hosts; the same on all ranks */
    template<class Work>
    auto evaluating(bool allHear, const Work& work) -> decltype(work());
    //! Whether hosts meet in the next evaluation on device arrays; the same on all ranks.
    bool doHostsMeet() const
    {
        return hostsPassMessages() || !isPlanned() || exchange_->isUntried();
    }
    //! Whether exchanges are planned for the operators that there are, and these for the system.
    bool isPlanned() const;
    //! Makes the operators those of a box, as far as this rank can by itself. \returns what is left to do
    Need needOf(const Mat3& box);
    //! Which cells there are, to be compared; in a box that is the same.
    std::uint64_t hashOfCells() const;
    //! What this rank says of a task. \param[out] box  of it
    Readiness look(const Task<Real>& task, Mat3* box);
    /*! \brief Checks what all ranks have been given, and makes operators and exchanges ready for it.
     *  \param[in] positions  called if cells have to be chosen */
    void makeReady(const Task<Real>& task, const Positions& positions);
    //! The same of all ranks together, where one may have failed before.
    void makeReadyTogether(const Task<Real>& task,
                           const Positions& positions,
                           const std::exception_ptr& failure);
    /*! \brief Whether the fields of the last evaluation are about as strong as when the error was
     *         measured; the same on all ranks.
     *  \param[in] cappedFields  Backend::cappedFields() of each rank */
    bool areFieldsAsMeasured(const std::vector<double>& cappedFields) const;
    //! Counts an evaluation, and what it has sent. \param[in] messages, bytes  of the host before it
    void countTraffic(long long messages, long long bytes);

    //! The operators in use, and particles everywhere.
    Work evenWork() const;
    bool hostsPassMessages() const;
    //! The ranks, and what messages between them usually cost; the same on all, and in every run.
    Network untimedNetwork(const Mat3& box) const;
    //! The same with what they cost here, if timings may decide; the same on all.
    Network networkFor(const Mat3& box);
    //! Chooses cells, and finds out where particles are in them.
    void chooseAndLocate(const Real* x, const Positions& positions, const Mat3& box, Why why);
    //! The first rank chooses order and cells, with all particles, by measured errors.
    void choose(const Real* x, const Mat3& box, Why why);
    //! What it chooses, as of state(). \param[in] x  of all particles
    std::vector<double>
    choiceOfFirst(const std::vector<Real>& x, const Mat3& box, const Network& network, Why why);
    //! Finds out where our particles are. \returns whether they have left the plan
    bool locate(const Real* x, const Mat3& box);
    //! Plans the exchanges, for the particles where they were located.
    void plan();

    Ranks ranks_;
    Options options_;
    bool mayTime_; //!< messages and settings, before order and cells are chosen
    Partition<Real> partition_;
    DeviceRanks<Real> deviceRanks_;
    std::unique_ptr<Evaluator<Real>> evaluator_;
    Exchange<Real>* exchange_;
    Chosen<Real> chosen_;
    WholeSystem<Real> system_;
    std::uint64_t hash_ = 0; //!< see hashOfAll()
    ChargeSums sums_;        //!< of the system
    ParticleNumbers numbers_;
    OwnParticles<Real> own_;
    bool hasLocal_          = false; //!< whether own_ are particles of system_
    long long plannedBuild_ = 0;     //!< of the operators that exchanges are planned for
    //! This rank has failed in an evaluation, which others do not know.
    bool hasFailed_ = false;
    Traffic traffic_;
};

} // namespace farfield

#endif
