/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cell_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "farfield/farfield.h"

#include "threads.h"

namespace farfield
{

template<class Real>
void CellList<Real>::sort(const Grid& grid,
                          const std::array<double, 3>& offset,
                          const Mat3& rotation,
                          const Real* x,
                          const Real* q,
                          int n,
                          int threads)
{
    const int cells   = static_cast<int>(grid.count());
    const Mat3 G      = grid.edges();
    const Mat3 I      = rotation.transpose() * grid.inverseEdges();
    const Int3 length = { grid.H()[0][0], grid.H()[1][1], grid.H()[2][2] };
    // a histogram per thread: not more of them than the particles are worth. All threads take part,
    // or the others would end, and what the caller has pinned to a core with them.
    const int histograms = std::max(1, std::min<int>(threads, 1 + 8LL * n / std::max(cells, 1)));
    const auto stretch   = [&](int thread)
    { return static_cast<int>(static_cast<long long>(n) * thread / histograms); };

    cell_.resize(n);
    relative_.resize(3 * static_cast<size_t>(n));
    counts_.resize(histograms);
    start_.resize(cells + 1);
    // vectors may read behind the last particle
    const size_t padded = static_cast<size_t>(n) + 2 * c_slotPadding;
    x_.resize(padded);
    y_.resize(padded);
    z_.resize(padded);
    q_.resize(padded);
    atom_.resize(n);

    constexpr int c_none = std::numeric_limits<int>::max();
    int invalid          = c_none;
    FirstException failure;
#pragma omp parallel for schedule(static, 1) num_threads(threads) reduction(min : invalid)
    for (int thread = 0; thread < histograms; thread++)
    {
        auto& count = counts_[thread];
        failure.run([&] { count.assign(cells, 0); });
        if (failure.any())
        {
            continue;
        }
        for (int i = stretch(thread); i < stretch(thread + 1); i++)
        {
            const double r[3] = { static_cast<double>(x[3 * i]),
                                  static_cast<double>(x[3 * i + 1]),
                                  static_cast<double>(x[3 * i + 2]) };
            const double s[3] = { r[0] * I(0, 0) + r[1] * I(1, 0) + r[2] * I(2, 0) - offset[0],
                                  r[0] * I(0, 1) + r[1] * I(1, 1) + r[2] * I(2, 1) - offset[1],
                                  r[0] * I(0, 2) + r[1] * I(1, 2) + r[2] * I(2, 2) - offset[2] };
            double f[3];
            Int3 c;
            bool finite = true;
            for (int k = 0; k < 3; k++)
            {
                // beyond this a cell index is meaningless; NaN fails the comparison too
                if (!(std::abs(s[k]) < 1e9))
                {
                    finite = false;
                    break;
                }
                const int truncated = static_cast<int>(s[k]);
                c[k]                = truncated - (s[k] < truncated);
                f[k]                = s[k] - c[k] - 0.5;
            }
            if (!finite)
            {
                invalid = std::min(invalid, i);
                continue;
            }
            const bool inside = c[0] >= 0 && c[1] >= 0 && c[2] >= 0 && c[0] < length[0]
                                && c[1] < length[1] && c[2] < length[2];
            const int cell = grid.index(inside ? c : grid.reduce(c));
            cell_[i]       = cell;
            for (int k = 0; k < 3; k++)
            {
                relative_[3 * static_cast<size_t>(i) + k] =
                        static_cast<Real>(f[0] * G(0, k) + f[1] * G(1, k) + f[2] * G(2, k));
            }
            count[cell]++;
        }
    }
    failure.rethrow();
    if (invalid != c_none)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The position of particle " + std::to_string(invalid) + " ("
                            + std::to_string(x[3 * invalid]) + ", "
                            + std::to_string(x[3 * invalid + 1]) + ", "
                            + std::to_string(x[3 * invalid + 2])
                            + ") is not finite or lies more than a billion cells outside the box.");
    }

    // Counts become the first position of each thread's share of a cell.
    int total = 0;
    occupied_.clear();
    for (int cell = 0; cell < cells; cell++)
    {
        start_[cell] = total;
        for (auto& count : counts_)
        {
            const int mine = count[cell];
            count[cell]    = total;
            total += mine;
        }
        if (total > start_[cell])
        {
            occupied_.push_back(cell);
        }
    }
    start_[cells] = total;

#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int thread = 0; thread < histograms; thread++)
    {
        auto& next = counts_[thread];
        for (int i = stretch(thread); i < stretch(thread + 1); i++)
        {
            const int to = next[cell_[i]]++;
            x_[to]       = relative_[3 * static_cast<size_t>(i)];
            y_[to]       = relative_[3 * static_cast<size_t>(i) + 1];
            z_[to]       = relative_[3 * static_cast<size_t>(i) + 2];
            q_[to]       = q[i];
            atom_[to]    = i;
        }
    }
}

template class CellList<float>;
template class CellList<double>;

} // namespace farfield
