/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/own_particles.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/hash.h"

namespace farfield
{

namespace
{

//! Sorts rows, and drops what is in them twice, and particles themselves.
void tidyRows(ExcludedPairs* pairs)
{
    size_t end = 0;
    for (size_t i = 0; i + 1 < pairs->offsets.size(); i++)
    {
        const auto first = pairs->partners.begin() + pairs->offsets[i];
        const auto last  = pairs->partners.begin() + pairs->offsets[i + 1];
        std::sort(first, last);
        pairs->offsets[i] = static_cast<int>(end);
        for (auto k = first; k != last; k++)
        {
            if (*k != static_cast<int>(i) && (k == first || *k != *(k - 1)))
            {
                pairs->partners[end++] = *k;
            }
        }
    }
    pairs->offsets.back() = static_cast<int>(end);
    pairs->partners.resize(end);
}

//! A pair, i then j, as a number.
std::uint64_t numberOf(size_t i, int j)
{
    return static_cast<std::uint64_t>(i) << 32 | static_cast<std::uint32_t>(j);
}

//! Throws if a pair of tidy rows is at one of its particles only.
void checkBothWays(const ExcludedPairs& pairs)
{
    const auto forPairs = [&](const auto& visit)
    {
        for (size_t i = 0; i + 1 < pairs.offsets.size(); i++)
        {
            for (int k = pairs.offsets[i]; k < pairs.offsets[i + 1]; k++)
            {
                visit(i, pairs.partners[k]);
            }
        }
    };
    std::uint64_t there = 0, back = 0;
    forPairs(
            [&](size_t i, int j)
            {
                there += mixed(numberOf(i, j));
                back += mixed(numberOf(j, static_cast<int>(i)));
            });
    if (there == back)
    {
        return;
    }
    forPairs(
            [&](size_t i, int j)
            {
                const auto row = pairs.partners.begin();
                if (!std::binary_search(row + pairs.offsets[j],
                                        row + pairs.offsets[j + 1],
                                        static_cast<int>(i)))
                {
                    throw Error(ErrorCode::InvalidArgument,
                                "Particle " + std::to_string(i) + " lists " + std::to_string(j)
                                        + " as excluded partner, but " + std::to_string(j)
                                        + " does not list " + std::to_string(i)
                                        + ". SystemOfRanks needs each pair at both particles.");
                }
            });
}

} // namespace

template<class Real>
WholeSystem<Real>::WholeSystem(const SystemOfRanks<Real>& system) :
    charges(system.charges, system.charges + system.count)
{
    const auto n = static_cast<size_t>(system.count);
    excluded.offsets.assign(n + 1, 0);
    if (system.exclusionOffsets == nullptr)
    {
        return;
    }
    excluded.offsets.assign(system.exclusionOffsets, system.exclusionOffsets + n + 1);
    excluded.partners.assign(system.exclusionPartners,
                             system.exclusionPartners + system.exclusionOffsets[n]);
    tidyRows(&excluded);
    checkBothWays(excluded);
}

std::uint64_t hashOfAll(int count)
{
    std::uint64_t sum = 0;
    for (int i = 0; i < count; i++)
    {
        sum += mixed(static_cast<std::uint64_t>(i));
    }
    return sum;
}

template<class Real>
void OwnParticles<Real>::setIndex(const int* which, int n, const WholeSystem<Real>& system)
{
    if (n < 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The number of particles of a rank, " + std::to_string(n)
                            + ", must not be negative.");
    }
    std::uint64_t sum = 0;
    for (const int* i = which; i != which + n; i++)
    {
        if (*i < 0 || *i >= system.count())
        {
            throw Error(ErrorCode::InvalidArgument,
                        "There is no particle " + std::to_string(*i) + " among the "
                                + std::to_string(system.count()) + " of the system.");
        }
        sum += mixed(static_cast<std::uint64_t>(*i));
    }
    index.assign(which, which + n);
    hash_ = sum;
}

template<class Real>
void OwnParticles<Real>::clear()
{
    index.clear();
    charges.clear();
    excluded = { { 0 }, {} };
    hash_    = 0;
}

template<class Real>
void OwnParticles<Real>::lookUp(const WholeSystem<Real>& system, int threads)
{
    const int n = count();
    charges.resize(n);
    excluded.offsets.assign(static_cast<size_t>(n) + 1, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        const int* row          = system.excluded.offsets.data() + index[i];
        charges[i]              = system.charges[index[i]];
        excluded.offsets[i + 1] = row[1] - row[0];
    }
    std::partial_sum(excluded.offsets.begin(), excluded.offsets.end(), excluded.offsets.begin());
    excluded.partners.resize(excluded.offsets.back());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        const int* row = system.excluded.offsets.data() + index[i];
        std::copy(system.excluded.partners.begin() + row[0],
                  system.excluded.partners.begin() + row[1],
                  excluded.partners.begin() + excluded.offsets[i]);
    }
}

template struct WholeSystem<float>;
template struct WholeSystem<double>;
template struct OwnParticles<float>;
template struct OwnParticles<double>;

} // namespace farfield
