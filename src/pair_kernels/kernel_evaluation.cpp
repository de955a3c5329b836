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

} // namespace

template<class Real>
KernelEvaluation<Real>::KernelEvaluation(const PairKernel& kernel,
                                         const KernelPlan& plan,
                                         const Region& region,
                                         double accuracy,
                                         Team* team) :
    kernel_(kernel),
    plan_(plan), box_(region.box), isPeriodic_(region.isPeriodic), team_(*team),
    basis_(plan.degree), near_(nearDisplacements(plan.ws)), levels_(plan.levels),
    tree_(basis_.count(), team), operators_(plan.levels), rooms_(team->threads())
{
    polynomials_.degree = plan.degree;
    setRegion(region);
    const Mat3 edges = region.leaves(plan).edges / unit_;
    const int n      = kernel.exponent();
    std::array<Matrix, 8> up, down;
    for (int octant = 0; octant < 8; octant++)
    {
        up[octant]   = basis_.childToParent(octant);
        down[octant] = std::pow(0.5, n) * up[octant].transpose();
    }
    tree_.setTranslations(up, down);
    for (int l = 1; l < plan.levels; l++)
    {
        const Mat3 ofLevel = n > 0 ? edges : levels_[l].grid.edges();
        operators_[l] =
                n > 0 && l > 1
                        ? operators_[1]
                        : std::make_shared<const Operators>(kernelOperators<Real>(
                                basis_, kernel, operatorScale_, ofLevel, plan.ws, team->threads()));
    }
    if (!isPeriodic_)
    {
        return;
    }
    const Grid& grid = levels_[0].grid;
    std::vector<Int3> all(grid.count()); // in the order of the transform
    for (int k = 0; k < grid.count(); k++)
    {
        all[grid.slot(grid.cell(k))] = grid.cell(k);
    }
    levels_[0].setCells(std::move(all), basis_.count());
    const WaveVectors waves(grid);
    std::array<std::vector<Real>, 4> signs;
    for (int copy = 0; copy < waves.copies(); copy++)
    {
        const auto ofCopy = basis_.signs(axesOfCopy(copy));
        signs[copy].assign(ofCopy.begin(), ofCopy.end());
    }
    convolution_ = std::make_unique<CellConvolution<Real>>(
            grid, waves, basis_.degrees(), std::move(signs), team);
    const PeriodicKernelSums sums(basis_,
                                  kernel,
                                  n > 0 ? Grid(grid.H(), grid.box() / grid.unit()) : grid,
                                  plan.ws,
                                  operatorScale_,
                                  accuracy,
                                  team->threads());
    convolution_->setOperators(
            [&](const auto& use)
            { sums.forEach(waves, convolution_->first(), convolution_->end(), use); });
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
    // operators of r^-n are those of boxes of a shape
    const double size = std::cbrt(region.box.determinant() / box_.determinant());
    const bool hasItsShape =
            (region.box / size - box_).cwiseAbs().maxCoeff() <= 1e-13 * box_.norm();
    if (kernel_.exponent() == 0 || !hasItsShape)
    {
        return false;
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
void KernelEvaluation<Real>::farField(const SortedPoints<Real>& sources, const Real* q)
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
    const int last = plan_.levels - 1;
    for (int l = last; l > (isPeriodic_ ? 0 : 1); l--)
    {
        tree_.m2m(levels_[l], &levels_[l - 1]);
    }
    Level<Real>& top = levels_[0];
    if (isPeriodic_)
    {
        convolution_->forward(top.M.data(), top.padded, 0, n);
        convolution_->multiply();
        convolution_->backward(top.L.data(), top.padded, 0, n);
    }
    else
    {
        std::fill(top.L.begin(), top.L.end(), Real(0));
    }
    for (int l = 1; l <= last; l++)
    {
        tree_.l2l(levels_[l - 1],
                  &levels_[l],
                  [](int /*octant*/, auto* /*Y*/, auto* /*X*/, const auto& /*children*/, int) {});
        tree_.m2l(
                *operators_[l],
                levels_[l],
                &levels_[l],
                plan_.ws,
                n,
                [](const auto& /*op*/, const auto& /*X*/, auto* /*Y*/, const auto& /*to*/, int) {});
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
    std::vector<std::pair<int, int>> found; // place and displacement
    int count = 0;
    for (int k = 0; k < static_cast<int>(near_.size()); k++)
    {
        Int3 c            = cell;
        const bool inside = moveInside(near_[k], leafCounts_, isPeriodic_, &c);
        const int place   = inside ? sources.find(c) : -1;
        if (place >= 0)
        {
            found.emplace_back(place, k);
            count += sources.points(place).count;
        }
    }
    room->staged = (count + c_stagePadding - 1) / c_stagePadding * c_stagePadding;
    for (AlignedVector<Real>* component : { &room->x, &room->y, &room->z })
    {
        component->assign(room->staged, 2 * nowhere_);
    }
    room->q.assign(static_cast<size_t>(sets) * room->staged, Real(0));
    int to = 0;
    for (const auto& [place, k] : found)
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
        to += points.count;
    }
}

template<class Real>
void KernelEvaluation<Real>::addTo(std::vector<double>* sums,
                                   const PointSystem<Real>& system,
                                   const SortedPoints<Real>& sources,
                                   const SortedPoints<Real>& targets,
                                   const AlignedVector<Real>& q,
                                   int set)
{
    constexpr int c_together = 8;
    const int cells          = static_cast<int>(targets.cells().size());
    const bool isOwn         = &sources == &targets;
    const int sets           = set < 0 ? system.sets : 1;
    const double factor      = set < 0 ? law_.factor : expansionFactor_;
    const size_t results     = system.results();
    team_.forTasks(
            (cells + c_together - 1) / c_together,
            [&](int task, int thread)
            {
                Room& room = rooms_[thread];
                for (int c = task * c_together; c < std::min(cells, (task + 1) * c_together); c++)
                {
                    const CellPoints<Real> points = targets.points(c);
                    const int stride              = points.count;
                    room.sums.assign(static_cast<size_t>(sets) * 4 * stride, Real(0));
                    if (set < 0)
                    {
                        stage(targets.cells()[c], sources, q, sets, &room);
                        pointKernels<Real>().pairs({ &law_,
                                                     points,
                                                     room.x.data(),
                                                     room.y.data(),
                                                     room.z.data(),
                                                     room.q.data(),
                                                     room.staged,
                                                     sets,
                                                     isOwn ? 0 : -1,
                                                     nowhere_,
                                                     room.sums.data(),
                                                     stride });
                    }
                    else
                    {
                        const Level<Real>& leaf = leaves();
                        const int slot          = leaf.slotAt(targets.cells()[c]);
                        room.expansion.resize(basis_.count());
                        for (int a = 0; a < basis_.count(); a++)
                        {
                            room.expansion[a] = leaf.L[static_cast<size_t>(a) * leaf.padded + slot];
                        }
                        pointKernels<Real>().fromLocals(polynomials_,
                                                        points,
                                                        room.expansion.data(),
                                                        room.sums.data(),
                                                        stride);
                    }
                    const int first = targets.start()[c];
                    for (int s = 0; s < sets; s++)
                    {
                        for (int k = 0; k < 4; k++)
                        {
                            double* to =
                                    sums->data()
                                    + (static_cast<size_t>(std::max(set, 0) + s) * 4 + k) * results;
                            const double scale = k == 0 ? factor : factor / unit_;
                            const Real* from =
                                    room.sums.data() + (static_cast<size_t>(s) * 4 + k) * stride;
                            for (int i = 0; i < points.count; i++)
                            {
                                to[targets.order()[first + i]] +=
                                        scale * static_cast<double>(from[i]);
                            }
                        }
                    }
                }
            });
}

template<class Real>
std::vector<double> KernelEvaluation<Real>::operator()(const PointSystem<Real>& system,
                                                       const Region& region)
{
    const LeafFrame frame = region.leaves(plan_);
    std::vector<double> sums(static_cast<size_t>(system.sets) * 4 * system.results(), 0);
    team_.together(
            [&]
            {
                SortedPoints<Real> sources, others;
                sources.sort(system.x, system.n, "particle", frame, &team_);
                if (!system.areOwn())
                {
                    others.sort(system.at, system.points, "point", frame, &team_);
                }
                const SortedPoints<Real>& targets = system.areOwn() ? sources : others;
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
                addTo(&sums, system, sources, targets, q, -1);
                if (!hasFarField())
                {
                    return;
                }
                setCells(sources, targets);
                for (int s = 0; s < system.sets; s++)
                {
                    farField(sources, q.data() + static_cast<size_t>(s) * system.n);
                    addTo(&sums, system, sources, targets, q, s);
                }
            });
    return sums;
}

template class KernelEvaluation<float>;
template class KernelEvaluation<double>;

} // namespace farfield
