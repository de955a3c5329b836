/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <omp.h>

#include "base/text.h"
#include "base/threads.h"
#include "batch/ewald_system.h"
#include "evaluation/input_check.h"
#include "evaluation/memory_errors.h"

namespace farfield
{
namespace
{

//! One system in so many is measured.
constexpr long long c_sample = 64;
//! Splittings of a measurement differ by this factor.
constexpr double c_detour = 1.3;
//! Particles with a force so many times the usual one are in contact.
constexpr double c_contact = 2.5;

Error inSystem(int system, const std::string& text)
{
    return Error(ErrorCode::InvalidArgument, "System " + std::to_string(system) + " " + text);
}

void checkLength(double value, const char* option, const char* unit)
{
    // written so that NaN fails
    if (!(value >= 0 && std::isfinite(value)))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The option " + std::string(option) + " = " + text(value) + " " + unit
                            + " must be finite and not negative.",
                    option);
    }
}

template<class Real>
void checkBatchOptions(const BatchOptions& options)
{
    Options shared;
    shared.coulombConstant = options.coulombConstant;
    shared.accuracy        = options.accuracy;
    shared.boundary        = options.boundary;
    shared.device          = options.device;
    shared.threads         = options.threads;
    checkOptions<Real>(shared);
    if (options.device == Device::Gpu)
    {
        throw Error(ErrorCode::Unsupported,
                    "Batches are computed on the device 'cpu' only: use 'auto' or 'cpu'.",
                    "device");
    }
    if (options.boundary == Boundary::Slab)
    {
        throw Error(ErrorCode::Unsupported,
                    "Batches have the boundaries 'periodic' and 'open': use a Solver for 'slab'.",
                    "boundary");
    }
    if (options.channels < 1 || options.channels > c_mostChannels)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The option channels = " + text(options.channels)
                            + " is outside its range, 1 to " + text(c_mostChannels) + ".",
                    "channels");
    }
    checkLength(options.smearing, "smearing", "nm");
    checkLength(options.waveCutoff, "waveCutoff", "1/nm");
    if (options.waveCutoff > 0 && options.smearing == 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The option waveCutoff is for Gaussian charges: set smearing, or leave it out.",
                    "waveCutoff");
    }
    if (options.smearing > 0 && options.boundary == Boundary::Open)
    {
        throw Error(ErrorCode::Unsupported,
                    "Gaussian charges need the boundary 'periodic': without images use point "
                    "charges.",
                    "smearing");
    }
}

template<class Real>
void checkSystem(const BatchOptions& options, const BatchInput<Real>& input, int system)
{
    for (int i = input.offsets[system]; i < input.offsets[system + 1]; i++)
    {
        for (int k = 0; k < 3; k++)
        {
            if (!std::isfinite(input.x[3 * static_cast<size_t>(i) + k]))
            {
                throw inSystem(system,
                               "has a position that is not finite, of particle "
                                       + text(i - input.offsets[system]) + ".");
            }
        }
        for (int c = 0; c < options.channels; c++)
        {
            if (!std::isfinite(input.q[static_cast<size_t>(i) * options.channels + c]))
            {
                throw inSystem(system,
                               "has a charge that is not finite, of particle "
                                       + text(i - input.offsets[system]) + ".");
            }
        }
    }
    if (options.boundary == Boundary::Open)
    {
        return;
    }
    constexpr double c_smallest = 1e-6, c_largest = 1e8; // nm, as of a Solver
    const double* const box = input.boxes + 9 * static_cast<size_t>(system);
    const Mat3 vectors      = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(box);
    const double longest    = vectors.rowwise().norm().maxCoeff();
    // written so that NaN fails
    if (!(longest <= c_largest) || !(vectors.rowwise().norm().minCoeff() >= c_smallest)
        || !(std::abs(vectors.determinant()) > 1e-12 * vectors.rowwise().norm().prod()))
    {
        std::string all;
        for (int k = 0; k < 9; k++)
        {
            all += (k == 0 ? "" : k % 3 ? " " : "; ") + text(box[k]);
        }
        throw inSystem(
                system,
                "has the box vectors (" + all
                        + ") nm, which must be finite, of 1e-6 to 1e8 nm, and span a volume.");
    }
}

