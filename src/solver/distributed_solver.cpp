/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The public interface of a system on several ranks: the first of them chooses order and
 *         cells, all plan what they exchange, and evaluate.
 */
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "backend/distributed_device_entry.h"
#include "base/hash.h"
#include "parallel/measured_network.h"
#include "parallel/partition.h"
#include "plan/cost_model.h"
#include "solver/box_follower.h"
#include "solver/chosen_backend.h"
#include "solver/chosen_for.h"
#include "solver/force_scale.h"
#include "solver/input_check.h"
#include "solver/memory_errors.h"
#include "solver/pipeline.h"
#include "solver/ranks_check.h"
#include "solver/saved_state.h"
#include "solver/solver_access.h"

namespace farfield
{
namespace
{

//! Positions of the particles of all ranks, [n][3], by their indices; each is on one rank.
template<class Real>
std::vector<Real> gatherPositions(const std::vector<int>& own, const Real* x, int n, Ranks* ranks)
{
    const auto positions = ranks->gather(std::vector<Real>(x, x + 3 * own.size())).values;
    const auto index     = ranks->gather(own).values;
    std::vector<Real> all(3 * static_cast<size_t>(n));
    for (size_t i = 0; i < index.size(); i++)
    {
        std::copy_n(positions.begin() + 3 * i, 3, all.begin() + 3 * static_cast<size_t>(index[i]));
    }
    return all;
}

} // namespace

template<class Real>
class DistributedSolver<Real>::Impl
{
public:
    Impl(const Options& options, Communicator* communicator, DeviceCommunicator* onDevice) :
        ranks_(communicator),
        options_(checkedForRanks<Real>(options, onDevice != nullptr, &ranks_)),
        mayTime_(options.tune), threads_(options.threads > 0 ? options.threads : usableThreads()),
        partition_(&ranks_, options_.device == Device::Gpu ? c_driftOnDevice : c_drift, threads_),
        deviceRanks_{ &partition_, communicator, onDevice }, chosen_(backendOfAll()),
        backend_(chosen_->backend.get()), gpu_(chosen_->gpu), operators_(backend_),
        pipeline_(backend_, gpu_, &operators_, &times_)
    {
        options_.threads = threads_;
        options_.tune    = false;
    }

