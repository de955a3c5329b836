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
    x_       = x;
    hasLeft_ = !isPlannedFor(d) || !areNearPlan(own);
    return hasLeft_ ? find(own) : -1;
}

template<class Real>
std::array<double, 3> Partition<Real>::Cells::of(const Real* x) const
{
    std::array<double, 3> u;
    for (int c = 0; c < 3; c++)
    {
        u[c] = static_cast<double>(x[0]) * toCells(0, c) + static_cast<double>(x[1]) * toCells(1, c)
               + static_cast<double>(x[2]) * toCells(2, c);
    }
    return u;
}

template<class Real>
bool Partition<Real>::areNearPlan(const OwnParticles<Real>& own) const
{
    const auto count = static_cast<int>(
            own.count() - std::count(own.charges.begin(), own.charges.end(), Real(0)));
    if (static_cast<size_t>(count) != takePart_.size()
        || plannedWhere_.size() != 3 * takePart_.size())
    {
        return false;
    }
    const Cells cells = { located_.leafGrid(box_).inverseEdges() };
    if (box_ == plannedBox_ && plannedX_.size() == 3 * own.charges.size())
    {
        // most evaluations end here: nobody has moved by more than this along any axis
        const auto little =
                static_cast<Real>(limit() / cells.toCells.cwiseAbs().colwise().sum().maxCoeff());
        const auto size = static_cast<long long>(plannedX_.size());
        int farther     = 0;
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(| : farther)
        for (long long j = 0; j < size; j++)
        {
            farther |= static_cast<int>(!(std::abs(x_[j] - plannedX_[j]) <= little));
        }
        if (farther == 0)
        {
            return true;
        }
    }
    int far = 0;
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(| : far)
    for (int k = 0; k < count; k++)
    {
        const auto u          = cells.of(x_ + 3 * static_cast<size_t>(takePart_[k]));
        const double* planned = &plannedWhere_[3 * static_cast<size_t>(k)];
        // true for what is not a number, too
        far |= static_cast<int>(!(std::abs(u[0] - planned[0]) <= limit()))
               | static_cast<int>(!(std::abs(u[1] - planned[1]) <= limit()))
               | static_cast<int>(!(std::abs(u[2] - planned[2]) <= limit()));
    }
    return far == 0;
}

template<class Real>
int Partition<Real>::find(const OwnParticles<Real>& own)
{
    takePart_.clear();
    for (int i = 0; i < own.count(); i++)
    {
        if (own.charges[i] != 0)
        {
            takePart_.push_back(i);
        }
    }
    const Cells cells = { located_.leafGrid(box_).inverseEdges() };
    const auto count  = static_cast<int>(takePart_.size());
    where_.resize(3 * takePart_.size());
    int lost = count;
#pragma omp parallel for schedule(static) num_threads(threads_) reduction(min : lost)
    for (int k = 0; k < count; k++)
    {
        const auto u = cells.of(x_ + 3 * static_cast<size_t>(takePart_[k]));
        for (int c = 0; c < 3; c++)
        {
            where_[3 * static_cast<size_t>(k) + c] = u[c];
            // as binPosition(), with room for the offset of the grid and the drift
            if (!(std::abs(u[c]) < 1e9 - 3))
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
    return hasLeft_ || !isPlannedFor(d);
}

template<class Real>
void Partition<Real>::plan(const OwnParticles<Real>& own)
{
    isPlanned_ = false;
    if (!hasLeft_)
    {
        find(own); // another rank's particles have left the plan
    }
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
    planned_    = located_;
    plannedBox_ = box_;
    plannedX_.assign(x_, x_ + 3 * own.charges.size());
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
