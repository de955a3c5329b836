/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/near_functions.h"

#include <algorithm>
#include <cmath>

#include "cells/excluded_pairs.h"
#include "plan/cost_model.h"

namespace farfield
{
namespace
{

//! What inverseWidth() takes of a width that is not 0. \param[in] w  nm
template<class Real>
Real widthTerm(WidthRule rule, Real w)
{
    return rule == WidthRule::RootSumSquare   ? w * w
           : rule == WidthRule::GeometricMean ? 1 / std::sqrt(w)
                                              : w;
}

} // namespace

template<class Real>
void NearFunctions<Real>::set(const NearPairs<Real>& pairs)
{
    NearPairs<Real> own = pairs;
    std::swap(pairs_, own);
    wholePairs_.clear();
    parts_.clear();
}

template<class Real>
void NearFunctions<Real>::findDisplacements(const Grid& grid, Boundary boundary)
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
    displacements_      = nearDisplacements(static_cast<int>(reach));
    const auto isTooFar = [&](const Int3& D)
    {
        bool isOther = false;
        for (int k = 0; k < 3; k++)
        {
            // beyond it a displacement leads to the particles of another one
            isOther = isOther
                      || (isOpenAlong(boundary, k) && std::abs(D[k]) > mostApart(grid.H()[k][k]));
        }
        return isOther || !(grid.displacement(D).norm() < range + c_margin * diagonal);
    };
    displacements_.erase(std::remove_if(displacements_.begin(), displacements_.end(), isTooFar),
                         displacements_.end());
    task_.displacements = &displacements_;
}

template<class Real>
void NearFunctions<Real>::sortWidths(const CellList<Real>& list)
{
    //! Widths below it are those of no pair, and would overflow, nm.
    constexpr Real c_least = 1e-12;
    // vectors may read behind the last particle
    width_.assign(list.atom().size() + 2 * c_slotPadding, Real(0));
    wide_.assign(list.start().size() - 1, 0);
    constexpr int c_grain = 256;
    team_.forRanges(static_cast<int>(list.occupied().size()),
                    c_grain,
                    [&](int begin, int end)
                    {
                        for (int k = begin; k < end; k++)
                        {
                            const int cell = list.occupied()[k];
                            for (int i = list.start()[cell]; i < list.start()[cell + 1]; i++)
                            {
                                const Real w = pairs_.widths[list.atom()[i]];
                                if (w > 0)
                                {
                                    wide_[cell]++;
                                    width_[i] =
                                            widthTerm(pairs_.function.rule, std::max(w, c_least));
                                }
                            }
                        }
                    });
    task_.width = width_.data();
    task_.wide  = wide_.data();
}

template<class Real>
void NearFunctions<Real>::findExcluded(const Exclusions<Real>& exclusions, int particles)
{
    task_.excluded = {};
    if (exclusions.count() == 0)
    {
        return;
    }
    for (auto& room : rooms_)
    {
        room.place.assign(particles, -1);
    }
    const ExcludedPairs& excluded = exclusions.bothWays();
    task_.excluded                = { excluded.offsets.data(), excluded.partners.data() };
}

template<class Real>
void NearFunctions<Real>::prepare(const CellList<Real>& list,
                                  const Grid& grid,
                                  Boundary boundary,
                                  int ws)
{
    task_            = {};
    task_.isRelative = !list.keepsGiven();
    task_.particles  = task_.isRelative ? list.particles() : list.given();
    task_.cells      = list.occupied().data();
    task_.grid       = &grid;
    surelyNear_      = surelyNear(grid, ws);
    task_.function   = pairs_.function;
    task_.range2     = static_cast<Real>(pairs_.range * pairs_.range);
    task_.whole      = static_cast<Real>(pairs_.whole);
    task_.whole2     = static_cast<Real>(wholeWithin() * wholeWithin());
    findDisplacements(grid, boundary);
    sortWidths(list);
}

template<class Real>
void NearFunctions<Real>::compute(const CellList<Real>& list,
                                  const Grid& grid,
                                  Boundary boundary,
                                  int ws,
                                  const Exclusions<Real>& exclusions,
                                  const Request& request,
                                  bool potentials)
{
    prepare(list, grid, boundary, ws);
    task_.virial      = request.virial;
    task_.potentials  = potentials;
    const auto cells  = static_cast<long long>(list.occupied().size());
    const auto ranges = std::min<long long>(cells, mostNearRanges(team_.threads()));
    parts_.resize(ranges);
    rooms_.resize(ranges);
    findExcluded(exclusions, list.particlesGiven());
    team_.forTasks(static_cast<int>(ranges),
                   [&](int range, int /*thread*/)
                   {
                       NearForces<Real>* forces = &parts_[range];
                       forces->resize(static_cast<int>(list.atom().size()), potentials);
                       rooms_[range].whole.clear();
                       cpuKernels<Real>().nearFunction(
                               task_,
                               static_cast<int>(cells * range / ranges),
                               static_cast<int>(cells * (range + 1) / ranges),
                               &rooms_[range],
                               forces);
                       addWhole(task_.particles, rooms_[range].whole, forces);
                   });
    wholePairs_.clear();
    for (const auto& room : rooms_)
    {
        for (const WholePair& pair : room.whole)
        {
            wholePairs_.push_back(std::minmax(list.atom()[pair.target], list.atom()[pair.source]));
        }
    }
}

template<class Real>
void NearFunctions<Real>::addWhole(const Particles<Real>& p,
                                   const std::vector<WholePair>& pairs,
                                   NearForces<Real>* forces) const
{
    for (const auto& [i, j, d] : pairs)
    {
        const double width = pairs_.width(p.atom[i], p.atom[j]);
        const auto terms =
                pairTerms(pairs_.function.function, d[0] * d[0] + d[1] * d[1] + d[2] * d[2], width);
        const double qi  = static_cast<double>(p.q[i]);
        const double qj  = static_cast<double>(p.q[j]);
        const double F[] = { qi * qj * terms.slope * d[0],
                             qi * qj * terms.slope * d[1],
                             qi * qj * terms.slope * d[2] };
        Real* const at[] = { forces->x.get(), forces->y.get(), forces->z.get() };
        for (int k = 0; k < 3; k++)
        {
            at[k][i] += static_cast<Real>(F[k]);
            at[k][j] -= static_cast<Real>(F[k]);
            forces->virial[k] -= 0.5 * d[k] * F[k];
        }
        forces->virial[3] -= 0.5 * d[0] * F[1];
        forces->virial[4] -= 0.5 * d[0] * F[2];
        forces->virial[5] -= 0.5 * d[1] * F[2];
        forces->energy += qi * qj * terms.value;
        if (task_.potentials)
        {
            forces->potential[i] += static_cast<Real>(qj * terms.value);
            forces->potential[j] += static_cast<Real>(qi * terms.value);
        }
    }
}

template<class Real>
double NearFunctions<Real>::wholeWithin() const
{
    return std::sqrt(pairs_.wholeWithin2(pairs_.largest, surelyNear_));
}

template<class Real>
void NearFunctions<Real>::addSums(StageSums* sums) const
{
    for (const auto& own : parts_)
    {
        sums->energyOfFunctions += own.energy;
        for (int c = 0; c < 6; c++)
        {
            sums->virialOfFunctions[c] += own.virial[c];
        }
    }
}

template class NearFunctions<float>;
template class NearFunctions<double>;

} // namespace farfield
