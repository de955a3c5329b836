/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/network.h"

#include <algorithm>
#include <cmath>
#include <utility>
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

/*! \brief Cells of a domain along an axis that the halo of another one reaches into.
 *  \param[in] away   from domain to domain, going round
 *  \param[in] halo   cells on each side of a domain
 *  \param[in] width  of a domain with what its particles may come to be in */
double reachedAlong(int length, int parts, int away, double halo, double width)
{
    const double share  = static_cast<double>(length) / parts;
    const double before = std::max(0.0, halo - (away - 1) * share);
    const double behind = std::max(0.0, halo - (parts - away - 1) * share);
    return std::min(before + behind, width);
}

/*! \brief What a rank sends to all others whose halos reach into its domain.
 *  \param[in] wider  than its share a domain is, along the axes that are divided
 *  \returns messages and cells */
std::pair<double, double>
sentIntoHalos(const Int3& lengths, const Int3& parts, double halo, double wider)
{
    double ranks = 1, cells = 1;
    for (int k = 0; k < 3; k++)
    {
        const double share = static_cast<double>(lengths[k]) / parts[k];
        const double width = parts[k] == 1 ? share : share + wider;
        double reaching = 1, reached = width;
        for (int away = 1; away < parts[k]; away++)
        {
            const double along = reachedAlong(lengths[k], parts[k], away, halo, width);
            reaching += along > 0 ? 1 : 0;
            reached += along;
        }
        ranks *= reaching;
        cells *= reached;
    }
    return { ranks - 1, cells - cellsOfDomain(lengths, parts, wider) };
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

bool closesInShares(Device device, const Work& w, const Network& network)
{
    return device == Device::Cpu && w.levels == 1 && network.ranks() > 1;
}

PredictedTraffic predictedTraffic(Device device, const Work& w, const Network& network)
{
    const int others   = network.ranks() - 1;
    const Int3& parts  = network.parts;
    const Int3 leaves  = leafLengths(w);
    const double ws    = directRange(w);
    const double reach = reachOf(device);
    const double n     = w.coefficients;
    const double halo  = ws + 0.5 + reach; // of positions
    const double received =
            std::min(w.particles / w.cells * cellsOfDomain(leaves, parts, 2 * halo), w.particles);
    PredictedTraffic traffic = { sentIntoHalos(leaves, parts, halo, 0).first,
                                 3 * (received - w.particles / network.ranks()) };
    const double coarse      = cellsOfDomain(w.coarseLengths, parts, reach + 1);
    if (closesInShares(device, w, network))
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
        // both reach beyond the border, parents are twice as large, and half a cell is lost to
        // their grid
        const auto sent = sentIntoHalos(lengths, parts, reach + 1 + 2 * ws + 0.5, reach + 1);
        traffic.messages += sent.first;
        traffic.numbers += n * sent.second;
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
