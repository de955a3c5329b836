/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "draw_exclusions.h"

#include <algorithm>

#include "near_sum.h"
#include "system_building.h"

namespace farfield
{
namespace test
{
namespace
{

bool isUnique(const System& system, Boundary boundary, int i, int j)
{
    const int images = isOpenAlong(boundary, 0) ? 0 : isOpenAlong(boundary, 2) ? 2 : 3;
    // positions may be in single precision, and particles many boxes away
    const double rounding = 1e-6;
    return i == j || !hasTwoNearestImages(system, images, i, j, rounding);
}

} // namespace

bool areExclusionsUnique(const System& system, Boundary boundary)
{
    return std::all_of(system.exclusions.begin(),
                       system.exclusions.end(),
                       [&](const auto& pair)
                       { return isUnique(system, boundary, pair.first, pair.second); });
}

void excludePairs(System* system, Boundary boundary, int most, std::mt19937& random)
{
    for (int pairs = below(random, most); pairs > 0 && system->size() > 1; --pairs)
    {
        const int i = below(random, system->size());
        const int j = below(random, system->size());
        if (isUnique(*system, boundary, i, j))
        {
            system->exclusions.emplace_back(i, j);
        }
    }
}

void excludeNoPairs(System* system)
{
    const auto arePlacedApart = [&](const auto& pair)
    { return system->positions[pair.first] != system->positions[pair.second]; };
    system->exclusions.erase(
            std::remove_if(system->exclusions.begin(), system->exclusions.end(), arePlacedApart),
            system->exclusions.end());
}

} // namespace test
} // namespace farfield
