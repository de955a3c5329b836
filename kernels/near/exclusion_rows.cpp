/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "near/exclusion_rows.h"

#include <climits>

#include <algorithm>
#include <numeric>

#include "farfield/farfield.h"

namespace farfield
{

ExclusionRows exclusionRows(const int* offsets, const int* partners, int n, int threads)
{
    if (n > 0 && offsets[n] > INT_MAX / 2)
    {
        throw Error(
                ErrorCode::Unsupported,
                "More than a billion excluded pairs are not supported on the GPU; use the device "
                "'cpu'.");
    }
    const auto forPairs = [&](const auto& visit)
    {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int i = 0; i < n; i++)
        {
            for (int k = offsets[i]; k < offsets[i + 1]; k++)
            {
                if (partners[k] != i)
                {
                    visit(i, partners[k]);
                    visit(partners[k], i);
                }
            }
        }
    };
    std::vector<int> first(static_cast<size_t>(n) + 1, 0);
    forPairs(
            [&](int i, int /*j*/)
            {
#pragma omp atomic
                first[i + 1]++;
            });
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<int> next(first.begin(), first.end() - 1), all(first.back());
    forPairs(
            [&](int i, int j)
            {
                int at = 0;
#pragma omp atomic capture
                at      = next[i]++;
                all[at] = j;
            });
    // in an order that no thread has a say in, and as the near field searches for partners
    ExclusionRows rows;
    rows.offsets.assign(static_cast<size_t>(n) + 1, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        const auto begin = all.begin() + first[i], end = all.begin() + first[i + 1];
        std::sort(begin, end);
        rows.offsets[i + 1] = static_cast<int>(std::unique(begin, end) - begin);
    }
    rows.longest = *std::max_element(rows.offsets.begin(), rows.offsets.end());
    std::partial_sum(rows.offsets.begin(), rows.offsets.end(), rows.offsets.begin());
    rows.partners.resize(rows.offsets.back());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        std::copy_n(all.begin() + first[i],
                    rows.offsets[i + 1] - rows.offsets[i],
                    rows.partners.begin() + rows.offsets[i]);
    }
    return rows;
}

} // namespace farfield
