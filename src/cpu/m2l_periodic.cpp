/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/m2l_periodic.h"

#include <algorithm>
#include <cmath>

#include "cpu/cpu_kernels.h"

namespace farfield
{

template<class Real>
PeriodicM2l<Real>::PeriodicM2l(const Grid& grid,
                               Boundary boundary,
                               int ws,
                               const Reduction& reduction,
                               Team* team,
                               const Share& share) :
    operators_(grid, boundary, ws, reduction, 2 * virialOrder(reduction), team->threads()),
    team_(*team), scratch_(team->threads()), lanes_(cpuKernels<Real>().lanes), share_(share),
    products_(virialOrder(reduction), reduction), transform_(grid.lengths())
{
    listBlocks();
    // in this order: twice the strain sums and all operators are never there at once
    strainSums_ = packed(operators_.strainSums());
    operators_.releaseStrainSums();
    packOperators();
    spectrum_.assign(2 * static_cast<size_t>(transform_.spectrumStride())
                             * coefficientCount(reduction.order()),
                     Real(0));
}

template<class Real>
void PeriodicM2l<Real>::listBlocks()
{
    first_          = share_.begin(allBlocks()) * lanes_;
    const int count = operators_.representatives() - first_;
    blocks_.resize(share_.end(allBlocks()) - share_.begin(allBlocks()));
    for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
    {
        Block& block  = blocks_[b];
        block.members = std::min(lanes_, count - b * lanes_);
        std::fill_n(&block.waves[0][0], 4 * 16, -1);
        for (int lane = 0; lane < block.members; lane++)
        {
            for (int copy = 0; copy < operators_.copies(); copy++)
            {
                block.waves[copy][lane] = operators_.wave(first_ + b * lanes_ + lane, copy);
            }
        }
    }
}

template<class Real>
std::vector<int> PeriodicM2l<Real>::waves(const Share& share) const
{
    std::vector<int> all;
    const int end = std::min(share.end(allBlocks()) * lanes_, operators_.representatives());
    for (int k = share.begin(allBlocks()) * lanes_; k < end; k++)
    {
        for (int copy = 0; copy < operators_.copies(); copy++)
        {
            const int wave = operators_.wave(k, copy);
            if (wave >= 0)
            {
                all.push_back(wave);
            }
        }
    }
    return all;
}

template<class Real>
AlignedVector<Real>
PeriodicM2l<Real>::packed(const typename PeriodicM2lOperators<Real>::StrainSums& sums) const
{
    const size_t harmonics = coefficientCount(operators_.strainDegree());
    const Real factor = static_cast<Real>(1.0 / static_cast<double>(operators_.grid().count()));
    AlignedVector<Real> result(blocks_.size() * harmonics * StrainCount * lanes_, Real(0));
    const int members = std::min(static_cast<int>(blocks_.size()) * lanes_,
                                 operators_.representatives() - first_);
    for (int k = 0; k < members; k++)
    {
        Real* out = result.data() + k / lanes_ * harmonics * StrainCount * lanes_ + k % lanes_;
        for (size_t i = 0; i < harmonics; i++)
        {
            for (int c = 0; c < StrainCount; c++, out += lanes_)
            {
                *out = factor * sums[c](first_ + k, i);
            }
        }
    }
    return result;
}

template<class Real>
void PeriodicM2l<Real>::packOperators()
{
    const int n        = coefficientCount(operators_.reduction().order());
    const size_t pairs = static_cast<size_t>(n) * (n + 1) / 2;
    kappa_.assign(blocks_.size() * pairs * lanes_, Real(0));
    // What symmetry makes zero comes out as products of roundings. In single precision its products
    // with multipoles would be subnormal numbers, which processors are slow with.
    constexpr double c_nothing = 1e-25;
    const int end              = std::min(first_ + static_cast<int>(blocks_.size()) * lanes_,
                             operators_.representatives());
    operators_.forEachKappa(first_,
                            std::max(first_, end),
                            [&](int representative, const Matrix& K)
                            {
                                const int k = representative - first_;
                                Real* out =
                                        kappa_.data() + k / lanes_ * pairs * lanes_ + k % lanes_;
                                forPackedPairs(n,
                                               [&](int i, int j)
                                               {
                                                   const double value = K(i, j);
                                                   *out               = static_cast<Real>(
                                                           std::abs(value) < c_nothing ? 0 : value);
                                                   out += lanes_;
                                               });
                            });
    operators_.releaseSums();
}

template<class Real>
void PeriodicM2l<Real>::setStrain(const Mat3& strain)
{
    if (unstrained_.empty())
    {
        unstrained_.assign(kappa_.begin(), kappa_.end());
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
                                   kappa_[position + lane] = unstrained_[position + lane]
                                                             + v0 * w0[lane] + v1 * w1[lane];
                               }
                               position += lanes_;
                           });
        }
    };
    team_.forRanges(static_cast<int>(blocks_.size()), 1, strainBlocks);
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
        for (int lane = 0; lane < blocks_[block].members; lane++)
        {
            const int wave = blocks_[block].waves[copy][lane];
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
void PeriodicM2l<Real>::gather(const Block& block, int copy, Real* x) const
{
    const int p        = operators_.reduction().order();
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    const int* waves   = block.waves[copy];
    const auto& signs  = operators_.signs(copy);
    // for lanes without a wave vector: one that no other thread writes
    const int any = *std::find_if(waves, waves + lanes_, [](int w) { return w >= 0; });
    for (int l = 0; l <= p; l++)
    {
        const bool swap   = l % 2;
        const Real signRe = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
        const Real signIm = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
        for (int j = l * l; j < (l + 1) * (l + 1); j++)
        {
            const Real* field = spectrum_.data() + j * width;
            Real* re          = x + 2 * lanes_ * j;
            const Real fRe    = signRe * signs[j];
            const Real fIm    = signIm * signs[j];
            for (int lane = 0; lane < lanes_; lane++)
            {
                const int w       = waves[lane] < 0 ? any : waves[lane];
                const Real a      = field[2 * w];
                const Real c      = field[2 * w + 1];
                re[lane]          = fRe * (swap ? c : a);
                re[lanes_ + lane] = fIm * (swap ? a : c);
            }
        }
    }
}

template<class Real>
void PeriodicM2l<Real>::scatter(const Block& block, int copy, const Real* y)
{
    const int p        = operators_.reduction().order();
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    const int* waves   = block.waves[copy];
    const auto& signs  = operators_.signs(copy);
    for (int l = 0; l <= p; l++)
    {
        const bool swap   = l % 2;
        const Real signRe = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
        const Real signIm = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
        for (int j = l * l; j < (l + 1) * (l + 1); j++)
        {
            Real* field    = spectrum_.data() + j * width;
            const Real* re = y + 2 * lanes_ * j;
            const Real fRe = signRe * signs[j];
            const Real fIm = signIm * signs[j];
            for (int lane = 0; lane < lanes_; lane++)
            {
                const int w = waves[lane];
                if (w >= 0)
                {
                    field[2 * w]     = fRe * (swap ? re[lanes_ + lane] : re[lane]);
                    field[2 * w + 1] = fIm * (swap ? re[lane] : re[lanes_ + lane]);
                }
            }
        }
    }
}

template<class Real>
void PeriodicM2l<Real>::multiply(int b, int copy, bool virial, Scratch* scratch)
{
    const int n        = coefficientCount(operators_.reduction().order());
    const size_t pairs = static_cast<size_t>(n) * (n + 1) / 2;
    const Block& block = blocks_[b];
    const int* waves   = block.waves[copy];
    if (std::all_of(waves, waves + lanes_, [](int w) { return w < 0; }))
    {
        return;
    }
    gather(block, copy, scratch->x.data());
    cpuKernels<Real>().multiply(
            kappa_.data() + b * pairs * lanes_, n, scratch->x.data(), scratch->y.data());
    if (virial)
    {
        cpuKernels<Real>().products(products_,
                                    scratch->x.data(),
                                    scratch->placed.data(),
                                    scratch->products[copy].data());
    }
    scatter(block, copy, scratch->y.data());
}

template<class Real>
void PeriodicM2l<Real>::Scratch::resize(int coefficients, int lanes, int harmonics, int places)
{
    x.resize(2 * static_cast<size_t>(coefficients) * lanes);
    y.resize(x.size());
    if (harmonics == 0 || !placed.empty())
    {
        return;
    }
    sums.resize(static_cast<size_t>(StrainCount) * lanes);
    weights.resize(4 * static_cast<size_t>(lanes));
    for (auto& ofCopy : products)
    {
        ofCopy.assign(static_cast<size_t>(harmonics) * lanes, Real(0));
    }
    placed.assign(2 * static_cast<size_t>(places) * lanes, Real(0));
}

template<class Real>
void PeriodicM2l<Real>::forward(const Real* fields, int stride, int first, int last)
{
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    team_.forTasks(last - first,
                   [&](int i, int /*thread*/)
                   {
                       transform_.forward(fields + static_cast<size_t>(i) * stride,
                                          spectrum_.data() + (first + i) * width);
                   });
}

template<class Real>
void PeriodicM2l<Real>::backward(Real* fields, int stride, int first, int last)
{
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    team_.forTasks(last - first,
                   [&](int i, int /*thread*/)
                   {
                       transform_.backward(spectrum_.data() + (first + i) * width,
                                           fields + static_cast<size_t>(i) * stride);
                   });
}

template<class Real>
void PeriodicM2l<Real>::multiply(std::array<double, StrainCount>* virial)
{
    const int n          = coefficientCount(operators_.reduction().order());
    const int harmonics  = virial != nullptr ? coefficientCount(operators_.strainDegree()) : 0;
    const int copies     = operators_.copies();
    const auto scratchOf = [&](int thread)
    {
        scratch_[thread].resize(n, lanes_, harmonics, products_.places);
        return &scratch_[thread];
    };
    const int blocks = static_cast<int>(blocks_.size());
    if (virial == nullptr)
    {
        // copies of a block, which share its operators, stand side by side
        team_.forTasks(blocks * copies,
                       [&](int task, int thread)
                       { multiply(task / copies, task % copies, false, scratchOf(thread)); });
        return;
    }
    // by block, not by thread: the sum does not depend on the team
    std::vector<std::array<double, StrainCount>> partial(blocks);
    team_.forTasks(blocks,
                   [&](int b, int thread)
                   {
                       Scratch* scratch = scratchOf(thread);
                       for (int copy = 0; copy < copies; copy++)
                       {
                           multiply(b, copy, true, scratch);
                       }
                       addVirial(b, scratch, &partial[b]);
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
