/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/batch_backend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <omp.h>

#include "base/threads.h"
#include "batch/batch_check.h"
#include "batch/ewald_system.h"
#include "evaluation/charge_limits.h"

namespace farfield
{
namespace
{

template<class Value>
void copy(const std::vector<Value>& from, Value* to)
{
    if (to != nullptr)
    {
        std::copy(from.begin(), from.end(), to);
    }
}

//! A system a thread.
template<class Real>
class CpuBatch final : public BatchBackend<Real>
{
public:
    explicit CpuBatch(const BatchOptions& options) : options_(options)
    {
        const int threads = usableThreads(options.threads);
        for (int thread = 0; thread < threads; thread++)
        {
            workers_.push_back({ EwaldSystem<Real>(options), {} });
        }
    }

    void take(const BatchInput<Real>& input,
              typename BatchBackend<Real>::Results /*results*/,
              bool potentials,
              void* /*stream*/) override
    {
        checkOffsets(input.offsets, input.systems, input.particles);
        if (options_.boundary != Boundary::Open)
        {
            checkBoxes(input.boxes, input.systems, options_.boundary);
        }
        for (int s = 0; s < input.systems; s++)
        {
            checkParticles(input, s);
        }
        input_         = input;
        const size_t n = input.systems > 0 ? input.offsets[input.systems] : 0;
        energies_.resize(input.systems);
        aims_.resize(input.systems);
        virials_.resize(9 * static_cast<size_t>(input.systems));
        forces_.resize(3 * n);
        potentials_.resize(potentials ? n * options_.channels : 0);
        // large ones first: no thread begins one when others are done
        order_.resize(input.systems);
        std::iota(order_.begin(), order_.end(), 0);
        const auto size = [&](int s) { return input.offsets[s + 1] - input.offsets[s]; };
        std::stable_sort(
                order_.begin(), order_.end(), [&](int a, int b) { return size(a) > size(b); });
    }

    double evaluate(bool virials, double tightening, const MeasuredSystems& measured) override
    {
        errors_.assign(input_.systems, 0);
        forSystems(
                [&](int s, Worker* worker)
                {
                    const BatchSystem<Real> system = systemOf(s);
                    SystemResult<Real> result      = resultOf(s, virials);
                    const double scale =
                            worker->system.evaluate(system, { tightening, 0, 1 }, &result);
                    if (scale > 0 && measured.has(s))
                    {
                        errors_[s] = measure(system, tightening, scale, result.forces, worker);
                    }
                    energies_[s] = result.energy;
                    aims_[s]     = result.error;
                    keepVirial(result, s);
                });
        return errors_.empty() ? 0 : *std::max_element(errors_.begin(), errors_.end());
    }

    void evaluateTangent(const BatchDirection<Real>& direction,
                         const double* errors,
                         bool virials) override
    {
        if (errors != nullptr)
        {
            checkErrors(errors, input_.systems);
        }
        forSystems(
                [&](int s, Worker* worker)
                {
                    SystemResult<Real> result = resultOf(s, virials);
                    worker->system.evaluateTangent(systemOf(s),
                                                   partOf(direction, input_.offsets[s], s),
                                                   errors != nullptr ? errors[s] : 0,
                                                   &result);
                    keepVirial(result, s);
                });
    }

    void give(const BatchOutput<Real>& output) override
    {
        copy(energies_, output.energies);
        copy(aims_, output.errors);
        copy(forces_, output.forces);
        copy(potentials_, output.potentials);
        copy(virials_, output.virials);
    }
    void give(const BatchTangent<Real>& tangent) override
    {
        copy(forces_, tangent.forces);
        copy(potentials_, tangent.potentials);
        copy(virials_, tangent.virials);
    }

    void finish() override {}

    int threads() const override { return static_cast<int>(workers_.size()); }
    int deviceId() const override { return -1; }

private:
    //! What a thread has.
    struct Worker
    {
        EwaldSystem<Real> system;
        std::vector<Real> forces; //!< of a measurement
    };

