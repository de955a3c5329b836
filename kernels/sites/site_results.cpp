/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Values of sites on their way to the host.
#include "sites/sites.h"

#include <algorithm>

namespace farfield
{

template<class Real>
Real* SiteResult<Real>::onDevice(int n)
{
    onDevice_.resize(static_cast<size_t>(each_) * n);
    return onDevice_.data();
}

template<class Real>
void SiteResult<Real>::fetch(int n, cudaStream_t stream)
{
    const size_t count = static_cast<size_t>(each_) * n;
    onHost_.resize(count);
    copyAsync(onHost_.data(), onDevice_.data(), count, stream, "copying derivatives from the GPU");
}

template<class Real>
void SiteResult<Real>::deliver(Real* to, int n) const
{
    std::copy_n(onHost_.data(), static_cast<size_t>(each_) * n, to);
}

template<class Real>
void DeviceSites<Real>::fetch(const Task<Real>& task, int n, cudaStream_t stream)
{
    const auto get = [=](const Real* wanted, SiteResult<Real>* result)
    {
        if (wanted != nullptr)
        {
            result->fetch(n, stream);
        }
    };
    get(task.gradients, &gradients_);
    get(task.hessians, &hessians_);
    get(task.torques, &torques_);
}

template<class Real>
void DeviceSites<Real>::deliver(const Task<Real>& task, int n) const
{
    const auto give = [=](Real* to, const SiteResult<Real>& result)
    {
        if (to != nullptr)
        {
            result.deliver(to, n);
        }
    };
    give(task.gradients, gradients_);
    give(task.hessians, hessians_);
    give(task.torques, torques_);
}

template class SiteResult<float>;
template class SiteResult<double>;
// The other members are compiled with other files.
// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void DeviceSites<Real>::fetch(const Task<Real>&, int, cudaStream_t);                  \
    template void DeviceSites<Real>::deliver(const Task<Real>&, int) const
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

} // namespace farfield