    void setSystem(const SystemOfRanks<Real>& system)
    {
        struct Hashes
        {
            int count;
            std::uint64_t charges, offsets, partners;
        };
        const DeviceScope<Real> scope(gpu_);
        WholeSystem<Real> whole;
        ParticleNumbers numbers;
        long long charged = 0;
        const auto take   = [&]
        {
            settle();
            checkCharges(system.charges, system.count);
            if (system.exclusionOffsets != nullptr)
            {
                checkExclusions(system.exclusionOffsets,
                                system.exclusionPartners,
                                system.count,
                                system.count);
            }
            whole = WholeSystem<Real>(system);
            std::vector<char> isCharged(whole.charges.size());
            std::transform(whole.charges.begin(),
                           whole.charges.end(),
                           isCharged.begin(),
                           [](Real q) { return q != 0; });
            charged = std::count(isCharged.begin(), isCharged.end(), char(1));
            numbers = { charged > 0 ? charged : whole.count(),
                        countWithPartners(whole.excluded, isCharged),
                        charged > 0 };
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
        charged_ = charged;
        numbers_ = numbers;
        hash_    = hashOfAll(whole.count());
        net_     = std::accumulate(whole.charges.begin(), whole.charges.end(), 0.0);
        acting_ =
                std::count_if(whole.charges.begin(),
                              whole.charges.end(),
                              [](Real q) { return std::abs(q) > static_cast<Real>(c_idleCharge); });
        squaredCharges_ = std::inner_product(
                whole.charges.begin(), whole.charges.end(), whole.charges.begin(), 0.0);
        if (gpu_ != nullptr)
        {
            agree(&ranks_, [&] { gpu_->setSystem(whole); });
        }
        system_ = std::move(whole);
    }

    void setLocal(const int* index, int count)
    {
        partition_.forget();
        hasLocal_ = false;
        agree(&ranks_,
              [&]
              {
                  own_.setIndex(index, count, system_);
                  if (gpu_ == nullptr)
                  {
                      own_.lookUp(system_, threads_);
                  }
              });
        hasLocal_  = true;
        hasFailed_ = false;
    }

    Totals
    evaluate(const Real* x, const double boxVectors[3][3], Real* forces, const Request& request)
    {
        const DeviceScope<Real> scope(gpu_);
        makeReady(
                x, [x] { return x; }, boxVectors, request);
        if (charged_ == 0)
        {
            std::fill_n(forces, request.replaceForces ? 3 * own_.index.size() : 0, Real(0));
            return {};
        }
        const long long messages = ranks_.messages(), bytes = ranks_.bytes();
        Totals totals;
        alone(
                [&] {
                    times_.evaluation(*backend_,
                                      [&] { totals = pipeline_.run(x, forces, request); });
                });
        countTraffic(messages, bytes);
        if (!areFieldsAsMeasured(ranks_.gatherOne(backend_->cappedFields())))
        {
            const Mat3 box = checkedBox(boxVectors, options_.boundary);
            alone([&] { chooseAndRunAgain(x, box, forces, request, &totals); });
        }
        return totals;
    }

    void enqueue(const Real* x,
                 const double boxVectors[3][3],
                 Real* forces,
                 const Request& request,
                 void* stream)
    {
        checkOnGpu(gpu_ != nullptr);
        const DeviceScope<Real> scope(gpu_);
        const Mat3 box = checkedBox(boxVectors, options_.boundary);
        checkRequest(request);
        checkLocal();
        if (hasFailed_)
        {
            throw Error(ErrorCode::DeviceFailure,
                        "An evaluation of this rank has failed, and others do not know: all ranks "
                        "have to call setLocal() or prepare() before the next one.");
        }
        if (charged_ == 0)
        {
            if (request.replaceForces)
            {
                gpu_->clear(forces, own_.count(), stream);
            }
            return;
        }
        if (isPlanned() && gpu_->needsPlan(stream))
        {
            partition_.forget(); // on all ranks alike
        }
        Need need = Need::Plan;
        alone(
                [&]
                {
                    gpu_->await(stream);
                    need = isPlanned() ? needOf(box) : Need::Plan;
                });
        if (need != Need::Nothing)
        {
            // all ranks, which have the same box and system, and have forgotten the plan together
            std::vector<Real> onHost;
            const auto positions = [&]
            {
                onHost = gpu_->onHost(x, own_.count(), stream);
                return static_cast<const Real*>(onHost.data());
            };
            makeReady(x, positions, boxVectors, request);
        }
        alone([&] { pipeline_.runOnDevice(x, forces, request, stream); });
        countTraffic(ranks_.messages(), ranks_.bytes());
    }

    Totals wait()
    {
        checkOnGpu(gpu_ != nullptr);
        const DeviceScope<Real> scope(gpu_);
        return charged_ == 0 ? Totals() : gpu_->wait();
    }

    bool mustRecordAgain() const
    {
        checkOnGpu(gpu_ != nullptr);
        return !isPlanned() || gpu_->mustRecordAgain();
    }

    bool mayUpdateGraphs() const
    {
        checkOnGpu(gpu_ != nullptr);
        return gpu_->mayUpdateGraphs();
    }

    void prepare(const Real* x, const double boxVectors[3][3])
    {
        const DeviceScope<Real> scope(gpu_);
        makeReady(x, [x] { return x; }, boxVectors, {});
    }

    Setup setup() const
    {
        Setup s;
        if (operators_.exist())
        {
            s           = operators_.setup();
            s.chosenFor = chosenFor_.device();
        }
        s.device     = options_.device;
        s.threads    = threads_;
        s.deviceName = gpu_ != nullptr ? gpu_->deviceName() : cpuTargetName();
        s.deviceId   = gpu_ != nullptr ? gpu_->deviceId() : -1;
        return s;
    }

    std::vector<double> state() const
    {
        if (!operators_.exist())
        {
            return {};
        }
        return encodeState({ operators_.discretisation(),
                             chosenFor_.device(),
                             chosenFor_.takingPart(),
                             operators_.strain() },
                           options_,
                           sizeof(Real));
    }

    void restore(const std::vector<double>& state)
    {
        const DeviceScope<Real> scope(gpu_);
        checkSame(
                answersOf(&ranks_, [&] { return hashOf(state); }),
                [](std::uint64_t hash) { return hash; },
                "state");
        agree(&ranks_,
              [&]
              {
                  settle();
                  const SavedState saved =
                          decodeState(state, options_, options_.device, sizeof(Real));
                  if (gpu_ != nullptr && saved.discretisation.levels > 1)
                  {
                      throw Error(ErrorCode::Unsupported,
                                  "On GPUs, several ranks have no tree of cells.");
                  }
                  operators_.change([&] { operators_.build(saved.discretisation, saved.strain); });
                  chosenFor_.restore(
                          saved.chosenFor, saved.particles, saved.discretisation.field.cap > 0);
              });
        partition_.forget();
    }

    std::vector<StageTime> timings() const { return times_.all(); }
    void resetTimings() { times_.reset(); }
    Traffic traffic() const
    {
        Traffic result = traffic_;
        if (operators_.exist())
        {
            const Discretisation& d = operators_.discretisation();
            const Work work         = evenWork();
            const Network network   = untimedNetwork(d.referenceBox);
            const bool inShares     = closesInShares(options_.device, work, network);
            const PredictedTraffic expected =
                    predictedTraffic(options_.device, work, network, inShares);
            result.expectedMessages = expected.messages;
            result.expectedBytes    = expected.numbers * sizeof(Real);
        }
        return result;
    }

private:
    //! Waits for what the caller has put into streams of his own.
    void settle()
    {
        if (gpu_ != nullptr)
        {
            gpu_->settle();
        }
    }

    //! Counts an evaluation, and what it has sent. \param[in] messages, bytes  of the host before it
    void countTraffic(long long messages, long long bytes)
    {
        const SentPerEvaluation onDevice =
                gpu_ != nullptr ? gpu_->sentPerEvaluation() : SentPerEvaluation();
        traffic_.evaluations++;
        traffic_.messages += ranks_.messages() - messages + onDevice.messages;
        traffic_.bytes += ranks_.bytes() - bytes + onDevice.bytes;
    }

    //! That particles were dealt out.
    void checkLocal() const
    {
        if (!hasLocal_ && numbers_.takingPart > 0)
        {
            throw Error(
                    ErrorCode::InvalidArgument,
                    "setLocal() has not been called, or has failed, after setSystem(): say which "
                    "of the particles each rank has.");
        }
    }

    //! Has all ranks make the backend, which none of them has if one can not.
    std::optional<ChosenBackend<Real>> backendOfAll()
    {
        std::optional<ChosenBackend<Real>> chosen;
        agree(&ranks_, [&] { chosen.emplace(options_, threads_, &deviceRanks_); });
        return chosen;
    }

    //! Does what the other ranks do not hear of if it fails.
    template<class Work>
    void alone(const Work& work)
    {
        try
        {
            work();
        }
        catch (...)
        {
            hasFailed_ = true;
            throw;
        }
    }

    //! What an evaluation needs before it, of all ranks if of one.
    enum class Need
    {
        Nothing,
        Plan,  //!< of exchanges
        Choice //!< of order and cells, and a plan
    };

    //! Why order and cells are chosen.
    enum class Why
    {
        OtherSystem, //!< or box, or for the first time
        OtherForces  //!< those in use may do
    };

    //! Whether exchanges are planned for the operators that there are, and these for the system.
    bool isPlanned() const
    {
        return operators_.exist() && chosenFor_.isStillFor(numbers_)
               && plannedBuild_ == operators_.builds()
               && partition_.isPlannedFor(operators_.discretisation());
    }

    //! Makes the operators those of a box, as far as this rank can by itself. \returns what is left to do
    Need needOf(const Mat3& box)
    {
        bool isChosen     = operators_.exist() && chosenFor_.isStillFor(numbers_);
        const auto choose = [&] { isChosen = false; };
        if (isChosen)
        {
            times_.add(Stage::SetUp, [&] { followBox(box, options_.device, &operators_, choose); });
        }
        return !isChosen ? Need::Choice : isPlanned() ? Need::Nothing : Need::Plan;
    }

    //! Which cells there are, to be compared; in a box that is the same.
    std::uint64_t hashOfCells() const
    {
        if (!operators_.exist())
        {
            return 0;
        }
        const Discretisation& d = operators_.discretisation();
        std::vector<int> all    = { d.order, d.ws, d.levels };
        for (const auto& row : d.leafCells)
        {
            all.insert(all.end(), row.begin(), row.end());
        }
        return hashOf(all);
    }

    /*! \brief Checks what all ranks have been given, and makes operators and exchanges ready for it.
     *  \param[in] x       positions, host memory, or that of a device
     *  \param[in] onHost  returns those in host memory; called if cells have to be chosen */
    template<class Positions>
    void makeReady(const Real* x,
                   const Positions& onHost,
                   const double boxVectors[3][3],
                   const Request& request)
    {
        struct Readiness
        {
            GivenToRank given;
            Need need;
            std::uint64_t cells;
            double fields;
        };
        Mat3 box        = Mat3::Zero();
        const auto look = [&]
        {
            settle(); // exchanges of a rank go one after another
            box = checkedBox(boxVectors, options_.boundary);
            checkRequest(request);
            checkLocal();
            Readiness own = {
                GivenToRank(boxVectors, request, own_), Need::Nothing, 0, backend_->cappedFields()
            };
            if (charged_ > 0)
            {
                own.need = needOf(box);
                if (own.need != Need::Choice && locate(x, box))
                {
                    own.need = Need::Plan;
                }
            }
            own.cells = hashOfCells();
            return own;
        };
        std::vector<Readiness> all;
        times_.add(Stage::Sort, [&] { all = answersOf(&ranks_, look); });
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
        if (charged_ == 0)
        {
            return;
        }
        Why why = Why::OtherSystem;
        if (need != Need::Choice && !areFieldsAsMeasured(fields))
        {
            need = Need::Choice;
            why  = Why::OtherForces;
        }
        if (need == Need::Choice)
        {
            chooseAndLocate(x, onHost, box, why);
        }
        if (need != Need::Nothing)
        {
            times_.add(Stage::Sort, [&] { plan(); });
        }
        chosenFor_.complete(numbers_);
    }

    //! Chooses cells, for which exchanges are to be planned then. Arguments as makeReady().
    template<class Positions>
    void chooseAndLocate(const Real* x, const Positions& onHost, const Mat3& box, Why why)
    {
        times_.add(Stage::SetUp, [&] { choose(onHost(), box, why); });
        times_.add(Stage::Sort, [&] { agree(&ranks_, [&] { locate(x, box); }); });
    }

    /*! \brief Whether the fields of the last evaluation are about as strong as when the error was
     *         measured; the same on all ranks.
     *  \param[in] cappedFields  Backend::cappedFields() of each rank */
    bool areFieldsAsMeasured(const std::vector<double>& cappedFields) const
    {
        if (!operators_.exist()
            || std::any_of(
                    cappedFields.begin(), cappedFields.end(), [](double f) { return f < 0; }))
        {
            return true;
        }
        const double pair  = typicalPairForce(options_.coulombConstant,
                                             squaredCharges_,
                                             charged_,
                                             operators_.box().determinant());
        const double least = leastPartOfPairForce(options_.accuracy, sizeof(Real)) * pair;
        return isLikeField(std::accumulate(cappedFields.begin(), cappedFields.end(), 0.0),
                           operators_.discretisation().field,
                           weakestField(least, squaredCharges_, charged_),
                           acting_);
    }

    /*! \brief Forces have changed much: chooses anew, and replaces what an evaluation has given.
     *  \param[in,out] forces, totals  what the evaluation has left */
    void chooseAndRunAgain(const Real* x,
                           const Mat3& box,
                           Real* forces,
                           const Request& request,
                           Totals* totals)
    {
        Request own       = request;
        own.replaceForces = true;
        std::vector<Real> added(3 * own_.index.size()), better(added.size());
        if (!request.replaceForces)
        {
            times_.notCounted([&] { pipeline_.run(x, added.data(), own); });
        }
        chooseAndLocate(
                x, [x] { return x; }, box, Why::OtherForces);
        times_.add(Stage::Sort, [&] { plan(); });
        times_.evaluation(*backend_, [&] { *totals = pipeline_.run(x, better.data(), own); });
        for (size_t k = 0; k < added.size(); k++)
        {
            forces[k] = request.replaceForces ? better[k] : forces[k] + (better[k] - added[k]);
        }
    }

    //! The operators in use, and particles everywhere.
    Work evenWork() const
    {
        const Discretisation& d = operators_.discretisation();
        return { d,
                 Occupancy(d.referenceBox.determinant()),
                 static_cast<double>(numbers_.takingPart) };
    }

    bool hostsPassMessages() const
    {
        return gpu_ == nullptr || deviceRanks_.communicator == nullptr;
    }

    //! The ranks, and what messages between them usually cost; the same on all, and in every run.
    Network untimedNetwork(const Mat3& box) const
    {
        Network network = hostsPassMessages()
                                  ? usualNetwork(sizeof(Real))
                                  : networkOfGpus(deviceRanks_.communicator->cost(), sizeof(Real));
        network.parts   = evenDomains(ranks_.size(), box);
        network.threads = threads_;
        return network;
    }

    //! The same with what they cost here, if timings may decide; the same on all.
    Network networkFor(const Mat3& box)
    {
        Network network = untimedNetwork(box);
        if (mayTime_ && hostsPassMessages())
        {
            const Network measured = measuredNetwork(&ranks_, sizeof(Real));
            network.message        = measured.message;
            network.number         = measured.number;
        }
        return network;
    }

    //! The first rank chooses order and cells, with all particles, by measured errors.
    void choose(const Real* x, const Mat3& box, Why why)
    {
        std::vector<double> state;
        const Network network       = networkFor(box);
        const std::vector<Real> all = gatherPositions(own_.index, x, system_.count(), &ranks_);
        agree(&ranks_,
              [&]
              {
                  if (ranks_.rank() > 0)
                  {
                      return;
                  }
                  double rows[3][3];
                  for (int i = 0; i < 9; i++)
                  {
                      rows[i / 3][i % 3] = box(i / 3, i % 3);
                  }
                  Options ofOne = options_;
                  ofOne.tune    = mayTime_ && !operators_.exist(); // not in the midst of a run
                  Solver<Real> chooser(ofOne);
                  SolverAccess<Real>::setNetwork(chooser, network);
                  if (operators_.exist())
                  {
                      SolverAccess<Real>::takeBest(chooser);
                  }
                  const int n = system_.count();
                  chooser.setCharges(system_.charges.data(), n);
                  chooser.setExclusions(
                          system_.excluded.offsets.data(), system_.excluded.partners.data(), n);
                  if (why == Why::OtherForces)
                  {
                      chooser.restore(this->state());
                      SolverAccess<Real>::lookAtForces(chooser, all.data(), rows);
                  }
                  else
                  {
                      chooser.prepare(all.data(), rows);
                  }
                  state = chooser.state();
              });
        restore(ranks_.gather(state).values);
        agree(&ranks_,
              [&]
              {
                  // a box that is rotated from the one that the operators are for, or strained
                  followBox(box,
                            options_.device,
                            &operators_,
                            [] {
                                throw Error(ErrorCode::InvalidArgument,
                                            "No cells fit the box that they were chosen for.");
                            });
              });
    }

    //! Finds out where our particles are. \returns whether they have left the plan
    bool locate(const Real* x, const Mat3& box)
    {
        const Discretisation& d = operators_.discretisation();
        if (gpu_ != nullptr)
        {
            checkFound(gpu_->locate(own_.index, x));
            return gpu_->haveLeftPlan();
        }
        checkFound(partition_.locate(own_, x, d, box));
        return partition_.needsPlan(d);
    }

    //! Plans the exchanges, for the particles where they were located.
    void plan()
    {
        const long long bytes = ranks_.bytes();
        try
        {
            if (gpu_ != nullptr)
            {
                const Network network = untimedNetwork(operators_.discretisation().referenceBox);
                gpu_->plan(net_,
                           isTrueOnAll(deviceRanks_.host,
                                       closesInShares(Device::Gpu, evenWork(), network)));
            }
            else
            {
                planOnHost();
            }
        }
        catch (...)
        {
            partition_.forget(); // of a part of a plan nothing is of use
            throw;
        }
        plannedBuild_ = operators_.builds();
        traffic_.plans++;
        traffic_.planBytes += ranks_.bytes() - bytes;
    }

    void planOnHost()
    {
        partition_.plan(own_);
        const Ghosts<Real>& ghosts = partition_.ghosts();
        const int n                = own_.count() + ghosts.count();
        backend_->setCharges(own_.charges.data(), own_.count());
        backend_->setGhosts(ghosts.charges().data(), ghosts.count(), net_);
        const ExcludedPairs& pairs = ghosts.excluded();
        backend_->setExclusions(pairs.offsets.data(), pairs.partners.data(), n);
    }

    //! \param[in] lost  a particle of ours that is nowhere, or -1
    void checkFound(int lost) const
    {
        if (lost >= 0)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The position of particle " + std::to_string(own_.index[lost])
                                + " is not finite or lies more than a billion cells outside "
                                  "the box.");
        }
    }

