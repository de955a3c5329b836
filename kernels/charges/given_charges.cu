/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "charges/given_charges.h"

#include <algorithm>
#include <utility>

#include "evaluation/charge_limits.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

enum Value
{
    Flawed, //!< charges that are zero or not legal
    Acting,
    Net,
    Squared,
    ScaledNet,
    c_values
};

template<class Real>
__global__ void __launch_bounds__(c_threads) readCharges(const Real* q,
                                                         int n,
                                                         double root,
                                                         Real* own,
                                                         Real* scaled,
                                                         OrderedSums::View sums,
                                                         double* found)
{
    double values[c_values] = {};
    for (int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x); i < n;
         i += static_cast<int>(gridDim.x * c_threads))
    {
        const Real charge = q[i];
        const auto exact  = static_cast<double>(charge);
        const Real there  = static_cast<Real>(root * exact);
        own[i]            = charge;
        scaled[i]         = there;
        values[Flawed] += isLegalCharge(charge) && charge != 0 ? 0 : 1;
        values[Acting] += std::abs(charge) > static_cast<Real>(c_idleCharge<Real>) ? 1 : 0;
        values[Net] += exact;
        values[Squared] += exact * exact;
        values[ScaledNet] += static_cast<double>(there);
    }
    double* const to[] = { found, found + 1, found + 2, found + 3, found + 4 };
    addInOrder<c_values>(values, sums, to);
}

} // namespace

template<class Real>
auto GivenCharges<Real>::read(const Real* q, int n, double rootCoulomb, cudaStream_t stream)
        -> std::optional<Found>
{
    next_.resize(n);
    scaled_.resize(n);
    if (found_.size() == 0)
    {
        sums_.resize(stream);
        found_.resize(c_values);
    }
    found_.clear(stream);
    const int blocks = std::min(blocksFor(n, c_threads), 256);
    readCharges<Real><<<blocks, c_threads, 0, stream>>>(
            q, n, rootCoulomb, next_.data(), scaled_.data(), sums_.view(), found_.data());
    checkLaunch("reading charges");
    double values[c_values];
    found_.download(values, c_values, stream);
    if (values[Flawed] != 0)
    {
        return {};
    }
    std::swap(own_, next_);
    Found found;
    found.sums.charged = n;
    found.sums.acting  = static_cast<long long>(values[Acting]);
    found.sums.net     = values[Net];
    found.sums.squared = values[Squared];
    found.scaledNet    = values[ScaledNet];
    return found;
}

template<class Real>
std::vector<Real> GivenCharges<Real>::onHost(cudaStream_t stream) const
{
    std::vector<Real> q(own_.size());
    own_.download(q.data(), q.size(), stream);
    return q;
}

template class GivenCharges<float>;
template class GivenCharges<double>;

} // namespace farfield
