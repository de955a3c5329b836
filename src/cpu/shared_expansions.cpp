/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/shared_expansions.h"

#include <algorithm>
#include <utility>

namespace farfield
{
namespace
{

//! Lists of cells for all ranks. \param[in] cellsOf  (rank)
template<class Cells>
ByRank<int> cellsByRank(const Ranks& ranks, const Cells& cellsOf)
{
    std::vector<std::vector<int>> lists;
    for (int r = 0; r < ranks.size(); r++)
    {
        lists.push_back(r == ranks.rank() ? std::vector<int>() : cellsOf(r));
    }
    ByRank<int> all;
    all.resize(ranks.size(), [&](int r) { return lists[r].size(); });
    for (int r = 0; r < ranks.size(); r++)
    {
        std::copy(lists[r].begin(), lists[r].end(), all.begin(r));
    }
    return all;
}

} // namespace

template<class Real>
void SharedExpansions<Real>::plan(const Regions* regions,
                                  int ws,
                                  int coefficients,
                                  const Ranks& ranks)
{
    regions_      = regions;
    coefficients_ = coefficients;
    waves_.clear();
    slots_.clear();
    passed_.clear();
    passed_.resize(regions->levels());
    const int me = ranks.rank();
    std::vector<char> isNear;
    for (int level = 1; level < regions->levels(); level++)
    {
        const Grid& parents = regions->grid(level - 1);
        Passed& passed      = passed_[level];
        passed.sent         = cellsByRank(ranks,
                                  [&](int r)
                                  {
                                      markNear(parents, regions->cells(level - 1, r), ws, &isNear);
                                      return regions->cellsUnder(level, me, isNear);
                                  });
        markNear(parents, regions->cells(level - 1, me), ws, &isNear);
        passed.received =
                cellsByRank(ranks, [&](int r) { return regions->cellsUnder(level, r, isNear); });
        std::vector<int> sources = passed.received.values;
        std::sort(sources.begin(), sources.end());
        sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
        for (const int cell : sources)
        {
            passed.sources.push_back(regions->grid(level).cell(cell));
        }
    }
}

template<class Real>
void SharedExpansions<Real>::complete(int level,
                                      const Level<Real>& own,
                                      Level<Real>* sources,
                                      Ranks* ranks)
{
    const Passed& passed = passed_[level];
    const auto n         = static_cast<size_t>(coefficients_);
    out_.resize(ranks->size(), [&](int r) { return n * passed.sent.count(r); });
    in_.resize(ranks->size(), [&](int r) { return n * passed.received.count(r); });
    for (size_t k = 0; k < passed.sent.values.size(); k++)
    {
        const int slot = own.slotOf[passed.sent.values[k]];
        for (size_t i = 0; i < n; i++)
        {
            out_.values[k * n + i] = slot < 0 ? Real(0) : own.M[i * own.padded + slot];
        }
    }
    ranks->exchange(out_, &in_);

    sources->grid           = own.grid;
    std::vector<Int3> cells = own.cells;
    for (const Int3& c : passed.sources)
    {
        if (own.slotOf[own.grid.index(c)] < 0)
        {
            cells.push_back(c);
        }
    }
    sources->setCells(std::move(cells), coefficients_);
    std::fill(sources->M.begin(), sources->M.end(), Real(0));
    // our cells come first, in the same order
    for (size_t i = 0; i < n; i++)
    {
        std::copy_n(own.M.begin() + i * own.padded,
                    own.cells.size(),
                    sources->M.begin() + i * sources->padded);
    }
    for (size_t k = 0; k < passed.received.values.size(); k++)
    {
        const int slot = sources->slotOf[passed.received.values[k]];
        for (size_t i = 0; i < n; i++)
        {
            sources->M[i * sources->padded + slot] += in_.values[k * n + i];
        }
    }
}

template<class Real>
void SharedExpansions<Real>::close(Level<Real>* own,
                                   PeriodicM2l<Real>* m2l,
                                   std::array<double, StrainCount>* virial,
                                   Ranks* ranks)
{
    if (regions_->levels() > 1)
    {
        closeAlike(own, m2l, virial, ranks);
    }
    else
    {
        closeInShares(own, m2l, virial, ranks);
    }
}

template<class Real>
void SharedExpansions<Real>::closeAlike(Level<Real>* own,
                                        PeriodicM2l<Real>* m2l,
                                        std::array<double, StrainCount>* virial,
                                        Ranks* ranks)
{
    const auto n                     = static_cast<size_t>(coefficients_);
    const size_t stride              = own->padded;
    const std::vector<int>& ourCells = regions_->cells(0, ranks->rank());
    out_.resize(ranks->size(), [&](int /*rank*/) { return n * ourCells.size(); });
    in_.resize(ranks->size(), [&](int r) { return n * regions_->cells(0, r).size(); });
    for (int r = 0; r < ranks->size(); r++)
    {
        Real* to = out_.begin(r);
        for (const int cell : ourCells)
        {
            for (size_t i = 0; i < n; i++)
            {
                *to++ = own->M[i * stride + own->slotOf[cell]];
            }
        }
    }
    ranks->exchange(out_, &in_);
    fields_.assign(n * stride, Real(0));
    for (int r = 0; r < ranks->size(); r++)
    {
        const Real* from = in_.begin(r);
        for (const int cell : regions_->cells(0, r))
        {
            for (size_t i = 0; i < n; i++)
            {
                fields_[i * stride + own->slotOf[cell]] += *from++;
            }
        }
    }
    m2l->apply(fields_.data(),
               own->L.data(),
               static_cast<int>(stride),
               ranks->rank() == 0 ? virial : nullptr);
}

Places::Places(std::vector<int> indices) : count_(indices.size())
{
    std::sort(indices.begin(), indices.end());
    for (const int i : indices)
    {
        if (runs_.empty() || runs_.back().first + runs_.back().second != i)
        {
            runs_.emplace_back(i, 0);
        }
        runs_.back().second++;
    }
}

template<class Real>
void SharedExpansions<Real>::planShares(const Level<Real>& own, const PeriodicM2l<Real>& m2l, int ranks)
{
    for (int r = 0; r < ranks; r++)
    {
        waves_.emplace_back(m2l.waves(Share{ r, ranks }));
        std::vector<int> slots;
        for (const int cell : regions_->cells(0, r))
        {
            slots.push_back(own.slotOf[cell]);
        }
        slots_.emplace_back(std::move(slots));
    }
}

template<class Real>
void SharedExpansions<Real>::closeInShares(Level<Real>* own,
                                           PeriodicM2l<Real>* m2l,
                                           std::array<double, StrainCount>* virial,
                                           Ranks* ranks)
{
    const int all       = ranks->size();
    const int me        = ranks->rank();
    const size_t stride = own->padded;
    if (waves_.empty())
    {
        planShares(*own, *m2l, all);
    }
    // the coefficients of a rank
    const auto first  = [&](int r) { return Share{ r, all }.begin(coefficients_); };
    const auto number = [&](int r)
    { return static_cast<size_t>(Share{ r, all }.end(coefficients_) - first(r)); };
    // Room for what goes to others, and comes from them; nothing is sent to oneself.
    const auto makeRoom = [&](const auto& sent, const auto& received)
    {
        out_.resize(all, [&](int r) { return r == me ? 0 : sent(r); });
        in_.resize(all, [&](int r) { return r == me ? 0 : received(r); });
    };
    const auto forOthers = [&](const auto& f)
    {
        for (int r = 0; r < all; r++)
        {
            if (r != me)
            {
                f(r);
            }
        }
    };

    // multipoles of our cells to those who have the coefficients
    makeRoom([&](int r) { return number(r) * slots_[me].count(); },
             [&](int r) { return number(me) * slots_[r].count(); });
    forOthers(
            [&](int r)
            {
                Real* to      = out_.begin(r);
                const Real* M = own->M.data() + first(r) * stride;
                for (size_t i = 0; i < number(r); i++, M += stride)
                {
                    to = slots_[me].pack(M, 1, to);
                }
            });
    ranks->exchange(out_, &in_);
    fields_.assign(own->M.begin() + first(me) * stride,
                   own->M.begin() + (first(me) + number(me)) * stride);
    forOthers(
            [&](int r)
            {
                const Real* from = in_.begin(r);
                Real* field      = fields_.data();
                for (size_t i = 0; i < number(me); i++, field += stride)
                {
                    from = slots_[r].add(from, field);
                }
            });
    const int begin = first(me), end = begin + static_cast<int>(number(me));
    m2l->forward(fields_.data(), static_cast<int>(stride), begin, end);

    // the spectra of our coefficients to those who have the wave vectors, and the products back
    const size_t width  = 2 * static_cast<size_t>(m2l->spectrumStride());
    const auto spectrum = [&](int coefficientsOf) { return m2l->spectrum() + first(coefficientsOf) * width; };
    const auto pack     = [&](int coefficientsOf, int wavesOf, Real* to)
    {
        const Real* from = spectrum(coefficientsOf);
        for (size_t i = 0; i < number(coefficientsOf); i++, from += width)
        {
            to = waves_[wavesOf].pack(from, 2, to);
        }
    };
    const auto unpack = [&](int coefficientsOf, int wavesOf, const Real* from)
    {
        Real* to = spectrum(coefficientsOf);
        for (size_t i = 0; i < number(coefficientsOf); i++, to += width)
        {
            from = waves_[wavesOf].unpack(from, 2, to);
        }
    };
    const auto ofOurs   = [&](int r) { return 2 * number(me) * waves_[r].count(); };
    const auto ofOthers = [&](int r) { return 2 * number(r) * waves_[me].count(); };
    makeRoom(ofOurs, ofOthers);
    forOthers([&](int r) { pack(me, r, out_.begin(r)); });
    ranks->exchange(out_, &in_);
    forOthers([&](int r) { unpack(r, me, in_.begin(r)); });
    m2l->multiply(virial);
    makeRoom(ofOthers, ofOurs);
    forOthers([&](int r) { pack(r, me, out_.begin(r)); });
    ranks->exchange(out_, &in_);
    forOthers([&](int r) { unpack(me, r, in_.begin(r)); });
    m2l->backward(fields_.data(), static_cast<int>(stride), begin, end);

    // local expansions of the coefficients that we have to those who have the cells
    makeRoom([&](int r) { return number(me) * slots_[r].count(); },
             [&](int r) { return number(r) * slots_[me].count(); });
    forOthers(
            [&](int r)
            {
                Real* to          = out_.begin(r);
                const Real* field = fields_.data();
                for (size_t i = 0; i < number(me); i++, field += stride)
                {
                    to = slots_[r].pack(field, 1, to);
                }
            });
    ranks->exchange(out_, &in_);
    // cells without particles of ours keep what they have, which nothing of ours meets
    std::copy(fields_.begin(), fields_.end(), own->L.begin() + first(me) * stride);
    forOthers(
            [&](int r)
            {
                const Real* from = in_.begin(r);
                Real* L          = own->L.data() + first(r) * stride;
                for (size_t i = 0; i < number(r); i++, L += stride)
                {
                    from = slots_[me].unpack(from, 1, L);
                }
            });
}

template class SharedExpansions<float>;
template class SharedExpansions<double>;

} // namespace farfield
