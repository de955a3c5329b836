/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/cpu_kernel_evaluation.h"

#include <algorithm>
#include <cmath>

namespace farfield
{
template<class Real>
CpuKernelEvaluation<Real>::CpuKernelEvaluation(const PairKernel& kernel,
                                               const KernelPlan& plan,
                                               const Region& region,
                                               double accuracy,
                                               PointsOnCpu<Real>* points,
                                               Team* team) :
    KernelEvaluation<Real>(plan, region),
    points_(*points), kernel_(kernel), isPeriodic_(region.isPeriodic), team_(*team),
    far_(kernel, plan, region, accuracy, team), near_(nearDisplacements(plan.ws)),
    rooms_(team->threads())
{
    setRegion(region);
}

template<class Real>
void CpuKernelEvaluation<Real>::setRegion(const Region& region)
{
    const LeafFrame frame = region.leaves(this->plan());
    unit_                 = frame.unit();
    leafCounts_           = frame.counts;
    law_                  = lawOf<Real>(kernel_, unit_);
    const Mat3 edges      = frame.edges / unit_;
    double longest        = 0;
    shifts_.clear();
    for (const Int3& D : near_)
    {
        shifts_.push_back(edges.transpose() * Vec3(D[0], D[1], D[2]));
        longest = std::max(longest, shifts_.back().norm());
    }
    nowhere_ = static_cast<Real>(4 * longest);
}

template<class Real>
bool CpuKernelEvaluation<Real>::adoptBox(const Region& region)
{
    if (!far_.adopt(region))
    {
        return false;
    }
    setRegion(region);
    return true;
}

template<class Real>
void CpuKernelEvaluation<Real>::stage(const Int3& cell,
                                      const SortedPoints<Real>& sources,
                                      const AlignedVector<Real>& q,
                                      int sets,
                                      Room* room) const
{
    // places first: arrays are as long as they have to be
    room->cells.clear();
    int count = 0;
    for (int k = 0; k < static_cast<int>(near_.size()); k++)
    {
        Int3 c            = cell;
        const bool inside = moveInside(near_[k], leafCounts_, isPeriodic_, &c);
        const int place   = inside ? sources.find(c) : -1;
        if (place >= 0)
        {
            room->cells.push_back({ place, k, count });
            count += sources.points(place).count;
        }
    }
    room->staged = (count + c_stagePadding - 1) / c_stagePadding * c_stagePadding;
    for (AlignedVector<Real>* component : { &room->x, &room->y, &room->z })
    {
        component->assign(room->staged, 2 * nowhere_);
    }
    room->q.assign(static_cast<size_t>(sets) * room->staged, Real(0));
    for (const auto& [place, k, to] : room->cells)
    {
        const CellPoints<Real> points = sources.points(place);
        const int first               = sources.start()[place];
        const Real shift[3]           = { static_cast<Real>(shifts_[k][0]),
                                          static_cast<Real>(shifts_[k][1]),
                                          static_cast<Real>(shifts_[k][2]) };
        for (int i = 0; i < points.count; i++)
        {
            room->x[to + i] = points.x[i] + shift[0];
            room->y[to + i] = points.y[i] + shift[1];
            room->z[to + i] = points.z[i] + shift[2];
        }
        for (int s = 0; s < sets; s++)
        {
            const Real* from = q.data() + static_cast<size_t>(s) * sources.count() + first;
            std::copy_n(from,
                        points.count,
                        room->q.data() + static_cast<size_t>(s) * room->staged + to);
        }
    }
}

template<class Real>
void CpuKernelEvaluation<Real>::subtract(const LeftOutOfCell& pairs,
                                         const PointSystem<Real>& system,
                                         std::vector<double>* sums,
                                         double* virials) const
{
    for (const auto& [target, source, d] : pairs.far)
    {
        const double r = d.norm();
        const double g = kernel_.value(r), f = -kernel_.slope(r) / r;
        for (int s = 0; s < system.sets; s++)
        {
            const auto charge = [&](int i)
            { return static_cast<double>(system.q[static_cast<size_t>(i) * system.sets + s]); };
            const auto sum = [&](int k) -> double&
            { return (*sums)[(static_cast<size_t>(s) * 4 + k) * system.results() + target]; };
            sum(0) -= charge(source) * g;
            for (int k = 0; k < 3; k++)
            {
                sum(1 + k) -= charge(source) * f * d[k];
            }
            for (int k = 0; virials != nullptr && k < 6; k++)
            {
                virials[6 * s + k] += 0.25 * charge(target) * charge(source) * f
                                      * d[c_strains[k][0]] * d[c_strains[k][1]];
            }
        }
    }
}

template<class Real>
void CpuKernelEvaluation<Real>::addPairs(const Points& points,
                                         std::vector<double>* sums,
                                         std::vector<double>* virials)
{
    constexpr int c_together          = 8;
    const PointSystem<Real>& system   = points.system;
    const SortedPoints<Real>& sources = points.sources;
    const SortedPoints<Real>& targets = points.targets;
    const int cells                   = static_cast<int>(targets.cells().size());
    const int tasks                   = (cells + c_together - 1) / c_together;
    const int own                     = &sources == &targets ? 0 : -1;
    const int sets                    = system.sets;
    const int results                 = virials == nullptr ? 4 : c_resultsWithStrain;
    // in an order that does not depend on threads
    const size_t perTask = virials == nullptr ? 0 : 6 * static_cast<size_t>(sets);
    std::vector<double> ofTasks(tasks * perTask, 0);
    const auto work = [&](int task, int thread)
    {
        Room& room     = rooms_[thread];
        double* virial = virials == nullptr ? nullptr : ofTasks.data() + task * perTask;
        for (int c = task * c_together; c < std::min(cells, (task + 1) * c_together); c++)
        {
            const CellPoints<Real> here = targets.points(c);
            const int stride            = here.count;
            room.sums.assign(static_cast<size_t>(sets) * results * stride, Real(0));
            stage(targets.cells()[c], sources, points.q, sets, &room);
            PairTask<Real> pairs{ &law_,
                                  here,
                                  room.x.data(),
                                  room.y.data(),
                                  room.z.data(),
                                  room.q.data(),
                                  room.staged,
                                  sets,
                                  own,
                                  nowhere_,
                                  room.sums.data(),
                                  stride,
                                  virials != nullptr };
            if (system.leftOut != nullptr)
            {
                findLeftOut(*system.leftOut,
                            points.shortest,
                            system.x,
                            sources,
                            points.sortedOf,
                            c,
                            unit_,
                            room.cells,
                            { room.x.data(), room.y.data(), room.z.data() },
                            &room.leftOut);
                pairs.awayStart = room.leftOut.awayStart.data();
                pairs.away      = room.leftOut.away.data();
                subtract(room.leftOut, system, sums, virial);
            }
            pointKernels<Real>().pairs(pairs);
            const int first = targets.start()[c];
            for (int s = 0; s < sets; s++)
            {
                const Real* of = room.sums.data() + static_cast<size_t>(s) * results * stride;
                addScaled(of, law_.factor, targets, c, s, sums);
                for (int k = 0; virial != nullptr && k < 6; k++)
                {
                    double sum = 0;
                    for (int i = 0; i < here.count; i++)
                    {
                        sum += static_cast<double>(
                                       points.q[static_cast<size_t>(s) * system.n + first + i])
                               * static_cast<double>(of[static_cast<size_t>(4 + k) * stride + i]);
                    }
                    virial[6 * s + k] -= 0.25 * law_.factor * sum;
                }
            }
        }
    };
    team_.forTasks(tasks, work);
    for (size_t i = 0; i < ofTasks.size(); i++)
    {
        (*virials)[i % perTask] += ofTasks[i];
    }
}

template<class Real>
void CpuKernelEvaluation<Real>::addScaled(const Real* from,
                                          double factor,
                                          const SortedPoints<Real>& targets,
                                          int place,
                                          int set,
                                          std::vector<double>* sums) const
{
    const int first  = targets.start()[place];
    const int stride = targets.points(place).count;
    for (int k = 0; k < 4; k++)
    {
        double* to         = sums->data() + (static_cast<size_t>(set) * 4 + k) * targets.count();
        const double scale = k == 0 ? factor : factor / unit_;
        for (int i = 0; i < stride; i++)
        {
            to[targets.order()[first + i]] +=
                    scale * static_cast<double>(from[static_cast<size_t>(k) * stride + i]);
        }
    }
}

template<class Real>
void CpuKernelEvaluation<Real>::addExpansions(const Points& points,
                                              int set,
                                              std::vector<double>* sums)
{
    constexpr int c_together          = 8;
    const SortedPoints<Real>& targets = points.targets;
    const int cells                   = static_cast<int>(targets.cells().size());
    team_.forTasks(
            (cells + c_together - 1) / c_together,
            [&](int task, int thread)
            {
                Room& room              = rooms_[thread];
                const Level<Real>& leaf = far_.leaves();
                for (int c = task * c_together; c < std::min(cells, (task + 1) * c_together); c++)
                {
                    const CellPoints<Real> here = targets.points(c);
                    const int slot              = leaf.slotAt(targets.cells()[c]);
                    room.sums.assign(static_cast<size_t>(4) * here.count, Real(0));
                    room.expansion.resize(far_.coefficients());
                    for (int a = 0; a < far_.coefficients(); a++)
                    {
                        room.expansion[a] = leaf.L[static_cast<size_t>(a) * leaf.padded + slot];
                    }
                    pointKernels<Real>().fromLocals(far_.polynomials(),
                                                    here,
                                                    room.expansion.data(),
                                                    room.sums.data(),
                                                    here.count);
                    addScaled(room.sums.data(), far_.expansionFactor(), targets, c, set, sums);
                }
            });
}

template<class Real>
void CpuKernelEvaluation<Real>::evaluate(const Region& region, bool wantsVirials)
{
    const PointSystem<Real>& system = points_.system;
    const LeafFrame frame           = region.leaves(this->plan());
    std::vector<double>& sums       = points_.sums;
    sums.assign(static_cast<size_t>(system.sets) * 4 * system.results(), 0);
    points_.virials.assign(wantsVirials ? 6 * static_cast<size_t>(system.sets) : 0, 0);
    std::vector<double>* virials = wantsVirials ? &points_.virials : nullptr;
    if (wantsVirials && far_.isAnything())
    {
        far_.makeDerivatives();
    }
    team_.together(
            [&]
            {
                SortedPoints<Real> sources, others;
                sources.sort(system.x, system.n, "particle", frame, &team_);
                if (!system.areOwn())
                {
                    others.sort(system.at, system.points, "point", frame, &team_);
                }
                AlignedVector<Real> q(static_cast<size_t>(system.sets) * system.n + c_stagePadding,
                                      Real(0));
                for (int s = 0; s < system.sets; s++)
                {
                    for (int i = 0; i < system.n; i++)
                    {
                        q[static_cast<size_t>(s) * system.n + i] =
                                system.q[static_cast<size_t>(sources.order()[i]) * system.sets + s];
                    }
                }
                std::vector<int> sortedOf(system.leftOut == nullptr ? 0 : system.n);
                for (size_t i = 0; i < sortedOf.size(); i++)
                {
                    sortedOf[sources.order()[i]] = static_cast<int>(i);
                }
                const ShortestImages shortest(region.box, isPeriodic_);
                const Points points{ system, sources,  system.areOwn() ? sources : others,
                                     q,      sortedOf, shortest };
                addPairs(points, &sums, virials);
                if (!far_.isAnything())
                {
                    return;
                }
                far_.setCells(sources, points.targets);
                for (int s = 0; s < system.sets; s++)
                {
                    far_.upwards(sources, q.data() + static_cast<size_t>(s) * system.n);
                    if (virials != nullptr)
                    {
                        far_.addVirial(virials->data() + 6 * static_cast<size_t>(s));
                    }
                    far_.downwards();
                    addExpansions(points, s, &sums);
                }
            });
}

template class CpuKernelEvaluation<float>;
template class CpuKernelEvaluation<double>;

} // namespace farfield
