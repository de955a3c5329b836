/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The host's share of expansions.h: tables and operators, made by the code of the CPU backend.
#include <cmath>

#include <algorithm>

#include "cells/grid.h"
#include "expansions/expansions.h"
#include "operators/solid_harmonics.h"

namespace farfield
{

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
void DeviceTranslations<Real>::set(int order, const double edges[3][3], cudaStream_t stream)
{
    const int n = coefficientCount(order);
    Mat3 cell;
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            cell(i, j) = edges[i][j];
        }
    }
    std::vector<int> byParity;
    int even = 0;
    for (int parity = 0; parity < 2; parity++)
    {
        for (int i = 0; i < n; i++)
        {
            if (degreeOf(i) % 2 == parity)
            {
                byParity.push_back(i);
            }
        }
        even = (parity == 0) ? static_cast<int>(byParity.size()) : even;
    }

    std::vector<int> rows(byParity.begin(), byParity.begin() + even);
    rows.resize((even + c_tile - 1) / c_tile * c_tile, -1);
    upEvenTiles_ = static_cast<int>(rows.size()) / c_tile;
    rows.insert(rows.end(), byParity.begin() + even, byParity.end());
    rows.resize((rows.size() + c_tile - 1) / c_tile * c_tile, -1);
    upTiles_   = static_cast<int>(rows.size()) / c_tile;
    downTiles_ = (n + c_tile - 1) / c_tile;
    std::vector<int> terms(upTiles_, 0), first(2 * static_cast<size_t>(downTiles_), 0);
    for (int tile = 0; tile < upTiles_; tile++)
    {
        for (int r = 0; r < c_tile; r++)
        {
            const int row = rows[tile * c_tile + r];
            terms[tile]   = std::max(terms[tile], row < 0 ? 0 : coefficientCount(degreeOf(row)));
        }
    }
    for (int tile = 0; tile < downTiles_; tile++)
    {
        const int degree     = degreeOf(tile * c_tile);
        const auto firstFrom = [&](int begin, int end)
        {
            while (begin < end && degreeOf(byParity[begin]) < degree)
            {
                begin++;
            }
            return begin;
        };
        first[2 * tile]     = firstFrom(0, even);
        first[2 * tile + 1] = firstFrom(even, n);
    }

    std::vector<Real> up(static_cast<size_t>(upTiles_) * 4 * n * c_tile, Real(0));
    std::vector<Real> down(static_cast<size_t>(downTiles_) * 4 * n * c_tile, Real(0));
    for (int o = 0; o < 8; o++)
    {
        const Vec3 s = cell.transpose() * Vec3((o & 1) - 0.5, ((o >> 1) & 1) - 0.5, (o >> 2) - 0.5);
        for (int k = 0; k < 3; k++)
        {
            shifts_[o][k] = s[k];
        }
        if (o >= 4)
        {
            continue;
        }
        // u_i(a + s) in units of the parent, twice those of the child
        Matrix S = translation(order, s);
        for (int i = 0; i < n; i++)
        {
            S.row(i) *= std::pow(0.5, degreeOf(i));
        }
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
    order_           = order;
    downEvenColumns_ = even;
    up_.upload(up.data(), up.size(), stream);
    upRows_.upload(rows.data(), rows.size(), stream);
    upTerms_.upload(terms.data(), terms.size(), stream);
    down_.upload(down.data(), down.size(), stream);
    downColumns_.upload(byParity.data(), byParity.size(), stream);
    downFirst_.upload(first.data(), first.size(), stream);
    gradient_.upload(gradient.data(), gradient.size(), stream);
}

template void DeviceTranslations<float>::set(int, const double[3][3], cudaStream_t);
template void DeviceTranslations<double>::set(int, const double[3][3], cudaStream_t);
template class DeviceExpansionTables<float>;
template class DeviceExpansionTables<double>;

} // namespace farfield
