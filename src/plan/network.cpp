/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/network.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/cost_model.h"

namespace farfield
{
namespace
{

//! How many cells wide the region is in which particles come to be, beyond their domain: the offset of
//! the grid, and the drift on both sides.
double reachOf(Device device)
{
    return 1 + 2 * (device == Device::Gpu ? c_driftOnDevice : c_drift);
}

//! The direct range of the near cells.
double directRange(const Work& w)
{
    return (std::cbrt(w.nearCells) - 1) / 2;
}

Int3 leafLengths(const Work& w)
{
    Int3 lengths = w.coarseLengths;
    for (int& length : lengths)
    {
        length <<= w.levels - 1;
    }
    return lengths;
}

//! Cells of a domain that is so many cells wider than its share, along the axes that are divided.
double cellsOfDomain(const Int3& lengths, const Int3& parts, double wider)
{
    double cells = 1;
    for (int k = 0; k < 3; k++)
    {
        const double length = lengths[k];
        cells *= parts[k] == 1 ? length : std::min(length, length / parts[k] + wider);
    }
    return cells;
}

//! Other domains that touch one.
int neighbours(const Int3& parts)
{
    int all = 1;
    for (const int part : parts)
    {
        all *= std::min(part, 3);
    }
    return all - 1;
}

/*! \brief Multipoles that a rank sends on a level of a tree: to each neighbour those of its cells that
 *         are near parents of the neighbour's cells. */
double sentOnLevel(const Int3& lengths, const Int3& parts, double reach, double ws)
{
    // both reach beyond the border, parents are twice as large, and half a cell is lost to their grid
    const double shared = reach + 1 + 2 * ws + 0.5;
    double all          = 1;
    for (int k = 0; k < 3; k++)
    {
        const double own  = static_cast<double>(lengths[k]) / parts[k] + reach + 1;
        const double most = parts[k] == 2 ? own : 2 * own;
        all *= parts[k] == 1 ? lengths[k] : own + std::min(2 * shared, most);
    }
    return all - cellsOfDomain(lengths, parts, reach + 1);
}

} // namespace

Int3 evenDomains(int ranks, const Mat3& box)
{
    std::vector<int> factors;
    for (int left = ranks, factor = 2; left > 1;)
    {
        if (left % factor == 0)
        {
            factors.push_back(factor);
            left /= factor;
        }
        else
        {
            factor++;
        }
    }
    Int3 parts = { 1, 1, 1 };
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor)
    {
        int longest = 0;
        for (int k = 1; k < 3; k++)
        {
            longest = box(k, k) / parts[k] > box(longest, longest) / parts[longest] ? k : longest;
        }
        parts[longest] *= *factor;
    }
    return parts;
}

double reachedCells(Device device, const Work& w, const Network& network)
{
    return cellsOfDomain(leafLengths(w), network.parts, reachOf(device) + 1);
}

double pairsAcross(const Work& w, const Network& network)
{
    const double ws       = directRange(w);
    const double distance = ws * (ws + 1) / (2 * ws + 1); // mean of near cells, along an axis
    const Int3 lengths    = leafLengths(w);
    double inside         = 1;
    for (int k = 0; k < 3; k++)
    {
        const int parts = network.parts[k];
        inside *= parts == 1 ? 1 : std::max(0.0, 1 - distance * parts / lengths[k]);
    }
    return 1 - inside;
}

PredictedTraffic predictedTraffic(Device device, const Work& w, const Network& network)
{
    const int others   = network.ranks() - 1;
    const Int3& parts  = network.parts;
    const Int3 leaves  = leafLengths(w);
    const double ws    = directRange(w);
    const double reach = reachOf(device);
    const double n     = w.coefficients;
    const double received =
            std::min(w.particles / w.cells * cellsOfDomain(leaves, parts, 2 * (ws + 0.5 + reach)),
                     w.particles);
    PredictedTraffic traffic = { static_cast<double>(neighbours(parts)),
                                 3 * (received - w.particles / network.ranks()) };
    const double coarse      = cellsOfDomain(w.coarseLengths, parts, reach + 1);
    if (w.levels == 1 && device == Device::Cpu)
    {
        const Int3& l      = w.coarseLengths;
        const double waves = l[0] * l[1] * (l[2] / 2 + 1.0);
        traffic.messages += 4 * others;
        traffic.numbers +=
                n * others / network.ranks() * (2 * coarse + 4 * waves / network.ranks());
        return traffic;
    }
    Int3 lengths = leaves;
    for (int level = w.levels - 1; level > 0; level--)
    {
        traffic.messages += neighbours(parts);
        traffic.numbers += n * sentOnLevel(lengths, parts, reach, ws);
        for (int& length : lengths)
        {
            length /= 2;
        }
    }
    traffic.messages += others;
    traffic.numbers += n * others * coarse;
    return traffic;
}

} // namespace farfield
