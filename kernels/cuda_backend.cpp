/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cuda_backend.h"

#include <cmath>
#include <memory>

#include "near/exclusion_rows.h"
#include "operators/scaled_charges.h"
#include "operators/solid_harmonics.h"
#include "plan/open_box.h"
#include "runtime/add.h"
#include "runtime/graph_recording.h"
#include "runtime/medians.h"

namespace farfield
{
namespace
{

//! Charges in another order have another rounding error, scaled as they are.
constexpr double c_roundingOfNetCharge = 1e-9;
//! Evaluations after which the near field is shared by what the devices take.
constexpr int c_launchesToShare = 40;

} // namespace

template<class Real>
CudaBackend<Real>::CudaBackend(double coulombConstant,
                               int threads,
                               bool reproducible,
                               int device,
                               const DeviceRanks<Real>* ranks,
                               const HelpersWanted& helpers) :
    device_(device),
    rootCoulomb_(std::sqrt(coulombConstant)), threads_(threads), reproducible_(reproducible),
    farField_(reproducible), nearField_(reproducible), totals_(far()),
    ranks_(ranks != nullptr ? std::make_unique<RanksOnDevice<Real>>(*ranks) : nullptr),
    helpersIfFaster_(helpers.ifFaster)
{
    potentials_.prepare(far());
    if (!helpers.devices.empty())
    {
        helpers_ = std::make_unique<NearFieldHelpers<Real>>(
                helpers.devices, device, reproducible, helpersIfFaster_ ? &helpersLost_ : nullptr);
    }
}

template<class Real>
void CudaBackend<Real>::setCharges(const Real* q, int n)
{
    const ScaledCharges<Real> scaled(q, n, rootCoulomb_);
    const bool areOthers = makeRoom({ n, n, scaled.count() }, scaled.net);
    arrays_.setCharges(scaled, far());
    netCharge_ = scaled.net;
    setParticles();
    if (areOthers)
    {
        forgetOccupancy();
    }
}

template<class Real>
std::optional<ChargeSums> CudaBackend<Real>::replaceCharges(const Real* q, void* stream)
{
    const int n = arrays_.size();
    if (ranks_ || n == 0 || arrays_.takingPart() < n)
    {
        return {};
    }
    const auto s     = static_cast<cudaStream_t>(stream);
    const auto found = given_.read(q, n, rootCoulomb_, s);
    if (!found)
    {
        return {};
    }
    makeRoom(arrays_.counts(), found->scaledNet);
    arrays_.copyCharges(given_.scaled(), s);
    check(cudaStreamSynchronize(s), "copying charges");
    netCharge_ = found->scaledNet;
    return found->sums;
}

template<class Real>
bool CudaBackend<Real>::makeRoom(const ParticleCounts& counts, double net)
{
    const bool areOthers = !(counts == arrays_.counts());
    if (areOthers)
    {
        // what has no memory leaves all as it was
        HelperRoom room = roomOnHelpers();
        room.particles  = counts.takingPart;
        makeRoomOnHelpers(room);
        nearField_.resize(counts.takingPart);
        farForces_.resize(counts.takingPart);
        resizeCells(counts);
    }
    if (areOthers || std::abs(net - netCharge_) > c_roundingOfNetCharge)
    {
        history_.replace(); // the net charge is an argument of kernels
    }
    return areOthers;
}

template<class Real>
void CudaBackend<Real>::setExclusions(const int* offsets, const int* partners, int n)
{
    ExclusionRows rows;
    rows.set(offsets, partners, n, threads_);
    HelperRoom room    = roomOnHelpers();
    room.excludesPairs = !rows.partners().empty();
    makeRoomOnHelpers(room);
    nearField_.exclusions().set(rows, n, far());
    history_.replace();
}

template<class Real>
void CudaBackend<Real>::setNearPairs(const NearPairs<Real>& pairs)
{
    if (ranks_)
    {
        Backend<Real>::setNearPairs(pairs); // refuses any
        return;
    }
    if (pairs.any() || nearField_.functions().any())
    {
        HelperRoom room   = roomOnHelpers();
        room.hasFunctions = pairs.any();
        makeRoomOnHelpers(room);
        nearField_.functions().set(pairs, far());
        history_.replace();
    }
}

template<class Real>
void CudaBackend<Real>::setMoments(const Moments<Real>& moments, const Real* strengths)
{
    if (ranks_)
    {
        Backend<Real>::setMoments(moments, strengths); // refuses any
        return;
    }
    if (!sites_.setMoments(moments, strengths, arrays_.size(), rootCoulomb_, far()))
    {
        history_.replace();
    }
}

template<class Real>
void CudaBackend<Real>::setFieldCap(double cap)
{
    if (cap != this->fieldCap_)
    {
        settle();
        Backend<Real>::setFieldCap(cap);
        totals_.clearFields(far());
        history_.replace(); // an argument of kernels
    }
}

template<class Real>
void CudaBackend<Real>::setSystem(const WholeSystem<Real>& system)
{
    ranks_->setSystem(system, rootCoulomb_, far());
}

template<class Real>
int CudaBackend<Real>::locate(const OwnParticles<Real>& own,
                              const Real* x,
                              const Discretisation& d,
                              const Mat3& box)
{
    settle(); // evaluations that nobody has waited for use what the plan replaces
    ranks_->throwIfMovedFar();
    return ranks_->locate(own.index, x, d, box, far());
}

template<class Real>
void CudaBackend<Real>::plan(const OwnParticles<Real>& /*own*/, double net)
{
    const DevicePlan<Real>& plan = ranks_->makePlan(far());
    const int before             = arrays_.takingPart();
    makeRoom(plan.counts(), rootCoulomb_ * net);
    arrays_.setCharges(plan, far());
    netCharge_ = rootCoulomb_ * net;
    setParticles();
    if (arrays_.takingPart() / 2 > before)
    {
        forgetOccupancy(); // launches are of that of few
    }
    nearField_.exclusions().set(plan, far());
    cells_.makeRoomForList(); // not between the exchanges of an evaluation
    ranks_->planExchanges(
            coefficientCount(farField_.discretisation().order), tree().view(0).stride, far());
    history_.replace();
}

template<class Real>
void CudaBackend<Real>::build(const Discretisation& d)
{
    // launches that were recorded, or that nobody has waited for, use what is freed now
    check(cudaDeviceSynchronize(), "waiting for the GPU");
    if (helpers_)
    {
        helpers_->synchronize();
        helpers_->releaseOthers();
    }
    farField_ = DeviceFarField<Real>(reproducible_);
    history_.forgetPositions();
    history_.replace();
    repeated_.clear();
    try
    {
        farField_.build(d, threads_, far());
        cells_.keepGiven(!roundsInCells(d.boundary));
        potentials_.setOrder(d.order, far());
        sites_.setOrder(d.order, far());
        resizeCells(arrays_.counts());
        forgetOccupancy();
        setParticles();
    }
    catch (...)
    {
        farField_ = DeviceFarField<Real>(reproducible_);
        throw;
    }
}

template<class Real>
void CudaBackend<Real>::setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation)
{
    repeated_.forget();
    farField_.setBox(box, strain, rotation, far());
}

