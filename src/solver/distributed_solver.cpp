/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The public interface of a system on several ranks.
 */
#include "solver/distributed_impl.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "base/hash.h"
#include "cells/position_error.h"
#include "evaluation/input_check.h"
#include "evaluation/memory_errors.h"
#include "solver/ranks_check.h"

namespace farfield
{

template<class Real>
DistributedSolver<Real>::Impl::Impl(const Options& options,
                                    const Ranks& ranks,
                                    Communicator* communicator,
                                    DeviceCommunicator* onDevice) :
    ranks_(ranks),
    options_(checkedForRanks<Real>(options, onDevice != nullptr, &ranks_)), mayTime_(options.tune),
    partition_(&ranks_,
               options_.device == Device::Gpu ? c_driftOnDevice : c_drift,
               options_.threads > 0 ? options_.threads : usableThreads()),
    deviceRanks_{ &partition_, communicator, onDevice }, evaluator_(evaluatorOfAll()),
    exchange_(evaluator_->backend().exchange()),
    chosen_(options_, evaluator_->device(), &evaluator_->operators())
{
    options_.tune = false;
    ranks_.setWatched(false); // as those that it was copied from are
}

template<class Real>
std::unique_ptr<Evaluator<Real>> DistributedSolver<Real>::Impl::evaluatorOfAll()
{
    std::unique_ptr<Evaluator<Real>> evaluator;
    agree(&ranks_, [&] { evaluator = std::make_unique<Evaluator<Real>>(options_, &deviceRanks_); });
    return evaluator;
}

template<class Real>
void DistributedSolver<Real>::Impl::setSystem(const SystemOfRanks<Real>& system)
{
    struct Hashes
    {
        int count;
        std::uint64_t charges, offsets, partners;
    };
    const auto scope = evaluator_->makeCurrent();
    WholeSystem<Real> whole;
    ChargeSums sums;
    ParticleNumbers numbers;
    const auto take = [&]
    {
        evaluator_->settle();
        checkCharges(system.charges, system.count);
        if (system.exclusionOffsets != nullptr)
        {
            checkExclusions(
                    system.exclusionOffsets, system.exclusionPartners, system.count, system.count);
        }
        whole = WholeSystem<Real>(system);
        sums  = ChargeSums(whole.charges);
        std::vector<char> isCharged(whole.charges.size());
        std::transform(whole.charges.begin(),
                       whole.charges.end(),
                       isCharged.begin(),
                       [](Real q) { return q != 0; });
        numbers = { sums.charged > 0 ? sums.charged : whole.count(),
                    sums,
                    countWithPartners(whole.excluded, isCharged) };
        return Hashes{ whole.count(),
                       hashOf(whole.charges),
                       hashOf(whole.excluded.offsets),
                       hashOf(whole.excluded.partners) };
    };
    const std::vector<Hashes> all = answersOf(&ranks_, take);
    checkSame(
            all, [](const Hashes& of) { return of.count; }, "number of particles");
    checkSame(
            all, [](const Hashes& of) { return of.charges; }, "charges");
    checkSame(
            all, [](const Hashes& of) { return of.offsets; }, "excluded pairs");
    checkSame(
            all, [](const Hashes& of) { return of.partners; }, "excluded pairs");
    // it is right, and the same on all ranks: the one before is given up
    hasLocal_ = false;
    partition_.forget();
    own_.clear();
    system_  = WholeSystem<Real>();
    sums_    = sums;
    numbers_ = numbers;
    hash_    = hashOfAll(whole.count());
    agree(&ranks_, [&] { exchange_->setSystem(whole); });
    system_ = std::move(whole);
}

template<class Real>
void DistributedSolver<Real>::Impl::setLocal(const int* index, int count)
{
    partition_.forget();
    hasLocal_ = false;
    agree(&ranks_,
          [&]
          {
              own_.setIndex(index, count, system_);
              exchange_->setLocal(&own_, system_);
          });
    hasLocal_  = true;
    hasFailed_ = false;
}

template<class Real>
Totals DistributedSolver<Real>::Impl::evaluate(const Task<Real>& task)
{
    return evaluating(true, [&] { return evaluation(task); });
}

template<class Real>
Totals DistributedSolver<Real>::Impl::evaluation(const Task<Real>& task)
{
    const auto positions = [&] { return task.x; };
    makeReady(task, positions);
    if (sums_.charged == 0)
    {
        std::fill_n(task.forces, task.request.replaceForces ? 3 * own_.index.size() : 0, Real(0));
        return {};
    }
    const long long messages = ranks_.messages(), bytes = ranks_.bytes();
    const auto run = [&](const Task<Real>& own) { return evaluator_->pipeline().run(own); };
    Totals totals;
    std::vector<double> field(ranks_.size()),
            fields(field.size()); // no memory once forces are there
    evaluator_->times().evaluation(evaluator_->backend(), [&] { totals = run(task); });
    countTraffic(messages, bytes);
    ranks_.gatherOne(evaluator_->backend().cappedFields(), &field, &fields);
    if (!areFieldsAsMeasured(fields))
    {
        const auto renew = [&]
        {
            const Mat3 box = checkedBox(task.box, options_.boundary);
            chooseAndLocate(task.x, positions, box, Why::OtherError);
            evaluator_->times().add(Stage::Sort, [&] { plan(); });
            return true;
        };
        evaluator_->runAgain(task, own_.count(), renew, run, &totals);
    }
    return totals;
}

template<class Real>
void DistributedSolver<Real>::Impl::enqueue(const Task<Real>& task)
{
    GpuBackend<Real>& gpu = evaluator_->onDevice();
    const auto scope      = evaluator_->makeCurrent();
    checkLocal();
    checkNotFailed();
    if (sums_.charged == 0 || gpu.isRecording(task.stream))
    {
        checkedBox(task.box, options_.boundary);
        checkRequest(task.request);
    }
    if (sums_.charged == 0)
    {
        if (task.request.replaceForces)
        {
            gpu.clear(task.forces, own_.count(), task.stream);
        }
        return;
    }
    if (isPlanned() && exchange_->needsPlan(task.stream))
    {
        partition_.forget(); // on all ranks alike
    }
    const bool doMeet = doHostsMeet();
    std::exception_ptr failure; // where the others plan, and meet after it
    const auto lookFor = [&]
    {
        Need need      = isPlanned() ? Need::Nothing : Need::Plan;
        const auto see = [&](const auto& work)
        {
            try
            {
                work();
            }
            catch (...)
            {
                failure = failure ? failure : std::current_exception();
            }
        };
        std::optional<Mat3> box;
        see([&] { box = checkedBox(task.box, options_.boundary); });
        see([&] { checkRequest(task.request); });
        see([&] { gpu.await(task.stream); });
        if (box && isPlanned())
        {
            see([&] { need = needOf(*box); }); // of the others, too, whatever else is wrong here
        }
        if (failure && isPlanned() && need == Need::Nothing)
        {
            if (!doMeet)
            {
                exchange_->begin(task.stream); // as the others do
            }
            std::rethrow_exception(failure);
        }
        return failure ? Need::Plan : need;
    };
    const Need need = evaluating(doMeet, lookFor);
    if (need != Need::Nothing)
    {
        // all ranks, which have the same box and system, and have forgotten the plan together
        std::vector<Real> onHost;
        const auto positions = [&]
        {
            onHost = gpu.onHost(task.x, own_.count(), task.stream);
            return static_cast<const Real*>(onHost.data());
        };
        makeReadyTogether(task, positions, failure);
    }
    evaluating(doHostsMeet(), [&] { evaluator_->pipeline().enqueue(task); });
    countTraffic(ranks_.messages(), ranks_.bytes());
}

template<class Real>
Totals DistributedSolver<Real>::Impl::wait()
{
    GpuBackend<Real>& gpu = evaluator_->onDevice();
    const auto scope      = evaluator_->makeCurrent();
    return sums_.charged == 0 ? Totals() : gpu.wait();
}

template<class Real>
bool DistributedSolver<Real>::Impl::mustRecordAgain() const
{
    return evaluator_->onDevice().mustRecordAgain() || !isPlanned();
}

template<class Real>
void DistributedSolver<Real>::Impl::prepare(const Real* x, const double box[3][3])
{
    makeReadyTogether(
            { x, box, nullptr, nullptr, {} }, [x] { return x; }, nullptr);
}

template<class Real>
void DistributedSolver<Real>::Impl::restore(const std::vector<double>& state)
{
    together(
            [&]
            {
                const auto scope = evaluator_->makeCurrent();
                checkSame(
                        answersOf(&ranks_, [&] { return hashOf(state); }),
                        [](std::uint64_t hash) { return hash; },
                        "state");
                partition_.forget(); // one that fails may have the operators that it had
                agree(&ranks_,
                      [&]
                      {
                          evaluator_->settle();
                          const SavedState saved = chosen_.checked(state);
                          if (evaluator_->gpu() != nullptr && saved.discretisation.levels > 1)
                          {
                              throw Error(ErrorCode::Unsupported,
                                          "The GPUs of several ranks cannot use a tree of cells, "
                                          "which the "
                                          "saved FMM state has. Set device = cpu, use one rank, or "
                                          "choose other "
                                          "cells by prepare().");
                          }
                          chosen_.restore(saved);
                      });
            });
}

template<class Real>
void DistributedSolver<Real>::Impl::countTraffic(long long messages, long long bytes)
{
    const SentPerEvaluation sent = exchange_->sentPerEvaluation();
    traffic_.evaluations++;
    traffic_.messages += ranks_.messages() - messages + sent.messages;
    traffic_.bytes += ranks_.bytes() - bytes + sent.bytes;
}

template<class Real>
void DistributedSolver<Real>::Impl::checkLocal() const
{
    if (!hasLocal_ && numbers_.takingPart > 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The particles of each rank are not known. Call setLocal() on all ranks after "
                    "setSystem().");
    }
}

