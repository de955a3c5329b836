/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>

#include "cells/cell_shape.h"
#include "operators/m2l_periodic_operators.h"
#include "operators/product_table.h"
#include "operators/reduction.h"
#include "operators/solid_harmonics.h"

namespace farfield
{
namespace
{

//! Columns that take as long as to load the operator of a product of a tree's M2L, and lanes that stay empty.
constexpr double c_columnsOfProduct = 30;

//! Displacements of the interaction lists: children of near parents that are not near themselves.
double displacements(const Work& w)
{
    const double within = 2 * w.nearAcross + 1;
    return within * within * within - w.nearCells;
}

//! Predicted times of the parts of a step, ns.
struct Times
{
    double near;       //!< pairs of particles
    double expansions; //!< of particles
    double tables;     //!< of all cells
    double lists;      //!< M2L over interaction lists
    double transforms; //!< of the coarsest level, there and back
    double products;   //!< M2L of the coarsest level between them

    double closure() const { return transforms + products; }
    double sum() const { return near + expansions + tables + lists + closure(); }
};

/*! \brief On one core of a CPU.
 *
 *  The weights are stage times of an AVX-512 processor divided by the counts; only their ratios
 *  matter. */
Times timesOnCpu(const Work& w)
{
    Times t = {};
    // a box of few cells still sees all near images
    const double pairs = 0.5 * w.particles * w.nearby;
    t.near             = 0.35 * pairs + 9.0 * w.nearCells * w.occupied;
    // tables over all cells of all levels, empty or not, are visited
    t.tables = 1.5 * (w.levels == 1 ? 1 : 8.0 / 7) * w.cells;
    if (w.allNear)
    {
        return t;
    }
    t.expansions        = (0.27 * w.particles + 2.0 * w.occupied) * w.coefficients;
    const double cache  = w.coarse > 1e4 ? 1.3 : 1.0; // a field leaves the first-level cache
    const double fields = w.coarse * w.coefficients;
    t.transforms        = fields * 0.25 * w.penalty * cache * std::log2(std::max(w.coarse, 2.0));
    t.products          = fields * 0.06 * w.coefficients;
    if (w.levels > 1)
    {
        const double products =
                (w.levels - 1) * std::min(displacements(w), w.exchanges / (w.levels - 1));
        t.lists = w.coefficients
                  * (0.6 * w.exchanges
                     + 0.02 * w.coefficients * (w.exchanges + c_columnsOfProduct * products));
    }
    return t;
}

/*! \brief On a GPU.
 *
 *  The weights are stage times of an H200 divided by the counts. */
Times timesOnGpu(const Work& w)
{
    Times t = {};
    // batches of 32 sources and groups of targets are not full in small cells
    t.near       = 2.6e-4 * w.particles * w.nearCells * (w.perCell + 20);
    t.expansions = 1e-3 * w.particles * w.coefficients;
    if (w.levels == 1)
    {
        t.transforms = w.cells * w.coefficients * 0.02 * w.penalty;
        t.products   = w.cells * w.coefficients * 1.5e-4 * w.coefficients;
    }
    else
    {
        // families are not full at surfaces; 8/7 for the coarser levels
        t.lists = 8.0 / 7 * 2 * w.occupied * w.coefficients
                  * (0.1 + 8e-5 * w.nearCells * w.coefficients);
        t.transforms = w.coarse * w.coefficients * 0.02 + 6e4;
    }
    return t;
}

/*! \brief Time of a GPU whose near field other GPUs share: that of its far field, or of an even part of
 *         all work. Where neither is much longer, both count, as work is not divided to the last pair. */
double costWithHelpers(const Times& t, int helpers)
{
    constexpr double c_ofShorter = 0.1;
    const double far             = t.sum() - t.near;
    const double even            = t.sum() / (1 + helpers);
    return std::min(t.sum(), std::max(far, even) + c_ofShorter * std::min(far, even));
}

//! Cores, or GPUs, of a rank.
double threadsOfRank(Device device, const Network& network)
{
    return device == Device::Gpu ? 1 : network.threads;
}

//! Time of a rank for the coarsest level, without messages.
double closureOnRank(Device device, const Times& t, const Work& w, const Network& network)
{
    const double threads = threadsOfRank(device, network);
    if (!closesInShares(device, w, network))
    {
        return t.closure() / threads;
    }
    // whole fields for the transforms
    const int ranks     = network.ranks();
    const double fields = std::ceil(std::ceil(w.coefficients / ranks) / threads);
    return t.transforms * fields / w.coefficients + t.products / (ranks * threads);
}

} // namespace

Work::Work(int p,
           int ws,
           const Int3& lengths,
           int levelCount,
           double boxVolume,
           const Occupancy& occupancy,
           double particleCount) :
    particles(particleCount),
    cells(static_cast<double>(lengths[0]) * lengths[1] * lengths[2]),
    nearCells(std::pow(2 * ws + 1, 3)), nearAcross(std::cbrt(nearCells)), allNear(false),
    coefficients(coefficientCount(p)), penalty(1), levels(levelCount),
    coarse(cells * std::pow(8.0, 1 - levelCount)), exchanges(0)
{
    for (int k = 0; k < 3; k++)
    {
        coarseLengths[k] = std::max(1, lengths[k] >> (levels - 1));
        penalty *= std::cbrt(transformPenalty(coarseLengths[k]));
    }
    const double edge  = std::cbrt(boxVolume / cells);
    const double width = (2 * ws + 1) * edge;
    occupied           = std::max(1.0, occupancy.cells(edge, boxVolume));
    perCell            = particles / occupied;
    nearby = particles * occupancy.density(width, boxVolume) * width * width * width / boxVolume;
    double levelEdge = edge;
    for (int level = levels - 1; level > 0; level--, levelEdge *= 2)
    {
        // the children of a block of near parents, if it is full, of which one in eight is near
        const double here   = std::max(1.0, occupancy.cells(levelEdge, boxVolume));
        const double blocks = occupancy.cells(2 * (2 * ws + 1) * levelEdge, boxVolume);
        exchanges += 7.0 / 8 * here * std::min(8 * nearCells, here / blocks);
    }
}

Work::Work(const Discretisation& d, const Occupancy& occupancy, double particleCount) :
    Work(d.order,
         d.ws,
         { d.leafCells[0][0], d.leafCells[1][1], d.leafCells[2][2] },
         d.levels,
         d.referenceBox.determinant(),
         occupancy,
         particleCount)
{
    if (d.isAllNear())
    {
        allAreNear();
    }
}

Work Work::ofOrder(int p) const
{
    Work other         = *this;
    other.coefficients = coefficientCount(p);
    return other;
}

OperatorKind::OperatorKind(int p, bool isLeastSquares, const Mat3& box) :
    order(p), leastSquares(isLeastSquares), copies(box.isDiagonal(1e-10) ? 4 : 1)
{
}

double coarseCells(Device device)
{
    return device == Device::Gpu ? 12 : 6;
}

double predictedCost(Device device, const Work& w, const Network& network)
{
    const Times t   = device == Device::Gpu ? timesOnGpu(w) : timesOnCpu(w);
    const int ranks = network.ranks();
    if (ranks == 1)
    {
        return network.helpers > 0 ? costWithHelpers(t, network.helpers) : t.sum();
    }
    const double teams  = ranks * threadsOfRank(device, network);
    const double grown  = ranks * reachedCells(device, w, network) / w.cells;
    const double shared = t.near * (1 + pairsAcross(w, network)) + t.expansions + t.lists * grown;
    return shared / teams + t.tables + closureOnRank(device, t, w, network)
           + network.cost(predictedTraffic(device, w, network));
}

double representatives(const Work& w, int copies)
{
    const Int3& n = w.coarseLengths;
    if (copies == 1)
    {
        // one dimension is halved, and keeps the planes that are their own images
        const double longest = std::max({ n[0], n[1], n[2] });
        return w.coarse * (0.5 + 1 / longest);
    }
    return (n[0] / 2 + 1.0) * (n[1] / 2 + 1.0) * (n[2] / 2 + 1.0);
}

namespace
{

//! Numbers of coefficients.
struct Sizes
{
    double n;             //!< of an expansion
    double high;          //!< at the order at which operators are made
    double sums, derived; //!< lattice sums of a wave vector, and their derivatives under strain

