/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cells/excluded_pairs.h"

#include <algorithm>

namespace farfield
{

ExcludedPairs chargedPairs(const ExcludedPairs& pairs, const std::vector<char>& isCharged)
{
    const auto forCharged = [&](size_t i, const auto& visit)
    {
        for (int k = pairs.offsets[i]; isCharged[i] && k < pairs.offsets[i + 1]; k++)
        {
            if (isCharged[pairs.partners[k]])
            {
                visit(pairs.partners[k]);
            }
        }
    };
    ExcludedPairs charged;
    charged.offsets.reserve(pairs.offsets.size());
    charged.offsets.push_back(0);
    for (size_t i = 0; i < isCharged.size(); i++)
    {
        int count = charged.offsets.back();
        forCharged(i, [&](int /*partner*/) { count++; });
        charged.offsets.push_back(count);
    }
    // no more memory than the pairs need, of which there may be many
    charged.partners.reserve(charged.offsets.back());
    for (size_t i = 0; i < isCharged.size(); i++)
    {
        forCharged(i, [&](int partner) { charged.partners.push_back(partner); });
    }
    return charged;
}

long long countWithPartners(const ExcludedPairs& pairs, const std::vector<char>& isCharged)
{
    std::vector<char> hasPartner(isCharged.size(), 0);
    for (size_t i = 0; i < isCharged.size(); i++)
    {
        for (int k = pairs.offsets[i]; isCharged[i] && k < pairs.offsets[i + 1]; k++)
        {
            const auto j = static_cast<size_t>(pairs.partners[k]);
            if (i != j && isCharged[j])
            {
                hasPartner[i] = hasPartner[j] = 1;
            }
        }
    }
    return std::count(hasPartner.begin(), hasPartner.end(), char(1));
}

double smallestWidth(const Mat3& inverseEdges)
{
    return 1 / inverseEdges.colwise().norm().maxCoeff();
}

double surelyNear(const Grid& leaf, int ws)
{
    constexpr double c_margin = 0.99;
    return c_margin
           * std::min(ws * smallestWidth(leaf.inverseEdges()),
                      0.5 * smallestWidth(leaf.box().inverse()));
}

} // namespace farfield
