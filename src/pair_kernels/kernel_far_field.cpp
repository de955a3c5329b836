/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_far_field.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
KernelFarField<Real>::KernelFarField(const PairKernel& kernel,
                                     const KernelPlan& plan,
                                     const Region& region,
                                     double accuracy,
                                     Team* team) :
    kernel_(kernel),
    plan_(plan), reference_(region.box), accuracy_(accuracy), isPeriodic_(region.isPeriodic),
    team_(*team), basis_(plan.degree), levels_(plan.levels), tree_(basis_.count(), team)
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
std::vector<typename KernelFarField<Real>::FarOperators>
KernelFarField<Real>::makeOperators(int derivatives) const
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
void KernelFarField<Real>::makeDerivatives()
{
    if (derivatives_.empty())
    {
        derivatives_ = makeOperators(c_derivatives);
    }
}

template<class Real>
void KernelFarField<Real>::strainOperators(const Mat3& strain)
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
void KernelFarField<Real>::setRegion(const Region& region)
{
    const LeafFrame frame = region.leaves(plan_);
    const double unit     = frame.unit();
    // operators of other kernels than r^-n are those of one that is 1 at the size of a leaf
    const double size  = kernel_.exponent() > 0 ? 1 : std::abs(kernel_.value(unit));
    operatorScale_     = size > 0 && std::isfinite(1 / size) ? 1 / size : 1;
    expansionFactor_   = std::pow(unit, -kernel_.exponent()) / operatorScale_;
    const Mat3 toCells = (frame.edges / unit).inverse();
    for (int i = 0; i < 9; i++)
    {
        polynomials_.toCell[i / 3][i % 3] = static_cast<Real>(toCells(i / 3, i % 3));
    }
    for (int l = 0; l < plan_.levels; l++)
    {
        levels_[l].grid     = region.grid(plan_, l);
        levels_[l].isSparse = !(isPeriodic_ && l == 0);
    }
}

template<class Real>
bool KernelFarField<Real>::adopt(const Region& region)
{
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
void KernelFarField<Real>::setCells(const SortedPoints<Real>& sources,
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
void KernelFarField<Real>::upwards(const SortedPoints<Real>& sources, const Real* q)
{
    constexpr int c_grain = 64;
    Level<Real>& leaf     = levels_.back();
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
void KernelFarField<Real>::downwards()
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
void KernelFarField<Real>::addVirial(double* virial)
{
    makeDerivatives();
    // of r^-n the trace follows from the energy, which also strained operators have to second order
    const int exponent = kernel_.exponent();
    std::array<double, c_derivatives> sums{}; // M K M of the kernel and of its derivatives
    if (isPeriodic_)
    {
        std::vector<const AlignedVector<Real>*> packed(c_derivatives);
        std::vector<std::array<int, 4>> signs(c_derivatives);
        for (int k = 0; k < c_derivatives; k++)
        {
            packed[k] = k == 0 ? &convolution_->packed() : &derivatives_[k].waves;
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

template class KernelFarField<float>;
template class KernelFarField<double>;

} // namespace farfield
