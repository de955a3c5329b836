/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/cpu_far_field.h"

#include <algorithm>
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

} // namespace

template<class Real>
CpuFarField<Real>::CpuFarField(const PairKernel& kernel,
                               const KernelPlan& plan,
                               const Region& region,
                               double accuracy,
                               Team* team) :
    team_(*team),
    operators_(kernel, plan, region, accuracy, team), levels_(plan.levels),
    tree_(operators_.basis().count(), team)
{
    setGrids();
    tree_.setTranslations(operators_.up(), operators_.down());
    if (operators_.isPeriodic())
    {
        const Grid& grid = levels_[0].grid;
        std::vector<Int3> all(grid.count()); // in the order of the transform
        for (int k = 0; k < grid.count(); k++)
        {
            all[grid.slot(grid.cell(k))] = grid.cell(k);
        }
        levels_[0].setCells(std::move(all), coefficients());
        std::array<std::vector<Real>, 4> signs;
        for (int copy = 0; copy < operators_.waves().copies(); copy++)
        {
            const auto ofCopy = operators_.basis().signs(axesOfCopy(copy));
            signs[copy].assign(ofCopy.begin(), ofCopy.end());
        }
        convolution_ = std::make_unique<CellConvolution<Real>>(
                grid, operators_.waves(), operators_.basis().degrees(), std::move(signs), team);
    }
    std::vector<Packed> ofKernel = packed(1);
    lists_                       = std::move(ofKernel[0].lists);
    if (convolution_)
    {
        convolution_->packed() = std::move(ofKernel[0].waves);
    }
}

template<class Real>
void CpuFarField<Real>::setGrids()
{
    for (int l = 0; l < static_cast<int>(levels_.size()); l++)
    {
        levels_[l].grid     = operators_.grid(l);
        levels_[l].isSparse = !(operators_.isPeriodic() && l == 0);
    }
}

template<class Real>
std::vector<typename CpuFarField<Real>::Packed> CpuFarField<Real>::packed(int derivatives) const
{
    std::vector<Packed> all(derivatives);
    auto lists = operators_.lists(derivatives);
    for (int k = 0; k < derivatives; k++)
    {
        all[k].lists = std::move(lists[k]);
        if (convolution_)
        {
            all[k].waves = convolution_->roomForPacked();
        }
    }
    if (convolution_)
    {
        operators_.forWaves(derivatives,
                            convolution_->first(),
                            convolution_->end(),
                            [&](int representative, const std::vector<Matrix>& kappas)
                            {
                                for (int k = 0; k < derivatives; k++)
                                {
                                    convolution_->pack(representative, kappas[k], &all[k].waves);
                                }
                            });
    }
    return all;
}

template<class Real>
void CpuFarField<Real>::makeDerivatives()
{
    if (derivatives_.empty())
    {
        derivatives_ = packed(c_derivatives);
    }
}

template<class Real>
void CpuFarField<Real>::strainOperators(const StrainWeights<Real>& weights)
{
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
    for (int l = 1; l < static_cast<int>(levels_.size()); l++)
    {
        if (l > 1 && derivatives_[0].lists[l] == derivatives_[0].lists[1])
        {
            lists_[l] = lists_[1];
            continue;
        }
        auto mixed = std::make_shared<List>(*derivatives_[0].lists[l]);
        for (size_t op = 0; op < mixed->size(); op++)
        {
            AlignedVector<Real>& T = (*mixed)[op].T;
            mix(
                    T.size(),
                    [&](const Packed& of) { return (*of.lists[l])[op].T.data(); },
                    T.data());
        }
        lists_[l] = std::move(mixed);
    }
    if (convolution_)
    {
        AlignedVector<Real>& waves = convolution_->packed();
        mix(
                waves.size(), [&](const Packed& of) { return of.waves.data(); }, waves.data());
    }
}

template<class Real>
bool CpuFarField<Real>::adopt(const Region& region)
{
    using Adopted = typename FarOperators<Real>::Adopted;
    StrainWeights<Real> weights;
    const Adopted adopted = operators_.adopt(region, hasDerivatives(), &weights);
    if (adopted == Adopted::Never)
    {
        return false;
    }
    if (adopted == Adopted::Strained)
    {
        strainOperators(weights);
    }
    setGrids();
    return true;
}

