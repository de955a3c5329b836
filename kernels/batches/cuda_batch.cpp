/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "batch/batch_backend.h"
#include "batches/batch_records.h"
#include "batches/batch_round.h"
#include "runtime/devices.h"

namespace farfield
{
namespace
{

//! Rounds of sums of calls that do not wait: one more for forces that are weaker than the plan takes them
//! for, and for sums that had no room.
constexpr int c_roundsAhead = 2;

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

    void take(const BatchInput<Real>& input,
              typename BatchBackend<Real>::Results results,
              bool potentials,
              void* stream) override
    {
        const OnDevice device(device_);
        const auto note = [&](const BatchRecord& record) { settle(record); };
        records_.settle(false, note);
        record_ = records_.next(note);
        stream_ = static_cast<cudaStream_t>(stream);
        if (last_)
        {
            last_->holdBack(stream_); // which may have been another stream
        }
        wantsPotentials_   = potentials;
        const auto isThere = [](const void* array)
        { return array == nullptr || isOnDevice(array); };
        resultsAreOnDevice_ = std::all_of(results.begin(), results.end(), isThere);
        systems_.take(input, record_, stream_);
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
        if (tightening != tightening_)
        {
            // sums become longer
            tightening_ = tightening;
            lateError_  = 0;
            known_[0] = known_[1] = {};
        }
        record_->tightening = tightening;
        begin(nullptr, systems_.hasImages(), tightening);
        if (measured.any)
        {
            makeRoom(&detour_);
        }
        const BatchStatus* status = sum(virials, false, systems_.hasImages(), measured);
        return std::max(status != nullptr ? status->error : 0, std::exchange(lateError_, 0));
    }

    void evaluateTangent(const BatchDirection<Real>& direction,
                         const double* errors,
                         bool virials) override
    {
        const OnDevice device(device_);
        systems_.takeErrors(errors, stream_);
        systems_.takeDirection(direction, stream_);
        begin(nullptr, false, 1);
        const BatchStatus* status = sum(virials, true, false, {});
        if (status != nullptr && status->neutral > 0)
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
        end();
    }
    void give(const BatchTangent<Real>& tangent) override
    {
        const OnDevice device(device_);
        giveResults(tangent.forces, tangent.potentials, tangent.virials);
        end();
    }

