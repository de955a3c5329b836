/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/ghosts.h"

#include <algorithm>
#include <numeric>
#include <string>

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

//! Calls f(particle, index of a partner) for the excluded partners of those that have a charge.
template<class Real, class Function>
void forPartners(const OwnParticles<Real>& own, const Function& f)
{
    for (int i = 0; i < own.count(); i++)
    {
        for (int k = own.excluded.offsets[i];
             own.charges[i] != 0 && k < own.excluded.offsets[i + 1];
             k++)
        {
            f(i, own.excluded.partners[k]);
        }
    }
}

void sortUnique(std::vector<int>* values)
{
    std::sort(values->begin(), values->end());
    values->erase(std::unique(values->begin(), values->end()), values->end());
}

} // namespace

template<class Real>
int Ghosts<Real>::find(const Directory& directory, int index)
{
    const auto at = std::lower_bound(directory.begin(), directory.end(), std::make_pair(index, 0));
    return at != directory.end() && at->first == index ? at->second : -1;
}

template<class Real>
std::vector<std::vector<int>> Ghosts<Real>::nearOthers(const std::vector<int>& takePart,
                                                       const std::vector<double>& u,
                                                       const Regions& regions,
                                                       int ws,
                                                       double drift,
                                                       const Ranks& ranks)
{
    const int leaf   = regions.levels() - 1;
    const Grid& grid = regions.grid(leaf);
    std::vector<std::vector<int>> sent(ranks.size());
    std::vector<char> isNear;
    for (int r = 0; r < ranks.size(); r++)
    {
        if (r == ranks.rank() || regions.cells(leaf, r).empty())
        {
            continue;
        }
        markNear(grid, regions.cells(leaf, r), ws, &isNear);
        for (size_t k = 0; k < takePart.size(); k++)
        {
            bool reaches = false;
            forReachedCells(grid,
                            u.data() + 3 * k,
                            drift,
                            [&](int cell) { reaches = reaches || isNear[cell]; });
            if (reaches)
            {
                sent[r].push_back(takePart[k]);
            }
        }
    }
    return sent;
}

template<class Real>
void Ghosts<Real>::addPartners(const OwnParticles<Real>& own,
                               const Directory& directory,
                               std::vector<std::vector<int>>* sent,
                               Ranks* ranks)
{
    std::vector<int> wanted;
    forPartners(own,
                [&](int /*particle*/, int partner)
                {
                    if (find(directory, partner) < 0)
                    {
                        wanted.push_back(partner);
                    }
                });
    sortUnique(&wanted);
    const ByRank<int> wantedBy = ranks->gather(wanted);
    std::vector<int> found;
    for (int r = 0; r < ranks->size(); r++)
    {
        for (const int* index = wantedBy.begin(r); index != wantedBy.end(r); index++)
        {
            const int particle = find(directory, *index);
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
                    "Of " + std::to_string(all.size()) + " excluded partners on other ranks "
                            + std::to_string(everywhere) + " were found there.");
    }
}

template<class Real>
void Ghosts<Real>::setExcluded(const OwnParticles<Real>& own, const Directory& all)
{
    excluded_.partners.clear();
    // counts, then where rows end
    excluded_.offsets.assign(static_cast<size_t>(own.count()) + count() + 1, 0);
    forPartners(own,
                [&](int particle, int partner)
                {
                    excluded_.partners.push_back(find(all, partner));
                    excluded_.offsets[particle + 1]++;
                });
    std::partial_sum(excluded_.offsets.begin(), excluded_.offsets.end(), excluded_.offsets.begin());
}

template<class Real>
void Ghosts<Real>::plan(const OwnParticles<Real>& own,
                        const std::vector<int>& takePart,
                        const std::vector<double>& u,
                        const Regions& regions,
                        int ws,
                        double drift,
                        Ranks* ranks)
{
    Directory directory;
    for (int i = 0; i < own.count(); i++)
    {
        directory.emplace_back(own.index[i], i);
    }
    std::sort(directory.begin(), directory.end());
    std::vector<std::vector<int>> sent = nearOthers(takePart, u, regions, ws, drift, *ranks);
    addPartners(own, directory, &sent, ranks);
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
    for (const Introduction& ghost : ghosts.values)
    {
        directory.emplace_back(ghost.index, own.count() + count());
        charges_.push_back(ghost.charge);
    }
    std::sort(directory.begin(), directory.end());
    setExcluded(own, directory);
}

template<class Real>
void Ghosts<Real>::exchange(const Real* x, int own, std::vector<Real>* all, Ranks* ranks)
{
    all->resize(3 * (static_cast<size_t>(own) + count()));
    std::copy_n(x, 3 * static_cast<size_t>(own), all->begin());
    packed_.resize(3 * sent_.values.size());
    for (size_t k = 0; k < sent_.values.size(); k++)
    {
        std::copy_n(x + 3 * static_cast<size_t>(sent_.values[k]), 3, packed_.begin() + 3 * k);
    }
    ranks->exchange(packed_.data(),
                    ofPositions(sent_.offsets),
                    all->data() + 3 * static_cast<size_t>(own),
                    ofPositions(offsets_));
}

template class Ghosts<float>;
template class Ghosts<double>;

} // namespace farfield