template<class Real>
void checkOffsets(const BatchInput<Real>& input)
{
    checkNumber(input.systems, "systems");
    if (input.systems > 0 && input.offsets[0] != 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The first offset of the systems, " + text(input.offsets[0]) + ", must be 0.");
    }
    for (int s = 0; s < input.systems; s++)
    {
        if (input.offsets[s + 1] < input.offsets[s])
        {
            throw inSystem(s,
                           "ends at particle " + text(input.offsets[s + 1])
                                   + " and begins at particle " + text(input.offsets[s])
                                   + ": offsets must ascend.");
        }
    }
}

} // namespace

template<class Real>
class Batch<Real>::Impl
{
public:
    explicit Impl(const BatchOptions& options) : options_(options)
    {
        checkBatchOptions<Real>(options);
        setup_.threads = usableThreads(options.threads);
        for (int thread = 0; thread < setup_.threads; thread++)
        {
            workers_.push_back({ EwaldSystem<Real>(options), {}, {} });
        }
    }

    void evaluate(const BatchInput<Real>& input, const BatchOutput<Real>& output)
    {
        prepare(input, output.potentials != nullptr);
        const long long seen = seen_;
        bool isSharpEnough   = false;
        while (!isSharpEnough)
        {
            seen_                = seen;
            const double largest = evaluateAll(input, output);
            isSharpEnough        = !sharpen(largest);
        }
        copy(energies_, output.energies);
        copy(aims_, output.errors);
        copy(forces_, output.forces);
        copy(potentials_, output.potentials);
        copy(virials_, output.virials);
    }

    void evaluateTangent(const BatchInput<Real>& input,
                         const BatchDirection<Real>& direction,
                         const double* errors,
                         const BatchTangent<Real>& tangent)
    {
        prepare(input, tangent.potentials != nullptr);
        for (int s = 0; errors != nullptr && s < input.systems; s++)
        {
            if (!(errors[s] >= 0 && std::isfinite(errors[s])))
            {
                throw inSystem(s,
                               "has an error that is not finite or is negative: pass those of "
                               "evaluate().");
            }
        }
        forSystems(input,
                   [&](int s, Worker* worker)
                   {
                       const BatchSystem<Real> system = systemOf(input, s);
                       SystemResult<Real> result = resultOf(input, s, tangent.virials != nullptr);
                       worker->system.evaluateTangent(system,
                                                      partOf(direction, input.offsets[s], s),
                                                      errors != nullptr ? errors[s] : 0,
                                                      &result);
                       keepVirial(result, s);
                   });
        copy(forces_, tangent.forces);
        copy(potentials_, tangent.potentials);
        copy(virials_, tangent.virials);
    }

    const BatchSetup& setup() const { return setup_; }

private:
    //! What a thread has.
    struct Worker
    {
        EwaldSystem<Real> system;
        std::vector<Real> forces, potentials; //!< of a measurement
    };

    template<class Value>
    static void copy(const std::vector<Value>& from, Value* to)
    {
        if (to != nullptr)
        {
            std::copy(from.begin(), from.end(), to);
        }
    }

