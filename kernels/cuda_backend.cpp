/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/gpu_backend.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "device_totals.h"
#include "far_field.h"
#include "near_field.h"
#include "operators/scaled_charges.h"
#include "particle_arrays.h"
#include "runtime/devices.h"
#include "runtime/evaluation_history.h"
#include "runtime/evaluation_streams.h"
#include "runtime/graph_recording.h"
#include "runtime/matrix3.h"
#include "runtime/medians.h"
#include "runtime/stage_clock.h"

namespace farfield
{
namespace
{

template<class Real>
class CudaBackend final : public GpuBackend<Real>
{
public:
    using typename GpuBackend<Real>::Measure;

    CudaBackend(double coulombConstant, int threads, bool reproducible, int device) :
        device_(device), rootCoulomb_(std::sqrt(coulombConstant)), threads_(threads),
        reproducible_(reproducible), nearField_(reproducible), totals_(far())
    {
    }

    void setCharges(const Real* q, int n) override
    {
        const ScaledCharges<Real> scaled(q, n, rootCoulomb_);
        if (n != arrays_.size())
        {
            // what has no memory leaves all as it was
            nearField_.resize(n);
            farForces_.resize(n);
            resizeCells(n);
        }
        arrays_.setCharges(scaled.q, far());
        netCharge_ = scaled.net;
    }

    void setExclusions(const int* offsets, const int* partners, int n) override
    {
        nearField_.exclusions().set(offsets, partners, n, far());
    }

    void build(const Discretisation& d) override
    {
        // launches that were recorded, or that nobody has waited for, use what is freed now
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        farField_ = FarField<Real>();
        history_.forgetPositions();
        history_.replace();
        try
        {
            farField_.build(d, threads_, reproducible_, far());
            resizeCells(arrays_.size());
        }
        catch (...)
        {
            farField_ = FarField<Real>();
            throw;
        }
    }

    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) override
    {
        farField_.setBox(box, strain, rotation, far());
    }

    void sort(const Real* x) override
    {
        mustRepeat_          = false;
        const bool recording = isCapturing(far());
        if (wantedSums() != NearSums::None)
        {
            totals_.clear(far());
        }
        setPositions(x);
        nearField_.clear(streams_.near());
        Sums wanted = { this->request_.energy, this->request_.virial, {} };
        copyTo(farField_.rotation(), wanted.rotation);
        cells_.sort(leafGrid(),
                    farField_.frame(),
                    gridPosition(this->request_.gridOffset, this->request_.step, far()),
                    wanted,
                    arrays_.positions(),
                    arrays_.q(),
                    reproducible_,
                    far());
        if (!recording)
        {
            nearField_.findOccupancy(&cells_, far());
        }
        streams_.reach(Point::Sorted, far());
        if (tree().levels() > 1)
        {
            listFamilies(recording);
        }
        if (recording)
        {
            history_.addRecording();
            if (measuring_ == Measure::None)
            {
                history_.keepRecording();
            }
        }
        else
        {
            history_.add(this->request_.step);
        }
    }

    void exclusions(const Real* /*x*/) override
    {
        const NearGrid where = nearGrid();
        nearField_.exclusions().subtract(where.box,
                                         where.closeDistance,
                                         arrays_.positions(),
                                         arrays_.q(),
                                         arrays_.size(),
                                         nearResults(),
                                         streams_.near());
    }

    void p2p() override
    {
        streams_.awaitIn(streams_.near(), Point::Sorted);
        nearField_.p2p(&cells_, nearGrid(), nearResults(), streams_.near());
        streams_.reach(Point::NearDone, streams_.near());
    }

    void p2m() override { farField_.p2m(cells_.particles(), far()); }
    void m2m(int level) override { farField_.m2m(level, far()); }
    void m2l(int level) override { farField_.m2l(level, farSums(), far()); }
    void l2l(int level) override { farField_.l2l(level, netCharge_, farSums(), far()); }

    void l2p(Real* forces) override
    {
        streams_.awaitIn(far(), Point::NearDone);
        ForceArrays<Real> arrays;
        arrays.near     = nearField_.forces();
        arrays.excluded = nearField_.exclusions().forces();
        copyTo(farField_.rotation(), arrays.rotation);
        // what comes to the host is added there
        arrays.replace = this->request_.replaceForces || !onDevice_;
        arrays.all     = onDevice_ ? forces : arrays_.forces();
        arrays.far     = this->request_.virial ? farForces_.data() : nullptr;
        arrays.poison  = tree().poison();
        farField_.l2p(cells_.particles(), netCharge_, arrays, far());
        if (wantedSums() != NearSums::None)
        {
            farField_.sum(cells_.particles(), netCharge_, farForces_.data(), farSums(), far());
        }
        if (tree().levels() > 1)
        {
            streams_.awaitIn(far(), Point::Watched);
        }
    }

