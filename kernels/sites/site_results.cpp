/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Derivatives on their way to the host.
#include "sites/sites.h"

#include <algorithm>

namespace farfield
{

template<class Real>
Real* DeviceSites<Real>::gradients(int n)
{
    gradients_.resize(3 * static_cast<size_t>(n));
    return gradients_.data();
}

template<class Real>
Real* DeviceSites<Real>::hessians(int n)
{
    hessians_.resize(6 * static_cast<size_t>(n));
    return hessians_.data();
}

template<class Real>
void DeviceSites<Real>::fetch(const Task<Real>& task, int n, cudaStream_t stream)
{
    const auto get =
            [&](bool wanted, const DeviceBuffer<Real>& from, PinnedBuffer<Real>* to, size_t each)
    {
        if (wanted)
        {
            to->resize(each * n);
            copyAsync(
                    to->data(), from.data(), each * n, stream, "copying derivatives from the GPU");
        }
    };
    get(task.gradients != nullptr, gradients_, &gradientsOnHost_, 3);
    get(task.hessians != nullptr, hessians_, &hessiansOnHost_, 6);
}

template<class Real>
void DeviceSites<Real>::deliver(const Task<Real>& task, int n) const
{
    if (task.gradients != nullptr)
    {
        std::copy_n(gradientsOnHost_.data(), 3 * static_cast<size_t>(n), task.gradients);
    }
    if (task.hessians != nullptr)
    {
        std::copy_n(hessiansOnHost_.data(), 6 * static_cast<size_t>(n), task.hessians);
    }
}

// The other members are compiled with sites.cu and site_expansions.cu.
// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template Real* DeviceSites<Real>::gradients(int);                                              \
    template Real* DeviceSites<Real>::hessians(int);                                               \
    template void DeviceSites<Real>::fetch(const Task<Real>&, int, cudaStream_t);                  \
    template void DeviceSites<Real>::deliver(const Task<Real>&, int) const
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

} // namespace farfield
