/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/direct_sums.h"

#include <algorithm>

#include "base/aligned_vector.h"
#include "pair_kernels/point_kernels.h"

namespace farfield
{

template<class Real>
std::vector<double> directSums(const PairKernel& kernel,
                               const PointSystem<Real>& system,
                               const Region& region,
                               const std::vector<int>& some,
                               Team* team)
{
    const double unit         = region.box(0, 0);
    const PairLaw<double> law = lawOf<double>(kernel, unit);
    constexpr double c_away   = 16; // no two points of a cube are so far apart
    const int staged          = (system.n + c_stagePadding - 1) / c_stagePadding * c_stagePadding;
    AlignedVector<double> x[3], q(static_cast<size_t>(system.sets) * staged, 0);
    for (int k = 0; k < 3; k++)
    {
        x[k].assign(staged, 2 * c_away);
        for (int i = 0; i < system.n; i++)
        {
            x[k][i] = (system.x[3 * static_cast<size_t>(i) + k] - region.origin[k]) / unit;
        }
    }
    for (size_t i = 0; i < static_cast<size_t>(system.n) * system.sets; i++)
    {
        q[i % system.sets * staged + i / system.sets] = static_cast<double>(system.q[i]);
    }
    const int count = static_cast<int>(some.size());
    std::vector<double> result(static_cast<size_t>(system.sets) * 4 * count, 0);
    // a point that acts on others is away for a while: each thread has its own places along x
    std::vector<AlignedVector<double>> along(team->threads());
    team->forTasks(count,
                   [&](int task, int thread)
                   {
                       if (along[thread].empty())
                       {
                           along[thread] = x[0];
                       }
                       const bool isOwn = system.areOwn();
                       const int i      = some[task];
                       double at[3];
                       for (int k = 0; k < 3; k++)
                       {
                           at[k] = isOwn ? x[k][i]
                                         : (system.at[3 * static_cast<size_t>(i) + k]
                                            - region.origin[k])
                                                   / unit;
                       }
                       std::vector<double> sums(4 * static_cast<size_t>(system.sets), 0);
                       PairTask<double> pairs{ &law,
                                               { &at[0], &at[1], &at[2], 1 },
                                               along[thread].data(),
                                               x[1].data(),
                                               x[2].data(),
                                               q.data(),
                                               staged,
                                               system.sets,
                                               isOwn ? i : -1,
                                               c_away,
                                               sums.data(),
                                               1 };
                       if (system.leftOut != nullptr)
                       {
                           pairs.awayStart = system.leftOut->offsets.data() + i;
                           pairs.away      = system.leftOut->partners.data();
                       }
                       pointKernels<double>().pairs(pairs);
                       for (size_t c = 0; c < sums.size(); c++)
                       {
                           const double factor      = c % 4 == 0 ? law.factor : law.factor / unit;
                           result[c * count + task] = factor * sums[c];
                       }
                   });
    return result;
}

template std::vector<double> directSums(const PairKernel&,
                                        const PointSystem<float>&,
                                        const Region&,
                                        const std::vector<int>&,
                                        Team*);
template std::vector<double> directSums(const PairKernel&,
                                        const PointSystem<double>&,
                                        const Region&,
                                        const std::vector<int>&,
                                        Team*);

} // namespace farfield
