/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sort/extent.h"

#include <algorithm>
#include <limits>

#include <cub/device/device_reduce.cuh>

namespace farfield
{
namespace
{

constexpr double c_infinity = std::numeric_limits<double>::infinity();

//! A particle by itself; one that is nowhere is everywhere.
template<class Real>
struct BoundsOf
{
    const Real* x;

    __device__ Bounds operator()(int particle) const
    {
        Bounds own;
        for (int k = 0; k < 3; k++)
        {
            const double place  = x[3 * static_cast<size_t>(particle) + k];
            const bool isFinite = isfinite(place);
            own.least[k]        = isFinite ? place : -c_infinity;
            own.most[k]         = isFinite ? place : c_infinity;
        }
        return own;
    }
};

struct Union
{
    __device__ Bounds operator()(const Bounds& a, const Bounds& b) const
    {
        Bounds both;
        for (int k = 0; k < 3; k++)
        {
            both.least[k] = fmin(a.least[k], b.least[k]);
            both.most[k]  = fmax(a.most[k], b.most[k]);
        }
        return both;
    }
};

} // namespace

template<class Real>
Vec3 DeviceExtent<Real>::find(const Real* x, const int* which, int n, cudaStream_t stream)
{
    const Bounds none = { { c_infinity, c_infinity, c_infinity },
                          { -c_infinity, -c_infinity, -c_infinity } };
    bounds_.resize(1);
    const auto reduce = [&](void* space, size_t* bytes)
    {
        check(cub::DeviceReduce::TransformReduce(space,
                                                 *bytes,
                                                 which,
                                                 bounds_.data(),
                                                 n,
                                                 Union(),
                                                 BoundsOf<Real>{ x },
                                                 none,
                                                 stream),
              "finding the extent of particles");
    };
    size_t bytes = 0;
    reduce(nullptr, &bytes);
    space_.resize(std::max<size_t>(bytes, 1));
    bytes = space_.size();
    reduce(space_.data(), &bytes);
    Bounds found;
    bounds_.download(&found, 1, stream);
    return { found.most[0] - found.least[0],
             found.most[1] - found.least[1],
             found.most[2] - found.least[2] };
}

template class DeviceExtent<float>;
template class DeviceExtent<double>;

} // namespace farfield