    void prepare(const BatchInput<Real>& input, bool potentials)
    {
        checkOffsets(input);
        for (int s = 0; s < input.systems; s++)
        {
            checkSystem(options_, input, s);
        }
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

    //! Calls use(system, worker), several at once; errors name the system.
    template<class Use>
    void forSystems(const BatchInput<Real>& input, const Use& use)
    {
        FirstException failure;
        const auto named = [&](int s, Worker* worker)
        {
            try
            {
                use(s, worker);
            }
            catch (const Error& error)
            {
                if (error.code() != ErrorCode::InvalidArgument)
                {
                    throw;
                }
                throw inSystem(s, error.what());
            }
        };
#pragma omp parallel for schedule(dynamic, 1) num_threads(setup_.threads)
        for (int task = 0; task < input.systems; task++)
        {
            failure.run([&] { named(order_[task], &workers_[omp_get_thread_num()]); });
        }
        failure.rethrow();
    }

    BatchSystem<Real> systemOf(const BatchInput<Real>& input, int s) const
    {
        const size_t first = input.offsets[s];
        return { input.x + 3 * first,
                 input.q + first * options_.channels,
                 input.boxes != nullptr ? input.boxes + 9 * static_cast<size_t>(s) : nullptr,
                 input.offsets[s + 1] - input.offsets[s] };
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

    SystemResult<Real> resultOf(const BatchInput<Real>& input, int s, bool virial)
    {
        const size_t first = input.offsets[s];
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

    //! \returns the largest error that was measured, relative to what Options::accuracy says
    double evaluateAll(const BatchInput<Real>& input, const BatchOutput<Real>& output)
    {
        errors_.assign(input.systems, 0);
        forSystems(input,
                   [&](int s, Worker* worker)
                   {
                       const BatchSystem<Real> system = systemOf(input, s);
                       SystemResult<Real> result = resultOf(input, s, output.virials != nullptr);
                       const double scale        = worker->system.evaluate(
                               system, { setup_.tightening, 0, 1 }, &result);
                       if ((seen_ + s) % c_sample == 0 && hasError() && scale > 0)
                       {
                           errors_[s] = measure(system, scale, result.forces, worker);
                       }
                       energies_[s] = result.energy;
                       aims_[s]     = result.error;
                       keepVirial(result, s);
                   });
        seen_ += input.systems;
        return errors_.empty() ? 0 : *std::max_element(errors_.begin(), errors_.end());
    }

    //! Whether there is more to an error than rounding, and what the caller asks for.
    bool hasError() const
    {
        return options_.boundary == Boundary::Periodic && options_.waveCutoff == 0;
    }

    //! The error of the forces of a system, relative to \p scale, kJ/mol/nm.
    double
    measure(const BatchSystem<Real>& system, double scale, const Real* forces, Worker* worker)
    {
        worker->forces.resize(3 * static_cast<size_t>(system.n));
        SystemResult<Real> other;
        other.forces      = worker->forces.data();
        other.potentials  = nullptr;
        other.wantsVirial = false;
        worker->system.evaluate(system, { setup_.tightening, scale, c_detour }, &other);
        double square = 0;
        for (int i = 0; i < system.n; i++)
        {
            double error = 0, force = 0;
            for (int k = 0; k < 3; k++)
            {
                const size_t at = 3 * static_cast<size_t>(i) + k;
                const auto f    = static_cast<double>(forces[at]);
                const double d  = f - static_cast<double>(other.forces[at]);
                error += d * d;
                force += f * f;
            }
            // in contact the error is rounding, relative to the force
            square += error / std::max(1.0, force / (c_contact * scale * c_contact * scale));
        }
        // both have the error; Gaussian charges have more waves at the other place
        const double share = options_.smearing > 0 ? 1 : 0.5;
        return std::sqrt(share * square / system.n) / scale;
    }

    //! Makes sums more accurate if an error was too large, and if that helps. \returns whether it did
    bool sharpen(double largest)
    {
        constexpr double c_factor = 4, c_most = 64;
        // what more accurate sums have not made smaller is rounding
        const bool helps     = lastMiss_ == 0 || largest < 0.5 * lastMiss_;
        const bool isMissed  = largest > options_.accuracy;
        setup_.measuredError = std::max(isMissed ? 0 : setup_.measuredError, largest);
        if (!isMissed || !helps || setup_.tightening >= c_most)
        {
            return false;
        }
        lastMiss_ = largest;
        setup_.tightening *= c_factor;
        setup_.measuredError = 0;
        return true;
    }

    BatchOptions options_;
    BatchSetup setup_;
    long long seen_  = 0; //!< systems so far
    double lastMiss_ = 0; //!< the error that was last too large
    std::vector<Worker> workers_;
    std::vector<int> order_;     //!< of the systems
    std::vector<double> errors_; //!< that were measured
    std::vector<double> aims_;   //!< errors that sums were cut for
    std::vector<double> energies_, virials_;
    std::vector<Real> forces_, potentials_;
};

template<class Real>
Batch<Real>::Batch(const BatchOptions& options) :
    impl_(withMemoryErrors([&] { return std::make_unique<Impl>(options); }))
{
}
template<class Real>
Batch<Real>::~Batch() = default;
template<class Real>
Batch<Real>::Batch(Batch&&) noexcept = default;
template<class Real>
Batch<Real>& Batch<Real>::operator=(Batch&&) noexcept = default;

template<class Real>
void Batch<Real>::evaluate(const BatchInput<Real>& input, const BatchOutput<Real>& output)
{
    withMemoryErrors([&] { impl_->evaluate(input, output); });
}

template<class Real>
void Batch<Real>::evaluateTangent(const BatchInput<Real>& input,
                                  const BatchDirection<Real>& direction,
                                  const double* errors,
                                  const BatchTangent<Real>& tangent)
{
    withMemoryErrors([&] { impl_->evaluateTangent(input, direction, errors, tangent); });
}

template<class Real>
BatchSetup Batch<Real>::setup() const
{
    return impl_->setup();
}

template class Batch<float>;
template class Batch<double>;

} // namespace farfield
