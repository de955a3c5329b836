/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How the sums of a kernel are divided into cells, and what that costs.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_PLAN_H
#define FARFIELD_PAIR_KERNELS_KERNEL_PLAN_H

#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cells/grid.h"
#include "pair_kernels/leaf_frame.h"
#include "pair_kernels/pair_kernel.h"

namespace farfield
{

//! Degree and cells.
struct KernelPlan
{
    int degree = 0;
    int ws     = 1;         //!< cells up to this displacement interact by pairs
    Int3 coarse{ 1, 1, 1 }; //!< cells of level 0
    int levels = 1;

    bool operator==(const KernelPlan& other) const
    {
        return degree == other.degree && ws == other.ws && coarse == other.coarse
               && levels == other.levels;
    }
};

//! The space that is divided: a periodic box, or a cube that holds all points.
struct Region
{
    Vec3 origin;
    Mat3 box; //!< rows
    bool isPeriodic;

    //! The leaves of a plan.
    LeafFrame leaves(const KernelPlan& plan) const;
    /*! \brief The cells of a level.
     *
     *  Without images they are those of twice the cube, seven eighths of which are empty: there, no cell is near
     *  an image of another. */
    Grid grid(const KernelPlan& plan, int level) const;
};

//! What parts of an evaluation cost, in any one unit.
struct KernelUnitCosts
{
    double perPair[3];    //!< in the order of PairLawKind
    double perExchange;   //!< a pair of coefficients
    double perCopy;       //!< a coefficient of an exchange
    double perLookup;     //!< an exchange
    double perWave;       //!< a pair of coefficients at a wave vector
    double perPolynomial; //!< a coefficient at a point
    double perNearCell;   //!< a cell near another: its points are staged
    int together;         //!< exchanges by one operator come in multiples of this
    double perLevel;      //!< a level of the tree
};

//! Of a level: cells that hold charges, pairs of charges in near cells, of near cells, and of cells in interaction
//! lists; negative: not counted.
struct LevelCount
{
    double cells = 1, pairs = -1, nearCells = 0, exchanges = 0;
};

/*! \brief Whether a level is counted.
 *
 *  In an open box leaves that hold few points are not considered. */
inline bool isWorthCounting(const Region& region, int level, double cells, double points)
{
    constexpr double c_fewest = 2.5;
    return region.isPeriodic || c_fewest * cells <= points || level == 0;
}

//! Costs of divisions of some points; what is counted is kept.
class KernelCosts
{
public:
    //! Counts all levels of a plan, whatever its degree.
    using Count = std::function<std::vector<LevelCount>(const KernelPlan&)>;

    //! \param[in] n, results  charges, and how many results; they are taken to be where charges are
    KernelCosts(const PairKernel& kernel,
                const KernelUnitCosts& unit,
                const Region& region,
                int n,
                int results,
                Count count) :
        kernel_(kernel),
        unit_(unit), region_(region), n_(n), results_(results), count_(std::move(count))
    {
    }

    /*! \brief The cells that cost least for a degree and a direct range.
     *  \param[in]  levels  without images at least these, if as many are worth it: small cells round less
     *  \param[in]  points  in a leaf, at least
     *  \param[out] cost    in any unit; infinite if there are not as many points */
    KernelPlan cheapest(int degree, int ws, int levels, double points, double* cost);
    int points() const { return n_; }
    //! Points in a leaf that has any.
    double pointsInLeaf(const KernelPlan& plan) { return n_ / levels(plan).back().cells; }

private:
    const std::vector<LevelCount>& levels(const KernelPlan& plan);
    double ofPairs(const LevelCount& leaves) const;
    //! Of so many exchanges of expansions over the interaction lists of a level.
    double ofExchanges(double exchanges, int ws, double coefficients) const;
    double ofPolynomials(double coefficients) const;
    KernelPlan cheapestPeriodic(int degree, int ws, double points, double* cost);
    KernelPlan cheapestOpen(int degree, int ws, int levels, double points, double* cost);

    const PairKernel& kernel_;
    const KernelUnitCosts unit_;
    Region region_;
    int n_, results_;
    Count count_;
    std::map<std::array<int, 5>, std::vector<LevelCount>>
            counted_; //!< by cells of level 0, levels and direct range
};

} // namespace farfield

#endif
