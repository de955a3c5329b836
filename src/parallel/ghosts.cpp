/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/ghosts.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/threads.h"

namespace farfield
{
namespace
{

//! Three numbers for each element.
std::vector<size_t> ofPositions(const std::vector<size_t>& offsets)
{
    std::vector<size_t> three(offsets.size());
    std::transform(offsets.begin(), offsets.end(), three.begin(), [](size_t o) { return 3 * o; });
    return three;
}

void sortUnique(std::vector<int>* values)
{
    std::sort(values->begin(), values->end());
    values->erase(std::unique(values->begin(), values->end()), values->end());
}

} // namespace

template<class Real>
std::vector<std::vector<int>> Ghosts<Real>::nearOthers(const std::vector<int>& takePart,
                                                       const std::vector<int>& places,
                                                       const Regions& regions,
                                                       const Neighbourhood& neighbourhood,
                                                       const Ranks& ranks)
{
    std::vector<std::vector<int>> sent(ranks.size());
    for (int r = 0; r < ranks.size(); r++)
    {
        if (r == ranks.rank())
        {
            continue;
        }
        const std::vector<char> reaches = neighbourhood.placesNear(regions, r);
        for (size_t k = 0; k < takePart.size() && !reaches.empty(); k++)
        {
            if (reaches[places[k]])
            {
                sent[r].push_back(takePart[k]);
            }
        }
    }
    return sent;
}

template<class Real>
void Ghosts<Real>::addPartners(const OwnParticles<Real>& own,
                               int threads,
                               std::vector<std::vector<int>>* sent,
                               Ranks* ranks)
{
    partners_.resize(own.excluded.partners.size());
    elsewhere_.clear();
    FirstException failure;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < own.count(); i++)
    {
        for (int k = own.excluded.offsets[i]; k < own.excluded.offsets[i + 1]; k++)
        {
            partners_[k] = directory_.find(own.excluded.partners[k]);
            if (partners_[k] < 0 && own.charges[i] != 0) // few are elsewhere
            {
#pragma omp critical(farfieldPartnersElsewhere)
                failure.run([&] { elsewhere_.push_back(k); });
            }
        }
    }
    failure.rethrow();
    std::vector<int> wanted;
    for (const int k : elsewhere_)
    {
        wanted.push_back(own.excluded.partners[k]);
    }
    sortUnique(&wanted);
    const ByRank<int> wantedBy = ranks->gather(wanted);
    std::vector<int> found;
    for (int r = 0; r < ranks->size(); r++)
    {
        for (const int* index = wantedBy.begin(r); index != wantedBy.end(r); index++)
        {
            const int particle = directory_.find(*index);
            if (particle >= 0 && r != ranks->rank())
            {
                (*sent)[r].push_back(particle);
                found.push_back(*index);
            }
        }
        sortUnique(&(*sent)[r]);
    }
    // every index that is wanted is found by whoever has it
    sortUnique(&found);
    std::vector<int> all = wantedBy.values;
    sortUnique(&all);
    const auto everywhere = ranks->sum(static_cast<long long>(found.size()));
    if (everywhere != static_cast<long long>(all.size()))
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::to_string(all.size())
                            + " excluded partners have to be on other ranks, but "
                            + std::to_string(everywhere)
                            + " were found there. Put every particle on exactly one rank.");
    }
}

template<class Real>
void Ghosts<Real>::setExcluded(const OwnParticles<Real>& own, int threads)
{
    const int n          = own.count();
    const auto isCharged = [&](int particle)
    { return (particle < n ? own.charges[particle] : charges_[particle - n]) != 0; };
    // calls f(partner) for those of a particle
    const auto forCharged = [&](int particle, const auto& f)
    {
        for (int k = own.excluded.offsets[particle];
             own.charges[particle] != 0 && k < own.excluded.offsets[particle + 1];
             k++)
        {
            if (isCharged(partners_[k]))
            {
                f(partners_[k]);
            }
        }
    };
    // counts, then where rows end; those of ghosts are empty
    excluded_.offsets.assign(static_cast<size_t>(n) + count() + 1, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        forCharged(i, [&](int /*partner*/) { excluded_.offsets[i + 1]++; });
    }
    std::partial_sum(excluded_.offsets.begin(), excluded_.offsets.end(), excluded_.offsets.begin());
    excluded_.partners.resize(excluded_.offsets.back());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        int next = excluded_.offsets[i];
        forCharged(i, [&](int partner) { excluded_.partners[next++] = partner; });
    }
}

template<class Real>
void Ghosts<Real>::plan(const OwnParticles<Real>& own,
                        const std::vector<int>& takePart,
                        const std::vector<int>& places,
                        const Regions& regions,
                        const Neighbourhood& neighbourhood,
                        int threads,
                        Ranks* ranks)
{
    std::vector<std::vector<int>> sent =
            nearOthers(takePart, places, regions, neighbourhood, *ranks);
    directory_.clear();
    directory_.add(own.index);
    addPartners(own, threads, &sent, ranks);
    sent_ = joined(sent);

    ByRank<Introduction> introductions;
    introductions.resize(ranks->size(), [&](int r) { return sent_.count(r); });
    for (size_t k = 0; k < sent_.values.size(); k++)
    {
        const int i             = sent_.values[k];
        introductions.values[k] = { own.index[i], own.charges[i] };
    }
    const ByRank<Introduction> ghosts = ranks->exchangeAny(introductions);
    offsets_                          = ghosts.offsets;
    charges_.clear();
    std::vector<int> index;
    for (const Introduction& ghost : ghosts.values)
    {
        index.push_back(ghost.index);
        charges_.push_back(ghost.charge);
    }
    directory_.add(index);
    for (const int k : elsewhere_)
    {
        partners_[k] = directory_.find(own.excluded.partners[k]);
    }
    setExcluded(own, threads);
}

template<class Real>
void Ghosts<Real>::exchange(const Real* x, int own, std::vector<Real>* all, Ranks* ranks)
{
    all->resize(3 * (static_cast<size_t>(own) + count()));
    std::copy_n(x, 3 * static_cast<size_t>(own), all->begin());
    packed_.resize(3 * sent_.values.size());
    for (size_t k = 0; k < sent_.values.size(); k++)
    {
        const Real* r      = x + 3 * static_cast<size_t>(sent_.values[k]);
        packed_[3 * k]     = r[0]; // copy_n() would call a function for each
        packed_[3 * k + 1] = r[1];
        packed_[3 * k + 2] = r[2];
    }
    ranks->exchange(packed_.data(),
                    ofPositions(sent_.offsets),
                    all->data() + 3 * static_cast<size_t>(own),
                    ofPositions(offsets_));
}

template class Ghosts<float>;
template class Ghosts<double>;

} // namespace farfield
