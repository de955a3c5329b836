/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/far_operators.h"

#include <cmath>
#include <utility>

namespace farfield
{
namespace
{

//! Part of the accuracy that is left for the second derivatives of strained operators.
constexpr double c_errorOfStrain = 100; // accuracy of operators is a thousandth of that of fields

} // namespace

template<class Real>
FarOperators<Real>::FarOperators(const PairKernel& kernel,
                                 const KernelPlan& plan,
                                 const Region& region,
                                 double accuracy,
                                 Team* team) :
    kernel_(kernel),
    plan_(plan), reference_(region.box), accuracy_(accuracy), isPeriodic_(region.isPeriodic),
    team_(*team), basis_(plan.degree)
{
    polynomials_.degree = plan.degree;
    // operators of other kernels than r^-n are those of one that is 1 at the size of a leaf
    const double size =
            kernel.exponent() > 0 ? 1 : std::abs(kernel.value(region.leaves(plan).unit()));
    operatorScale_ = size > 0 && std::isfinite(1 / size) ? 1 / size : 1;
    setRegion(region);
    ofReference_ = grids_;
    if (isPeriodic_)
    {
        waves_ = WaveVectors(grids_[0]);
    }
}

template<class Real>
void FarOperators<Real>::setRegion(const Region& region)
{
    const LeafFrame frame = region.leaves(plan_);
    const double unit     = frame.unit();
    expansionFactor_      = std::pow(unit, -kernel_.exponent()) / operatorScale_;
    const Mat3 toCells    = (frame.edges / unit).inverse();
    for (int i = 0; i < 9; i++)
    {
        polynomials_.toCell[i / 3][i % 3] = static_cast<Real>(toCells(i / 3, i % 3));
    }
    grids_.clear();
    for (int l = 0; l < plan_.levels; l++)
    {
        grids_.push_back(region.grid(plan_, l));
    }
}

template<class Real>
std::array<Matrix, 8> FarOperators<Real>::up() const
{
    std::array<Matrix, 8> up;
    for (int octant = 0; octant < 8; octant++)
    {
        up[octant] = basis_.childToParent(octant);
    }
    return up;
}

template<class Real>
std::array<Matrix, 8> FarOperators<Real>::down() const
{
    std::array<Matrix, 8> down = up();
    for (Matrix& of : down)
    {
        of = std::pow(0.5, kernel_.exponent()) * of.transpose().eval();
    }
    return down;
}

template<class Real>
std::vector<std::vector<std::shared_ptr<const typename FarOperators<Real>::List>>>
FarOperators<Real>::lists(int derivatives) const
{
    const int n = kernel_.exponent();
    std::vector<std::vector<std::shared_ptr<const List>>> all(derivatives);
    for (auto& of : all)
    {
        of.resize(plan_.levels);
    }
    for (int l = 1; l < plan_.levels; l++)
    {
        // those of r^-n are the same on all levels
        const bool isNew = n == 0 || l == 1;
        const Grid& grid = ofReference_[l];
        auto ofLevel =
                isNew ? kernelOperators<Real>(basis_,
                                              kernel_,
                                              operatorScale_,
                                              n > 0 ? Mat3(grid.scaledEdges()) : grid.edges(),
                                              plan_.ws,
                                              derivatives,
                                              team_.threads())
                      : std::vector<List>(derivatives);
        for (int k = 0; k < derivatives; k++)
        {
            all[k][l] = isNew ? std::make_shared<const List>(std::move(ofLevel[k])) : all[k][1];
        }
    }
    return all;
}

template<class Real>
void FarOperators<Real>::forWaves(int derivatives,
                                  int first,
                                  int end,
                                  const PeriodicKernelSums::Use& use) const
{
    const Grid& grid = ofReference_[0];
    const PeriodicKernelSums sums(basis_,
                                  kernel_,
                                  kernel_.exponent() > 0 ? Grid(grid.H(), grid.box() / grid.unit())
                                                         : grid,
                                  plan_.ws,
                                  operatorScale_,
                                  accuracy_,
                                  derivatives,
                                  team_.threads());
    sums.forEach(waves_, first, end, use);
}

template<class Real>
typename FarOperators<Real>::Adopted FarOperators<Real>::adopt(const Region& region,
                                                               bool hasDerivatives,
                                                               StrainWeights<Real>* weights)
{
    const int n = kernel_.exponent();
    if (n == 0)
    {
        return Adopted::Never;
    }
    // operators of r^-n are those of boxes of a shape
    const double size       = std::cbrt(region.box.determinant() / reference_.determinant());
    const Mat3 e            = reference_.inverse() * region.box / size - Mat3::Identity();
    const Mat3 strain       = 0.5 * (e + e.transpose());
    constexpr double c_same = 1e-13;
    const bool isOther      = e.cwiseAbs().maxCoeff() > c_same || isStrained_;
    if (isOther)
    {
        // what the second derivatives would add, over what far cells make
        const double error = 0.5 * n * (n + 2) * e.squaredNorm();
        // operators of a rectangular box serve wave vectors that shear makes different
        const bool isRight = waves_.copies() == 1
                             || (strain - Mat3(strain.diagonal().asDiagonal())).norm() <= c_same;
        if (!hasDerivatives || error > c_errorOfStrain * accuracy_ || !isRight)
        {
            return Adopted::Never;
        }
        weights->fill(1);
        for (size_t k = 0; k < c_strains.size(); k++)
        {
            const auto [a, b] = c_strains[k];
            (*weights)[1 + k] = static_cast<Real>((a == b ? 1 : 2) * strain(a, b));
        }
        isStrained_ = true;
    }
    setRegion(region);
    return isOther ? Adopted::Strained : Adopted::AsIs;
}

template<class Real>
double FarOperators<Real>::virialFactor(int level) const
{
    // without images the grid has twice the edges, not other cells
    return std::pow(grids_[level].unit(), -kernel_.exponent());
}

template<class Real>
void FarOperators<Real>::addVirial(const std::array<double, c_derivatives>& sums,
                                   double* virial) const
{
    double trace = 0;
    for (int k = 0; k < 6; k++)
    {
        const double own = 0.25 * sums[1 + k] / operatorScale_;
        virial[k] += own;
        trace += k < 3 ? own : 0;
    }
    // of r^-n the trace follows from the energy, which also strained operators have to second order
    const int exponent = kernel_.exponent();
    for (int k = 0; exponent > 0 && k < 3; k++)
    {
        virial[k] += (-0.25 * exponent * sums[0] / operatorScale_ - trace) / 3;
    }
}

template class FarOperators<float>;
template class FarOperators<double>;

} // namespace farfield
