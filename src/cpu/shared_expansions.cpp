/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/shared_expansions.h"

#include <algorithm>

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

template<class Real>
void SharedExpansions<Real>::closeInShares(Level<Real>* own,
                                           PeriodicM2l<Real>* m2l,
                                           std::array<double, StrainCount>* virial,
                                           Ranks* ranks)
{
    const int n        = coefficients_;
    const int stride   = own->padded;
    const int all      = ranks->size();
    const auto first   = [&](int r) { return Share{ r, all }.begin(n); };
    const auto number  = [&](int r) { return static_cast<size_t>(Share{ r, all }.end(n) - first(r)); };
    const int me       = ranks->rank();
    const int begin    = first(me);
    const int end      = begin + static_cast<int>(number(me));
    const auto cellsOf = [&](int r) -> const std::vector<int>& { return regions_->cells(0, r); };

    // multipoles of our cells to those who have the coefficients
    out_.resize(all, [&](int r) { return number(r) * cellsOf(me).size(); });
    in_.resize(all, [&](int r) { return number(me) * cellsOf(r).size(); });
    for (int r = 0; r < all; r++)
    {
        Real* to = out_.begin(r);
        for (int i = first(r); i < first(r) + static_cast<int>(number(r)); i++)
        {
            const Real* M = own->M.data() + static_cast<size_t>(i) * stride;
            for (const int cell : cellsOf(me))
            {
                *to++ = M[own->slotOf[cell]];
            }
        }
    }
    ranks->exchange(out_, &in_);
    fields_.assign(number(me) * stride, Real(0));
    for (int r = 0; r < all; r++)
    {
        const Real* from = in_.begin(r);
        for (size_t i = 0; i < number(me); i++)
        {
            Real* field = fields_.data() + i * stride;
            for (const int cell : cellsOf(r))
            {
                field[own->slotOf[cell]] += *from++;
            }
        }
    }
    m2l->forward(fields_.data(), stride, begin, end);

    // the spectra of our coefficients to those who have the wave vectors, and the products back
    const size_t width = 2 * static_cast<size_t>(m2l->spectrumStride());
    for (int r = static_cast<int>(waves_.size()); r < all; r++)
    {
        waves_.push_back(m2l->waves(Share{ r, all }));
    }
    out_.resize(all, [&](int r) { return 2 * number(me) * waves_[r].size(); });
    in_.resize(all, [&](int r) { return 2 * number(r) * waves_[me].size(); });
    // calls f(numbers of a wave vector, coefficient by coefficient, both parts)
    const auto forSpectrum = [&](int coefficientsOf, int wavesOf, const auto& f)
    {
        for (int i = first(coefficientsOf);
             i < first(coefficientsOf) + static_cast<int>(number(coefficientsOf));
             i++)
        {
            for (const int w : waves_[wavesOf])
            {
                Real* at = m2l->spectrum() + i * width + 2 * static_cast<size_t>(w);
                f(at);
                f(at + 1);
            }
        }
    };
    const auto send = [&](bool forth)
    {
        for (int r = 0; r < all; r++)
        {
            Real* to = out_.begin(r);
            forSpectrum(forth ? me : r, forth ? r : me, [&](const Real* at) { *to++ = *at; });
        }
        ranks->exchange(out_, &in_);
        for (int r = 0; r < all; r++)
        {
            const Real* from = in_.begin(r);
            forSpectrum(forth ? r : me, forth ? me : r, [&](Real* at) { *at = *from++; });
        }
    };
    send(true);
    m2l->multiply(virial);
    std::swap(out_, in_);
    send(false);
    m2l->backward(fields_.data(), stride, begin, end);

    // local expansions of the coefficients that we have to those who have the cells
    out_.resize(all, [&](int r) { return number(me) * cellsOf(r).size(); });
    in_.resize(all, [&](int r) { return number(r) * cellsOf(me).size(); });
    for (int r = 0; r < all; r++)
    {
        Real* to = out_.begin(r);
        for (size_t i = 0; i < number(me); i++)
        {
            for (const int cell : cellsOf(r))
            {
                *to++ = fields_[i * stride + own->slotOf[cell]];
            }
        }
    }
    ranks->exchange(out_, &in_);
    std::fill(own->L.begin(), own->L.end(), Real(0));
    for (int r = 0; r < all; r++)
    {
        const Real* from = in_.begin(r);
        for (int i = first(r); i < first(r) + static_cast<int>(number(r)); i++)
        {
            Real* L = own->L.data() + static_cast<size_t>(i) * stride;
            for (const int cell : cellsOf(me))
            {
                L[own->slotOf[cell]] = *from++;
            }
        }
    }
}

template class SharedExpansions<float>;
template class SharedExpansions<double>;

} // namespace farfield