template<class Real>
void CudaBackend<Real>::setVirialStrain(const Mat3& strain)
{
    repeated_.forget();
    farField_.setVirialStrain(strain, far());
}

template<class Real>
std::vector<double> CudaBackend<Real>::multipoles(int level) const
{
    return tree().multipoles(level, far());
}

template<class Real>
void CudaBackend<Real>::await(void* stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    if (!isCapturing(s))
    {
        throwIfOverflowed();
    }
    streams_.enter(s);
}

template<class Real>
void CudaBackend<Real>::enter(void* stream)
{
    if (measuring_ == Measure::None)
    {
        await(stream);
        if (!isCapturing(far()))
        {
            history_.enqueued();
        }
        stream_ = static_cast<cudaStream_t>(stream);
    }
    else
    {
        stream_ = far();
    }
    onDevice_ = true;
}

template<class Real>
void CudaBackend<Real>::record(Measure what, const std::function<void()>& evaluate)
{
    const auto set = [&](Measure now)
    {
        measuring_ = now;
        streams_.runInTurn(now == Measure::Stages);
    };
    set(what);
    try
    {
        evaluate();
    }
    catch (...)
    {
        set(Measure::None);
        throw;
    }
    set(Measure::None);
}

template<class Real>
bool CudaBackend<Real>::mayRepeat(const Request& request, cudaStream_t stream) const
{
    return measuring_ == Measure::None && !request.energy && !request.virial
           && !request.mayHaveJumped && history_.isNext(request.step) && !history_.hasRecording()
           && !isCapturing(stream) && !tree().needsRoom() && (!ranks_ || ranks_->mayBeCaptured());
}

template<class Real>
void CudaBackend<Real>::repeat(const Task<Real>& task, const std::function<void()>& evaluate)
{
    const Request& request = task.request;
    const cudaStream_t s   = static_cast<cudaStream_t>(task.stream);
    if (ranks_ && !ranks_->mayBeCaptured() && isCapturing(s))
    {
        throw Error(ErrorCode::Unsupported,
                    "CUDA graphs of several ranks need a DeviceCommunicator that may be captured: "
                    "here messages pass through hosts.");
    }
    const EvaluationArguments arguments = {
        task.x, task.forces, request.replaceForces, this->exclusionRange_, history_.generation()
    };
    if (!task.wantsAllPlaces() && mayRepeat(request, s) && repeated_.isLikeLast(arguments))
    {
        throwIfOverflowed();
        if (repeated_.launch(
                    s, far(), mayUpdateGraphs(), [&] { record(Measure::Whole, evaluate); }))
        {
            history_.enqueued();
            history_.add(request.step);
            noteEvaluation(s);
            return;
        }
    }
    evaluate();
    noteEvaluation(s);
    // building operators may have begun another generation
    repeated_.add({ task.x,
                    task.forces,
                    request.replaceForces,
                    this->exclusionRange_,
                    history_.generation() });
}

