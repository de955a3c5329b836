/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "discretisation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{
namespace
{

//! Cells of a coarse grid per dimension that the closure handles at next to no cost.
constexpr double c_coarseCells = 6;
//! Most leaf cells that tables over all cells of the box are made for.
constexpr double c_maxCells = 1 << 27;
//! Smallest leaf cell, nm: closer than any two atoms that interact.
constexpr double c_minCellSize = 0.15;

/*! \brief Predicted cost of a step, in units of a pair interaction.
 *
 *  The weights are ratios of stage times measured on x86 processors with AVX2 and AVX-512. */
double predictedCost(int    p,
                     int    ws,
                     double cellVolume,
                     double boxVolume,
                     double occupiedVolume,
                     double particles,
                     bool   fft)
{
    const double coefficients = coefficientCount(p);
    const double nearCells    = std::pow(2 * ws + 1, 3);
    const double perCell      = particles / std::max(occupiedVolume, cellVolume) * cellVolume;
    const double occupied     = std::max(occupiedVolume / cellVolume, 1.0);
    const double pairs        = 0.5 * particles * std::max(nearCells * perCell, 1.0);
    const double staging      = occupied * nearCells * (6 + perCell * 0.5);
    // columns of vector lanes are as long as the fullest of the cells in them
    const double columns   = particles * (1 + 1.2 / std::sqrt(std::max(perCell, 0.5)));
    const double expansion = columns * coefficients * 0.9 + occupied * coefficients * 1.5;
    double       m2l       = 0;
    if (fft)
    {
        const double cells = boxVolume / cellVolume;
        m2l                = cells * coefficients
              * (0.55 * std::log2(std::max(cells, 2.0)) + 0.055 * coefficients);
    }
    else
    {
        const double list =
                nearCells * 7; // (2 ws + 1)^3 parents of 8 children each, less the near ones
        m2l = 8.0 / 7 * occupied * list * coefficients * coefficients * 0.25
              + 216 * coefficients * coefficients;
    }
    return pairs + staging + expansion + m2l;
}

int levelsFor(const Mat3& box, double edge)
{
    const double cells = std::min({ box(0, 0), box(1, 1), box(2, 2) }) / edge;
    return 1
           + std::max(
                   1,
                   static_cast<int>(std::lround(std::log2(std::max(cells / c_coarseCells, 1.0)))));
}

} // namespace

IntMat Discretisation::coarseCells() const
{
    IntMat H = leafCells;
    for (Int3& row : H)
    {
        for (int& entry : row)
        {
            entry /= 1 << (levels - 1);
        }
    }
    return H;
}

double estimatedError(int order, int ws, bool leastSquares, double cellSize, double ratio)
{
    // error = a exp(-b p) (0.5 nm / size), and a power of the shape of the cells
    const double a    = (ws == 1) ? (leastSquares ? 0.148 : 0.16) : (leastSquares ? 0.10 : 0.15);
    const double b    = (ws == 1) ? (leastSquares ? 0.832 : 0.76) : (leastSquares ? 1.45 : 1.33);
    const double cube = std::sqrt(3.0) / (ws + 1);
    return a * std::exp(-b * order) * (0.5 / cellSize) * std::pow(ratio / cube, 0.5 * (order + 1));
}

Discretisation chooseDiscretisation(const Options& options,
                                    const Mat3&    box,
                                    long long      particles,
                                    double         occupiedVolume)
{
    const double boxVolume = box.determinant();
    const double shortest  = std::min({ box(0, 0), box(1, 1), box(2, 2) });
    if (options.cellSize > shortest)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The cell size, " + std::to_string(options.cellSize)
                            + " nm, must not exceed the shortest box dimension, "
                            + std::to_string(shortest) + " nm.");
    }
    const double n = std::max<double>(1, static_cast<double>(particles));

    struct Candidate
    {
        int    order, ws;
        double edge, cost, error;
        bool   fft;
    };
    Candidate best       = { 0, 0, 0, std::numeric_limits<double>::max(), 1, true };
    Candidate accurate   = { 0, 0, 0, 0, std::numeric_limits<double>::max(), true };
    const int firstOrder = options.order >= 0 ? options.order : 1;
    const int lastOrder  = options.order >= 0 ? options.order : c_maxOrder;
    for (int ws = 1; ws <= 2; ws++)
    {
        if (options.directRange != 0 && options.directRange != ws)
        {
            continue;
        }
        for (int order = firstOrder; order <= lastOrder; order++)
        {
            // edges in steps of 2 per cent, from too small to one cell
            for (double edge = std::min(c_minCellSize, shortest); edge < 1.02 * shortest;
                 edge *= 1.02)
            {
                const double e = options.cellSize > 0 ? options.cellSize : std::min(edge, shortest);
                const double volume = e * e * e;
                if (options.cellSize == 0 && boxVolume / volume > std::max(c_maxCells, 1.0))
                {
                    continue;
                }
                const double error = estimatedError(
                        order, ws, options.leastSquares, e, std::sqrt(3.0) / (ws + 1));
                for (bool fft : { true, false })
                {
                    if ((options.m2l == M2lEngine::Fft && !fft)
                        || (options.m2l == M2lEngine::Hierarchy && fft))
                    {
                        continue;
                    }
                    const double cost =
                            predictedCost(order, ws, volume, boxVolume, occupiedVolume, n, fft);
                    if (error <= options.accuracy && cost < best.cost)
                    {
                        best = { order, ws, e, cost, error, fft };
                    }
                    // an explicit order stands even if it misses the accuracy: the cheapest cells
                    // then
                    const bool better = options.order >= 0
                                                ? (accurate.ws == 0
                                                   || (ws == accurate.ws && cost < accurate.cost))
                                                : error < accurate.error;
                    if (better)
                    {
                        accurate = { order, ws, e, cost, error, fft };
                    }
                }
                if (options.cellSize > 0)
                {
                    break;
                }
            }
        }
    }
    if (best.ws == 0)
    {
        best = accurate;
    }
    Discretisation choice;
    choice.order        = best.order;
    choice.ws           = best.ws;
    choice.leastSquares = options.leastSquares;
    choice.levels       = best.fft ? 1 : levelsFor(box, best.edge);
    choice.referenceBox = box;
    choice.leafCells    = chooseCells(box, best.edge, best.ws, 1 << (choice.levels - 1));
    return choice;
}

} // namespace farfield