template<class Real>
void DistributedSolver<Real>::Impl::checkNotFailed() const
{
    if (hasFailed_)
    {
        throw Error(ErrorCode::DeviceFailure,
                    "An evaluation failed on this rank, and the other ranks do not know. Call "
                    "setLocal() or prepare() on all ranks before the next one.");
    }
}

template<class Real>
template<class Work>
auto DistributedSolver<Real>::Impl::evaluating(bool allHear, const Work& work) -> decltype(work())
{
    const auto own = [&]
    {
        const auto scope = evaluator_->makeCurrent();
        try
        {
            return work();
        }
        catch (...)
        {
            // before it is said: others hear it when their GPUs have come to an end
            if (!exchange_->sendRest() || !ranks_.isWatched())
            {
                hasFailed_ = true;
                ranks_.failSilently();
            }
            throw;
        }
    };
    try
    {
        return allHear ? together(own) : own();
    }
    catch (...)
    {
        exchange_->sendRest(); // nothing, of those that have heard of it: they forget the plan, too
        throw;
    }
}

template<class Real>
bool DistributedSolver<Real>::Impl::isPlanned() const
{
    const OperatorsInUse<Real>& operators = evaluator_->operators();
    return chosen_.isFor(numbers_) && plannedBuild_ == operators.builds()
           && partition_.isPlannedFor(operators.discretisation());
}