    Ranks ranks_;
    Options options_;
    bool mayTime_; //!< messages and settings, before order and cells are chosen
    int threads_;
    Partition<Real> partition_;
    DeviceRanks<Real> deviceRanks_;
    std::optional<ChosenBackend<Real>> chosen_;
    Backend<Real>* backend_;
    GpuBackend<Real>* gpu_; //!< the same, if it is one of a GPU, else null
    StageTimes times_;
    OperatorsInUse<Real> operators_;
    Pipeline<Real> pipeline_;
    WholeSystem<Real> system_;
    std::uint64_t hash_ = 0; //!< see hashOfAll()
    OwnParticles<Real> own_;
    bool hasLocal_         = false; //!< whether own_ are particles of system_
    double net_            = 0;     //!< of the system, e
    double squaredCharges_ = 0;     //!< sum over the system, e^2
    long long acting_      = 0;     //!< particles whose charge does something
    long long charged_     = 0;     //!< particles with a charge
    ParticleNumbers numbers_;
    ChosenFor chosenFor_;
    long long plannedBuild_ = 0; //!< of the operators that exchanges are planned for
    bool hasFailed_ =
            false; //!< this rank in an evaluation on device arrays, which others do not know
    Traffic traffic_;
};

template<class Real>
DistributedSolver<Real>::DistributedSolver(const Options& options,
                                           Communicator* communicator,
                                           DeviceCommunicator* onDevice) :
    impl_(withMemoryErrors([&] { return std::make_unique<Impl>(options, communicator, onDevice); }))
{
}
template<class Real>
DistributedSolver<Real>::~DistributedSolver() = default;
template<class Real>
DistributedSolver<Real>::DistributedSolver(DistributedSolver&&) noexcept = default;
template<class Real>
DistributedSolver<Real>& DistributedSolver<Real>::operator=(DistributedSolver&&) noexcept = default;

