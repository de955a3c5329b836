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

#include <omp.h>

#include "backend/distributed_device_entry.h"
#include "parallel/measured_network.h"
#include "parallel/partition.h"
#include "plan/cost_model.h"
#include "solver/agreement.h"
#include "solver/box_follower.h"
#include "solver/chosen_backend.h"
#include "solver/chosen_for.h"
#include "solver/input_check.h"
#include "solver/memory_errors.h"
#include "solver/pipeline.h"
#include "solver/saved_state.h"
#include "solver/solver_access.h"

namespace farfield
{
namespace
{

//! The options for a rank, checked; with the device that it has.
template<class Real>
Options checkedForRanks(Options options)
{
    checkOptions<Real>(options);
    if (options.device == Device::Auto)
    {
        options.device = gpuIsUsable(options.deviceId) ? Device::Gpu : Device::Cpu;
    }
    if (options.boundary != Boundary::Periodic)
    {
        throw Error(ErrorCode::Unsupported,
                    "Several ranks have periodic boundaries only: use one rank.",
                    "boundary");
    }
    if (options.device == Device::Gpu)
    {
        if (options.m2l != M2lEngine::Auto && options.m2l != M2lEngine::Fft)
        {
            throw Error(
                    ErrorCode::Unsupported,
                    std::string("On GPUs, several ranks have no tree of cells: set m2l = fft or "
                                "auto instead of ")
                            + nameOf(options.m2l) + ", device = cpu, or use one rank.",
                    "m2l");
        }
        options.m2l = M2lEngine::Fft;
    }
    else
    {
        checkEngine(options.m2l, Device::Cpu);
    }
    options.tune = false;
    return options;
}

/*! \brief Positions of the particles of all ranks, [n][3], by their indices.
 *  \throws Error  InvalidArgument: a particle is on no rank, or on several */
template<class Real>
std::vector<Real> gatherPositions(const std::vector<int>& own, const Real* x, int n, Ranks* ranks)
{
    const auto positions = ranks->gather(std::vector<Real>(x, x + 3 * own.size())).values;
    const auto index     = ranks->gather(own).values;
    std::vector<Real> all(3 * static_cast<size_t>(n));
    std::vector<char> isThere(n, 0);
    for (size_t i = 0; i < index.size(); i++)
    {
        isThere[index[i]] = 1;
        std::copy_n(positions.begin() + 3 * i, 3, all.begin() + 3 * static_cast<size_t>(index[i]));
    }
    if (static_cast<int>(index.size()) != n
        || std::find(isThere.begin(), isThere.end(), 0) != isThere.end())
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The ranks have " + std::to_string(index.size()) + " particles, and the system "
                            + std::to_string(n) + ": every particle has to be on one rank.");
    }
    return all;
}

} // namespace

template<class Real>
class DistributedSolver<Real>::Impl
{
public:
    Impl(const Options& options, Communicator* communicator, DeviceCommunicator* onDevice) :
        options_(checkedForRanks<Real>(options)), mayTime_(options.tune),
        threads_(options.threads > 0 ? options.threads : omp_get_max_threads()),
        ranks_(communicator),
        partition_(&ranks_, options_.device == Device::Gpu ? c_driftOnDevice : c_drift, threads_),
        deviceRanks_{ &partition_, communicator, onDevice },
        chosen_(options_, threads_, &deviceRanks_), backend_(chosen_.backend.get()),
        gpu_(chosen_.gpu), operators_(backend_), pipeline_(backend_, gpu_, &operators_, &times_)
    {
        options_.threads = threads_;
    }