template<class Real>
typename DistributedSolver<Real>::Impl::Need DistributedSolver<Real>::Impl::needOf(const Mat3& box)
{
    bool isChosen     = chosen_.isFor(numbers_);
    const auto choose = [&] { isChosen = false; };
    if (isChosen)
    {
        evaluator_->times().add(Stage::SetUp, [&] { chosen_.followBox(box, choose); });
    }
    return !isChosen               ? Need::Choice
           : chosen_.mustMeasure() ? Need::Look
           : isPlanned()           ? Need::Nothing
                                   : Need::Plan;
}

template<class Real>
std::uint64_t DistributedSolver<Real>::Impl::hashOfCells() const
{
    if (!evaluator_->operators().exist())
    {
        return 0;
    }
    // Also what decides when cells are looked at again: that has to be at the same time on all ranks.
    const Discretisation& d   = evaluator_->operators().discretisation();
    const ChosenFor& measured = chosen_.chosenFor();
    std::vector<double> all   = { static_cast<double>(d.order),
                                  static_cast<double>(d.ws),
                                  static_cast<double>(d.levels),
                                  measured.measuredError,
                                  measured.field.cap,
                                  measured.field.level,
                                  measured.systemFactor,
                                measured.isBestEffort ? 1.0 : 0.0 };
    constexpr double c_places = 1e4; // per nm: boxes of ranks may differ by rounding
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            all.push_back(d.leafCells[i][j]);
            all.push_back(std::round(c_places * d.referenceBox(i, j)) + 0.0);
        }
    }
    return hashOf(all);
}

template<class Real>
struct DistributedSolver<Real>::Impl::Readiness
{
    GivenToRank given;
    Need need;
    std::uint64_t cells;
    double fields;
};

