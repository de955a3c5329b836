/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Expansions of cells side by side, for translations of many cells at once.
 */
#ifndef FARFIELD_CPU_CELL_COLUMNS_H
#define FARFIELD_CPU_CELL_COLUMNS_H

#include <algorithm>
#include <vector>

#include "base/team.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"

namespace farfield
{

//! Expansions of a set of cells, copied side by side: [coefficients][columns].
template<class Real>
class Columns
{
public:
    //! Room for count columns; the padding behind them is zero.
    Columns(int coefficients, size_t count) { resize(coefficients, count); }
    void resize(int coefficients, size_t count)
    {
        rows_    = coefficients;
        columns_ = static_cast<int>((count + c_slotPadding - 1) / c_slotPadding * c_slotPadding);
        values_.resize(static_cast<size_t>(rows_) * columns_);
    }

    int rows() const { return rows_; }
    int columns() const { return columns_; }
    Real* row(int i) { return values_.data() + static_cast<size_t>(i) * columns_; }
    const Real* row(int i) const { return values_.data() + static_cast<size_t>(i) * columns_; }

    //! Takes the expansions in the given slots of a coefficient-major array.
    void gather(const AlignedVector<Real>& from, int padded, const std::vector<int>& slots)
    {
        for (int i = 0; i < rows_; i++)
        {
            const Real* in = from.data() + static_cast<size_t>(i) * padded;
            Real* out      = row(i);
            for (size_t b = 0; b < slots.size(); b++)
            {
                out[b] = in[slots[b]];
            }
            std::fill(out + slots.size(), out + columns_, Real(0));
        }
    }
    //! Adds them to the given slots.
    void scatterAdd(const std::vector<int>& slots, int padded, AlignedVector<Real>* to) const
    {
        if (slots.empty())
        {
            return; // of a rank without particles
        }
        const int given = static_cast<int>(to->size() / padded);
        for (int i = 0; i < std::min(rows_, given); i++)
        {
            const Real* in = row(i);
            Real* out      = to->data() + static_cast<size_t>(i) * padded;
            for (size_t b = 0; b < slots.size(); b++)
            {
                out[slots[b]] += in[b];
            }
        }
    }
    //! Rows from first on = T from.
    void transform(const AlignedVector<Real>& T, const Columns& from, int first = 0)
    {
        cpuKernels<Real>().transform(T.data(),
                                     static_cast<int>(T.size()) / from.rows_,
                                     from.rows_,
                                     from.values_.data(),
                                     columns_,
                                     row(first));
    }
    void addToRow(int i, double value)
    {
        for (int b = 0; b < columns_; b++)
        {
            row(i)[b] += static_cast<Real>(value);
        }
    }
    //! Scalar product of a row with one of another set.
    double dot(int i, const Columns& other, int j) const
    {
        return static_cast<double>(cpuKernels<Real>().dot(row(i), other.row(j), columns_));
    }
    double sum(int i) const
    {
        double total = 0;
        for (int c = 0; c < columns_; c++)
        {
            total += static_cast<double>(row(i)[c]);
        }
        return total;
    }

private:
    int rows_ = 0, columns_ = 0;
    AlignedVector<Real> values_;
};

//! Slots of cells and of their parents, of which no two are the same.
struct Family
{
    std::vector<int> children, parents;

    //! Those of the parents [begin, end) with children in one octant.
    template<class Real>
    void
    ofParents(const Level<Real>& child, const Level<Real>& parent, int octant, int begin, int end)
    {
        children.clear();
        parents.clear();
        for (int slot = begin; slot < end; slot++)
        {
            const int own = child.slotAt(childOf(parent.cells[slot], octant));
            if (own >= 0)
            {
                children.push_back(own);
                parents.push_back(slot);
            }
        }
    }
    //! Those of the children [begin, end) that are in one octant.
    template<class Real>
    void
    ofChildren(const Level<Real>& child, const Level<Real>& parent, int octant, int begin, int end)
    {
        children.clear();
        parents.clear();
        for (int slot = begin; slot < end; slot++)
        {
            if (octantOf(child.cells[slot]) == octant)
            {
                children.push_back(slot);
                parents.push_back(parent.slotAt(parentOf(child.cells[slot])));
            }
        }
    }
};

//! Cells that a thread takes at a time: all threads have as many, and operands stay in the cache.
inline int stretchOfCells(int cells, int threads)
{
    constexpr int c_most = 512;
    const int rounds     = (cells + c_most * threads - 1) / (c_most * threads);
    const int parts      = std::max(1, rounds) * threads;
    const int each       = (cells + parts - 1) / parts;
    // no cache line belongs to two threads
    return std::max(1, (each + c_slotPadding - 1) / c_slotPadding) * c_slotPadding;
}

//! The number of these stretches.
inline int stretchCount(int cells, int threads)
{
    const int stretch = stretchOfCells(cells, threads);
    return (cells + stretch - 1) / stretch;
}

//! Calls work(begin, end, stretch) for all stretches of cells, by all threads.
template<class Work>
void forStretches(int cells, Team* team, const Work& work)
{
    const int stretch = stretchOfCells(cells, team->threads());
    team->forTasks(stretchCount(cells, team->threads()),
                   [&](int k, int /*thread*/)
                   { work(k * stretch, std::min(cells, (k + 1) * stretch), k); });
}
//! Sets [begin, end) of each row of a coefficient-major array to zero.
template<class Real>
void clearSlots(int begin, int end, int padded, AlignedVector<Real>* values)
{
    for (size_t row = 0; row < values->size(); row += padded)
    {
        std::fill(values->begin() + row + begin, values->begin() + row + end, Real(0));
    }
}

//! The end of a stretch of cells, with the padding behind the last.
template<class Real>
int paddedEnd(const Level<Real>& level, int end)
{
    return end == static_cast<int>(level.cells.size()) ? level.padded : end;
}

} // namespace farfield

#endif
