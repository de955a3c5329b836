/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace farfield
{

template<class Real>
int Partition<Real>::locate(const OwnParticles<Real>& own,
                            const Real* x,
                            const Discretisation& d,
                            const Mat3& box)
{
    located_ = d;
    box_     = box;
    takePart_.clear();
    for (int i = 0; i < own.count(); i++)
    {
        if (own.charges[i] != 0)
        {
            takePart_.push_back(i);
        }
    }
    for (int i = 0; takePart_.empty() && i < own.count(); i++)
    {
        takePart_.push_back(i); // as ScaledCharges has it
    }
    const Mat3 toCells = d.leafGrid(box).inverseEdges();
    where_.resize(3 * takePart_.size());
    for (size_t k = 0; k < takePart_.size(); k++)
    {
        const Real* r = x + 3 * static_cast<size_t>(takePart_[k]);
        for (int c = 0; c < 3; c++)
        {
            const double u = static_cast<double>(r[0]) * toCells(0, c)
                             + static_cast<double>(r[1]) * toCells(1, c)
                             + static_cast<double>(r[2]) * toCells(2, c);
            where_[3 * k + c] = u;
            // as binPosition(), with room for the offset of the grid and the drift
            if (!(std::abs(u) < 1e9 - 2))
            {
                return takePart_[k];
            }
        }
    }
    return -1;
}

template<class Real>
bool Partition<Real>::needsPlan(const Discretisation& d) const
{
    if (!isPlannedFor(d) || where_.size() != plannedWhere_.size())
    {
        return true;
    }
    double farthest = 0;
    for (size_t k = 0; k < where_.size(); k++)
    {
        farthest = std::max(farthest, std::abs(where_[k] - plannedWhere_[k]));
    }
    // a hundredth for rounding: cells are found from these coordinates in another way
    return farthest > 0.99 * drift_;
}

template<class Real>
std::vector<Real> Partition<Real>::plannedWhere(int own) const
{
    std::vector<Real> all(3 * static_cast<size_t>(own), std::numeric_limits<Real>::quiet_NaN());
    for (size_t k = 0; k < takePart_.size(); k++)
    {
        for (int c = 0; c < 3; c++)
        {
            all[3 * static_cast<size_t>(takePart_[k]) + c] =
                    static_cast<Real>(plannedWhere_[3 * k + c]);
        }
    }
    return all;
}

template<class Real>
void Partition<Real>::plan(const OwnParticles<Real>& own)
{
    isPlanned_      = false;
    const Grid leaf = located_.leafGrid(box_);
    std::vector<char> isReached(leaf.count(), 0);
    for (size_t k = 0; k < takePart_.size(); k++)
    {
        forReachedCells(
                leaf, where_.data() + 3 * k, drift_, [&](int cell) { isReached[cell] = 1; });
    }
    std::vector<int> cells;
    for (size_t cell = 0; cell < isReached.size(); cell++)
    {
        if (isReached[cell])
        {
            cells.push_back(static_cast<int>(cell));
        }
    }
    regions_ = Regions(located_, box_, ranks_->gather(cells));
    ghosts_.plan(own, takePart_, where_, regions_, located_.ws, drift_, ranks_);
    planned_      = located_;
    plannedWhere_ = where_;
    isPlanned_    = true;
}

template class Partition<float>;
template class Partition<double>;

} // namespace farfield