template<class Real>
void CudaBackend<Real>::settle()
{
    if (history_.mayRun())
    {
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        if (helpers_)
        {
            helpers_->synchronize();
        }
        if (ranks_)
        {
            ranks_->settled();
        }
        history_.settled();
    }
}

template<class Real>
Totals CudaBackend<Real>::wait()
{
    settle();
    readTotals();
    if (ranks_)
    {
        ranks_->throwIfMovedFar();
    }
    throwIfOverflowed();
    loseLateHelpers();
    return totals_.totals();
}

template<class Real>
std::vector<Real> CudaBackend<Real>::copyToHost(const Real* values, size_t count, void* stream)
{
    std::vector<Real> result(count);
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    copyAsync(result.data(), values, count, s, "copying from the GPU");
    check(cudaStreamSynchronize(s), "copying from the GPU");
    return result;
}

template<class Real>
void CudaBackend<Real>::clear(Real* vectors, int n, void* stream)
{
    check(cudaMemsetAsync(vectors,
                          0,
                          3 * static_cast<size_t>(n) * sizeof(Real),
                          static_cast<cudaStream_t>(stream)),
          "clearing forces");
}

template<class Real>
Vec3 CudaBackend<Real>::extent(const Real* x, void* stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    if (isCapturing(s))
    {
        throw Error(ErrorCode::Unsupported,
                    "Evaluations with the boundary 'open' or 'slab' cannot be recorded into CUDA "
                    "graphs: each of them reads the extent of the particles.",
                    "boundary");
    }
    return extent_.find(x, arrays_.order(), arrays_.takingPart(), s);
}

template<class Real>
void CudaBackend<Real>::add(const std::vector<Real>& values, Real* to, void* stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    added_.upload(values.data(), values.size(), s);
    addOnDevice(added_.data(), values.size(), to, s);
}

template<class Real>
typename GpuBackend<Real>::DeviceArrays CudaBackend<Real>::place(const Real* x)
{
    return { arrays_.place(x, streams_.far()), arrays_.forces(), arrays_.potentials() };
}

template<class Real>
std::vector<double> CudaBackend<Real>::measure(Measure what,
                                               int repeats,
                                               const std::function<void()>& evaluate)
{
    check(cudaDeviceSynchronize(), "waiting for the GPU");
    clock_.reset();
    GraphRecording recording(far());
    record(what, evaluate);
    recording.finish();
    const bool areHelped = helpers_ && helpers_->used() > 0;
    for (int k = 0; k < (areHelped && what == Measure::Whole ? c_launchesToShare : 0); k++)
    {
        recording.launch();
    }
    if (what == Measure::Stages)
    {
        return medians(static_cast<int>(Stage::Count),
                       repeats,
                       [&](double* seconds)
                       {
                           recording.launch();
                           streams_.far().synchronize();
                           clock_.addTo(seconds);
                       });
    }
    return medians(1, repeats, [&](double* seconds) { *seconds = recording.secondsPerLaunch(); });
}

template<class Real>
void CudaBackend<Real>::resizeCells(const ParticleCounts& counts)
{
    if (tree().levels() > 0 && (counts.takingPart > 0 || ranks_))
    {
        cells_.resize(
                counts.takingPart, counts.all, counts.own, leafGrid().cells, ranks_ != nullptr);
        if (ranks_)
        {
            ours_.resize(counts.ownTakingPart(), counts.own, counts.own, leafGrid().cells, false);
        }
        history_.forgetPositions();
    }
}

template<class Real>
void CudaBackend<Real>::forgetOccupancy()
{
    if (tree().levels() > 0)
    {
        const int cells = leafGrid().cells;
        const int usual = arrays_.takingPart() / cells;
        nearField_.forgetOccupancy(cells, usual, ranks_ != nullptr);
    }
}

template<class Real>
void CudaBackend<Real>::setParticles()
{
    if (tree().levels() > 0 && arrays_.takingPart() > 0)
    {
        cells_.setParticles(arrays_.order(), far());
        if (ranks_)
        {
            ours_.setParticles(arrays_.order(), far()); // the first ones
        }
    }
    makeRoomOnHelpers();
}

template<class Real>
std::unique_ptr<GpuBackend<Real>> makeGpuBackend(double coulombConstant,
                                                 int threads,
                                                 bool reproducible,
                                                 int deviceId,
                                                 const DeviceRanks<Real>* ranks,
                                                 const HelpersWanted& helpers)
{
    const int device = requireUsableGpu(deviceId);
    const OnDevice scope(device);
    return std::make_unique<CudaBackend<Real>>(
            coulombConstant, threads, reproducible, device, ranks, helpers);
}

template std::unique_ptr<GpuBackend<float>>
makeGpuBackend<float>(double, int, bool, int, const DeviceRanks<float>*, const HelpersWanted&);
template std::unique_ptr<GpuBackend<double>>
makeGpuBackend<double>(double, int, bool, int, const DeviceRanks<double>*, const HelpersWanted&);

} // namespace farfield
