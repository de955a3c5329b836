/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/m2l_periodic_operators.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "operators/background.h"
#include "operators/m2l_list_operators.h"

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
    strainDegree_(boundary == Boundary::Open ? 0 : strainDegree), threads_(threads), waves_(grid),
    entries_(m2lEntries(reduction.highOrder()))
{
    for (int copy = 0; copy < copies(); copy++)
    {
        const auto signs = reflectionSigns(reduction_.highOrder(), axesOfCopy(copy));
        signs_[copy].assign(signs.begin(), signs.end());
    }
    LatticeSums<Real> all = sums(grid_, 2 * reduction_.highOrder());
    values_               = std::move(all.value);
    strainSums_           = std::move(all.strain);
}

template<class Real>
LatticeSums<Real> PeriodicM2lOperators<Real>::sums(const Grid& grid, int degree) const
{
    std::vector<int> first(representatives());
    for (int k = 0; k < representatives(); k++)
    {
        first[k] = wave(k, 0);
    }
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
    if (copies() > 1)
    {
        stretch = Mat3(stretch.diagonal().asDiagonal());
    }
    return sums(Grid(grid_.H(), grid_.box() * stretch), strainDegree_).strain;
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
