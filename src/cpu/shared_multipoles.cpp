/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/shared_multipoles.h"

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

template<class Real>
void SharedMultipoles<Real>::plan(const Regions* regions,
                                  int ws,
                                  int coefficients,
                                  const Ranks& ranks)
{
    regions_      = regions;
    coefficients_ = coefficients;
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
    divided_.plan(&slots_, fieldStride_, coefficients);
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
void SharedMultipoles<Real>::complete(int level,
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
void SharedMultipoles<Real>::close(Level<Real>* own,
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
        divided_.close(own, m2l, virial, ranks);
    }
}

template<class Real>
void SharedMultipoles<Real>::closeAlike(Level<Real>* own,
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
            Real* to = out_.begin(r);
            for (size_t i = 0; i < n; i++)
            {
                to = std::copy_n(own->M.data() + i * own->padded, cells, to);
            }
        }
    }
    ranks->exchange(out_, &in_);
    fields_.assign(n * fieldStride_, Real(0));
    for (int r = 0; r < ranks->size(); r++)
    {
        // in the order of ranks, so that all have the same sums
        const Real* from    = r == me ? own->M.data() : in_.begin(r);
        const size_t stride = r == me ? own->padded : slots_[r].count();
        for (size_t i = 0; i < n; i++)
        {
            slots_[r].add(from + i * stride, fields_.data() + i * fieldStride_);
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

template class SharedMultipoles<float>;
template class SharedMultipoles<double>;

} // namespace farfield
