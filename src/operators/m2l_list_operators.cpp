/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/m2l_list_operators.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"

namespace farfield
{
namespace
{

//! to = S T S.
template<class Real>
void assignReflected(const Matrix& T, const std::vector<int>& signs, AlignedVector<Real>* to)
{
    const int n = static_cast<int>(T.rows());
    to->resize(T.size());
    Real* out = to->data();
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j < n; j++)
        {
            *out++ = static_cast<Real>(signs[i] * signs[j] * T(i, j));
        }
    }
}

} // namespace

std::vector<int> reflectionSigns(int order, int axes)
{
    std::vector<int> signs(coefficientCount(order), 1);
    for (int l = 0; l <= order; l++)
    {
        for (int m = -l; m <= l; m++)
        {
            int& sign = signs[coefficientIndex(l, m)];
            // (x + iy)^m goes to (-1)^m times its conjugate, to its conjugate, and stays; m < 0 is
            // the imaginary part
            sign *= (axes & 1) && ((m % 2 != 0) != (m < 0)) ? -1 : 1;
            sign *= (axes & 2) && m < 0 ? -1 : 1;
            sign *= (axes & 4) && (l + m) % 2 != 0 ? -1 : 1;
        }
    }
    return signs;
}

template<class Real>
ListM2lOperators<Real>::ListM2lOperators(const Mat3& scaledEdges,
                                         int ws,
                                         const Reduction& reduction,
                                         int threads) :
    edges_(scaledEdges),
    strained_(scaledEdges), ws_(ws), reduction_(reduction), threads_(threads),
    entries_(m2lEntries(reduction.highOrder()))
{
    listDisplacements();
    listImages();
    const int high = reduction_.highOrder();
    forAllImages(
            1,
            [&](const Vec3& D, Matrix* T)
            {
                std::vector<double> v(coefficientCount(2 * high));
                irregularHarmonics(2 * high, D, v.data());
                *T = reduction_.reduce(m2lMatrix(entries_, high, v.data()), false);
            },
            [&](const Image& image, int /*matrix*/, const std::vector<int>& signs, const Matrix& T)
            { assignReflected(T, signs, &operators_[image.k].T); });
    if (!reduction_.leastSquares())
    {
        buildNextRows();
    }
}

template<class Real>
void ListM2lOperators<Real>::buildNextRows()
{
    const int p        = reduction_.order();
    const int n        = coefficientCount(p);
    const auto entries = m2lEntries(p + 1);
    const auto build   = [&](Operator& op)
    {
        std::vector<double> v(coefficientCount(2 * p + 2));
        irregularHarmonics(
                2 * p + 2, edges_.transpose() * Vec3(op.D[0], op.D[1], op.D[2]), v.data());
        const Matrix rows = m2lMatrix(entries, p + 1, v.data()).bottomLeftCorner(2 * p + 3, n);
        op.next.assign(rows.data(), rows.data() + rows.size());
    };
    FirstException failure;
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (int k = 0; k < static_cast<int>(operators_.size()); k++)
    {
        failure.run([&] { build(operators_[k]); });
    }
    failure.rethrow();
}

template<class Real>
void ListM2lOperators<Real>::listDisplacements()
{
    const int reach = 2 * ws_ + 1;
    const int width = 2 * reach + 1;
    position_.assign(static_cast<size_t>(width) * width * width, -1);
    for (const ListDisplacement& next : interactionList(ws_))
    {
        const Int3& D = next.D;
        position_[((D[0] + reach) * width + D[1] + reach) * width + D[2] + reach] =
                static_cast<int>(operators_.size());
        operators_.push_back({ next, {}, {} });
    }
}

template<class Real>
int ListM2lOperators<Real>::find(const Int3& D) const
{
    const int reach = 2 * ws_ + 1;
    const int width = 2 * reach + 1;
    if (std::max({ std::abs(D[0]), std::abs(D[1]), std::abs(D[2]) }) > reach)
    {
        return -1;
    }
    return position_[((D[0] + reach) * width + D[1] + reach) * width + D[2] + reach];
}

template<class Real>
void ListM2lOperators<Real>::listImages()
{
    const bool rectangular = areRectangular(edges_);
    std::vector<bool> listed(operators_.size(), false);
    for (int k = static_cast<int>(operators_.size()) - 1; k >= 0; k--)
    {
        if (listed[k])
        {
            continue;
        }
        std::vector<Image> set;
        for (int axes = 0; axes < 8; axes += rectangular ? 1 : 7)
        {
            const int image = find(mirrored(operators_[k].D, axes));
            if (!listed[image])
            {
                listed[image] = true;
                set.push_back({ image, axes });
            }
        }
        images_.push_back(std::move(set));
    }
}

