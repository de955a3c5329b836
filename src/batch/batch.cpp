/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_batch.h"

#include <algorithm>

#include "batch/batch_backend.h"
#include "batch/batch_check.h"
#include "evaluation/memory_errors.h"

namespace farfield
{
namespace
{

template<class Real>
std::unique_ptr<BatchBackend<Real>> makeBackend(const BatchOptions& options)
{
    checkBatchOptions<Real>(options);
    return options.device == Device::Gpu ? makeGpuBatch<Real>(options)
                                         : makeCpuBatch<Real>(options);
}

} // namespace

template<class Real>
class Batch<Real>::Impl
{
public:
    explicit Impl(const BatchOptions& options) :
        options_(options), backend_(makeBackend<Real>(options))
    {
        setup_.threads  = backend_->threads();
        setup_.deviceId = backend_->deviceId();
        setup_.device   = setup_.deviceId >= 0 ? Device::Gpu : Device::Cpu;
    }

    void evaluate(const BatchInput<Real>& input, const BatchOutput<Real>& output, void* stream)
    {
        backend_->take(input,
                       { output.energies,
                         output.forces,
                         output.potentials,
                         output.virials,
                         output.errors },
                       output.potentials != nullptr,
                       stream);
        const MeasuredSystems measured = { hasError(), seen_ };
        while (sharpen(backend_->evaluate(output.virials != nullptr, setup_.tightening, measured)))
        {
        }
        seen_ += input.systems;
        backend_->give(output);
    }

    void evaluateTangent(const BatchInput<Real>& input,
                         const BatchDirection<Real>& direction,
                         const double* errors,
                         const BatchTangent<Real>& tangent,
                         void* stream)
    {
        backend_->take(input,
                       { tangent.forces, tangent.potentials, tangent.virials },
                       tangent.potentials != nullptr,
                       stream);
        backend_->evaluateTangent(direction, errors, tangent.virials != nullptr);
        backend_->give(tangent);
    }

    void finish() { backend_->finish(); }

    const BatchSetup& setup() const { return setup_; }

private:
    //! Whether there is more to an error than rounding, and what the caller asks for.
    bool hasError() const
    {
        return options_.boundary != Boundary::Open && options_.waveCutoff == 0;
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
    std::unique_ptr<BatchBackend<Real>> backend_;
    BatchSetup setup_;
    long long seen_  = 0; //!< systems so far
    double lastMiss_ = 0; //!< the error that was last too large
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
void Batch<Real>::evaluate(const BatchInput<Real>& input,
                           const BatchOutput<Real>& output,
                           void* stream)
{
    withMemoryErrors([&] { impl_->evaluate(input, output, stream); });
}

template<class Real>
void Batch<Real>::evaluateTangent(const BatchInput<Real>& input,
                                  const BatchDirection<Real>& direction,
                                  const double* errors,
                                  const BatchTangent<Real>& tangent,
                                  void* stream)
{
    withMemoryErrors([&] { impl_->evaluateTangent(input, direction, errors, tangent, stream); });
}

template<class Real>
void Batch<Real>::finish()
{
    withMemoryErrors([&] { impl_->finish(); });
}

template<class Real>
BatchSetup Batch<Real>::setup() const
{
    return impl_->setup();
}

template class Batch<float>;
template class Batch<double>;

} // namespace farfield