    void finish() override
    {
        const OnDevice device(device_);
        records_.settle(true, [&](const BatchRecord& record) { settle(record); });
        if (last_)
        {
            last_->synchronize();
        }
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

    //! Systems and particles up to which calls need not wait.
    struct Extent
    {
        int systems;
        size_t particles;
    };

    //! Takes note of a call that has not waited. \throws Error  that is not complete
    void settle(const BatchRecord& record)
    {
        const BatchStatus& status = *record.status.data();
        systems_.note(status);
        hasNeutral_ = hasNeutral_ || status.neutral > 0;
        if (isComplete(status, record.isTangent))
        {
            if (!record.isTangent && record.tightening == tightening_)
            {
                lateError_ = std::max(lateError_, status.error);
            }
            return;
        }
        throwRefusal(status);
        known_[0] = known_[1] = {};
        throw Error(ErrorCode::OutOfMemory,
                    status.left > 0
                            ? "The sums of an earlier call of this asynchronous batch had no room. "
                              "Its results are not a number. The next call makes room."
                            : "An earlier call of this asynchronous batch had systems without "
                              "charges. Its derivatives are not a number. Calls with derivatives "
                              "wait from now on.");
    }

    //! Whether the host has to know how a call ends.
    bool hasToWait(bool tangents) const
    {
        const Extent& known = known_[tangents ? 1 : 0];
        return !options_.asynchronous || !resultsAreOnDevice_ || !round_.hasRoom()
               || systems_.count() == 0 || systems_.count() > known.systems
               || systems_.particles() > known.particles || (tangents && hasNeutral_);
    }

    /*! \brief Sums of the systems that are left, until their forces tell that these are long enough.
     *
     *  Those that there is room for are launched before the host waits.
     *  \param[in] aims  whether forces decide on that
     *  \returns the status then; null: the host has not waited */
    const BatchStatus* sum(bool virials, bool tangents, bool aims, const MeasuredSystems& measured)
    {
        const SystemArrays arrays = systems_.arrays();
        const auto plan           = [&](int most)
        { round_.plan(&systems_, measured, most, tangents, stream_); };
        const auto compute = [&](int most)
        {
            round_.compute(&systems_,
                           most,
                           virials,
                           tangents,
                           wantsPotentials_,
                           &result_,
                           &detour_,
                           stream_);
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
        };
        const int most     = arrays.count + measured.atMost(arrays.count);
        record_->isTangent = tangents;
        isAhead_           = !hasToWait(tangents);
        for (int round = 0; isAhead_ && round < c_roundsAhead; round++)
        {
            plan(most);
            compute(most);
        }
        if (isAhead_)
        {
            return nullptr;
        }
        plan(most);
        if (most > 0 && round_.hasRoom())
        {
            compute(most);
            plan(most);
        }
        for (;;)
        {
            const BatchStatus& status = round_.read(&systems_, wantsPotentials_, stream_);
            hasNeutral_               = hasNeutral_ || status.neutral > 0;
            if (status.listed == 0)
            {
                Extent& known = known_[tangents ? 1 : 0];
                known         = { std::max(known.systems, systems_.count()),
                                  std::max(known.particles, systems_.particles()) };
                return &status;
            }
            round_.makeRoom(status);
            compute(status.listed);
            plan(status.listed);
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

    template<class Result>
    void give(const DeviceBuffer<double>& from, Result* to)
    {
        if (to == nullptr)
        {
            return;
        }
        const bool isThere = resultsAreOnDevice_ || isOnDevice(to);
        // what is narrowed fits into the memory of what it is narrowed from
        narrowed_.resize(isThere ? 0 : from.size());
        Result* const by = isThere ? to : reinterpret_cast<Result*>(narrowed_.data());
        narrow(from.data(),
               by,
               from.size(),
               isAhead_ ? systems_.arrays().status : nullptr,
               record_->isTangent,
               stream_);
        if (!isThere)
        {
            copyAsync(to, by, from.size(), stream_, "copying results");
        }
    }

    void giveResults(Real* forces, Real* potentials, double* virials)
    {
        give(result_.forces, forces);
        give(result_.potentials, potentials);
        give(virials_, virials);
    }

    //! Waits, unless all results are in device memory.
    void end()
    {
        if (!last_)
        {
            last_.emplace();
        }
        last_->record(stream_);
        if (isAhead_)
        {
            systems_.copyStatus(stream_);
            if (!record_->done)
            {
                record_->done.emplace();
            }
            record_->done->record(stream_);
            record_->isPending = true;
        }
        if (!resultsAreOnDevice_)
        {
            last_->synchronize();
        }
    }

    BatchOptions options_;
    int device_, threads_;
    cudaStream_t stream_  = nullptr;
    bool wantsPotentials_ = false, resultsAreOnDevice_ = false;
    std::optional<Event> last_; //!< the end of the last call
    BatchRecords records_;
    BatchRecord* record_ = nullptr; //!< of this call
    Extent known_[2]     = {};      //!< of calls that have waited: without and with tangents
    bool isAhead_        = false;   //!< whether this one has not
    bool hasNeutral_     = false;   //!< whether any call had systems without charges
    double tightening_   = 0;       //!< of the last evaluation
    double lateError_    = 0;       //!< the largest one, with that, of calls that have not waited
    SystemsOnDevice<Real> systems_;
    BatchRound<Real> round_;
    BatchTargets result_,
            detour_; //!< and forces of another splitting, of systems that are measured
    DeviceBuffer<double> energies_, virials_;
    DeviceBuffer<double> narrowed_; //!< on its way to the host
    DeviceBuffer<char> before_;     //!< systems that had charges before these were changes
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
