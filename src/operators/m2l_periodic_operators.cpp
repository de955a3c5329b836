/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/m2l_periodic_operators.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "operators/background.h"

namespace farfield
{
namespace
{

//! Ewald parameter of the lattice sums: with many wave vectors, more real-space terms and fewer
//! waves.
double ewaldParameter(double waves)
{
    return waves > 5000 ? 0.55 : 1.0;
}
//! Truncation of the lattice sums.
double truncation(int realSize)
{
    return realSize == 4 ? 1e-10 : 1e-17;
}

} // namespace

double realSpaceTerms(double representatives, int realSize)
{
    const auto terms = [](double ewald, int size)
    {
        const double radius = std::sqrt(-std::log(truncation(size))) / ewald;
        return 4 * M_PI / 3 * std::pow(radius, 3);
    };
    // asked for by each of thousands of candidates
    static const double ofFew[]  = { terms(ewaldParameter(0), 4), terms(ewaldParameter(0), 8) };
    static const double ofMany[] = { terms(ewaldParameter(1e9), 4), terms(ewaldParameter(1e9), 8) };
    const bool areFew            = ewaldParameter(representatives) == ewaldParameter(0);
    return (areFew ? ofFew : ofMany)[realSize == 4 ? 0 : 1];
}

double alongStrain(const Mat3& strain, const Mat3& end)
{
    const double square = end.squaredNorm();
    return square > 0 ? strain.cwiseProduct(end).sum() / square : 0;
}

template<class Real>
PeriodicM2lOperators<Real>::PeriodicM2lOperators(const Grid& grid,
                                                 Boundary boundary,
                                                 int ws,
                                                 const Reduction& reduction,
                                                 int strainDegree,
                                                 int threads) :
    grid_(grid),
    boundary_(boundary), ws_(ws), reduction_(reduction),
    strainDegree_(boundary == Boundary::Open ? 0 : strainDegree), threads_(threads),
    entries_(m2lEntries(reduction.highOrder()))
{
    findRepresentatives();
    LatticeSums<Real> all = sums(grid_, 2 * reduction_.highOrder());
    values_               = std::move(all.value);
    strainSums_           = std::move(all.strain);
}

template<class Real>
LatticeSums<Real> PeriodicM2lOperators<Real>::sums(const Grid& grid, int degree) const
{
    std::vector<int> first(waves_.size());
    std::transform(waves_.begin(), waves_.end(), first.begin(), [](const auto& w) { return w[0]; });
    if (boundary_ == Boundary::Open)
    {
        LatticeSums<Real> result;
        result.value = openSums(grid, ws_, degree, first, threads_);
        for (auto& strain : result.strain)
        {
            strain.setZero(representatives(), 1);
        }
        return result;
    }
    return latticeSums<Real>(grid,
                             boundary_,
                             ws_,
                             degree,
                             strainDegree_,
                             first,
                             truncation(sizeof(Real)),
                             ewaldParameter(representatives()),
                             threads_);
}

template<class Real>
typename PeriodicM2lOperators<Real>::StrainSums
PeriodicM2lOperators<Real>::strainSumsAt(const Mat3& strain) const
{
    Mat3 stretch = Mat3::Identity() + strain;
    if (copies_ > 1)
    {
        stretch = Mat3(stretch.diagonal().asDiagonal());
    }
    return sums(Grid(grid_.H(), grid_.box() * stretch), strainDegree_).strain;
}

template<class Real>
void PeriodicM2lOperators<Real>::findRepresentatives()
{
    const IntMat& H = grid_.H();
    const bool rectangular =
            H[1][0] == 0 && H[2][0] == 0 && H[2][1] == 0 && grid_.edges().isDiagonal(1e-10);
    const Int3 N   = grid_.lengths();
    const int half = N[2] / 2 + 1;
    copies_        = rectangular ? 4 : 1;
    ranges_        = { rectangular ? N[0] / 2 + 1 : N[0], rectangular ? N[1] / 2 + 1 : N[1], half };
    for (int z = 0; z < ranges_[0]; z++)
    {
        for (int y = 0; y < ranges_[1]; y++)
        {
            for (int x = 0; x < half; x++)
            {
                waves_.push_back({ -1, -1, -1, -1 });
                for (int copy = 0; copy < copies_; copy++)
                {
                    const int cz = (copy & c_copyReflectsZ) ? (N[0] - z) % N[0] : z;
                    const int cy = (copy & c_copyReflectsY) ? (N[1] - y) % N[1] : y;
                    // a wave vector on a mirror plane is its own image
                    const bool repeated = ((copy & c_copyReflectsZ) && cz == z)
                                          || ((copy & c_copyReflectsY) && cy == y);
                    waves_.back()[copy] = repeated ? -1 : (cz * N[1] + cy) * half + x;
                }
            }
        }
    }
    for (int copy = 0; copy < copies_; copy++)
    {
        signs_[copy].resize(coefficientCount(reduction_.highOrder()));
        for (int l = 0; l <= reduction_.highOrder(); l++)
        {
            for (int m = -l; m <= l; m++)
            {
                int sign = 1;
                if (copy & c_copyReflectsZ)
                {
                    sign *= ((l + m) % 2) ? -1 : 1;
                }
                if (copy & c_copyReflectsY)
                {
                    sign *= (m < 0) ? -1 : 1;
                }
                signs_[copy][coefficientIndex(l, m)] = static_cast<Real>(sign);
            }
        }
    }
}

template<class Real>
Matrix PeriodicM2lOperators<Real>::kappa(int representative) const
{
    const int high      = reduction_.highOrder();
    const int N         = coefficientCount(high);
    const double factor = 1.0 / static_cast<double>(grid_.count());
    Matrix T            = m2lMatrix(entries_, high, values_.row(representative).data());
    for (int j = 0; j < N; j++)
    {
        if (degreeOf(j) % 2)
        {
            T.col(j) *= -1;
        }
    }
    if (boundary_ == Boundary::Periodic && wave(representative, 0) == 0)
    {
        for (int i = 1; i < std::min(4, N); i++)
        {
            T(i, i) += c_backgroundOfDipoles;
        }
    }
    Matrix K = reduction_.reduce(T, true);
    K *= factor;
    return K;
}

template<class Real>
void PeriodicM2lOperators<Real>::forEachKappa(
        int first,
        int last,
        const std::function<void(int, const Matrix&)>& use) const
{
    FirstException failure;
    // a few at a time: neighbours share cache lines where they are packed in lanes
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads_)
    for (int k = first; k < last; k++)
    {
        failure.run([&] { use(k, kappa(k)); });
    }
    failure.rethrow();
}

template class PeriodicM2lOperators<float>;
template class PeriodicM2lOperators<double>;

} // namespace farfield
