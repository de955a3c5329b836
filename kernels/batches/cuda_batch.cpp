/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <iterator>
#include <vector>

#include "batch/batch_backend.h"
#include "batch/batch_check.h"
#include "batch/batch_system.h"
#include "batch/images.h"
#include "batches/batch_round.h"
#include "runtime/devices.h"

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;

//! A pair within the cut-off takes as long as so many waves of half space at a particle: of counted
//! operations, the search for pairs of some hundred particles included.
template<class Real>
constexpr double c_pairCostOfGpus = sizeof(Real) == 4 ? 20 : 16;

//! A system whose forces have not told yet whether its sums are long enough.
struct AimedSystem
{
    int system;
    ForceAim aim;
};

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
        stream_          = static_cast<cudaStream_t>(stream);
        wantsPotentials_ = potentials;
        systems_.take(input, stream_);
        energies_.assign(systems_.count(), 0);
        aims_.assign(systems_.count(), 0);
        virials_.assign(9 * static_cast<size_t>(systems_.count()), 0);
        clear(&result_);
    }

    double evaluate(bool virials,
                    double tightening,
                    const std::function<bool(int)>& isMeasured) override
    {
        const OnDevice device(device_);
        if (!systems_.hasImages())
        {
            sumOpen(charged(), virials, false);
            return 0;
        }
        const std::vector<AimedSystem> aimed = sumPeriodic(charged(), virials, tightening);
        std::vector<AimedSystem> measured;
        std::copy_if(aimed.begin(),
                     aimed.end(),
                     std::back_inserter(measured),
                     [&](const AimedSystem& one) { return isMeasured(one.system); });
        return measure(measured);
    }

    void evaluateTangent(const BatchDirection<Real>& direction,
                         const double* errors,
                         bool virials) override
    {
        const OnDevice device(device_);
        const std::vector<double> aims = systems_.errorsOf(errors, stream_);
        systems_.takeDirection(direction, stream_);
        if (!systems_.hasImages())
        {
            sumOpen(charged(), virials, true);
        }
        else
        {
            compute(planned(
                            charged(), [&](int s) { return aims[s]; }, 1),
                    virials,
                    true,
                    &result_);
        }
        // there is nothing yet but potentials of the charges to come
        std::vector<int> neutral;
        for (int s = 0; s < systems_.count(); s++)
        {
            if (systems_.traits(s).charged == 0 && systems_.size(s) > 0)
            {
                neutral.push_back(s);
            }
        }
        if (!neutral.empty())
        {
            sumChangesOf(neutral);
        }
    }

    void give(const BatchOutput<Real>& output) override
    {
        const OnDevice device(device_);
        give(energies_, output.energies);
        give(aims_, output.errors);
        giveResults(output.forces, output.potentials, output.virials);
    }
    void give(const BatchTangent<Real>& tangent) override
    {
        const OnDevice device(device_);
        giveResults(tangent.forces, tangent.potentials, tangent.virials);
    }

    int threads() const override { return threads_; }
    int deviceId() const override { return device_; }