template<class Real>
typename DistributedSolver<Real>::Impl::Readiness
DistributedSolver<Real>::Impl::look(const Task<Real>& task, Mat3* box)
{
    evaluator_->settle(); // exchanges of a rank go one after another
    *box = checkedBox(task.box, options_.boundary);
    checkRequest(task.request);
    checkLocal();
    Readiness own = { GivenToRank(task.box, task.request, own_),
                      Need::Nothing,
                      0,
                      evaluator_->backend().cappedFields() };
    if (sums_.charged > 0)
    {
        own.need = needOf(*box);
        if (own.need < Need::Look && locate(task.x, *box))
        {
            own.need = Need::Plan;
        }
    }
    own.cells = hashOfCells();
    return own;
}

template<class Real>
void DistributedSolver<Real>::Impl::makeReady(const Task<Real>& task, const Positions& positions)
{
    Mat3 box = Mat3::Zero();
    std::vector<Readiness> all;
    evaluator_->times().add(Stage::Sort,
                            [&] { all = answersOf(&ranks_, [&] { return look(task, &box); }); });
    std::vector<GivenToRank> given;
    std::vector<double> fields;
    Need need = Need::Nothing;
    for (const Readiness& of : all)
    {
        given.push_back(of.given);
        fields.push_back(of.fields);
        // where memory was short on one of them ranks may have cells of two choices
        need = std::max(need, of.cells == all[0].cells ? of.need : Need::Choice);
    }
    checkGiven(given, own_.index, system_.count(), hash_, &ranks_);
    hasFailed_ = false;
    if (sums_.charged == 0)
    {
        return;
    }
    Why why = Why::OtherSystem;
    if (need == Need::Look || (need < Need::Look && !areFieldsAsMeasured(fields)))
    {
        need = Need::Choice;
        why  = Why::OtherError;
    }
    if (need == Need::Choice)
    {
        chooseAndLocate(task.x, positions, box, why);
    }
    if (need != Need::Nothing)
    {
        evaluator_->times().add(Stage::Sort, [&] { plan(); });
    }
}

template<class Real>
void DistributedSolver<Real>::Impl::makeReadyTogether(const Task<Real>& task,
                                                      const Positions& positions,
                                                      const std::exception_ptr& failure)
{
    try
    {
        together(
                [&]
                {
                    if (failure)
                    {
                        std::rethrow_exception(failure);
                    }
                    const auto scope = evaluator_->makeCurrent();
                    makeReady(task, positions);
                });
    }
    catch (...)
    {
        // All throw. On one of them operators may be missing that the plan is for.
        partition_.forget();
        throw;
    }
}

template<class Real>
bool DistributedSolver<Real>::Impl::locate(const Real* x, const Mat3& box)
{
    const Discretisation& d = evaluator_->operators().discretisation();
    const int lost          = exchange_->locate(own_, x, d, box);
    if (lost >= 0)
    {
        throw positionError<Real>("particle", own_.index[lost], nullptr);
    }
    return exchange_->haveLeftPlan(d);
}

template<class Real>
void DistributedSolver<Real>::Impl::plan()
{
    const long long bytes = ranks_.bytes();
    try
    {
        exchange_->plan(own_, sums_.net);
    }
    catch (...)
    {
        partition_.forget(); // of a part of a plan nothing is of use
        throw;
    }
    plannedBuild_ = evaluator_->operators().builds();
    traffic_.plans++;
    traffic_.planBytes += ranks_.bytes() - bytes;
}

template<class Real>
DistributedSolver<Real>::DistributedSolver(const Options& options,
                                           Communicator* communicator,
                                           DeviceCommunicator* onDevice) :
    CoulombSolver<Real>(withMemoryErrors(
            [&]
            {
                Ranks ranks(communicator);
                return together(
                        &ranks,
                        [&]
                        { return std::make_unique<Impl>(options, ranks, communicator, onDevice); });
            }))
{
}

template<class Real>
typename DistributedSolver<Real>::Impl& DistributedSolver<Real>::impl() const
{
    return static_cast<Impl&>(SolverAccess<Real>::of(*this));
}

template<class Real>
void DistributedSolver<Real>::setSystem(const SystemOfRanks<Real>& system)
{
    withMemoryErrors([&] { impl().together([&] { impl().setSystem(system); }); });
}
template<class Real>
void DistributedSolver<Real>::setLocal(const int* index, int count)
{
    withMemoryErrors([&] { impl().together([&] { impl().setLocal(index, count); }); });
}
template<class Real>
Traffic DistributedSolver<Real>::traffic() const
{
    return withMemoryErrors([&] { return impl().traffic(); });
}

template class DistributedSolver<float>;
template class DistributedSolver<double>;

} // namespace farfield
