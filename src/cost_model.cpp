/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cost_model.h"

#include <algorithm>
#include <cmath>

#include "expansion.h"

namespace farfield
{
namespace
{

/*! \brief Predicted time of a step on one core of a CPU, in ns.
 *
 *  The weights are stage times of an AVX-512 processor divided by the counts; only their ratios
 * matter. */
double cpuCost(const Work& w, bool fft)
{
    // a box of few cells still sees all near images
    const double pairs     = 0.5 * w.particles * w.nearCells * w.perCell;
    const double p2p       = 0.35 * pairs + 9.0 * w.nearCells * w.occupied;
    const double expansion = (0.27 * w.particles + 2.0 * w.occupied) * w.coefficients;
    double m2l             = 0;
    if (fft)
    {
        const double cache = w.cells > 1e4 ? 1.3 : 1.0; // a field leaves the first-level cache
        m2l                = w.cells * w.coefficients
              * (0.25 * w.penalty * cache * std::log2(std::max(w.cells, 2.0))
                 + 0.06 * w.coefficients);
    }
    else
    {
        // (2 ws + 1)^3 parents with 8 children each, less the near ones; 8/7 for the coarser levels
        m2l = 8.0 / 7 * w.occupied * 7 * w.nearCells * w.coefficients
                      * (0.6 + 0.02 * w.coefficients)
              + 216 * w.coefficients * w.coefficients;
    }
    return p2p + expansion + m2l;
}

/*! \brief Predicted time of a step on a GPU, in ns.
 *
 *  The weights are stage times of an H200 divided by the counts. */
double gpuCost(const Work& w, bool fft)
{
    // batches of 32 sources and groups of targets are not full in small cells
    const double p2p       = 2.6e-4 * w.particles * w.nearCells * (w.perCell + 20);
    const double expansion = 1e-3 * w.particles * w.coefficients;
    double m2l             = 0;
    if (fft)
    {
        m2l = w.cells * w.coefficients * (0.02 * w.penalty + 1.5e-4 * w.coefficients);
    }
    else
    {
        // families are not full at surfaces; 8/7 for the coarser levels
        const double coarse = std::pow(coarseCells(Device::Gpu), 3);
        m2l                 = 8.0 / 7 * 2 * w.occupied * w.coefficients
                      * (0.1 + 8e-5 * w.nearCells * w.coefficients)
              + coarse * w.coefficients * 0.02 + 6e4;
    }
    return p2p + expansion + m2l;
}

} // namespace

Work::Work(int p,
           int ws,
           const Int3& lengths,
           double boxVolume,
           double occupiedVolume,
           double particleCount) :
    particles(particleCount),
    cells(static_cast<double>(lengths[0]) * lengths[1] * lengths[2]),
    nearCells(std::pow(2 * ws + 1, 3)), coefficients(coefficientCount(p)),
    penalty(std::cbrt(transformPenalty(lengths[0]) * transformPenalty(lengths[1])
                      * transformPenalty(lengths[2])))
{
    const double cellVolume = boxVolume / cells;
    perCell                 = particles * cellVolume / std::max(occupiedVolume, cellVolume);
    occupied                = std::max(occupiedVolume / cellVolume, 1.0);
}

double coarseCells(Device device)
{
    return device == Device::Gpu ? 12 : 6;
}

double predictedCost(Device device, const Work& w, bool fft)
{
    return device == Device::Gpu ? gpuCost(w, fft) : cpuCost(w, fft);
}

} // namespace farfield
