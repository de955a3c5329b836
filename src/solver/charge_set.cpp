/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/charge_set.h"

#include <algorithm>
#include <new>
#include <utility>

namespace farfield
{

template<class Real>
void ChargeSet<Real>::setCharges(const Real* q, int n)
{
    std::vector<char> isCharged(n);
    std::transform(q, q + n, isCharged.begin(), [](Real charge) { return charge != 0; });
    ExcludedPairs pairs;
    pairs.offsets.assign(static_cast<size_t>(n) + 1, 0);
    if (n == count_)
    {
        pairs = excluded_;
    }
    backend_->setCharges(q, n);
    // nothing fails any more
    pairsStand_ = pairsStand_ && n == count_ && isCharged == isCharged_;
    count_      = n;
    isCharged_.swap(isCharged);
    charged_        = std::count(isCharged_.begin(), isCharged_.end(), char(1));
    squaredCharges_ = 0;
    for (int i = 0; i < n; i++)
    {
        squaredCharges_ += static_cast<double>(q[i]) * static_cast<double>(q[i]);
    }
    std::swap(excluded_, pairs);
    // the charges are set: what fails here is tried again when it is needed
    try
    {
        completePairs();
    }
    catch (const std::bad_alloc&)
    {
    }
    catch (const Error& error)
    {
        if (error.code() != ErrorCode::OutOfMemory)
        {
            throw;
        }
    }
}

template<class Real>
void ChargeSet<Real>::setExclusions(const int* offsets, const int* partners)
{
    ExcludedPairs all           = { { offsets, offsets + count_ + 1 },
                                    { partners, partners + offsets[count_] } };
    const ExcludedPairs charged = chargedPairs(all, isCharged_);
    backend_->setExclusions(charged.offsets.data(), charged.partners.data(), count_);
    std::swap(excluded_, all);
    pairsStand_ = true;
}

template<class Real>
void ChargeSet<Real>::completePairs()
{
    if (!pairsStand_)
    {
        const ExcludedPairs charged = chargedPairs(excluded_, isCharged_);
        backend_->setExclusions(charged.offsets.data(), charged.partners.data(), count_);
        pairsStand_ = true;
    }
}

template class ChargeSet<float>;
template class ChargeSet<double>;

} // namespace farfield