    Totals collect(Real* forces) override
    {
        if (onDevice_)
        {
            streams_.leave(stream_);
            onDevice_ = false;
            return {};
        }
        arrays_.fetchForces(far());
        totals_.read(cells_, streams_.far());
        mustRepeat_ = overflowed();
        if (mustRepeat_)
        {
            return {};
        }
        arrays_.deliverForces(forces, this->request_.replaceForces);
        return totals_.totals();
    }

    bool mustRepeat() const override { return mustRepeat_; }

    void beginStage(Stage stage) override
    {
        if (stage == Stage::Sort && !streams_.inTurn())
        {
            clock_.reset();
        }
        // inside somebody else's capture nothing can be timed, and nothing is collected from arrays
        // on the device
        timed_ = stage != Stage::SetUp
                 && (!onDevice_ || (streams_.inTurn() && stage != Stage::Collect));
        if (timed_)
        {
            clock_.begin(stage, streams_.of(stage), streams_.inTurn());
        }
    }
    void endStage(Stage stage) override
    {
        // an evaluation may be part of a set-up
        if (timed_ && stage != Stage::SetUp)
        {
            clock_.end(streams_.of(stage), streams_.inTurn());
        }
    }
    bool measured(double* seconds) override
    {
        std::fill_n(seconds, static_cast<int>(Stage::Count), 0.0);
        clock_.addTo(seconds);
        return true;
    }

    std::vector<double> multipoles(int level) const override
    {
        return tree().multipoles(level, far());
    }
    std::vector<double> locals(int level) const override { return tree().locals(level, far()); }

    void await(void* stream) override
    {
        const cudaStream_t s = static_cast<cudaStream_t>(stream);
        if (!isCapturing(s))
        {
            throwIfOverflowed();
        }
        streams_.enter(s);
    }

    void enter(void* stream) override
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

    void leave() override { onDevice_ = false; }

    void settle() override
    {
        if (history_.mayRun())
        {
            check(cudaDeviceSynchronize(), "waiting for the GPU");
            history_.settled();
        }
    }

    Totals wait() override
    {
        settle();
        totals_.read(cells_, streams_.far());
        throwIfOverflowed();
        return totals_.totals();
    }

    bool mustRecordAgain() const override { return history_.isOutdated() || tree().needsRoom(); }

    std::vector<Real> positions(const Real* x, int n, void* stream) override
    {
        std::vector<Real> result(3 * static_cast<size_t>(n));
        const cudaStream_t s = static_cast<cudaStream_t>(stream);
        check(cudaMemcpyAsync(
                      result.data(), x, result.size() * sizeof(Real), cudaMemcpyDeviceToHost, s),
              "copying positions from the GPU");
        check(cudaStreamSynchronize(s), "waiting for the positions");
        return result;
    }

    typename GpuBackend<Real>::DeviceArrays place(const Real* x) override
    {
        return { arrays_.place(x, streams_.far()), arrays_.forces() };
    }

    std::vector<double> measure(Measure what,
                                int repeats,
                                const std::function<void()>& evaluate) override
    {
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        clock_.reset();
        GraphRecording recording(far());
        setMeasuring(what);
        try
        {
            evaluate();
        }
        catch (...)
        {
            setMeasuring(Measure::None);
            throw;
        }
        setMeasuring(Measure::None);
        recording.finish();
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
        return medians(
                1, repeats, [&](double* seconds) { *seconds = recording.secondsPerLaunch(); });
    }

    std::string deviceName() const override { return name_; }

    int makeCurrent() const override { return exchangeDevice(device_); }
    void restoreCurrent(int device) const noexcept override { returnToDevice(device, device_); }

private:
    cudaStream_t far() const { return streams_.far(); }
    DeviceTree<Real>& tree() { return farField_.tree(); }
    const DeviceTree<Real>& tree() const { return farField_.tree(); }
    const CellGrid& leafGrid() const { return tree().grid(tree().leaf()); }

