/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/charge_set.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "cells/minimum_image.h"
#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

//! Does work that is done again when it is needed, if memory is missing now.
template<class Work>
void tryAgainLater(const Work& work)
{
    try
    {
        work();
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

//! Whether a number is about what it was.
template<class Number>
bool isLike(Number now, Number then)
{
    constexpr double c_other = 1.5;
    return static_cast<double>(now) <= c_other * static_cast<double>(then)
           && static_cast<double>(then) <= c_other * static_cast<double>(now);
}

} // namespace

ParticleNumbers::ParticleNumbers(long long ofChoice, const ChargeSums& sums, long long ofPairs) :
    takingPart(ofChoice), acting(sums.acting), withPartners(ofPairs)
{
    if (acting > 0)
    {
        inExcess = std::llround(std::abs(sums.net)
                                / std::sqrt(sums.squared / static_cast<double>(acting)));
    }
}

bool ParticleNumbers::standFor(const ParticleNumbers& now) const
{
    const bool areCharges = now.acting == 0
                            || (isLike(now.acting, acting) && isLike(now.withPartners, withPartners)
                                && std::abs(now.inExcess - inExcess) <= now.acting / 2
                                && isLike(now.wide, wide) && isLike(now.nearRange, nearRange));
    return areCharges && isLike(now.takingPart, takingPart);
}

template<class Real>
void ChargeSet<Real>::setCharges(const Real* q, int n)
{
    set({ q, q + n }, n == count_ ? moments_ : OwnMoments<Real>());
}

template<class Real>
bool ChargeSet<Real>::replaceOnDevice(GpuBackend<Real>* gpu, const Real* q, int n, void* stream)
{
    const bool mayStay = n == count_ && charged() == n && !hasMoments() && isGiven_;
    const auto sums    = mayStay ? gpu->replaceCharges(q, stream) : std::nullopt;
    if (sums)
    {
        sums_  = *sums;
        fetch_ = [gpu](std::vector<Real>* charges) { *charges = gpu->replacedCharges(); };
    }
    return sums.has_value();
}

template<class Real>
void ChargeSet<Real>::setDipoles(const Real* dipoles)
{
    OwnMoments<Real> own = moments_;
    own.dipoles.assign(dipoles, dipoles + (dipoles != nullptr ? 3 * charges_.size() : 0));
    set(this->charges(), std::move(own));
}

template<class Real>
void ChargeSet<Real>::setQuadrupoles(const Real* quadrupoles)
{
    OwnMoments<Real> own = moments_;
    own.quadrupoles.assign(quadrupoles,
                           quadrupoles + (quadrupoles != nullptr ? 6 * charges_.size() : 0));
    for (auto q = own.quadrupoles.begin(); q != own.quadrupoles.end(); q += 6)
    {
        const Real third = (q[0] + q[1] + q[2]) / 3;
        std::transform(q, q + 3, q, [third](Real value) { return value - third; });
    }
    set(this->charges(), std::move(own));
}

template<class Real>
void ChargeSet<Real>::set(std::vector<Real> charges, OwnMoments<Real> moments)
{
    const auto n = static_cast<int>(charges.size());
    std::vector<Real> strengths(moments.any() ? charges.size() : 0);
    for (size_t i = 0; i < strengths.size(); i++)
    {
        strengths[i] = strengthOf(charges[i], moments.view(), i);
    }
    const std::vector<Real>& strong = moments.any() ? strengths : charges;
    std::vector<char> isCharged(n);
    std::transform(strong.begin(),
                   strong.end(),
                   isCharged.begin(),
                   [](Real strength) { return strength != 0; });
    std::vector<char> takesPart = isCharged;
    const bool isOtherCount     = n != count_;
    ExcludedPairs none;
    none.offsets.assign(isOtherCount ? static_cast<size_t>(n) + 1 : 0, 0);
    ChargeSums sums(strong);
    if (moments.any())
    {
        sums.net = ChargeSums(charges).net;
    }
    const long long withPartners = isOtherCount ? 0 : countWithPartners(excluded_, isCharged);
    if (allTakePart_ && sums.charged > 0 && sums.charged < n)
    {
        takesPart.assign(n, 1);
    }
    try
    {
        giveToBackend(charges, moments.view(), strengths, takesPart);
    }
    catch (...)
    {
        tryAgainLater([this] { giveOwn(); });
        throw;
    }
    // nothing fails any more
    if (isOtherCount)
    {
        std::swap(excluded_, none);
        nearPairs_ = {};
        backend_->setNearPairs(nearPairs_);
    }
    charges_.swap(charges);
    fetch_ = nullptr;
    std::swap(moments_, moments);
    strengths_.swap(strengths);
    pairsStand_ = pairsStand_ && !isOtherCount && takesPart == takesPart_;
    count_      = n;
    isCharged_.swap(isCharged);
    takesPart_.swap(takesPart);
    withPartners_ = withPartners;
    sums_         = sums;
    // the charges are set
    tryAgainLater([this] { complete(); });
}

template<class Real>
void ChargeSet<Real>::giveToBackend(const std::vector<Real>& charges,
                                    const Moments<Real>& moments,
                                    const std::vector<Real>& strengths,
                                    const std::vector<char>& takesPart)
{
    std::vector<Real> own = charges;
    for (size_t i = 0; i < own.size(); i++)
    {
        // those that have a moment alone take part with an idle charge
        own[i] = takesPart[i] != 0 && own[i] == 0 ? static_cast<Real>(c_idleCharge<Real>) : own[i];
    }
    backend_->setCharges(own.data(), static_cast<int>(own.size()));
    isGiven_ = false;
    if (backendHasMoments_ || moments.any())
    {
        backend_->setMoments(moments, strengths.data());
        backendHasMoments_ = moments.any();
    }
    isGiven_ = true;
}

template<class Real>
void ChargeSet<Real>::lend(const std::vector<Real>& charges, const std::vector<Real>& dipoles)
{
    const std::vector<char> all(charges.size(), 1);
    giveToBackend(charges, { dipoles.data(), nullptr }, charges, all);
    isGiven_    = false;
    pairsStand_ = pairsStand_ && charged() > 0;
    if (charged() == 0)
    {
        backend_->setExclusions(excluded_.offsets.data(), excluded_.partners.data(), count_);
    }
}

template<class Real>
void ChargeSet<Real>::handBack()
{
    isGiven_ = false;
    tryAgainLater([this] { complete(); });
}

template<class Real>
void ChargeSet<Real>::letAllTakePart()
{
    if (allTakePart_)
    {
        return;
    }
    allTakePart_ = true;
    if (isMixed())
    {
        try
        {
            set(this->charges(), moments_);
        }
        catch (...)
        {
            allTakePart_ = false;
            throw;
        }
    }
}

template<class Real>
bool ChargeSet<Real>::areFew() const
{
    return count_ <= c_fewParticles;
}

template<class Real>
void ChargeSet<Real>::setExclusions(const int* offsets, const int* partners)
{
    ExcludedPairs all            = { { offsets, offsets + count_ + 1 },
                                     { partners, partners + offsets[count_] } };
    const long long withPartners = countWithPartners(all, isCharged_);
    handOver(all);
    std::swap(excluded_, all);
    withPartners_ = withPartners;
    pairsStand_   = true;
}

template<class Real>
void ChargeSet<Real>::setNearPairs(const NearPairs<Real>& pairs)
{
    NearPairs<Real> own = pairs;
    backend_->setNearPairs(pairs);
    std::swap(nearPairs_, own);
}

template<class Real>
void ChargeSet<Real>::complete()
{
    if (!isGiven_)
    {
        giveOwn();
    }
    if (!pairsStand_)
    {
        handOver(excluded_);
        pairsStand_ = true;
    }
}

template<class Real>
Occupancy ChargeSet<Real>::occupancy(const Real* x, const Mat3& box) const
{
    if (takingPart() == count_)
    {
        return Occupancy(x, count_, box);
    }
    std::vector<Real> charged;
    charged.reserve(3 * static_cast<size_t>(sums_.charged));
    for (int i = 0; i < count_; i++)
    {
        if (isCharged_[i])
        {
            const Real* r = x + 3 * static_cast<size_t>(i);
            charged.insert(charged.end(), r, r + 3);
        }
    }
    return Occupancy(charged.data(), static_cast<int>(sums_.charged), box);
}

template<class Real>
Vec3 ChargeSet<Real>::extent(const Real* x) const
{
    return checkedExtent(x, areChosenFor());
}

template<class Real>
double ChargeSet<Real>::spread(const Real* x, Boundary boundary) const
{
    std::vector<double> squares(charged(), 0.0), places;
    if (charged() == 0)
    {
        return 0;
    }
    for (int k = 0; k < 3; k++)
    {
        if (!isOpenAlong(boundary, k))
        {
            continue;
        }
        places.clear();
        for (int i = 0; i < count_; i++)
        {
            if (isCharged_[i])
            {
                places.push_back(static_cast<double>(x[3 * static_cast<size_t>(i) + k]));
            }
        }
        std::vector<double> sorted = places;
        const auto middle          = sorted.begin() + charged() / 2;
        std::nth_element(sorted.begin(), middle, sorted.end());
        for (size_t i = 0; i < places.size(); i++)
        {
            squares[i] += (places[i] - *middle) * (places[i] - *middle);
        }
    }
    const auto end = squares.end() - charged() / 10;
    std::nth_element(squares.begin(), end - 1, squares.end());
    const double sum = std::accumulate(squares.begin(), end, 0.0);
    return std::sqrt(sum / static_cast<double>(end - squares.begin()));
}

template<class Real>
void ChargeSet<Real>::handOver(const ExcludedPairs& pairs)
{
    const auto give = [this](const ExcludedPairs& p)
    { backend_->setExclusions(p.offsets.data(), p.partners.data(), count_); };
    if (std::find(takesPart_.begin(), takesPart_.end(), char(0)) == takesPart_.end())
    {
        give(pairs); // of a large group there need not be another copy
    }
    else
    {
        give(chargedPairs(pairs, takesPart_));
    }
}

template<class Real>
typename ChargeSet<Real>::PairsApart ChargeSet<Real>::pairsApart(const Real* x,
                                                                 const Mat3& box) const
{
    const MinimumImage image = MinimumImage::of(box);
    PairsApart result;
    double least = 0;
    for (int i = 0; i < count_; i++)
    {
        for (int k = excluded_.offsets[i]; k < excluded_.offsets[i + 1]; k++)
        {
            const int j = excluded_.partners[k];
            if (j == i || !isCharged_[i] || !isCharged_[j])
            {
                continue;
            }
            double dx[3];
            const double r2 = image.between(
                    x + 3 * static_cast<size_t>(i), x + 3 * static_cast<size_t>(j), dx);
            least = (result.count++ == 0) ? r2 : std::min(least, r2);
        }
    }
    result.shortest = std::sqrt(least);
    return result;
}

template class ChargeSet<float>;
template class ChargeSet<double>;

} // namespace farfield
