/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/own_particles.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace farfield
{

template<class Real>
WholeSystem<Real>::WholeSystem(const SystemOfRanks<Real>& system) :
    charges(system.charges, system.charges + system.count)
{
    const auto n = static_cast<size_t>(system.count);
    excluded.offsets.assign(n + 1, 0);
    if (system.exclusionOffsets == nullptr)
    {
        return;
    }
    excluded.offsets.assign(system.exclusionOffsets, system.exclusionOffsets + n + 1);
    excluded.partners.assign(system.exclusionPartners,
                             system.exclusionPartners + system.exclusionOffsets[n]);
    const auto bad =
            std::find_if(excluded.partners.begin(),
                         excluded.partners.end(),
                         [&](int partner) { return partner < 0 || partner >= system.count; });
    if (bad != excluded.partners.end())
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The excluded partner " + std::to_string(*bad) + " is none of the "
                            + std::to_string(system.count) + " particles of the system.");
    }
}

template<class Real>
void OwnParticles<Real>::setIndex(const int* which, int n, const WholeSystem<Real>& system)
{
    const auto bad =
            std::find_if(which, which + n, [&](int i) { return i < 0 || i >= system.count(); });
    if (bad != which + n)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "There is no particle " + std::to_string(*bad) + " among the "
                            + std::to_string(system.count()) + " of the system.");
    }
    index.assign(which, which + n);
}

template<class Real>
void OwnParticles<Real>::lookUp(const WholeSystem<Real>& system, int threads)
{
    const int n = count();
    charges.resize(n);
    excluded.offsets.assign(static_cast<size_t>(n) + 1, 0);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        const int* row          = system.excluded.offsets.data() + index[i];
        charges[i]              = system.charges[index[i]];
        excluded.offsets[i + 1] = row[1] - row[0];
    }
    std::partial_sum(excluded.offsets.begin(), excluded.offsets.end(), excluded.offsets.begin());
    excluded.partners.resize(excluded.offsets.back());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < n; i++)
    {
        const int* row = system.excluded.offsets.data() + index[i];
        std::copy(system.excluded.partners.begin() + row[0],
                  system.excluded.partners.begin() + row[1],
                  excluded.partners.begin() + excluded.offsets[i]);
    }
}

template struct WholeSystem<float>;
template struct WholeSystem<double>;
template struct OwnParticles<float>;
template struct OwnParticles<double>;

} // namespace farfield
