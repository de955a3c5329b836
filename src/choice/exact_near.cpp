/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/exact_near.h"

#include <algorithm>

namespace farfield
{

template<class Real>
ExactNear::ExactNear(const PointCharges<Real>& particles,
                     const NearPairs<Real>& pairs,
                     const MinimumImage* image,
                     double coulombConstant)
{
    const int n                      = particles.n;
    const auto& [excluded, partners] = particles.excluded;
    std::vector<std::vector<int>> rows(n); // partners that come later
    for (int i = 0; i < n; i++)
    {
        for (int k = excluded[i]; k < excluded[i + 1]; k++)
        {
            rows[std::min(i, partners[k])].push_back(std::max(i, partners[k]));
        }
    }
    forces.assign(3 * static_cast<size_t>(n), 0.0);
    leftOut.offsets.assign(1, 0);
    for (int i = 0; i < n; i++)
    {
        std::sort(rows[i].begin(), rows[i].end());
        const Real* const at = particles.x + 3 * static_cast<size_t>(i);
        leftOut.partners.insert(leftOut.partners.end(), rows[i].begin(), rows[i].end());
        for (int j = i + 1; j < n; j++)
        {
            const double qq = coulombConstant * static_cast<double>(particles.q[i])
                              * static_cast<double>(particles.q[j]);
            const double width = pairs.width(i, j);
            if (qq == 0 || width == 0)
            {
                continue;
            }
            double d[3];
            for (int k = 0; k < 3; k++)
            {
                d[k] = static_cast<double>(at[k])
                       - static_cast<double>(particles.x[3 * static_cast<size_t>(j) + k]);
            }
            if (image != nullptr)
            {
                image->search(d);
            }
            const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if (!(r2 < pairs.range * pairs.range)
                || std::binary_search(rows[i].begin(), rows[i].end(), j))
            {
                continue;
            }
            const bool isWhole = r2 < pairs.wholeWithin2(width);
            if (isWhole)
            {
                leftOut.partners.push_back(j);
            }
            const double slope = qq * pairs.terms(r2, width, isWhole).slope;
            for (int k = 0; k < 3; k++)
            {
                forces[3 * static_cast<size_t>(i) + k] += slope * d[k];
                forces[3 * static_cast<size_t>(j) + k] -= slope * d[k];
            }
        }
        leftOut.offsets.push_back(static_cast<int>(leftOut.partners.size()));
    }
}

template ExactNear::ExactNear(const PointCharges<float>&,
                              const NearPairs<float>&,
                              const MinimumImage*,
                              double);
template ExactNear::ExactNear(const PointCharges<double>&,
                              const NearPairs<double>&,
                              const MinimumImage*,
                              double);

} // namespace farfield