template<class Real>
void DistributedSolver<Real>::setSystem(const SystemOfRanks<Real>& system)
{
    withMemoryErrors([&] { impl_->setSystem(system); });
}
template<class Real>
void DistributedSolver<Real>::setLocal(const int* index, int count)
{
    withMemoryErrors([&] { impl_->setLocal(index, count); });
}
template<class Real>
Totals DistributedSolver<Real>::evaluate(const Real* x,
                                         const double box[3][3],
                                         Real* forces,
                                         const Request& request)
{
    return withMemoryErrors([&] { return impl_->evaluate(x, box, forces, request); });
}
template<class Real>
void DistributedSolver<Real>::prepare(const Real* x, const double box[3][3])
{
    withMemoryErrors([&] { impl_->prepare(x, box); });
}
template<class Real>
Setup DistributedSolver<Real>::setup() const
{
    return withMemoryErrors([&] { return impl_->setup(); });
}
template<class Real>
std::vector<double> DistributedSolver<Real>::state() const
{
    return withMemoryErrors([&] { return impl_->state(); });
}
template<class Real>
void DistributedSolver<Real>::restore(const std::vector<double>& state)
{
    withMemoryErrors([&] { impl_->restore(state); });
}
template<class Real>
std::vector<StageTime> DistributedSolver<Real>::timings() const
{
    return withMemoryErrors([&] { return impl_->timings(); });
}
template<class Real>
void DistributedSolver<Real>::resetTimings()
{
    impl_->resetTimings();
}
template<class Real>
Traffic DistributedSolver<Real>::traffic() const
{
    return withMemoryErrors([&] { return impl_->traffic(); });
}

template<class Real>
void DistributedDeviceEntry<Real>::enqueue(DistributedSolver<Real>& solver,
                                           const Real* x,
                                           const double box[3][3],
                                           Real* forces,
                                           const Request& request,
                                           void* stream)
{
    withMemoryErrors([&] { solver.impl_->enqueue(x, box, forces, request, stream); });
}
template<class Real>
Totals DistributedDeviceEntry<Real>::wait(DistributedSolver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->wait(); });
}
template<class Real>
bool DistributedDeviceEntry<Real>::mustRecordAgain(const DistributedSolver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->mustRecordAgain(); });
}
template<class Real>
bool DistributedDeviceEntry<Real>::mayUpdateGraphs(const DistributedSolver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->mayUpdateGraphs(); });
}

template class DistributedSolver<float>;
template class DistributedSolver<double>;
template struct DistributedDeviceEntry<float>;
template struct DistributedDeviceEntry<double>;

} // namespace farfield
