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
    return joined(lists);
}

} // namespace

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
    fieldStride_ =
            static_cast<size_t>((regions->grid(0).count() + c_slotPadding - 1) / c_slotPadding)
            * c_slotPadding;
    for (int r = 0; r < ranks.size(); r++)
    {
        slots_.emplace_back(regions->slots(r));
    }
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
Real* SharedExpansions<Real>::packRows(const Real* rows,
                                       size_t stride,
                                       size_t count,
                                       size_t length,
                                       Real* to)
{
    for (size_t i = 0; i < count; i++)
    {
        to = std::copy_n(rows + i * stride, length, to);
    }
    return to;
}

template<class Real>
void SharedExpansions<Real>::addToFields(const Real* rows,
                                         size_t stride,
                                         size_t count,
                                         const Places& cells)
{
    for (size_t i = 0; i < count; i++)
    {
        cells.add(rows + i * stride, fields_.data() + i * fieldStride_);
    }
}

template<class Real>
void SharedExpansions<Real>::closeAlike(Level<Real>* own,
                                        PeriodicM2l<Real>* m2l,
                                        std::array<double, StrainCount>* virial,
                                        Ranks* ranks)
{
    const auto n       = static_cast<size_t>(coefficients_);
    const int me       = ranks->rank();
    const size_t cells = slots_[me].count();
    out_.resize(ranks->size(), [&](int r) { return r == me ? 0 : n * cells; });
    in_.resize(ranks->size(), [&](int r) { return r == me ? 0 : n * slots_[r].count(); });
    for (int r = 0; r < ranks->size(); r++)
    {
        if (r != me)
        {
            packRows(own->M.data(), own->padded, n, cells, out_.begin(r));
        }
    }
    ranks->exchange(out_, &in_);
    fields_.assign(n * fieldStride_, Real(0));
    for (int r = 0; r < ranks->size(); r++)
    {
        // in the order of ranks, so that all have the same sums
        if (r == me)
        {
            addToFields(own->M.data(), own->padded, n, slots_[me]);
        }
        else
        {
            addToFields(in_.begin(r), slots_[r].count(), n, slots_[r]);
        }
    }
    locals_.resize(fields_.size());
    m2l->apply(fields_.data(),
               locals_.data(),
               static_cast<int>(fieldStride_),
               ranks->rank() == 0 ? virial : nullptr);
    for (size_t i = 0; i < n; i++)
    {
        slots_[me].pack(locals_.data() + i * fieldStride_, 1, own->L.data() + i * own->padded);
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
    const size_t cells  = slots_[me].count();
    for (int r = static_cast<int>(waves_.size()); r < all; r++)
    {
        waves_.emplace_back(m2l->waves(Share{ r, all }));
    }
    // the coefficients of a rank
    const auto first  = [&](int r) { return Share{ r, all }.begin(coefficients_); };
    const auto number = [&](int r) {
        return static_cast<size_t>(Share{ r, all }.end(coefficients_) - first(r));
    };
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
    makeRoom([&](int r) { return number(r) * cells; },
             [&](int r) { return number(me) * slots_[r].count(); });
    forOthers(
            [&](int r) {
                packRows(
                        own->M.data() + first(r) * stride, stride, number(r), cells, out_.begin(r));
            });
    ranks->exchange(out_, &in_);
    fields_.assign(number(me) * fieldStride_, Real(0));
    addToFields(own->M.data() + first(me) * stride, stride, number(me), slots_[me]);
    forOthers([&](int r) { addToFields(in_.begin(r), slots_[r].count(), number(me), slots_[r]); });
    const int begin = first(me), end = begin + static_cast<int>(number(me));
    m2l->forward(fields_.data(), static_cast<int>(fieldStride_), begin, end);

    // the spectra of our coefficients to those who have the wave vectors, and the products back
    const size_t width  = 2 * static_cast<size_t>(m2l->spectrumStride());
    const auto spectrum = [&](int coefficientsOf)
    { return m2l->spectrum() + first(coefficientsOf) * width; };
    const auto pack = [&](int coefficientsOf, int wavesOf, Real* to)
    {
        for (size_t i = 0; i < number(coefficientsOf); i++)
        {
            to = waves_[wavesOf].pack(spectrum(coefficientsOf) + i * width, 2, to);
        }
    };
    const auto unpack = [&](int coefficientsOf, int wavesOf, const Real* from)
    {
        for (size_t i = 0; i < number(coefficientsOf); i++)
        {
            from = waves_[wavesOf].unpack(from, 2, spectrum(coefficientsOf) + i * width);
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
    m2l->backward(fields_.data(), static_cast<int>(fieldStride_), begin, end);

    // local expansions of the coefficients that we have to those who have the cells
    makeRoom([&](int r) { return number(me) * slots_[r].count(); },
             [&](int r) { return number(r) * cells; });
    forOthers(
            [&](int r)
            {
                Real* to = out_.begin(r);
                for (size_t i = 0; i < number(me); i++)
                {
                    to = slots_[r].pack(fields_.data() + i * fieldStride_, 1, to);
                }
            });
    ranks->exchange(out_, &in_);
    for (size_t i = 0; i < number(me); i++)
    {
        slots_[me].pack(
                fields_.data() + i * fieldStride_, 1, own->L.data() + (first(me) + i) * stride);
    }
    forOthers(
            [&](int r)
            {
                for (size_t i = 0; i < number(r); i++)
                {
                    std::copy_n(in_.begin(r) + i * cells,
                                cells,
                                own->L.data() + (first(r) + i) * stride);
                }
            });
}

template class SharedExpansions<float>;
template class SharedExpansions<double>;

} // namespace farfield
