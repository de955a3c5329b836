/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "closure.h"

#include <algorithm>

#include "cpu_kernels.h"
#include "threads.h"

namespace farfield
{

template<class Real>
FftClosure<Real>::FftClosure(const Grid& grid, int ws, const Reduction& reduction, int threads) :
    operators_(grid, ws, reduction, threads), threads_(threads), lanes_(cpuKernels<Real>().lanes),
    transform_(grid.lengths())
{
    pack();
    spectrum_.assign(2 * static_cast<size_t>(transform_.spectrumStride())
                             * coefficientCount(reduction.order()),
                     Real(0));
}

template<class Real>
void FftClosure<Real>::pack()
{
    const int count    = operators_.representatives();
    const int n        = coefficientCount(operators_.reduction().order());
    const size_t pairs = static_cast<size_t>(n) * (n + 1) / 2;
    blocks_.resize((count + lanes_ - 1) / lanes_);
    for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
    {
        Block& block  = blocks_[b];
        block.members = std::min(lanes_, count - b * lanes_);
        std::fill_n(&block.waves[0][0], 4 * 16, -1);
        for (int lane = 0; lane < block.members; lane++)
        {
            for (int copy = 0; copy < operators_.copies(); copy++)
            {
                block.waves[copy][lane] = operators_.wave(b * lanes_ + lane, copy);
            }
        }
    }
    kappa_.assign(blocks_.size() * pairs * lanes_, Real(0));
    operators_.forEachKappa(0,
                            count,
                            [&](int k, const Matrix& K)
                            {
                                Real* out =
                                        kappa_.data() + k / lanes_ * pairs * lanes_ + k % lanes_;
                                forPackedPairs(n,
                                               [&](int i, int j)
                                               {
                                                   *out = static_cast<Real>(K(i, j));
                                                   out += lanes_;
                                               });
                            });
    operators_.releaseSums();
}

template<class Real>
void FftClosure<Real>::setStrain(const Mat3& strain)
{
    if (unstrained_.empty())
    {
        unstrained_.assign(kappa_.begin(), kappa_.end());
    }
    const int p            = operators_.reduction().order();
    const int n            = coefficientCount(p);
    const int N            = coefficientCount(operators_.reduction().highOrder());
    const size_t pairs     = static_cast<size_t>(n) * (n + 1) / 2;
    const double factor    = 1.0 / static_cast<double>(operators_.grid().count());
    const auto& entries    = operators_.entries();
    const auto& strainSums = operators_.strainSums();
    // truncated operators suffice for a small correction
    const int degrees                = coefficientCount(2 * p);
    const double weight[StrainCount] = {
        strain(0, 0), strain(1, 1), 2 * strain(0, 1), 2 * strain(0, 2), 2 * strain(1, 2)
    };
    FirstException failure;
#pragma omp parallel num_threads(threads_)
    {
        AlignedVector<Real> w;
        failure.run([&] { w.resize(static_cast<size_t>(degrees) * lanes_); });
#pragma omp for schedule(static)
        for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
        {
            if (failure.any())
            {
                continue;
            }
            std::fill(w.begin(), w.end(), Real(0));
            for (int lane = 0; lane < blocks_[b].members; lane++)
            {
                for (int c = 0; c < StrainCount; c++)
                {
                    for (int i = 0; i < degrees; i++)
                    {
                        w[i * lanes_ + lane] += static_cast<Real>(factor * weight[c])
                                                * strainSums[c](b * lanes_ + lane, i);
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
    }
    failure.rethrow();
}

template<class Real>
void FftClosure<Real>::contract(const Real* x,
                                int b,
                                int copy,
                                std::array<double, StrainCount>* virial) const
{
    // 1/2 X* (d kappa) X with d kappa linear in the lattice sums: gather what multiplies each sum
    const Reduction& reduction = operators_.reduction();
    const Grid& grid           = operators_.grid();
    const auto& entries        = operators_.entries();
    const auto& strainSums     = operators_.strainSums();
    const int n                = coefficientCount(reduction.order());
    const int N                = coefficientCount(reduction.highOrder());
    const int L                = lanes_;
    AlignedVector<Real> lifted(2 * static_cast<size_t>(N) * L, Real(0));
    std::copy_n(x, 2 * n * L, lifted.begin());
    const auto& C = reduction.phasedC();
    for (int column = 0; column < C.outerSize(); column++)
    {
        for (Eigen::SparseMatrix<double>::InnerIterator it(C, column); it; ++it)
        {
            const Real value = static_cast<Real>(it.value());
            for (int e = 0; e < 2 * L; e++)
            {
                lifted[2 * L * (n + column) + e] += value * x[2 * L * it.row() + e];
            }
        }
    }
    AlignedVector<Real> g(static_cast<size_t>(coefficientCount(2 * reduction.highOrder())) * L,
                          Real(0));
    for (int i = 0; i < N; i++)
    {
        for (int j = i; j < N; j++)
        {
            const M2lEntry& e = entries[static_cast<size_t>(i) * N + j];
            const Real sign   = (degreeOf(j) % 2) ? -1 : 1;
            const Real twice  = sign * ((i == j) ? 1 : 2);
            const Real v0     = twice * static_cast<Real>(e.value[0]);
            const Real v1     = twice * static_cast<Real>(e.value[1]);
            const Real* xi    = lifted.data() + 2 * L * i;
            const Real* xj    = lifted.data() + 2 * L * j;
            Real* g0          = g.data() + e.index[0] * L;
            Real* g1          = g.data() + e.index[1] * L;
            for (int lane = 0; lane < L; lane++)
            {
                const Real t = xi[lane] * xj[lane] + xi[L + lane] * xj[L + lane];
                g0[lane] += v0 * t;
                g1[lane] += v1 * t;
            }
        }
    }
    for (int lane = 0; lane < blocks_[b].members; lane++)
    {
        if (blocks_[b].waves[copy][lane] < 0)
        {
            continue;
        }
        const double factor = 0.25 * grid.multiplicity(blocks_[b].waves[copy][lane])
                              / static_cast<double>(grid.count());
        for (int c = 0; c < StrainCount; c++)
        {
            // x has the signs of the copy: the strain of the representative, reflected
            const int axes[2] = { c_strainAxes[c][0], c_strainAxes[c][1] };
            double sum        = 0;
            const auto row    = strainSums[c].row(b * L + lane);
            for (int i = 0; i < row.size(); i++)
            {
                sum += static_cast<double>(g[i * L + lane]) * row[i];
            }
            for (int axis : axes)
            {
                const bool mirrored = (axis == 2 && (copy & c_copyReflectsZ))
                                      || (axis == 1 && (copy & c_copyReflectsY));
                sum *= (mirrored && axes[0] != axes[1]) ? -1 : 1;
            }
            (*virial)[c] += factor * sum;
        }
    }
}

template<class Real>
void FftClosure<Real>::apply(const Real* M,
                             Real* L,
                             int stride,
                             std::array<double, StrainCount>* virial)
{
    const int p        = operators_.reduction().order();
    const int n        = coefficientCount(p);
    const size_t pairs = static_cast<size_t>(n) * (n + 1) / 2;
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    // by block, not by thread: the sum does not depend on the team
    std::vector<std::array<double, StrainCount>> partial(virial != nullptr ? blocks_.size() : 0);
    FirstException failure;
#pragma omp parallel num_threads(threads_)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++)
        {
            transform_.forward(M + static_cast<size_t>(i) * stride, spectrum_.data() + i * width);
        }
        AlignedVector<Real> x, y;
        failure.run(
                [&]
                {
                    x.resize(2 * static_cast<size_t>(n) * lanes_);
                    y.resize(x.size());
                });
#pragma omp for schedule(static)
        for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
        {
            for (int copy = 0; copy < operators_.copies() && !failure.any(); copy++)
            {
                const int* waves  = blocks_[b].waves[copy];
                const auto& signs = operators_.signs(copy);
                // for lanes without a wave vector: one that no other thread writes
                const int any = blocks_[b].waves[0][0];
                if (std::all_of(waves, waves + lanes_, [](int w) { return w < 0; }))
                {
                    continue;
                }
                // X_j = (-i)^l M_j, with the signs of the reflection
                for (int l = 0; l <= p; l++)
                {
                    const bool swap   = l % 2;
                    const Real signRe = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
                    const Real signIm = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
                    for (int j = l * l; j < (l + 1) * (l + 1); j++)
                    {
                        const Real* field = spectrum_.data() + j * width;
                        Real* re          = x.data() + 2 * lanes_ * j;
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
                cpuKernels<Real>().multiply(
                        kappa_.data() + b * pairs * lanes_, n, x.data(), y.data());
                if (virial != nullptr)
                {
                    failure.run([&] { contract(x.data(), b, copy, &partial[b]); });
                }
                for (int l = 0; l <= p; l++)
                {
                    // Y = i^l (kappa X)
                    const bool swap   = l % 2;
                    const Real signRe = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
                    const Real signIm = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
                    for (int j = l * l; j < (l + 1) * (l + 1); j++)
                    {
                        Real* field    = spectrum_.data() + j * width;
                        const Real* re = y.data() + 2 * lanes_ * j;
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
        }
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++)
        {
            transform_.backward(spectrum_.data() + i * width, L + static_cast<size_t>(i) * stride);
        }
    }
    failure.rethrow();
    if (virial != nullptr)
    {
        for (const auto& own : partial)
        {
            for (int c = 0; c < StrainCount; c++)
            {
                (*virial)[c] += own[c];
            }
        }
    }
}

template class FftClosure<float>;
template class FftClosure<double>;

} // namespace farfield
