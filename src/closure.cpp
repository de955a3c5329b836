/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "closure.h"

#include <algorithm>
#include <cmath>

#include <omp.h>

#include "cpu_kernels.h"

namespace farfield
{
namespace
{

//! Ewald parameter of the lattice sums: with many wave vectors, more real-space terms and fewer
//! waves.
double ewaldParameter(int waves)
{
    return waves > 5000 ? 0.55 : 1.0;
}
//! Truncation of the lattice sums.
template<class Real>
constexpr double c_precision = sizeof(Real) == 4 ? 1e-10 : 1e-17;

} // namespace

template<class Real>
FftClosure<Real>::FftClosure(const Grid& grid, int ws, const Reduction& reduction, int threads) :
    grid_(grid), reduction_(reduction), threads_(threads), lanes_(cpuKernels<Real>().lanes),
    copies_(1), transform_(grid.lengths()), entries_(m2lEntries(reduction.highOrder()))
{
    findBlocks();
    auto sums = latticeSums<Real>(grid_,
                                  ws,
                                  2 * reduction_.highOrder(),
                                  representatives_,
                                  c_precision<Real>,
                                  ewaldParameter(static_cast<int>(representatives_.size())),
                                  threads_);
    pack(sums);
    spectrum_.assign(2 * static_cast<size_t>(transform_.spectrumStride())
                             * coefficientCount(reduction_.order()),
                     Real(0));
    strainSums_ = std::move(sums.strain);
}

template<class Real>
void FftClosure<Real>::findBlocks()
{
    // In a rectangular box the reflections of y and z map wave vectors on each other and only
    // change signs of coefficients; the transform itself has already paired those related by
    // inversion.
    const IntMat& H = grid_.H();
    const bool rectangular =
            H[1][0] == 0 && H[2][0] == 0 && H[2][1] == 0 && grid_.edges().isDiagonal(1e-10);
    const Int3 N     = grid_.lengths();
    const int half   = N[2] / 2 + 1;
    copies_          = rectangular ? 4 : 1;
    const int rangeZ = rectangular ? N[0] / 2 + 1 : N[0];
    const int rangeY = rectangular ? N[1] / 2 + 1 : N[1];
    for (int z = 0; z < rangeZ; z++)
    {
        for (int y = 0; y < rangeY; y++)
        {
            for (int x = 0; x < half; x++)
            {
                if (blocks_.empty() || blocks_.back().members == lanes_)
                {
                    blocks_.emplace_back();
                    blocks_.back().members = 0;
                    std::fill_n(&blocks_.back().waves[0][0], 4 * 16, -1);
                }
                Block& block   = blocks_.back();
                const int lane = block.members++;
                representatives_.push_back((z * N[1] + y) * half + x);
                for (int copy = 0; copy < copies_; copy++)
                {
                    const int cz = (copy & 1) ? (N[0] - z) % N[0] : z;
                    const int cy = (copy & 2) ? (N[1] - y) % N[1] : y;
                    // a wave vector on a mirror plane is its own image
                    const bool repeated     = ((copy & 1) && cz == z) || ((copy & 2) && cy == y);
                    block.waves[copy][lane] = repeated ? -1 : (cz * N[1] + cy) * half + x;
                }
            }
        }
    }
    const int n = coefficientCount(reduction_.highOrder());
    for (int copy = 0; copy < copies_; copy++)
    {
        signs_[copy].resize(n);
        for (int l = 0; l <= reduction_.highOrder(); l++)
        {
            for (int m = -l; m <= l; m++)
            {
                int sign = 1;
                if (copy & 1) // z -> -z
                {
                    sign *= ((l + m) % 2) ? -1 : 1;
                }
                if (copy & 2) // y -> -y
                {
                    sign *= (m < 0) ? -1 : 1;
                }
                signs_[copy][coefficientIndex(l, m)] = static_cast<Real>(sign);
            }
        }
    }
}

template<class Real>
void FftClosure<Real>::pack(const LatticeSums<Real>& sums)
{
    const int p         = reduction_.order();
    const int high      = reduction_.highOrder();
    const int n         = coefficientCount(p);
    const int N         = coefficientCount(high);
    const size_t pairs  = static_cast<size_t>(n) * (n + 1) / 2;
    const double factor = 1.0 / static_cast<double>(grid_.count());
    kappa_.assign(blocks_.size() * pairs * lanes_, Real(0));
    std::vector<double> phase(N);
    for (int j = 0; j < N; j++)
    {
        phase[j] = (degreeOf(j) % 2) ? -1 : 1;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
    for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
    {
        for (int lane = 0; lane < blocks_[b].members; lane++)
        {
            const int k = b * lanes_ + lane;
            Matrix T    = m2lMatrix(entries_, high, sums.value.row(k).data());
            for (int i = 0; i < N; i++)
            {
                for (int j = 0; j < N; j++)
                {
                    T(i, j) *= phase[j];
                }
            }
            if (representatives_[k] == 0)
            {
                for (int i = 1; i < std::min(4, N); i++)
                {
                    T(i, i) -= 4 * M_PI / 3;
                }
            }
            const Matrix K = reduction_.reduce(T, true);
            Real* out      = kappa_.data() + b * pairs * lanes_ + lane;
            forPackedPairs(n,
                           [&](int i, int j)
                           {
                               *out = static_cast<Real>(factor * K(i, j));
                               out += lanes_;
                           });
        }
    }
}

template<class Real>
void FftClosure<Real>::setStrain(const Mat3& strain)
{
    if (unstrained_.empty())
    {
        unstrained_.assign(kappa_.begin(), kappa_.end());
    }
    const int p         = reduction_.order();
    const int n         = coefficientCount(p);
    const int N         = coefficientCount(reduction_.highOrder());
    const size_t pairs  = static_cast<size_t>(n) * (n + 1) / 2;
    const double factor = 1.0 / static_cast<double>(grid_.count());
    // truncated operators suffice for a small correction
    const int degrees                = coefficientCount(2 * p);
    const double weight[StrainCount] = {
        strain(0, 0), strain(1, 1), 2 * strain(0, 1), 2 * strain(0, 2), 2 * strain(1, 2)
    };
#pragma omp parallel num_threads(threads_)
    {
        AlignedVector<Real> w(static_cast<size_t>(degrees) * lanes_);
#pragma omp for schedule(static)
        for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
        {
            std::fill(w.begin(), w.end(), Real(0));
            for (int lane = 0; lane < blocks_[b].members; lane++)
            {
                for (int c = 0; c < StrainCount; c++)
                {
                    for (int i = 0; i < degrees; i++)
                    {
                        w[i * lanes_ + lane] += static_cast<Real>(factor * weight[c])
                                                * strainSums_[c](b * lanes_ + lane, i);
                    }
                }
            }
            size_t position = b * pairs * lanes_;
            forPackedPairs(n,
                           [&](int i, int j)
                           {
                               const M2lEntry& e = entries_[static_cast<size_t>(i) * N + j];
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
}

template<class Real>
void FftClosure<Real>::contract(const Real* x,
                                int b,
                                int copy,
                                std::array<double, StrainCount>* virial) const
{
    // 1/2 X* (d kappa) X with d kappa linear in the lattice sums: gather what multiplies each sum
    const int n = coefficientCount(reduction_.order());
    const int N = coefficientCount(reduction_.highOrder());
    const int L = lanes_;
    AlignedVector<Real> lifted(2 * static_cast<size_t>(N) * L, Real(0));
    std::copy_n(x, 2 * n * L, lifted.begin());
    const auto& C = reduction_.phasedC();
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
    AlignedVector<Real> g(static_cast<size_t>(coefficientCount(2 * reduction_.highOrder())) * L,
                          Real(0));
    for (int i = 0; i < N; i++)
    {
        for (int j = i; j < N; j++)
        {
            const M2lEntry& e = entries_[static_cast<size_t>(i) * N + j];
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
        const double factor = 0.25 * grid_.multiplicity(blocks_[b].waves[copy][lane])
                              / static_cast<double>(grid_.count());
        for (int c = 0; c < StrainCount; c++)
        {
            // x has the signs of the copy: the strain of the representative, reflected
            const int axes[2] = { c_strainAxes[c][0], c_strainAxes[c][1] };
            double sum        = 0;
            const auto row    = strainSums_[c].row(b * L + lane);
            for (int i = 0; i < row.size(); i++)
            {
                sum += static_cast<double>(g[i * L + lane]) * row[i];
            }
            for (int axis : axes)
            {
                const bool mirrored = (axis == 2 && (copy & 1)) || (axis == 1 && (copy & 2));
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
    const int n        = coefficientCount(reduction_.order());
    const size_t pairs = static_cast<size_t>(n) * (n + 1) / 2;
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    std::vector<std::array<double, StrainCount>> partial(threads_);
#pragma omp parallel num_threads(threads_)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++)
        {
            transform_.forward(M + static_cast<size_t>(i) * stride, spectrum_.data() + i * width);
        }
        AlignedVector<Real> x(2 * static_cast<size_t>(n) * lanes_), y(x.size());
        std::array<double, StrainCount> own = {};
#pragma omp for schedule(static)
        for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
        {
            for (int copy = 0; copy < copies_; copy++)
            {
                const int* waves = blocks_[b].waves[copy];
                if (std::all_of(waves, waves + lanes_, [](int w) { return w < 0; }))
                {
                    continue;
                }
                // X_j = (-i)^l M_j, with the signs of the reflection
                for (int l = 0; l <= reduction_.order(); l++)
                {
                    const bool swap   = l % 2;
                    const Real signRe = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
                    const Real signIm = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
                    for (int j = l * l; j < (l + 1) * (l + 1); j++)
                    {
                        const Real* field = spectrum_.data() + j * width;
                        Real* re          = x.data() + 2 * lanes_ * j;
                        const Real fRe    = signRe * signs_[copy][j];
                        const Real fIm    = signIm * signs_[copy][j];
                        for (int lane = 0; lane < lanes_; lane++)
                        {
                            const int w       = std::max(waves[lane], 0);
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
                    contract(x.data(), b, copy, &own);
                }
                for (int l = 0; l <= reduction_.order(); l++)
                {
                    // Y = i^l (kappa X)
                    const bool swap   = l % 2;
                    const Real signRe = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
                    const Real signIm = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
                    for (int j = l * l; j < (l + 1) * (l + 1); j++)
                    {
                        Real* field    = spectrum_.data() + j * width;
                        const Real* re = y.data() + 2 * lanes_ * j;
                        const Real fRe = signRe * signs_[copy][j];
                        const Real fIm = signIm * signs_[copy][j];
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
        partial[omp_get_thread_num()] = own;
    }
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
