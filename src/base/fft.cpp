/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "base/fft.h"

#include <fftw3.h>

namespace farfield
{
namespace
{

template<class Real>
struct Fftw;

template<>
struct Fftw<float>
{
    using Plan                     = fftwf_plan;
    using Complex                  = fftwf_complex;
    static constexpr auto r2c      = fftwf_plan_dft_r2c_3d;
    static constexpr auto c2r      = fftwf_plan_dft_c2r_3d;
    static constexpr auto forward  = fftwf_execute_dft_r2c;
    static constexpr auto backward = fftwf_execute_dft_c2r;
    static constexpr auto destroy  = fftwf_destroy_plan;
};

template<>
struct Fftw<double>
{
    using Plan                     = fftw_plan;
    using Complex                  = fftw_complex;
    static constexpr auto r2c      = fftw_plan_dft_r2c_3d;
    static constexpr auto c2r      = fftw_plan_dft_c2r_3d;
    static constexpr auto forward  = fftw_execute_dft_r2c;
    static constexpr auto backward = fftw_execute_dft_c2r;
    static constexpr auto destroy  = fftw_destroy_plan;
};

} // namespace

std::mutex& plannerMutex()
{
    static std::mutex mutex;
    return mutex;
}

template<class Real>
RealTransform<Real>::RealTransform(const Int3& lengths)
{
    using F         = Fftw<Real>;
    const int waves = lengths[0] * lengths[1] * (lengths[2] / 2 + 1);
    // an odd number of cache lines: fields do not collide in the cache
    constexpr int line = 64 / (2 * sizeof(Real));
    spectrumStride_    = ((waves + line - 1) / line | 1) * line;
    AlignedVector<Real> field(static_cast<size_t>(lengths[0]) * lengths[1] * lengths[2]);
    AlignedVector<Real> spectrum(2 * static_cast<size_t>(waves));
    auto* complex = reinterpret_cast<typename F::Complex*>(spectrum.data());
    const std::lock_guard<std::mutex> lock(plannerMutex());
    forward_  = F::r2c(lengths[0], lengths[1], lengths[2], field.data(), complex, FFTW_ESTIMATE);
    backward_ = F::c2r(lengths[0], lengths[1], lengths[2], complex, field.data(), FFTW_ESTIMATE);
}

template<class Real>
RealTransform<Real>::~RealTransform()
{
    const std::lock_guard<std::mutex> lock(plannerMutex());
    Fftw<Real>::destroy(static_cast<typename Fftw<Real>::Plan>(forward_));
    Fftw<Real>::destroy(static_cast<typename Fftw<Real>::Plan>(backward_));
}

template<class Real>
void RealTransform<Real>::forward(const Real* field, Real* spectrum) const
{
    using F = Fftw<Real>;
    // out of place: the input is left as it is
    F::forward(static_cast<typename F::Plan>(forward_),
               const_cast<Real*>(field),
               reinterpret_cast<typename F::Complex*>(spectrum));
}

template<class Real>
void RealTransform<Real>::backward(Real* spectrum, Real* field) const
{
    using F = Fftw<Real>;
    F::backward(static_cast<typename F::Plan>(backward_),
                reinterpret_cast<typename F::Complex*>(spectrum),
                field);
}

template class RealTransform<float>;
template class RealTransform<double>;

} // namespace farfield
