/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The host's share of expansions.h: tables and operators, made by the code of the CPU backend.
#include <algorithm>
#include <utility>

#include "cells/grid.h"
#include "expansions/expansions.h"
#include "operators/child_translation.h"

namespace farfield
{
namespace
{

//! Positions of coefficients: those of even degree, so many, then those of odd degree.
std::vector<int> coefficientsByParity(int n, int* even)
{
    std::vector<int> result;
    for (int parity = 0; parity < 2; parity++)
    {
        for (int i = 0; i < n; i++)
        {
            if (degreeOf(i) % 2 == parity)
            {
                result.push_back(i);
            }
        }
        *even = (parity == 0) ? static_cast<int>(result.size()) : *even;
    }
    return result;
}

//! Per tile of rows of M2M: columns up to here are not all zero.
std::vector<int> termsOfRows(const std::vector<int>& rows, int tileRows)
{
    std::vector<int> terms(rows.size() / tileRows, 0);
    for (size_t r = 0; r < rows.size(); r++)
    {
        int& most = terms[r / tileRows];
        most      = std::max(most, rows[r] < 0 ? 0 : coefficientCount(degreeOf(rows[r])));
    }
    return terms;
}

//! [tiles][2] for the tiles of rows of L2L: columns of each parity before these are zero.
std::vector<int> firstColumns(const std::vector<int>& byParity, int even, int tiles, int tileRows)
{
    std::vector<int> first;
    for (int tile = 0; tile < tiles; tile++)
    {
        const auto isZero = [degree = degreeOf(tile * tileRows)](int column)
        { return degreeOf(column) < degree; };
        const auto begin = byParity.begin();
        for (const auto& [from, to] :
             { std::pair(begin, begin + even), std::pair(begin + even, byParity.end()) })
        {
            first.push_back(static_cast<int>(std::find_if_not(from, to, isZero) - begin));
        }
    }
    return first;
}

} // namespace

template<class Real>
void DeviceExpansionTables<Real>::set(int order, double unit, cudaStream_t stream)
{
    inverseUnit_ = static_cast<Real>(1 / unit);
    if (order == order_)
    {
        return;
    }
    const MonicRecurrence monic(order);
    const int rows = order + 1;
    std::vector<Real> scale(static_cast<size_t>(rows) * rows, Real(0));
    for (int m = 0; m <= order; m++)
    {
        for (int l = m; l <= order; l++)
        {
            scale[m * rows + l - m] = static_cast<Real>(monic.scale[coefficientIndex(l, m)]);
        }
    }
    scale_.upload(scale.data(), scale.size(), stream);
    order_ = order;
}

template<class Real>
void DeviceTranslations<Real>::set(int order, const Mat3& edges, cudaStream_t stream)
{
    const int n = coefficientCount(order);
    int even    = 0;
    // coefficients of even degree, then the others
    const std::vector<int> byParity = coefficientsByParity(n, &even);
    std::vector<int> rows(byParity.begin(), byParity.begin() + even);
    rows.resize((even + c_tile - 1) / c_tile * c_tile, -1);
    upEvenTiles_ = static_cast<int>(rows.size()) / c_tile;
    rows.insert(rows.end(), byParity.begin() + even, byParity.end());
    rows.resize((rows.size() + c_tile - 1) / c_tile * c_tile, -1);
    upTiles_   = static_cast<int>(rows.size()) / c_tile;
    downTiles_ = (n + c_tile - 1) / c_tile;

    std::vector<Real> up(static_cast<size_t>(upTiles_) * 4 * n * c_tile, Real(0));
    std::vector<Real> down(static_cast<size_t>(downTiles_) * 4 * n * c_tile, Real(0));
    for (int o = 0; o < 8; o++)
    {
        const Vec3 s = childShift(o, edges);
        std::copy_n(s.data(), 3, shifts_[o]);
        if (o >= 4)
        {
            continue;
        }
        const Matrix S = childTranslation(order, s);
        for (size_t r = 0; r < rows.size(); r++)
        {
            for (int j = 0; j < n && rows[r] >= 0; j++)
            {
                up[((r / c_tile * 4 + o) * n + j) * c_tile + r % c_tile] =
                        static_cast<Real>(S(rows[r], j));
            }
        }
        for (int i = 0; i < n; i++)
        {
            const size_t tile = static_cast<size_t>(o) * downTiles_ + i / c_tile;
            for (int j = 0; j < n; j++)
            {
                down[(tile * n + j) * c_tile + i % c_tile] =
                        static_cast<Real>(0.5 * S(byParity[j], i));
            }
        }
    }
    const std::vector<int> terms = termsOfRows(rows, c_tile);
    const std::vector<int> first = firstColumns(byParity, even, downTiles_, c_tile);
    order_                       = order;
    downEvenColumns_             = even;
    up_.upload(up.data(), up.size(), stream);
    upRows_.upload(rows.data(), rows.size(), stream);
    upTerms_.upload(terms.data(), terms.size(), stream);
    down_.upload(down.data(), down.size(), stream);
    downColumns_.upload(byParity.data(), byParity.size(), stream);
    downFirst_.upload(first.data(), first.size(), stream);
    setGradient(order, stream);
}

template<class Real>
void DeviceTranslations<Real>::setGradient(int order, cudaStream_t stream)
{
    std::vector<TranslationGradient> gradient;
    const std::vector<DerivativeTerm> derivatives = derivativeTerms(order);
    for (int axis = 0; axis < 3; axis++)
    {
        for (const DerivativeTerm& t : derivatives)
        {
            if (t.axis == axis)
            {
                gradient.push_back({ t.from, t.to, t.value });
            }
        }
        gradientEnd_[axis] = static_cast<int>(gradient.size());
    }
    gradient_.upload(gradient.data(), gradient.size(), stream);
}

template void DeviceTranslations<float>::set(int, const Mat3&, cudaStream_t);
template void DeviceTranslations<double>::set(int, const Mat3&, cudaStream_t);
template class DeviceExpansionTables<float>;
template class DeviceExpansionTables<double>;

} // namespace farfield
