/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/near_functions.h"

#include <algorithm>
#include <cmath>

#include "cells/excluded_pairs.h"

namespace farfield
{
namespace
{

//! From source to target, nm. That of the pair the other way round is its negative to the last bit.
template<class Real>
Vec3 displacementOf(const Particles<Real>& p, int i, int j, const Vec3& shift)
{
    return { static_cast<double>(p.x[i]) - static_cast<double>(p.x[j]) - shift[0],
             static_cast<double>(p.y[i]) - static_cast<double>(p.y[j]) - shift[1],
             static_cast<double>(p.z[i]) - static_cast<double>(p.z[j]) - shift[2] };
}

//! From a point to a target, nm.
template<class Real>
Vec3 displacementOf(const Particles<Real>& p, int i, const Vec3& point)
{
    return { static_cast<double>(p.x[i]) - point[0],
             static_cast<double>(p.y[i]) - point[1],
             static_cast<double>(p.z[i]) - point[2] };
}

} // namespace

template<class Real>
void NearFunctions<Real>::set(const NearPairs<Real>& pairs)
{
    NearPairs<Real> own = pairs;
    std::swap(pairs_, own);
    wholePairs_.clear();
}

template<class Real>
void NearFunctions<Real>::findNeighbours(const Grid& grid, Boundary boundary)
{
    // as in surelyNear(), a hundredth is left for rounding
    constexpr double c_margin = 1.01;
    const double range        = c_margin * pairs_.range;
    double reach              = std::ceil(range / smallestWidth(grid.inverseEdges()));
    if (boundary == Boundary::Open)
    {
        // no box bounds the range
        const IntMat& H = grid.H();
        reach = std::min<double>(reach, mostApart(std::max({ H[0][0], H[1][1], H[2][2] })));
    }
    double diagonal = 0;
    for (int corner = 0; corner < 4; corner++)
    {
        const Int3 across = { 1, (corner & 1) != 0 ? 1 : -1, (corner & 2) != 0 ? 1 : -1 };
        diagonal          = std::max(diagonal, grid.displacement(across).norm());
    }
    reach2_ = std::pow(range + 0.5 * c_margin * diagonal, 2);
    neighbours_.clear();
    for (const Int3& displacement : nearDisplacements(static_cast<int>(reach)))
    {
        bool isOne = true;
        for (int k = 0; k < 3; k++)
        {
            // beyond it a displacement leads to the particles of another one
            isOne = isOne
                    && !(isOpenAlong(boundary, k)
                         && std::abs(displacement[k]) > mostApart(grid.H()[k][k]));
        }
        const Vec3 shift = grid.displacement(displacement);
        if (isOne && shift.norm() < range + c_margin * diagonal)
        {
            neighbours_.push_back({ displacement, shift });
        }
    }
}

template<class Real>
void NearFunctions<Real>::sortWidths(const CellList<Real>& list)
{
    width_.resize(list.atom().size());
    wide_.clear();
    wideOf_.resize(list.start().size() - 1);
    for (const int cell : list.occupied())
    {
        wideOf_[cell].begin = static_cast<int>(wide_.size());
        for (int i = list.start()[cell]; i < list.start()[cell + 1]; i++)
        {
            width_[i] = static_cast<double>(pairs_.widths[list.atom()[i]]);
            if (width_[i] > 0)
            {
                wide_.push_back(i);
            }
        }
        wideOf_[cell].end = static_cast<int>(wide_.size());
    }
}

template<class Real>
void NearFunctions<Real>::compute(const CellList<Real>& list,
                                  const Grid& grid,
                                  Boundary boundary,
                                  int ws,
                                  const IsExcluded& isExcluded,
                                  bool potentials)
{
    //! Ranges of a thread: cells have unequal numbers of particles.
    constexpr int c_ranges = 8;
    findNeighbours(grid, boundary);
    sortWidths(list);
    surelyNear_    = surelyNear(grid, ws);
    const size_t n = list.atom().size();
    x_.resize(n);
    y_.resize(n);
    z_.resize(n);
    potential_.resize(potentials ? n : 0);
    const auto cells = static_cast<int>(list.occupied().size());
    sums_.resize(std::min(cells, c_ranges * team_.threads()));
    const auto ranges = static_cast<long long>(sums_.size());
    team_.forTasks(static_cast<int>(ranges),
                   [&](int range, int /*thread*/)
                   {
                       sums_[range] = {};
                       addCells(
                               list,
                               grid,
                               static_cast<int>(cells * static_cast<long long>(range) / ranges),
                               static_cast<int>(cells * static_cast<long long>(range + 1) / ranges),
                               isExcluded,
                               &sums_[range]);
                   });
    wholePairs_.clear();
    for (const Sums& own : sums_)
    {
        wholePairs_.insert(wholePairs_.end(), own.whole.begin(), own.whole.end());
    }
}

template<class Real>
void NearFunctions<Real>::addCells(const CellList<Real>& list,
                                   const Grid& grid,
                                   int begin,
                                   int end,
                                   const IsExcluded& isExcluded,
                                   Sums* sums)
{
    // the positions of P2P
    const bool isRelative   = !list.keepsGiven();
    const Particles<Real> p = isRelative ? list.particles() : list.given();
    const auto inCell       = list.particles();
    std::vector<Sources> sources;
    Found found;
    for (int k = begin; k < end; k++)
    {
        const int cell = list.occupied()[k];
        const Int3 c   = grid.cell(cell);
        sources.clear();
        for (const Neighbour& neighbour : neighbours_)
        {
            const Int3& D    = neighbour.displacement;
            const int source = grid.indexOfImage({ c[0] + D[0], c[1] + D[1], c[2] + D[2] });
            if (p.start[source] != p.start[source + 1])
            {
                sources.push_back({ { p.start[source], p.start[source + 1] },
                                    wideOf_[source],
                                    neighbour.shift,
                                    isRelative ? neighbour.shift : Vec3(Vec3::Zero()),
                                    D == Int3{ 0, 0, 0 } });
            }
        }
        for (int i = p.start[cell]; i < p.start[cell + 1]; i++)
        {
            PairSum sum;
            for (const Sources& from : sources)
            {
                if (displacementOf(inCell, i, from.centre).squaredNorm() > reach2_)
                {
                    continue;
                }
                find(p, i, from, &found);
                for (int n = 0; n < found.count; n++)
                {
                    const int j = found.inRange[n];
                    if (!(from.areOwn && i == j) && !isExcluded(p.atom[i], p.atom[j]))
                    {
                        addPair(p, i, j, from.shift, &sum, sums);
                    }
                }
            }
            x_[i] = static_cast<Real>(sum.force[0]);
            y_[i] = static_cast<Real>(sum.force[1]);
            z_[i] = static_cast<Real>(sum.force[2]);
            if (!potential_.empty())
            {
                potential_[i] = static_cast<Real>(sum.potential);
            }
        }
    }
}

template<class Real>
void NearFunctions<Real>::find(const Particles<Real>& p,
                               int i,
                               const Sources& from,
                               Found* found) const
{
    const bool needBoth = pairs_.function.rule == WidthRule::GeometricMean;
    const double range2 = pairs_.range * pairs_.range;
    const int first     = from.all.begin;
    const auto most     = static_cast<size_t>(from.all.end - first);
    found->count        = 0;
    if (found->inRange.size() < most)
    {
        found->inRange.resize(most);
        found->square.resize(most);
    }
    if (needBoth || width_[i] == 0)
    {
        for (int n = from.wide.begin; n < from.wide.end && (width_[i] > 0 || !needBoth); n++)
        {
            found->inRange[found->count] = wide_[n];
            found->count +=
                    displacementOf(p, i, wide_[n], from.shift).squaredNorm() < range2 ? 1 : 0;
        }
        return;
    }
    // without branches, as most are out of range
    double* const square = found->square.data();
    for (int j = first; j < from.all.end; j++)
    {
        square[j - first] = displacementOf(p, i, j, from.shift).squaredNorm();
    }
    for (int j = first; j < from.all.end; j++)
    {
        found->inRange[found->count] = j;
        found->count += square[j - first] < range2 ? 1 : 0;
    }
}

template<class Real>
void NearFunctions<Real>::addPair(const Particles<Real>& p,
                                  int i,
                                  int j,
                                  const Vec3& shift,
                                  PairSum* sum,
                                  Sums* sums) const
{
    const Vec3 d       = displacementOf(p, i, j, shift);
    const double r2    = d.squaredNorm();
    const double width = pairWidth<double>(pairs_.function.rule, width_[i], width_[j]);
    const bool isWhole = r2 < pairs_.wholeWithin2(width, surelyNear_);
    if (isWhole && p.atom[i] < p.atom[j])
    {
        sums->whole.emplace_back(p.atom[i], p.atom[j]);
    }
    const auto terms   = pairs_.terms(r2, width, isWhole);
    const double qj    = static_cast<double>(p.q[j]);
    const double qq    = static_cast<double>(p.q[i]) * qj;
    const double slope = qq * terms.slope;
    sum->force += slope * d;
    sum->potential += qj * terms.value;
    // half of a pair, as its other particle has the other half
    sums->energy += 0.5 * qq * terms.value;
    sums->virial[0] -= 0.25 * slope * d[0] * d[0];
    sums->virial[1] -= 0.25 * slope * d[1] * d[1];
    sums->virial[2] -= 0.25 * slope * d[2] * d[2];
    sums->virial[3] -= 0.25 * slope * d[0] * d[1];
    sums->virial[4] -= 0.25 * slope * d[0] * d[2];
    sums->virial[5] -= 0.25 * slope * d[1] * d[2];
}

template<class Real>
double NearFunctions<Real>::wholeWithin() const
{
    return std::sqrt(pairs_.wholeWithin2(pairs_.largest, surelyNear_));
}

template<class Real>
void NearFunctions<Real>::addSums(StageSums* sums) const
{
    for (const Sums& own : sums_)
    {
        sums->energyOfFunctions += own.energy;
        for (int c = 0; c < 6; c++)
        {
            sums->virialOfFunctions[c] += own.virial[c];
        }
    }
}

template<class Real>
void NearFunctions<Real>::addTo(int begin, int end, Real* fx, Real* fy, Real* fz, Real* potential)
        const
{
    for (int i = begin; i < end; i++)
    {
        fx[i] += x_[i];
        fy[i] += y_[i];
        fz[i] += z_[i];
        if (potential != nullptr)
        {
            potential[i] += potential_[i];
        }
    }
}

template class NearFunctions<float>;
template class NearFunctions<double>;

} // namespace farfield