    NearSums wantedSums() const
    {
        return this->request_.virial   ? NearSums::EnergyAndVirial
               : this->request_.energy ? NearSums::Energy
                                       : NearSums::None;
    }
    NearResults nearResults() { return { wantedSums(), totals_.near(), totals_.nearScratch() }; }
    FarSums farSums()
    {
        FarSums sums;
        sums.energy     = totals_.energy();
        sums.virial     = this->request_.virial ? totals_.virial() : nullptr;
        sums.deviatoric = this->request_.virial ? totals_.deviatoric() : nullptr;
        sums.scratch    = totals_.farScratch();
        return sums;
    }

    NearGrid nearGrid() const
    {
        return { leafGrid(),
                 farField_.frame(),
                 farField_.discretisation().ws,
                 farField_.box(),
                 std::min(this->exclusionRange_, farField_.surelyNear()) };
    }

    void setMeasuring(Measure what)
    {
        measuring_ = what;
        streams_.runInTurn(what == Measure::Stages);
    }

    void resizeCells(int n)
    {
        if (tree().levels() > 0 && n > 0)
        {
            const int cells = leafGrid().cells;
            cells_.resize(n, cells);
            nearField_.forgetOccupancy(cells, n / cells);
            history_.forgetPositions();
        }
    }

    //! Brings the positions of an evaluation to device memory, where they are not there.
    void setPositions(const Real* x)
    {
        if (onDevice_)
        {
            arrays_.usePositions(x);
        }
        else
        {
            arrays_.copyPositions(x, far());
        }
        streams_.reach(Point::Placed, far());
        streams_.awaitIn(streams_.near(), Point::Placed);
    }

    //! Lists of the families of the sorted particles.
    void listFamilies(bool recording)
    {
        if (!recording)
        {
            // host arrays: the host looks at the end, and repeats the evaluation if it must
            const bool continues =
                    history_.knowsPositions()
                    && (!onDevice_
                        || (!this->request_.mayHaveJumped && history_.isNext(this->request_.step)));
            if (tree().ensureRoom(cells_, continues, far()))
            {
                history_.replace();
            }
            history_.knowPositions();
        }
        tree().list(cells_, far());
        streams_.awaitIn(streams_.watch(), Point::Sorted);
        tree().watch(cells_, streams_.watch());
        streams_.reach(Point::Watched, streams_.watch());
    }

    //! Whether families had no room since this was asked last: forces were not numbers.
    bool overflowed()
    {
        const bool any = tree().overflowed();
        if (any)
        {
            history_.forgetPositions();
        }
        return any;
    }

    void throwIfOverflowed()
    {
        if (overflowed())
        {
            throw Error(ErrorCode::DeviceFailure,
                        "Particles have moved farther since the evaluation before than cells had "
                        "room for, and the forces of that evaluation are not numbers. Say "
                        "Request::mayHaveJumped where positions do not follow from those before.");
        }
    }

    int device_; //!< current in every call: see DeviceScope
    double rootCoulomb_;
    int threads_; //!< of the set-up
    bool reproducible_;
    std::string name_ = gpuName(device_);
    double netCharge_ = 0;

    EvaluationStreams streams_;
    cudaStream_t stream_ = nullptr; //!< of the caller
    bool onDevice_       = false;   //!< the arrays of this evaluation are in device memory
    Measure measuring_   = Measure::None;
    bool timed_          = false;
    bool mustRepeat_     = false;
    StageClock clock_;
    EvaluationHistory history_;

    FarField<Real> farField_;
    NearField<Real> nearField_;
    DeviceCells<Real> cells_;

    ParticleArrays<Real> arrays_;
    DeviceBuffer<Real4<Real>> farForces_;
    DeviceTotals<Real> totals_;
};

} // namespace

template<class Real>
std::unique_ptr<GpuBackend<Real>>
makeGpuBackend(double coulombConstant, int threads, bool reproducible, int deviceId)
{
    const int device = requireUsableGpu(deviceId);
    const int before = exchangeDevice(device);
    std::unique_ptr<GpuBackend<Real>> backend;
    try
    {
        backend =
                std::make_unique<CudaBackend<Real>>(coulombConstant, threads, reproducible, device);
    }
    catch (...)
    {
        returnToDevice(before, device);
        throw;
    }
    returnToDevice(before, device);
    return backend;
}

template std::unique_ptr<GpuBackend<float>> makeGpuBackend<float>(double, int, bool, int);
template std::unique_ptr<GpuBackend<double>> makeGpuBackend<double>(double, int, bool, int);

} // namespace farfield
