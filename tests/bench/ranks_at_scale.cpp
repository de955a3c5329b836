/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks_at_scale.h"

#include <cmath>
#include <cstdio>

#include "parallel/measured_network.h"
#include "plan/cost_model.h"

namespace farfield
{
namespace bench
{
namespace
{

constexpr double c_density      = 100;  //!< atoms of water per nm^3
constexpr double c_cell         = 0.56; //!< edge of leaf cells, nm
constexpr int c_order           = 8;
constexpr double c_coarsest     = 12.5; //!< cells along an edge that M2L closes at next to no cost
constexpr double c_grid         = 0.12; //!< of PME, nm
constexpr int c_pmeOrder        = 4;
constexpr double c_listRange    = 1.1; //!< of Lennard-Jones interactions, nm
constexpr double c_bytesOfReal  = 4;
constexpr double c_nsPerMs      = 1e6;
constexpr double c_bytesPerMega = 1e6;

void printTraffic(const PredictedTraffic& t, const Network& network)
{
    std::printf(" %.0f, %.2f, %.2f |",
                t.messages,
                t.numbers * c_bytesOfReal / c_bytesPerMega,
                (t.messages * network.message + t.numbers * network.number) / c_nsPerMs);
}

//! Cubic cells of a cube. \param[in] levels  1, or as many as leave few cells to the coarsest
Work workOf(double atoms, int levels)
{
    const double volume = atoms / c_density;
    const double across = std::cbrt(volume) / c_cell;
    const int coarsest  = static_cast<int>(std::lround(across / (1 << (levels - 1))));
    const int length    = coarsest << (levels - 1);
    return { c_order, 1, { length, length, length }, levels, volume, Occupancy(volume), atoms };
}

int levelsOf(double atoms)
{
    int levels = 1;
    for (double across = std::cbrt(atoms / c_density) / c_cell; across > c_coarsest; across /= 2)
    {
        levels++;
    }
    return levels;
}

/*! \brief PME on all ranks, in pencils as square as their number allows.
 *
 *  Each rank sends what it has of the grid in two transposes to the wave vectors and in two back, of
 *  which each is among the ranks of a row, or of a column, of pencils; the overlap of the
 *  grid with the next pencils, to these and back; and positions to pencils, and forces back. */
PredictedTraffic trafficOfPme(double atoms, int ranks, const Int3& domains)
{
    int rows = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
    while (ranks % rows != 0)
    {
        rows--;
    }
    const int columns      = ranks / rows;
    const double across    = std::cbrt(atoms / c_density) / c_grid; // points along an edge
    const double points    = across * across * across / ranks;
    const double elsewhere = (1 - 1.0 / rows) + (1 - 1.0 / columns);
    const double border    = (rows > 1 ? across / columns : 0) + (columns > 1 ? across / rows : 0);
    const double pencils   = std::ceil(static_cast<double>(rows) / domains[0])
                           * std::ceil(static_cast<double>(columns) / domains[1]);
    PredictedTraffic t = {};
    t.messages         = 2 * (rows - 1 + columns - 1) + 2 * 2 + 2 * pencils;
    t.numbers = 2 * points * elsewhere + 2 * (c_pmeOrder - 1) * across * border + 6 * atoms / ranks;
    return t;
}

/*! \brief The halo of Lennard-Jones interactions, which runs have with either method: positions of
 *         an eighth shell about a domain, and forces back. */
PredictedTraffic trafficOfHalo(double atoms, const Int3& domains)
{
    const double edge = std::cbrt(atoms / c_density);
    double inside = 1, grown = 1, zones = 1;
    for (const int parts : domains)
    {
        inside *= edge / parts;
        grown *= edge / parts + (parts > 1 ? c_listRange : 0);
        zones *= parts > 1 ? 2 : 1;
    }
    return { 2 * (zones - 1), 6 * c_density * (grown - inside) };
}

} // namespace

void printRanksAtScale()
{
    const auto real    = static_cast<int>(c_bytesOfReal);
    const Network host = usualNetwork(real);
    Network gpus       = networkOfGpus({}, real);
    std::printf(
            "messages, MB and ms per rank and evaluation, one after another; %.1f us a message and "
            "%.3f ns a byte, between GPUs %.1f and %.3f\n\n"
            "| atoms | ranks | atoms per cell, levels | tree | transforms | on GPUs | PME | halo "
            "|\n"
            "|---|---|---|---|---|---|---|---|\n",
            host.message / 1e3,
            host.number / c_bytesOfReal,
            gpus.message / 1e3,
            gpus.number / c_bytesOfReal);
    for (const double atoms : { 1e6, 1e7, 1e8, 1e9 })
    {
        const Work tree       = workOf(atoms, levelsOf(atoms));
        const Work transforms = workOf(atoms, 1);
        for (const int ranks : { 10, 100, 1000 })
        {
            Network all;
            all.parts = evenDomains(ranks, Mat3::Identity());
            std::printf("| $10^%.0f$ | %d | %.1f, %d |",
                        std::log10(atoms),
                        ranks,
                        atoms / tree.cells,
                        tree.levels);
            printTraffic(predictedTraffic(Device::Cpu, tree, all), host);
            printTraffic(predictedTraffic(Device::Cpu, transforms, all), host);
            gpus.parts = all.parts;
            printTraffic(predictedTraffic(Device::Gpu, transforms, all), gpus);
            printTraffic(trafficOfPme(atoms, ranks, all.parts), host);
            printTraffic(trafficOfHalo(atoms, all.parts), host);
            std::printf("\n");
        }
    }
}

} // namespace bench
} // namespace farfield
