/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <cmath>

#include "base/fft.h"
#include "base/threads.h"
#include "operators/lattice_sums.h"
#include "operators/wave_sums.h"

namespace farfield
{
namespace
{

//! One image of a far cell.
struct FarCell
{
    int slot;
    Vec3 displacement; //!< in units of Grid::unit()
};

//! One image of each far cell: those nearer than half the box in each dimension.
std::vector<FarCell> farCells(const Grid& grid, int ws)
{
    std::vector<FarCell> cells;
    for (int i = 0; i < grid.count(); i++)
    {
        Int3 D       = grid.cell(i);
        int farthest = 0;
        bool isHalf  = false;
        for (int k = 0; k < 3; k++)
        {
            const int n = grid.H()[k][k];
            isHalf      = isHalf || (n > 1 && 2 * D[k] == n);
            D[k] -= 2 * D[k] > n ? n : 0;
            farthest = std::max(farthest, std::abs(D[k]));
        }
        if (!isHalf && farthest > ws)
        {
            cells.push_back({ grid.slot(D), grid.displacement(D) / grid.unit() });
        }
    }
    return cells;
}

} // namespace

Matrix openSums(const Grid& grid, int ws, int degree, const std::vector<int>& waves, int threads)
{
    constexpr size_t c_memory        = 64U << 20U; //!< of the terms at a time, numbers
    const std::vector<FarCell> cells = farCells(grid, ws);
    const int n                      = coefficientCount(degree);
    const int some =
            static_cast<int>(std::clamp<size_t>(c_memory / 8 / (cells.size() + 1), threads, n));
    const RealTransform<double> transform(grid.lengths());
    Matrix sums(waves.size(), n), terms(some, cells.size());
    FirstException failure;
    for (int first = 0; first < n; first += some)
    {
        const int last = std::min(n, first + some);
#pragma omp parallel num_threads(threads)
        {
            std::vector<double> v;
            AlignedVector<double> in, out;
            failure.run(
                    [&]
                    {
                        v.resize(n);
                        in.resize(grid.count());
                        out.resize(2LL * grid.waveVectors());
                    });
            const auto setTerms = [&](int c)
            {
                irregularHarmonics(degree, cells[c].displacement, v.data());
                for (int i = first; i < last; i++)
                {
                    terms(i - first, c) = v[i];
                }
            };
            const auto setSums = [&](int i)
            {
                std::fill(in.begin(), in.end(), 0.0);
                for (size_t c = 0; c < cells.size(); c++)
                {
                    in[cells[c].slot] = terms(i - first, c);
                }
                transform.forward(in.data(), out.data());
                const WaveSums of(degreeOf(i), out);
                for (size_t k = 0; k < waves.size(); k++)
                {
                    sums(k, i) = of.of(waves[k]);
                }
            };
#pragma omp for schedule(static)
            for (int c = 0; c < static_cast<int>(cells.size()); c++)
            {
                failure.run([&] { setTerms(c); });
            }
#pragma omp for schedule(dynamic)
            for (int i = first; i < last; i++)
            {
                failure.run([&] { setSums(i); });
            }
        }
    }
    failure.rethrow();
    return sums;
}

} // namespace farfield
