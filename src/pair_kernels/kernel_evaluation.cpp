/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_evaluation.h"

#include <algorithm>
#include <cmath>

namespace farfield
{
namespace
{

std::vector<Int3> parentsOf(const std::vector<Int3>& cells)
{
    std::vector<Int3> parents;
    for (const Int3& c : cells)
    {
        if (parents.empty() || parents.back() != parentOf(c))
        {
            parents.push_back(parentOf(c));
        }
    }
    return parents;
}

//! Both lists of cells in one, in Morton order.
std::vector<Int3> merged(const std::vector<Int3>& a, const std::vector<Int3>& b)
{
    std::vector<Int3> all;
    std::set_union(a.begin(),
                   a.end(),
                   b.begin(),
                   b.end(),
                   std::back_inserter(all),
                   [](const Int3& c, const Int3& d) { return mortonKey(c) < mortonKey(d); });
    return all;
}

//! Part of the accuracy that is left for the second derivatives of strained operators.
constexpr double c_errorOfStrain = 100; // accuracy of operators is a thousandth of that of fields

} // namespace

template<class Real>
KernelEvaluation<Real>::KernelEvaluation(const PairKernel& kernel,
                                         const KernelPlan& plan,
                                         const Region& region,
                                         double accuracy,
                                         Team* team) :
    kernel_(kernel),
    plan_(plan), box_(region.box), reference_(region.box), accuracy_(accuracy),
    isPeriodic_(region.isPeriodic), team_(*team), basis_(plan.degree),
    near_(nearDisplacements(plan.ws)), levels_(plan.levels), tree_(basis_.count(), team),
    rooms_(team->threads())
{
    polynomials_.degree = plan.degree;
    setRegion(region);
    std::array<Matrix, 8> up, down;
    for (int octant = 0; octant < 8; octant++)
    {
        up[octant]   = basis_.childToParent(octant);
        down[octant] = std::pow(0.5, kernel.exponent()) * up[octant].transpose();
    }
    tree_.setTranslations(up, down);
    if (isPeriodic_)
    {
        const Grid& grid = levels_[0].grid;
        std::vector<Int3> all(grid.count()); // in the order of the transform
        for (int k = 0; k < grid.count(); k++)
        {
            all[grid.slot(grid.cell(k))] = grid.cell(k);
        }
        levels_[0].setCells(std::move(all), basis_.count());
        waves_ = WaveVectors(grid);
        std::array<std::vector<Real>, 4> signs;
        for (int copy = 0; copy < waves_.copies(); copy++)
        {
            const auto ofCopy = basis_.signs(axesOfCopy(copy));
            signs[copy].assign(ofCopy.begin(), ofCopy.end());
        }
        convolution_ = std::make_unique<CellConvolution<Real>>(
                grid, waves_, basis_.degrees(), std::move(signs), team);
    }
    std::vector<FarOperators> operators = makeOperators(1);
    lists_                              = std::move(operators[0].lists);
    if (isPeriodic_)
    {
        convolution_->packed() = std::move(operators[0].waves);
    }
}

template<class Real>
std::vector<typename KernelEvaluation<Real>::FarOperators>
KernelEvaluation<Real>::makeOperators(int derivatives) const
{
    std::vector<FarOperators> all(derivatives);
    const int n = kernel_.exponent();
    for (FarOperators& of : all)
    {
        of.lists.resize(plan_.levels);
    }
    for (int l = 1; l < plan_.levels; l++)
    {
        // those of r^-n are the same on all levels
        const bool isNew = n == 0 || l == 1;
        const Grid& grid = levels_[l].grid;
        auto ofLevel =
                isNew ? kernelOperators<Real>(basis_,
                                              kernel_,
                                              operatorScale_,
                                              n > 0 ? Mat3(grid.scaledEdges()) : grid.edges(),
                                              plan_.ws,
                                              derivatives,
                                              team_.threads())
                      : std::vector<Operators>(derivatives);
        for (int k = 0; k < derivatives; k++)
        {
            all[k].lists[l] = isNew ? std::make_shared<const Operators>(std::move(ofLevel[k]))
                                    : all[k].lists[1];
        }
    }
    if (isPeriodic_)
    {
        const Grid& grid = levels_[0].grid;
        const PeriodicKernelSums sums(basis_,
                                      kernel_,
                                      n > 0 ? Grid(grid.H(), grid.box() / grid.unit()) : grid,
                                      plan_.ws,
                                      operatorScale_,
                                      accuracy_,
                                      derivatives,
                                      team_.threads());
        for (FarOperators& of : all)
        {
            of.waves = convolution_->roomForPacked();
        }
        sums.forEach(waves_,
                     convolution_->first(),
                     convolution_->end(),
                     [&](int k, const std::vector<Matrix>& kappas)
                     {
                         for (int derivative = 0; derivative < derivatives; derivative++)
                         {
                             convolution_->pack(k, kappas[derivative], &all[derivative].waves);
                         }
                     });
    }
    return all;
}

template<class Real>
void KernelEvaluation<Real>::makeDerivatives()
{
    if (derivatives_.empty())
    {
        derivatives_ = makeOperators(c_derivatives);
    }
}

template<class Real>
void KernelEvaluation<Real>::strainOperators(const Mat3& strain)
{
    std::array<Real, c_derivatives> weights{ 1 };
    for (size_t k = 0; k < c_strains.size(); k++)
    {
        const auto [a, b] = c_strains[k];
        weights[1 + k]    = static_cast<Real>((a == b ? 1 : 2) * strain(a, b));
    }
    const auto mix = [&](size_t size, const auto& of, Real* to)
    {
        std::fill_n(to, size, Real(0));
        for (int k = 0; k < c_derivatives; k++)
        {
            const Real* from = of(derivatives_[k]);
            for (size_t i = 0; weights[k] != 0 && i < size; i++)
            {
                to[i] += weights[k] * from[i];
            }
        }
    };
    for (int l = 1; l < plan_.levels; l++)
    {
        if (l > 1 && derivatives_[0].lists[l] == derivatives_[0].lists[1])
        {
            lists_[l] = lists_[1];
            continue;
        }
        auto mixed = std::make_shared<Operators>(*derivatives_[0].lists[l]);
        for (size_t op = 0; op < mixed->size(); op++)
        {
            AlignedVector<Real>& T = (*mixed)[op].T;
            mix(
                    T.size(),
                    [&](const FarOperators& of) { return (*of.lists[l])[op].T.data(); },
                    T.data());
        }
        lists_[l] = std::move(mixed);
    }
    if (isPeriodic_)
    {
        AlignedVector<Real>& waves = convolution_->packed();
        mix(
                waves.size(),
                [&](const FarOperators& of) { return of.waves.data(); },
                waves.data());
    }
}

template<class Real>
void KernelEvaluation<Real>::setRegion(const Region& region)
{
    const LeafFrame frame = region.leaves(plan_);
    box_                  = region.box;
    unit_                 = frame.unit();
    leafCounts_           = frame.counts;
    law_                  = lawOf<Real>(kernel_, unit_);
    // operators of other kernels than r^-n are those of one that is 1 at the size of a leaf
    const double size  = kernel_.exponent() > 0 ? 1 : std::abs(kernel_.value(unit_));
    operatorScale_     = size > 0 && std::isfinite(1 / size) ? 1 / size : 1;
    expansionFactor_   = std::pow(unit_, -kernel_.exponent()) / operatorScale_;
    const Mat3 edges   = frame.edges / unit_;
    const Mat3 toCells = edges.inverse();
    for (int i = 0; i < 9; i++)
    {
        polynomials_.toCell[i / 3][i % 3] = static_cast<Real>(toCells(i / 3, i % 3));
    }
    double longest = 0;
    shifts_.clear();
    for (const Int3& D : near_)
    {
        shifts_.push_back(edges.transpose() * Vec3(D[0], D[1], D[2]));
        longest = std::max(longest, shifts_.back().norm());
    }
    nowhere_ = static_cast<Real>(4 * longest);
    for (int l = 0; l < plan_.levels; l++)
    {
        levels_[l].grid     = region.grid(plan_, l);
        levels_[l].isSparse = !(isPeriodic_ && l == 0);
    }
}

template<class Real>
bool KernelEvaluation<Real>::adopt(const KernelPlan& plan, const Region& region)
{
    if (!(plan == plan_))
    {
        return false;
    }
    if (region.box == box_)
    {
        return true;
    }
    const int n = kernel_.exponent();
    if (n == 0)
    {
        return false;
    }
    // operators of r^-n are those of boxes of a shape
    const double size       = std::cbrt(region.box.determinant() / reference_.determinant());
    const Mat3 e            = reference_.inverse() * region.box / size - Mat3::Identity();
    const Mat3 strain       = 0.5 * (e + e.transpose());
    constexpr double c_same = 1e-13;
    if (e.cwiseAbs().maxCoeff() > c_same || isStrained_)
    {
        // what the second derivatives would add, over what far cells make
        const double error = 0.5 * n * (n + 2) * e.squaredNorm();
        // operators of a rectangular box serve wave vectors that shear makes different
        const bool isRight = waves_.copies() == 1
                             || (strain - Mat3(strain.diagonal().asDiagonal())).norm() <= c_same;
        if (derivatives_.empty() || error > c_errorOfStrain * accuracy_ || !isRight)
        {
            return false;
        }
        strainOperators(strain);
        isStrained_ = true;
    }
    setRegion(region);
    return true;
}

template<class Real>
void KernelEvaluation<Real>::setCells(const SortedPoints<Real>& sources,
                                      const SortedPoints<Real>& targets)
{
    std::vector<Int3> cells =
            &sources == &targets ? sources.cells() : merged(sources.cells(), targets.cells());
    // a periodic level 0 has all of its cells
    for (int l = plan_.levels - 1; l >= (isPeriodic_ ? 1 : 0); l--)
    {
        std::vector<Int3> parents = parentsOf(cells);
        levels_[l].setCells(std::move(cells), basis_.count());
        cells = std::move(parents);
    }
}

template<class Real>
void KernelEvaluation<Real>::upwards(const SortedPoints<Real>& sources, const Real* q)
{
    constexpr int c_grain = 64;
    Level<Real>& leaf     = leaves();
    const int n           = basis_.count();
    team_.forRanges(static_cast<int>(leaf.cells.size()),
                    c_grain,
                    [&](int begin, int end)
                    {
                        std::vector<Real> M(n);
                        clearSlots(begin, paddedEnd(leaf, end), leaf.padded, &leaf.M);
                        for (int slot = begin; slot < end; slot++)
                        {
                            const int place = sources.find(leaf.cells[slot]);
                            if (place < 0)
                            {
                                continue;
                            }
                            std::fill(M.begin(), M.end(), Real(0));
                            pointKernels<Real>().toMultipoles(polynomials_,
                                                              sources.points(place),
                                                              q + sources.start()[place],
                                                              M.data());
                            for (int a = 0; a < n; a++)
                            {
                                leaf.M[static_cast<size_t>(a) * leaf.padded + slot] = M[a];
                            }
                        }
                    });
    for (int l = plan_.levels - 1; l > (isPeriodic_ ? 0 : 1); l--)
    {
        tree_.m2m(levels_[l], &levels_[l - 1]);
    }
    if (isPeriodic_)
    {
        convolution_->forward(levels_[0].M.data(), levels_[0].padded, 0, n);
    }
}

template<class Real>
void KernelEvaluation<Real>::downwards()
{
    Level<Real>& top = levels_[0];
    const int n      = basis_.count();
    if (isPeriodic_)
    {
        convolution_->multiply();
        convolution_->backward(top.L.data(), top.padded, 0, n);
    }
    else
    {
        std::fill(top.L.begin(), top.L.end(), Real(0));
    }
    for (int l = 1; l < plan_.levels; l++)
    {
        tree_.l2l(levels_[l - 1],
                  &levels_[l],
                  [](int /*octant*/, auto* /*Y*/, auto* /*X*/, const auto& /*children*/, int) {});
        tree_.m2l(
                *lists_[l],
                levels_[l],
                &levels_[l],
                plan_.ws,
                n,
                [](const auto& /*op*/, const auto& /*X*/, auto* /*Y*/, const auto& /*to*/, int) {});
    }
}

template<class Real>
void KernelEvaluation<Real>::addFarVirial(double* virial)
{
    makeDerivatives();
    // of r^-n the trace follows from the energy, which also strained operators have to second order
    const int exponent = kernel_.exponent();
    std::array<double, c_derivatives> sums{}; // M K M of the kernel and of its derivatives
    if (isPeriodic_)
    {
        std::vector<AlignedVector<Real>> packed(c_derivatives);
        std::vector<std::array<int, 4>> signs(c_derivatives);
        for (int k = 0; k < c_derivatives; k++)
        {
            packed[k].swap(k == 0 ? convolution_->packed() : derivatives_[k].waves);
            for (int copy = 0; copy < 4; copy++)
            {
                const int axes        = axesOfCopy(copy);
                const auto isMirrored = [&](int which)
                { return k > 0 && ((axes >> c_strains[k - 1][which]) & 1); };
                signs[k][copy] = isMirrored(0) == isMirrored(1) ? 1 : -1;
            }
        }
        const std::vector<double> ofWaves = convolution_->products(packed, levels_[0].grid, signs);
        for (int k = 0; k < c_derivatives; k++)
        {
            packed[k].swap(k == 0 ? convolution_->packed() : derivatives_[k].waves);
            sums[k] = ofWaves[k] * std::pow(levels_[0].grid.unit(), -exponent);
        }
    }
    for (int l = 1; l < plan_.levels; l++)
    {
        Level<Real>& level = levels_[l];
        for (int k = 0; k < c_derivatives; k++)
        {
            std::fill(level.L.begin(), level.L.end(), Real(0));
            tree_.m2l(k == 0 ? *lists_[l] : *derivatives_[k].lists[l],
                      level,
                      &level,
                      plan_.ws,
                      basis_.count(),
                      [](const auto& /*op*/,
                         const auto& /*X*/,
                         auto* /*Y*/,
                         const auto& /*to*/,
                         int) {});
            double sum = 0;
            for (size_t i = 0; i < level.L.size(); i++)
            {
                sum += static_cast<double>(level.M[i]) * static_cast<double>(level.L[i]);
            }
            // without images the grid has twice the edges, not other cells
            sums[k] += sum * std::pow(level.grid.unit(), -exponent);
        }
    }
    double trace = 0;
    for (int k = 0; k < 6; k++)
    {
        const double own = 0.25 * sums[1 + k] / operatorScale_;
        virial[k] += own;
        trace += k < 3 ? own : 0;
    }
    for (int k = 0; exponent > 0 && k < 3; k++)
    {
        virial[k] += (-0.25 * exponent * sums[0] / operatorScale_ - trace) / 3;
    }
}

template<class Real>
void KernelEvaluation<Real>::stage(const Int3& cell,
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
void KernelEvaluation<Real>::subtract(const LeftOutOfCell& pairs,
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
void KernelEvaluation<Real>::addPairs(const Points& points,
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
void KernelEvaluation<Real>::addScaled(const Real* from,
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
void KernelEvaluation<Real>::addExpansions(const Points& points, int set, std::vector<double>* sums)
{
    constexpr int c_together          = 8;
    const SortedPoints<Real>& targets = points.targets;
    const int cells                   = static_cast<int>(targets.cells().size());
    team_.forTasks(
            (cells + c_together - 1) / c_together,
            [&](int task, int thread)
            {
                Room& room              = rooms_[thread];
                const Level<Real>& leaf = leaves();
                for (int c = task * c_together; c < std::min(cells, (task + 1) * c_together); c++)
                {
                    const CellPoints<Real> here = targets.points(c);
                    const int slot              = leaf.slotAt(targets.cells()[c]);
                    room.sums.assign(static_cast<size_t>(4) * here.count, Real(0));
                    room.expansion.resize(basis_.count());
                    for (int a = 0; a < basis_.count(); a++)
                    {
                        room.expansion[a] = leaf.L[static_cast<size_t>(a) * leaf.padded + slot];
                    }
                    pointKernels<Real>().fromLocals(polynomials_,
                                                    here,
                                                    room.expansion.data(),
                                                    room.sums.data(),
                                                    here.count);
                    addScaled(room.sums.data(), expansionFactor_, targets, c, set, sums);
                }
            });
}

template<class Real>
std::vector<double> KernelEvaluation<Real>::operator()(const PointSystem<Real>& system,
                                                       const Region& region,
                                                       std::vector<double>* virials)
{
    const LeafFrame frame = region.leaves(plan_);
    std::vector<double> sums(static_cast<size_t>(system.sets) * 4 * system.results(), 0);
    if (virials != nullptr)
    {
        virials->assign(6 * static_cast<size_t>(system.sets), 0);
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
                if (!hasFarField())
                {
                    return;
                }
                setCells(sources, points.targets);
                for (int s = 0; s < system.sets; s++)
                {
                    upwards(sources, q.data() + static_cast<size_t>(s) * system.n);
                    if (virials != nullptr)
                    {
                        addFarVirial(virials->data() + 6 * static_cast<size_t>(s));
                    }
                    downwards();
                    addExpansions(points, s, &sums);
                }
            });
    return sums;
}

template class KernelEvaluation<float>;
template class KernelEvaluation<double>;

} // namespace farfield