    void checkParticles(const BatchInput<Real>& input, int system) const
    {
        const auto isFinite = [](Real v) { return std::isfinite(v); };
        const int first     = input.offsets[system];
        for (int i = first; i < input.offsets[system + 1]; i++)
        {
            const Real* const x = input.x + 3 * static_cast<size_t>(i);
            if (!std::all_of(x, x + 3, isFinite))
            {
                throw positionNotFinite(system, i - first);
            }
            const Real* const q = input.q + static_cast<size_t>(i) * options_.channels;
            if (!std::all_of(q, q + options_.channels, isLegalCharge<Real>))
            {
                throw chargeNotFinite(system, i - first);
            }
        }
    }

    //! Calls use(system, worker), several at once; errors name the system.
    template<class Use>
    void forSystems(const Use& use)
    {
        FirstException failure;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads())
        for (int task = 0; task < input_.systems; task++)
        {
            const int s = order_[task];
            failure.run([&]
                        { withSystemNamed(s, [&] { use(s, &workers_[omp_get_thread_num()]); }); });
        }
        failure.rethrow();
    }

    BatchSystem<Real> systemOf(int s) const
    {
        const size_t first = input_.offsets[s];
        return { input_.x + 3 * first,
                 input_.q + first * options_.channels,
                 input_.boxes != nullptr ? input_.boxes + 9 * static_cast<size_t>(s) : nullptr,
                 input_.offsets[s + 1] - input_.offsets[s] };
    }

    SystemDirection<Real> partOf(const BatchDirection<Real>& direction,
                                 size_t first,
                                 size_t system) const
    {
        const auto from = [](auto* array, size_t at)
        { return array != nullptr ? array + at : array; };
        return { from(direction.x, 3 * first),
                 from(direction.q, first * options_.channels),
                 from(direction.boxes, 9 * system) };
    }

    SystemResult<Real> resultOf(int s, bool virial)
    {
        const size_t first = input_.offsets[s];
        SystemResult<Real> result;
        result.forces = forces_.data() + 3 * first;
        result.potentials =
                potentials_.empty() ? nullptr : potentials_.data() + first * options_.channels;
        result.wantsVirial = virial;
        return result;
    }

    void keepVirial(const SystemResult<Real>& result, int s)
    {
        std::copy_n(result.virial.data(), 9, virials_.data() + 9 * static_cast<size_t>(s));
    }

    //! The error of the forces of a system, relative to \p scale, kJ/mol/nm.
    double measure(const BatchSystem<Real>& system,
                   double tightening,
                   double scale,
                   const Real* forces,
                   Worker* worker)
    {
        worker->forces.resize(3 * static_cast<size_t>(system.n));
        SystemResult<Real> other;
        other.forces      = worker->forces.data();
        other.potentials  = nullptr;
        other.wantsVirial = false;
        worker->system.evaluate(system, { tightening, scale, c_detour }, &other);
        return errorOfForces(forces, other.forces, system.n, scale, options_.smearing);
    }

    BatchOptions options_;
    BatchInput<Real> input_;
    std::vector<Worker> workers_;
    std::vector<int> order_;     //!< of the systems
    std::vector<double> errors_; //!< that were measured
    std::vector<double> aims_;   //!< errors that sums were cut for
    std::vector<double> energies_, virials_;
    std::vector<Real> forces_, potentials_;
};

} // namespace

template<class Real>
std::unique_ptr<BatchBackend<Real>> makeCpuBatch(const BatchOptions& options)
{
    return std::make_unique<CpuBatch<Real>>(options);
}
template std::unique_ptr<BatchBackend<float>> makeCpuBatch(const BatchOptions&);
template std::unique_ptr<BatchBackend<double>> makeCpuBatch(const BatchOptions&);

} // namespace farfield