template<class Real>
void CpuFarField<Real>::setCells(const SortedPoints<Real>& sources,
                                 const SortedPoints<Real>& targets)
{
    std::vector<Int3> cells =
            &sources == &targets ? sources.cells() : merged(sources.cells(), targets.cells());
    // a periodic level 0 has all of its cells
    for (int l = operators_.plan().levels - 1; l >= (operators_.isPeriodic() ? 1 : 0); l--)
    {
        std::vector<Int3> parents = parentsOf(cells);
        levels_[l].setCells(std::move(cells), coefficients());
        cells = std::move(parents);
    }
}

template<class Real>
void CpuFarField<Real>::upwards(const SortedPoints<Real>& sources, const Real* q)
{
    constexpr int c_grain = 64;
    Level<Real>& leaf     = levels_.back();
    const int n           = coefficients();
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
                            pointKernels<Real>().toMultipoles(polynomials(),
                                                              sources.points(place),
                                                              q + sources.start()[place],
                                                              M.data());
                            for (int a = 0; a < n; a++)
                            {
                                leaf.M[static_cast<size_t>(a) * leaf.padded + slot] = M[a];
                            }
                        }
                    });
    for (int l = operators_.plan().levels - 1; l > (operators_.isPeriodic() ? 0 : 1); l--)
    {
        tree_.m2m(levels_[l], &levels_[l - 1]);
    }
    if (operators_.isPeriodic())
    {
        convolution_->forward(levels_[0].M.data(), levels_[0].padded, 0, n);
    }
}

template<class Real>
void CpuFarField<Real>::downwards()
{
    Level<Real>& top = levels_[0];
    const int n      = coefficients();
    if (operators_.isPeriodic())
    {
        convolution_->multiply();
        convolution_->backward(top.L.data(), top.padded, 0, n);
    }
    else
    {
        std::fill(top.L.begin(), top.L.end(), Real(0));
    }
    for (int l = 1; l < operators_.plan().levels; l++)
    {
        tree_.l2l(levels_[l - 1],
                  &levels_[l],
                  [](int /*octant*/, auto* /*Y*/, auto* /*X*/, const auto& /*children*/, int) {});
        tree_.m2l(
                *lists_[l],
                levels_[l],
                &levels_[l],
                operators_.plan().ws,
                n,
                [](const auto& /*op*/, const auto& /*X*/, auto* /*Y*/, const auto& /*to*/, int) {});
    }
}

template<class Real>
void CpuFarField<Real>::addVirial(double* virial)
{
    std::array<double, c_derivatives> sums{};
    if (operators_.isPeriodic())
    {
        std::vector<const AlignedVector<Real>*> packed(c_derivatives);
        std::vector<std::array<int, 4>> signs(c_derivatives);
        for (int k = 0; k < c_derivatives; k++)
        {
            packed[k] = k == 0 ? &convolution_->packed() : &derivatives_[k].waves;
            for (int copy = 0; copy < 4; copy++)
            {
                signs[k][copy] = signOfDerivative(k, axesOfCopy(copy));
            }
        }
        const std::vector<double> ofWaves = convolution_->products(packed, levels_[0].grid, signs);
        for (int k = 0; k < c_derivatives; k++)
        {
            sums[k] = ofWaves[k] * operators_.virialFactor(0);
        }
    }
    for (int l = 1; l < operators_.plan().levels; l++)
    {
        Level<Real>& level = levels_[l];
        for (int k = 0; k < c_derivatives; k++)
        {
            std::fill(level.L.begin(), level.L.end(), Real(0));
            tree_.m2l(k == 0 ? *lists_[l] : *derivatives_[k].lists[l],
                      level,
                      &level,
                      operators_.plan().ws,
                      coefficients(),
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
            sums[k] += sum * operators_.virialFactor(l);
        }
    }
    operators_.addVirial(sums, virial);
}

template class CpuFarField<float>;
template class CpuFarField<double>;

} // namespace farfield
