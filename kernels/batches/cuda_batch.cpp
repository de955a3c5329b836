/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <initializer_list>
#include <optional>

#include "batch/batch_backend.h"
#include "batches/batch_round.h"
#include "runtime/devices.h"

namespace farfield
{
namespace
{

/*! \brief All systems at once.
 *
 *  Those whose forces are weaker than the plan takes them for have another round, without the others. */
template<class Real>
class CudaBatch final : public BatchBackend<Real>
{
public:
    explicit CudaBatch(const BatchOptions& options) :
        options_(options), device_(requireUsableGpu(options.deviceId)),
        threads_(usableThreads(options.threads)), systems_(options), round_(options)
    {
    }

    void take(const BatchInput<Real>& input, bool potentials, void* stream) override
    {
        const OnDevice device(device_);
        stream_ = static_cast<cudaStream_t>(stream);
        if (last_)
        {
            last_->holdBack(stream_); // which may have been another stream
        }
        wantsPotentials_ = potentials;
        systems_.take(input, stream_);
        makeRoom(&result_);
        energies_.resize(systems_.count());
        virials_.resize(9 * static_cast<size_t>(systems_.count()));
        for (auto* results : { &result_.forces, &result_.potentials, &energies_, &virials_ })
        {
            results->clear(stream_);
        }
    }

    double evaluate(bool virials, double tightening, const MeasuredSystems& measured) override
    {
        const OnDevice device(device_);
        begin(nullptr, systems_.hasImages(), tightening);
        if (measured.any)
        {
            makeRoom(&detour_);
        }
        return sum(virials, false, systems_.hasImages(), measured).error;
    }

    void evaluateTangent(const BatchDirection<Real>& direction,
                         const double* errors,
                         bool virials) override
    {
        const OnDevice device(device_);
        systems_.takeErrors(errors, stream_);
        systems_.takeDirection(direction, stream_);
        begin(nullptr, false, 1);
        if (sum(virials, true, false, {}).neutral > 0)
        {
            sumChangesOfNeutral();
        }
    }

    void give(const BatchOutput<Real>& output) override
    {
        const OnDevice device(device_);
        give(energies_, output.energies);
        give(systems_.errors(), output.errors);
        giveResults(output.forces, output.potentials, output.virials);
        end({ output.energies, output.errors, output.forces, output.potentials, output.virials });
    }
    void give(const BatchTangent<Real>& tangent) override
    {
        const OnDevice device(device_);
        giveResults(tangent.forces, tangent.potentials, tangent.virials);
        end({ tangent.forces, tangent.potentials, tangent.virials });
    }

    int threads() const override { return threads_; }
    int deviceId() const override { return device_; }

private:
    void makeRoom(BatchTargets* targets)
    {
        targets->forces.resize(3 * systems_.particles());
        targets->potentials.resize(systems_.particles() * options_.channels);
    }

    //! See beginSums().
    void begin(const char* before, bool aims, double tightening)
    {
        beginSums(systems_.arrays(), options_, before, aims, tightening, sizeof(Real), stream_);
    }

    /*! \brief Sums of the systems that are left, until their forces tell that these are long enough.
     *
     *  Those that there is room for are launched before the host waits.
     *  \param[in] aims  whether forces decide on that
     *  \returns the status then */
    BatchStatus sum(bool virials, bool tangents, bool aims, const MeasuredSystems& measured)
    {
        const SystemArrays arrays = systems_.arrays();
        const auto plan           = [&](int most)
        { round_.plan(&systems_, measured, most, tangents, stream_); };
        const auto compute = [&](int most)
        {
            round_.compute(&systems_, most, virials, tangents, &result_, &detour_, stream_);
            keepTotals(arrays,
                       round_.sums(),
                       round_.totals(),
                       most,
                       aims,
                       energies_.data(),
                       virials_.data(),
                       stream_);
            if (measured.any)
            {
                measureErrors(arrays,
                              round_.sums(),
                              most,
                              result_.forces.data(),
                              detour_.forces.data(),
                              options_.smearing,
                              stream_);
            }
            plan(most);
        };
        const int most = arrays.count + measured.atMost(arrays.count);
        plan(most);
        if (most > 0 && round_.hasRoom())
        {
            compute(most);
        }
        for (;;)
        {
            const BatchStatus& status = round_.read(&systems_, wantsPotentials_, stream_);
            if (status.listed == 0)
            {
                return status;
            }
            round_.makeRoom(status);
            compute(status.listed);
        }
    }

    //! Potentials of derivatives of charges, of systems that have no charges: there is nothing else yet.
    void sumChangesOfNeutral()
    {
        before_.resize(systems_.count());
        copyAsync(before_.data(),
                  systems_.isCharged().data(),
                  before_.size(),
                  stream_,
                  "copying systems");
        systems_.takeChangesAsCharges(stream_);
        begin(before_.data(), systems_.hasImages(), 1);
        sum(false, false, systems_.hasImages(), {});
        clearNeutral(
                systems_.arrays(), before_.data(), result_.forces.data(), virials_.data(), stream_);
    }

    void give(const DeviceBuffer<double>& from, double* to)
    {
        if (to != nullptr)
        {
            copyAsync(to, from.data(), from.size(), stream_, "copying results");
        }
    }

    void give(const DeviceBuffer<double>& from, DeviceBuffer<Real>* by, Real* to)
    {
        if (to != nullptr)
        {
            by->resize(from.size());
            narrow(from.data(), by->data(), from.size(), stream_);
            copyAsync(to, by->data(), from.size(), stream_, "copying results");
        }
    }

    void giveResults(Real* forces, Real* potentials, double* virials)
    {
        give(result_.forces, &forces_, forces);
        give(result_.potentials, &potentials_, potentials);
        give(virials_, virials);
    }

    //! Waits, unless all results are in device memory.
    void end(std::initializer_list<const void*> results)
    {
        if (!last_)
        {
            last_.emplace();
        }
        last_->record(stream_);
        const auto isThere = [](const void* array)
        { return array == nullptr || isOnDevice(array); };
        if (!std::all_of(results.begin(), results.end(), isThere))
        {
            last_->synchronize();
        }
    }

    BatchOptions options_;
    int device_, threads_;
    cudaStream_t stream_  = nullptr;
    bool wantsPotentials_ = false;
    std::optional<Event> last_; //!< the end of the last call
    SystemsOnDevice<Real> systems_;
    BatchRound<Real> round_;
    BatchTargets result_,
            detour_; //!< and forces of another splitting, of systems that are measured
    DeviceBuffer<Real> forces_, potentials_;
    DeviceBuffer<double> energies_, virials_;
    DeviceBuffer<char> before_; //!< systems that had charges before these were changes
};

} // namespace

template<class Real>
std::unique_ptr<BatchBackend<Real>> makeGpuBatch(const BatchOptions& options)
{
    return std::make_unique<CudaBatch<Real>>(options);
}
template std::unique_ptr<BatchBackend<float>> makeGpuBatch(const BatchOptions&);
template std::unique_ptr<BatchBackend<double>> makeGpuBatch(const BatchOptions&);

} // namespace farfield