template<class Real>
template<class Build, class Take>
void ListM2lOperators<Real>::forAllImages(int matrices, const Build& build, const Take& take) const
{
    std::array<std::vector<int>, 8> signs;
    for (int axes = 0; axes < 8; axes++)
    {
        signs[axes] = reflectionSigns(reduction_.order(), axes);
    }
    FirstException failure;
#pragma omp parallel num_threads(threads_)
    {
        std::vector<Matrix> own;
        failure.run([&] { own.resize(matrices); });
        const auto buildSet = [&](int set)
        {
            const Int3& D = operators_[images_[set][0].k].D;
            build(edges_.transpose() * Vec3(D[0], D[1], D[2]), own.data());
            for (const Image& image : images_[set])
            {
                for (int c = 0; c < matrices; c++)
                {
                    take(image, c, signs[image.axes], own[c]);
                }
            }
        };
#pragma omp for schedule(dynamic)
        for (int set = 0; set < static_cast<int>(images_.size()); set++)
        {
            failure.run([&] { buildSet(set); });
        }
    }
    failure.rethrow();
}

template<class Real>
bool ListM2lOperators<Real>::reflections() const
{
    return areRectangular(edges_) && areRectangular(strained_);
}

template<class Real>
const std::array<AlignedVector<Real>, StrainCount>&
ListM2lOperators<Real>::strainDerivatives(int k) const
{
    if (strain_.empty())
    {
        const int high   = reduction_.highOrder();
        const int values = coefficientCount(2 * high);
        std::vector<std::array<AlignedVector<Real>, StrainCount>> built(operators_.size());
        forAllImages(
                StrainCount,
                [&](const Vec3& D, Matrix* dT)
                {
                    std::vector<double> out(static_cast<size_t>(1 + StrainCount) * values);
                    irregularStrain(2 * high, D, out.data());
                    for (int c = 0; c < StrainCount; c++)
                    {
                        const double* v = out.data() + (1 + c) * values;
                        dT[c]           = reduction_.reduce(m2lMatrix(entries_, high, v), false);
                    }
                },
                [&](const Image& image, int c, const std::vector<int>& signs, const Matrix& dT)
                {
                    // the strain is mirrored as well
                    int sign = 1;
                    for (int axis : c_strainAxes[c])
                    {
                        sign *= (image.axes >> axis) & 1 ? -1 : 1;
                    }
                    sign = (c_strainAxes[c][0] == c_strainAxes[c][1]) ? 1 : sign;
                    assignReflected(sign * dT, signs, &built[image.k][c]);
                });
        strain_ = std::move(built);
    }
    return strain_[k];
}

template<class Real>
void ListM2lOperators<Real>::setStrain(const Mat3& strain)
{
    strained_ = edges_ * (Mat3::Identity() + strain);
    if (unstrained_.empty())
    {
        for (const Operator& op : operators_)
        {
            unstrained_.push_back(op.T);
        }
    }
    const double weight[StrainCount] = {
        strain(0, 0), strain(1, 1), 2 * strain(0, 1), 2 * strain(0, 2), 2 * strain(1, 2)
    };
    // truncated operators suffice for a small correction
    const int p      = reduction_.order();
    const int n      = coefficientCount(p);
    const int N      = coefficientCount(reduction_.highOrder());
    const int values = coefficientCount(2 * p);
    FirstException failure;
#pragma omp parallel num_threads(threads_)
    {
        std::vector<double> out, change;
        failure.run(
                [&]
                {
                    out.resize(static_cast<size_t>(1 + StrainCount) * values);
                    change.resize(values);
                });
#pragma omp for schedule(static)
        for (int k = 0; k < static_cast<int>(operators_.size()); k++)
        {
            if (failure.any())
            {
                continue;
            }
            const Int3& D = operators_[k].D;
            failure.run(
                    [&] {
                        irregularStrain(
                                2 * p, edges_.transpose() * Vec3(D[0], D[1], D[2]), out.data());
                    });
            std::fill(change.begin(), change.end(), 0.0);
            for (int c = 0; c < StrainCount; c++)
            {
                for (int i = 0; i < values; i++)
                {
                    change[i] += weight[c] * out[(1 + c) * values + i];
                }
            }
            for (int i = 0; i < n; i++)
            {
                for (int j = 0; j < n; j++)
                {
                    const M2lEntry& e = entries_[static_cast<size_t>(i) * N + j];
                    operators_[k].T[static_cast<size_t>(i) * n + j] =
                            unstrained_[k][static_cast<size_t>(i) * n + j]
                            + static_cast<Real>(e.value[0] * change[e.index[0]]
                                                + e.value[1] * change[e.index[1]]);
                }
            }
        }
    }
    failure.rethrow();
}

template class ListM2lOperators<float>;
template class ListM2lOperators<double>;

} // namespace farfield
