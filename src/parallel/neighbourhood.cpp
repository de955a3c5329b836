/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/neighbourhood.h"

namespace farfield
{

Neighbourhood::Neighbourhood(const Discretisation& d, const Mat3& box, double drift, int threads) :
    d_(d), box_(box), leaf_(d.leafGrid(box)), reach_(leaf_, drift, threads)
{
}

Regions Neighbourhood::regions(const std::vector<char>& isHeld, Ranks* ranks) const
{
    const std::vector<char> isReached = reach_.reached(isHeld);
    std::vector<int> cells;
    for (size_t cell = 0; cell < isReached.size(); cell++)
    {
        if (isReached[cell])
        {
            cells.push_back(static_cast<int>(cell));
        }
    }
    return Regions(d_, box_, ranks->gather(cells));
}

std::vector<char> Neighbourhood::placesNear(const Regions& regions, int rank) const
{
    const std::vector<int>& theirs = regions.cells(regions.levels() - 1, rank);
    if (theirs.empty())
    {
        return {};
    }
    std::vector<char> isTheirs(leaf_.count(), 0);
    for (const int cell : theirs)
    {
        isTheirs[cell] = 1;
    }
    return reach_.placesThatReach(reach_.near(isTheirs, d_.ws));
}

} // namespace farfield
