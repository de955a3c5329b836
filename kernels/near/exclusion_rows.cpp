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

void checkExcludedPairs(long long pairs)
{
    // both ways an int counts them, and some more
    constexpr long long c_most = 1000000000;
    if (pairs > c_most)
    {
        throw Error(
                ErrorCode::Unsupported,
                "More than a billion excluded pairs are not supported on the GPU; use the device "
                "'cpu'.",
                "device");
    }
}

void ExclusionRows::set(const int* offsets, const int* partners, int n, int threads)
{
    if (n > 0)
    {
        checkExcludedPairs(offsets[n]);
    }
    // calls visit(i, j) for the partners j of i
    const auto forRow = [&](int i, const auto& visit)
    {
        for (int k = offsets[i]; k < offsets[i + 1]; k++)
        {
            if (partners[k] != i)
            {
                visit(i, partners[k]);
            }
        }
    };
    first_.assign(static_cast<size_t>(n) + 1, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        int length = 0;
        forRow(i,
               [&](int /*i*/, int j)
               {
                   length++;
#pragma omp atomic
                   first_[j + 1]++;
               });
#pragma omp atomic
        first_[i + 1] += length;
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    next_.assign(first_.begin(), first_.end() - 1);
    all_.resize(first_.back());
    const auto put = [&](int i, int j)
    {
        int at = 0;
#pragma omp atomic capture
        at       = next_[i]++;
        all_[at] = j;
    };
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        forRow(i,
               [&](int one, int other)
               {
                   put(one, other);
                   put(other, one);
               });
    }
    // in an order that no thread has a say in, and as the near field searches for partners
    offsets_.assign(static_cast<size_t>(n) + 1, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        const auto begin = all_.begin() + first_[i], end = all_.begin() + first_[i + 1];
        std::sort(begin, end);
        offsets_[i + 1] = static_cast<int>(std::unique(begin, end) - begin);
    }
    longest_ = *std::max_element(offsets_.begin(), offsets_.end());
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    partners_.resize(offsets_.back());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        std::copy_n(all_.begin() + first_[i],
                    offsets_[i + 1] - offsets_[i],
                    partners_.begin() + offsets_[i]);
    }
}

} // namespace farfield
