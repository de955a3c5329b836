/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/m2l_periodic.h"

#include <algorithm>
#include <cmath>

#include "cpu/cpu_kernels.h"

namespace farfield
{
namespace
{

//! l of each coefficient up to an order.
std::vector<int> degreesOf(int order)
{
    std::vector<int> degrees(coefficientCount(order));
    for (size_t i = 0; i < degrees.size(); i++)
    {
        degrees[i] = degreeOf(static_cast<int>(i));
    }
    return degrees;
}

template<class Real>
std::array<std::vector<Real>, 4> signsOf(const PeriodicM2lOperators<Real>& operators)
{
    std::array<std::vector<Real>, 4> signs;
    for (int copy = 0; copy < operators.copies(); copy++)
    {
        signs[copy] = operators.signs(copy);
    }
    return signs;
}

} // namespace

template<class Real>
PeriodicM2l<Real>::PeriodicM2l(const Grid& grid,
                               Boundary boundary,
                               int ws,
                               const Reduction& reduction,
                               Team* team,
                               const Share& share) :
    operators_(grid, boundary, ws, reduction, 2 * virialOrder(reduction), team->threads()),
    team_(*team), convolution_(grid,
                               operators_.waves(),
                               degreesOf(reduction.order()),
                               signsOf(operators_),
                               team,
                               share),
    scratch_(team->threads()), lanes_(convolution_.lanes()),
    products_(virialOrder(reduction), reduction)
{
    // in this order: twice the strain sums and all operators are never there at once
    strainSums_ = packed(operators_.strainSums());
    operators_.releaseStrainSums();
    convolution_.setOperators(
            [&](const auto& use)
            { operators_.forEachKappa(convolution_.first(), convolution_.end(), use); });
    operators_.releaseSums();
}

template<class Real>
AlignedVector<Real>
PeriodicM2l<Real>::packed(const typename PeriodicM2lOperators<Real>::StrainSums& sums) const
{
    const size_t harmonics = coefficientCount(operators_.strainDegree());
    const Real factor = static_cast<Real>(1.0 / static_cast<double>(operators_.grid().count()));
    AlignedVector<Real> result(convolution_.blocks().size() * harmonics * StrainCount * lanes_,
                               Real(0));
    const int members = std::min(static_cast<int>(convolution_.blocks().size()) * lanes_,
                                 operators_.representatives() - convolution_.first());
    for (int k = 0; k < members; k++)
    {
        Real* out = result.data() + k / lanes_ * harmonics * StrainCount * lanes_ + k % lanes_;
        for (size_t i = 0; i < harmonics; i++)
        {
            for (int c = 0; c < StrainCount; c++, out += lanes_)
            {
                *out = factor * sums[c](convolution_.first() + k, i);
            }
        }
    }
    return result;
}

template<class Real>
void PeriodicM2l<Real>::setStrain(const Mat3& strain)
{
    AlignedVector<Real>& kappa = convolution_.packed();
    if (unstrained_.empty())
    {
        unstrained_.assign(kappa.begin(), kappa.end());
    }
    const int p            = operators_.reduction().order();
    const int n            = coefficientCount(p);
    const int N            = coefficientCount(operators_.reduction().highOrder());
    const size_t pairs     = static_cast<size_t>(n) * (n + 1) / 2;
    const size_t harmonics = coefficientCount(operators_.strainDegree());
    const auto& entries    = operators_.entries();
    // truncated operators suffice for a small correction
    const int degrees                = coefficientCount(2 * p);
    const double weight[StrainCount] = {
        strain(0, 0), strain(1, 1), 2 * strain(0, 1), 2 * strain(0, 2), 2 * strain(1, 2)
    };
    const auto strainBlocks = [&](int begin, int end)
    {
        AlignedVector<Real> w(static_cast<size_t>(degrees) * lanes_);
        for (int b = begin; b < end; b++)
        {
            std::fill(w.begin(), w.end(), Real(0));
            const Real* sums = strainSums_.data() + b * harmonics * StrainCount * lanes_;
            for (int i = 0; i < degrees; i++)
            {
                for (int c = 0; c < StrainCount; c++, sums += lanes_)
                {
                    for (int lane = 0; lane < lanes_; lane++)
                    {
                        w[i * lanes_ + lane] += static_cast<Real>(weight[c]) * sums[lane];
                    }
                }
            }
            size_t position = b * pairs * lanes_;
            forPackedPairs(n,
                           [&](int i, int j)
                           {
                               const M2lEntry& e = entries[static_cast<size_t>(i) * N + j];
                               const double sign = (degreeOf(j) % 2) ? -1 : 1;
                               const Real v0     = static_cast<Real>(sign * e.value[0]);
                               const Real v1     = static_cast<Real>(sign * e.value[1]);
                               const Real* w0    = w.data() + e.index[0] * lanes_;
                               const Real* w1    = w.data() + e.index[1] * lanes_;
                               for (int lane = 0; lane < lanes_; lane++)
                               {
                                   kappa[position + lane] = unstrained_[position + lane]
                                                            + v0 * w0[lane] + v1 * w1[lane];
                               }
                               position += lanes_;
                           });
        }
    };
    team_.forRanges(static_cast<int>(convolution_.blocks().size()), 1, strainBlocks);
    strain_ = strain;
}

template<class Real>
void PeriodicM2l<Real>::setVirialStrain(const Mat3& strain)
{
    strainedSums_ = packed(operators_.strainSumsAt(strain));
    virialStrain_ = strain;
}

template<class Real>
void PeriodicM2l<Real>::addVirial(int block,
                                  Scratch* scratch,
                                  std::array<double, StrainCount>* virial) const
{
    const int L            = lanes_;
    const size_t harmonics = coefficientCount(operators_.strainDegree());
    scratch->sums.resize(static_cast<size_t>(StrainCount) * L);
    scratch->weights.assign(4 * static_cast<size_t>(L), Real(0));
    std::array<const Real*, 4> products;
    for (int copy = 0; copy < 4; copy++)
    {
        // a copy that is not there has no weight
        products[copy] = scratch->products[copy < operators_.copies() ? copy : 0].data();
        for (int lane = 0; lane < convolution_.blocks()[block].members; lane++)
        {
            const int wave = convolution_.blocks()[block].waves[copy][lane];
            scratch->weights[copy * L + lane] =
                    static_cast<Real>(wave < 0 ? 0 : 0.25 * operators_.grid().multiplicity(wave));
        }
    }
    const auto add = [&](const AlignedVector<Real>& sums, double part)
    {
        cpuKernels<Real>().contract(products_,
                                    products,
                                    scratch->weights.data(),
                                    sums.data() + block * harmonics * StrainCount * L,
                                    scratch->sums.data());
        for (int c = 0; c < StrainCount; c++)
        {
            for (int lane = 0; lane < L; lane++)
            {
                (*virial)[c] += part * static_cast<double>(scratch->sums[c * L + lane]);
            }
        }
    };
    const double along = alongStrain(strain_, virialStrain_);
    add(strainSums_, 1 - along);
    if (along != 0)
    {
        add(strainedSums_, along);
    }
}

template<class Real>
void PeriodicM2l<Real>::Scratch::resize(int lanes, int harmonics, int places)
{
    if (!placed.empty())
    {
        return;
    }
    sums.resize(static_cast<size_t>(StrainCount) * lanes);
    weights.resize(4 * static_cast<size_t>(lanes));
    for (auto& ofOne : products)
    {
        ofOne.assign(static_cast<size_t>(harmonics) * lanes, Real(0));
    }
    placed.assign(2 * static_cast<size_t>(places) * lanes, Real(0));
}

template<class Real>
void PeriodicM2l<Real>::multiply(std::array<double, StrainCount>* virial)
{
    if (virial == nullptr)
    {
        convolution_.multiply();
        return;
    }
    const int harmonics = coefficientCount(operators_.strainDegree());
    const int blocks    = static_cast<int>(convolution_.blocks().size());
    // by block, not by thread: the sum does not depend on the team
    std::vector<std::array<double, StrainCount>> partial(blocks);
    team_.forTasks(blocks,
                   [&](int b, int thread)
                   {
                       Scratch& scratch = scratch_[thread];
                       scratch.resize(lanes_, harmonics, products_.places);
                       for (int copy = 0; copy < operators_.copies(); copy++)
                       {
                           convolution_.multiply(b,
                                                 copy,
                                                 &scratch.ofCopy,
                                                 [&](const Real* x)
                                                 {
                                                     cpuKernels<Real>().products(
                                                             products_,
                                                             x,
                                                             scratch.placed.data(),
                                                             scratch.products[copy].data());
                                                 });
                       }
                       addVirial(b, &scratch, &partial[b]);
                   });
    for (const auto& own : partial)
    {
        for (int c = 0; c < StrainCount; c++)
        {
            (*virial)[c] += own[c];
        }
    }
}

template<class Real>
void PeriodicM2l<Real>::apply(const Real* M,
                              Real* L,
                              int stride,
                              std::array<double, StrainCount>* virial)
{
    const int n = coefficientCount(operators_.reduction().order());
    forward(M, stride, 0, n);
    multiply(virial);
    backward(L, stride, 0, n);
}

template class PeriodicM2l<float>;
template class PeriodicM2l<double>;

} // namespace farfield
