/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/partition.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel/neighbourhood.h"

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
    const auto count   = static_cast<int>(takePart_.size());
    where_.resize(3 * takePart_.size());
    int lost = count;
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(min : lost)
    for (int k = 0; k < count; k++)
    {
        const Real* r = x + 3 * static_cast<size_t>(takePart_[k]);
        for (int c = 0; c < 3; c++)
        {
            const double u = static_cast<double>(r[0]) * toCells(0, c)
                             + static_cast<double>(r[1]) * toCells(1, c)
                             + static_cast<double>(r[2]) * toCells(2, c);
            where_[3 * static_cast<size_t>(k) + c] = u;
            // as binPosition(), with room for the offset of the grid and the drift
            if (!(std::abs(u) < 1e9 - 3))
            {
                lost = std::min(lost, k);
            }
        }
    }
    return lost < count ? takePart_[lost] : -1;
}

template<class Real>
bool Partition<Real>::needsPlan(const Discretisation& d) const
{
    if (!isPlannedFor(d) || where_.size() != plannedWhere_.size())
    {
        return true;
    }
    double farthest  = 0;
    const auto count = static_cast<long long>(where_.size());
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(max : farthest)
    for (long long k = 0; k < count; k++)
    {
        farthest = std::max(farthest, std::abs(where_[k] - plannedWhere_[k]));
    }
    return farthest > limit();
}

template<class Real>
void Partition<Real>::plan(const OwnParticles<Real>& own)
{
    isPlanned_ = false;
    const Neighbourhood neighbourhood(located_, box_, drift_, threads_);
    const Reach& reach = neighbourhood.reach();
    const auto count   = static_cast<int>(takePart_.size());
    std::vector<int> places(count);
    std::vector<char> isHeld(reach.parts() * neighbourhood.leaf().count(), 0);
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (int k = 0; k < count; k++)
    {
        places[k] = reach.place(where_.data() + 3 * static_cast<size_t>(k));
    }
    for (const int place : places)
    {
        isHeld[place] = 1;
    }
    regions_ = neighbourhood.regions(isHeld, ranks_);
    ghosts_.plan(own, takePart_, places, regions_, neighbourhood, threads_, ranks_);
    planned_ = located_;
    std::swap(plannedWhere_, where_);
    isPlanned_ = true;
}

template<class Real>
void Partition<Real>::adopt(Regions regions, const Discretisation& d)
{
    regions_   = std::move(regions);
    planned_   = d;
    isPlanned_ = true;
}

template class Partition<float>;
template class Partition<double>;

} // namespace farfield