private:
    void clear(BatchTargets* targets)
    {
        targets->forces.resize(3 * systems_.particles());
        targets->potentials.resize(systems_.particles() * options_.channels);
        targets->forces.clear(stream_);
        targets->potentials.clear(stream_);
    }

    //! The systems with charges.
    std::vector<int> charged() const
    {
        std::vector<int> systems;
        for (int s = 0; s < systems_.count(); s++)
        {
            if (systems_.traits(s).charged > 0)
            {
                systems.push_back(s);
            }
        }
        return systems;
    }

    //! Plans of periodic systems. \param[in] errorOf  of a system, kJ/mol/nm
    template<class ErrorOf>
    std::vector<PlannedSystem> planned(const std::vector<int>& systems,
                                       const ErrorOf& errorOf,
                                       double detour) const
    {
        std::vector<PlannedSystem> all(systems.size());
        for (size_t k = 0; k < systems.size(); k++)
        {
            const int s = systems[k];
            withSystemNamed(s,
                            [&]
                            {
                                PlannedSystem& own    = all[k];
                                const ReducedBox& box = systems_.box(s);
                                own.system            = s;
                                own.plan              = planFor(options_,
                                                   systems_.traits(s),
                                                   errorOf(s),
                                                   detour,
                                                   c_pairCostOfGpus<Real>);
                                checkImages(box, own.plan.cutoff, systems_.size(s));
                                own.waves.find(2 * c_pi * box.inverse.transpose(),
                                               own.plan.waveCutoff);
                            });
        }
        return all;
    }

    //! Sums of these systems, which are kept.
    const std::vector<SystemTotals>& compute(const std::vector<PlannedSystem>& planned,
                                             bool virials,
                                             bool tangents,
                                             BatchTargets* to)
    {
        const auto& totals = round_.compute(
                &systems_, planned, virials, tangents, wantsPotentials_, to, stream_);
        for (size_t k = 0; k < planned.size() && to == &result_; k++)
        {
            const int s  = planned[k].system;
            energies_[s] = totals[k].energy;
            Eigen::Map<Mat3>{ virials_.data() + 9 * static_cast<size_t>(s) } =
                    tensorOf(totals[k].virial);
        }
        return totals;
    }

    void sumOpen(const std::vector<int>& systems, bool virials, bool tangents)
    {
        std::vector<PlannedSystem> all;
        all.reserve(systems.size());
        for (const int s : systems)
        {
            all.push_back({ s, EwaldPlan{}, {} });
        }
        compute(all, virials, tangents, &result_);
    }

    //! \returns the systems, with what their errors are relative to
    std::vector<AimedSystem> sumPeriodic(const std::vector<int>& systems,
                                         bool virials,
                                         double tightening)
    {
        std::vector<AimedSystem> left, done;
        for (const int s : systems)
        {
            left.push_back(
                    { s,
                      ForceAim(options_, systems_.traits(s), { tightening, 0, 1 }, sizeof(Real)) });
        }
        while (!left.empty())
        {
            const auto plans   = plansOf(left, 1);
            const auto& totals = compute(plans, virials, false, &result_);
            std::vector<AimedSystem> again;
            for (size_t k = 0; k < left.size(); k++)
            {
                const AimedSystem now = left[k];
                aims_[now.system]     = now.aim.error();
                const bool suffices   = left[k].aim.suffices(totals[k].squares);
                (suffices ? done : again).push_back(suffices ? now : left[k]);
            }
            left = std::move(again);
        }
        return done;
    }

    std::vector<PlannedSystem> plansOf(const std::vector<AimedSystem>& aimed, double detour)
    {
        std::vector<int> systems(aimed.size());
        errors_.resize(systems_.count());
        for (size_t k = 0; k < aimed.size(); k++)
        {
            systems[k]          = aimed[k].system;
            errors_[systems[k]] = aimed[k].aim.error();
        }
        return planned(
                systems, [&](int s) { return errors_[s]; }, detour);
    }

    //! \returns the largest error of the forces of these systems, relative to their scales
    double measure(const std::vector<AimedSystem>& aimed)
    {
        if (aimed.empty())
        {
            return 0;
        }
        clear(&other_);
        compute(plansOf(aimed, c_detour), false, false, &other_);
        double largest = 0;
        std::vector<double> forces, others;
        for (const AimedSystem& one : aimed)
        {
            const auto n    = static_cast<size_t>(systems_.size(one.system));
            const size_t at = 3 * static_cast<size_t>(systems_.first(one.system));
            forces.resize(3 * n);
            others.resize(3 * n);
            const char* const action = "copying forces from the GPU";
            copyAsync(forces.data(), result_.forces.data() + at, 3 * n, stream_, action);
            copyAsync(others.data(), other_.forces.data() + at, 3 * n, stream_, action);
            check(cudaStreamSynchronize(stream_), action);
            largest = std::max(largest,
                               errorOfForces(forces.data(),
                                             others.data(),
                                             systems_.size(one.system),
                                             one.aim.force(),
                                             options_.smearing));
        }
        return largest;
    }

    //! Potentials of derivatives of charges, of systems that have no charges.
    void sumChangesOf(const std::vector<int>& neutral)
    {
        systems_.takeChangesAsCharges(stream_);
        std::vector<int> own;
        std::copy_if(neutral.begin(),
                     neutral.end(),
                     std::back_inserter(own),
                     [&](int s) { return systems_.traits(s).charged > 0; });
        if (systems_.hasImages())
        {
            sumPeriodic(own, false, 1);
        }
        else
        {
            sumOpen(own, false, false);
        }
        for (const int s : own)
        {
            check(cudaMemsetAsync(result_.forces.data()
                                          + 3 * static_cast<size_t>(systems_.first(s)),
                                  0,
                                  3 * sizeof(double) * systems_.size(s),
                                  stream_),
                  "clearing forces");
            std::fill_n(virials_.begin() + 9L * s, 9, 0.0);
        }
    }

    template<class Value>
    void give(const std::vector<Value>& from, Value* to)
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
        check(cudaStreamSynchronize(stream_), "copying results");
    }

    BatchOptions options_;
    int device_, threads_;
    cudaStream_t stream_  = nullptr;
    bool wantsPotentials_ = false;
    SystemsOnDevice<Real> systems_;
    BatchRound<Real> round_;
    BatchTargets result_, other_; //!< of an evaluation, and of a measurement
    DeviceBuffer<Real> forces_, potentials_;
    std::vector<double> energies_, aims_, virials_, errors_;
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