    void setSystem(const SystemOfRanks<Real>& system)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        agree(&ranks_,
              [&]
              {
                  checkCharges(system.charges, system.count);
                  system_ = WholeSystem<Real>(system);
                  if (gpu_ != nullptr)
                  {
                      gpu_->setSystem(system_);
                  }
                  std::vector<char> isCharged(system_.count());
                  std::transform(system_.charges.begin(),
                                 system_.charges.end(),
                                 isCharged.begin(),
                                 [](Real q) { return q != 0; });
                  net_     = std::accumulate(system_.charges.begin(), system_.charges.end(), 0.0);
                  charged_ = std::count(isCharged.begin(), isCharged.end(), char(1));
                  numbers_ = { charged_ > 0 ? charged_ : system_.count(),
                               countWithPartners(system_.excluded, isCharged) };
              });
        setLocal(nullptr, 0);
    }

    void setLocal(const int* index, int count)
    {
        agree(&ranks_,
              [&]
              {
                  own_.setIndex(index, count, system_);
                  if (gpu_ == nullptr)
                  {
                      own_.lookUp(system_, threads_);
                  }
              });
        partition_.forget();
    }

    Totals
    evaluate(const Real* x, const double boxVectors[3][3], Real* forces, const Request& request)
    {
        const DeviceScope<Real> scope(gpu_);
        const Mat3 box = checkedBox(boxVectors, options_.boundary);
        checkRequest(request);
        settle(); // exchanges of a rank go one after another
        if (charged_ == 0)
        {
            std::fill_n(forces, request.replaceForces ? 3 * own_.index.size() : 0, Real(0));
            return {};
        }
        times_.add(Stage::SetUp, [&] { follow([x] { return x; }, box); });
        times_.add(Stage::Sort, [&] { planIfNeeded(x, box); });
        const long long messages = ranks_.messages(), bytes = ranks_.bytes();
        Totals totals;
        try
        {
            times_.evaluation(*backend_, [&] { totals = pipeline_.run(x, forces, request); });
        }
        catch (...)
        {
            partition_.forget(); // operators that are built again have no plan
            throw;
        }
        countTraffic(messages, bytes);
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
        if (charged_ == 0)
        {
            return;
        }
        gpu_->await(stream);
        std::vector<Real> onHost;
        const auto positions = [&]
        {
            if (onHost.empty() && own_.count() > 0)
            {
                onHost = gpu_->onHost(x, own_.count(), stream);
            }
            return static_cast<const Real*>(onHost.data());
        };
        times_.add(Stage::SetUp, [&] { follow(positions, box); });
        if (gpu_->needsPlan(stream))
        {
            partition_.forget(); // on all ranks alike
        }
        if (!partition_.isPlannedFor(operators_.discretisation()))
        {
            times_.add(Stage::Sort, [&] { planIfNeeded(x, box); });
        }
        pipeline_.runOnDevice(x, forces, request, stream);
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
        return charged_ > 0
               && (!operators_.exist() || !partition_.isPlannedFor(operators_.discretisation())
                   || gpu_->mustRecordAgain());
    }

    bool mayUpdateGraphs() const
    {
        checkOnGpu(gpu_ != nullptr);
        return gpu_->mayUpdateGraphs();
    }

    void prepare(const Real* x, const double boxVectors[3][3])
    {
        const DeviceScope<Real> scope(gpu_);
        const Mat3 box = checkedBox(boxVectors, options_.boundary);
        if (charged_ > 0)
        {
            times_.add(Stage::SetUp, [&] { follow([x] { return x; }, box); });
            times_.add(Stage::Sort, [&] { planIfNeeded(x, box); });
        }
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
        settle();
        agree(&ranks_,
              [&]
              {
                  const SavedState saved =
                          decodeState(state, options_, options_.device, sizeof(Real));
                  if (gpu_ != nullptr && saved.discretisation.levels > 1)
                  {
                      throw Error(ErrorCode::Unsupported,
                                  "On GPUs, several ranks have no tree of cells.");
                  }
                  operators_.change([&] { operators_.build(saved.discretisation, saved.strain); });
                  chosenFor_.restore(saved.chosenFor, saved.particles);
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

    //! Makes the operators those of a box and of the system. \param[in] positions  returns those in
    //! host memory
    template<class Positions>
    void follow(const Positions& positions, const Mat3& box)
    {
        if (!operators_.exist() || !chosenFor_.isStillFor(numbers_))
        {
            choose(positions(), box);
        }
        else
        {
            followBox(box, options_.device, &operators_, [&] { choose(positions(), box); });
        }
        chosenFor_.complete(numbers_);
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
    void choose(const Real* x, const Mat3& box)
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
                  const int n = system_.count();
                  chooser.setCharges(system_.charges.data(), n);
                  chooser.setExclusions(
                          system_.excluded.offsets.data(), system_.excluded.partners.data(), n);
                  chooser.prepare(all.data(), rows);
                  state = chooser.state();
              });
        restore(ranks_.gather(state).values);
        // a box that is rotated from the one that the operators are for, or strained
        followBox(box,
                  options_.device,
                  &operators_,
                  [] {
                      throw Error(ErrorCode::InvalidArgument,
                                  "No cells fit the box that they were chosen for.");
                  });
    }

    //! Plans the exchanges anew where a rank needs it. \param[in] x  host memory, or that of a device
    void planIfNeeded(const Real* x, const Mat3& box)
    {
        const Discretisation& d = operators_.discretisation();
        const auto needsPlan    = [&]
        {
            if (gpu_ != nullptr)
            {
                checkFound(gpu_->locate(own_.index, x));
                return !partition_.isPlannedFor(d) || gpu_->haveLeftPlan();
            }
            checkFound(partition_.locate(own_, x, d, box));
            return partition_.needsPlan(d);
        };
        if (!isTrueOnAny(&ranks_, needsPlan))
        {
            return;
        }
        const long long bytes = ranks_.bytes();
        try
        {
            if (gpu_ != nullptr)
            {
                const Network network = untimedNetwork(d.referenceBox);
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

    Options options_;
    bool mayTime_; //!< messages and settings, before order and cells are chosen
    int threads_;
    Ranks ranks_;
    Partition<Real> partition_;
    DeviceRanks<Real> deviceRanks_;
    ChosenBackend<Real> chosen_;
    Backend<Real>* backend_;
    GpuBackend<Real>* gpu_; //!< the same, if it is one of a GPU, else null
    StageTimes times_;
    OperatorsInUse<Real> operators_;
    Pipeline<Real> pipeline_;
    WholeSystem<Real> system_;
    OwnParticles<Real> own_;
    double net_        = 0; //!< of the system, e
    long long charged_ = 0; //!< particles with a charge
    ParticleNumbers numbers_;
    ChosenFor chosenFor_;
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