    explicit Sizes(const OperatorKind& kind)
    {
        const int p       = kind.order;
        const int highest = kind.leastSquares ? p + c_extraOrders : p;
        n                 = coefficientCount(p);
        high              = coefficientCount(highest);
        sums              = coefficientCount(2 * highest);
        derived           = StrainCount * coefficientCount(2 * virialOrder(p, highest));
    }
};

} // namespace

double predictedSetUp(const Work& w, const OperatorKind& kind)
{
    // times of an AVX-512 processor divided by the counts
    const Sizes size(kind);
    const double operators = representatives(w, kind.copies);
    const double sums = (size.sums + size.derived) * (15 * operators + 3 * w.penalty * w.coarse);
    // symmetries of a rectangular cell leave zeros in the reduction
    const double product = kind.copies == 1 ? 0.11 : 0.05;
    const double each    = 1.3 * size.high * size.high
                        + product * (size.high + size.n) * (size.high - size.n) * size.n;
    double lists = 0;
    if (w.levels > 1)
    {
        // mirror images are copied: what is left is one octant with its faces, or a half
        const double all      = displacements(w);
        const double side     = w.nearAcross + 1;
        const double distinct = kind.copies == 1 ? all / 2 : 7.0 / 8 * side * side * side;
        lists                 = distinct * each + 2 * all * size.n * size.n;
    }
    return sums + operators * each + lists;
}

double predictedMemory(const Work& w, const OperatorKind& kind, int threads, int realSize)
{
    const Sizes size(kind);
    const double operators = representatives(w, kind.copies);
    const double packed    = operators * size.n * (size.n + 1) / 2 * realSize;
    const double sums      = operators * size.sums * sizeof(double);
    const double derived   = operators * size.derived * realSize;
    const double terms =
            (size.sums + size.derived) * realSpaceTerms(operators, realSize) * sizeof(double);
    // one after the other: the terms of the sums, the derivatives once more, the operators
    const double periodic = sums + derived + std::max({ terms, derived, packed })
                            + 3 * size.n * w.coarse * realSize + 24.0 * threads * w.coarse;
    const double tables = (w.levels == 1 ? 4.0 * 4 : 4.0 * 4 + 4) * w.cells;
    // errors are measured by the forces of eight evaluations and their mean
    const int ranges = mostNearRanges(threads);
    const double particles =
            w.particles * (44.0 * realSize + 3 * sizeof(double) + 4.0 * realSize * ranges);
    const double tree = w.levels == 1 ? 0
                                      : displacements(w) * size.n * size.n * realSize
                                                + 8.0 / 7 * 2 * size.n * w.occupied * realSize;
    return periodic + tables + particles + tree;
}

} // namespace farfield
