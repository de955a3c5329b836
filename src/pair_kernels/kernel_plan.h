/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How the sums of a kernel are divided into cells, and what that costs.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_PLAN_H
#define FARFIELD_PAIR_KERNELS_KERNEL_PLAN_H

#include <array>
#include <map>
#include <vector>

#include "base/team.h"
#include "cells/grid.h"
#include "pair_kernels/pair_kernel.h"
#include "pair_kernels/sorted_points.h"

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

//! Costs of divisions of some points; what is counted is kept.
class KernelCosts
{
public:
    //! \param[in] x, n  positions of the charges; results are taken to be there, if there are more or fewer
    KernelCosts(const PairKernel& kernel,
                const Region& region,
                const double* x,
                int n,
                int results,
                Team* team) :
        kernel_(kernel),
        region_(region), x_(x), n_(n), results_(results), team_(*team)
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
    //! Of a level: pairs of points in near cells, of near cells, and of cells in interaction lists; negative: not
    //! counted.
    struct Level
    {
        double cells = 1, pairs = -1, nearCells = 0, exchanges = 0;
    };
    //! All levels of a plan, whatever its degree.
    const std::vector<Level>& levels(const KernelPlan& plan);
    double ofPairs(const Level& leaves) const;
    double ofPolynomials(double coefficients) const;
    KernelPlan cheapestPeriodic(int degree, int ws, double points, double* cost);
    KernelPlan cheapestOpen(int degree, int ws, int levels, double points, double* cost);

    const PairKernel& kernel_;
    Region region_;
    const double* x_;
    int n_, results_;
    Team& team_;
    std::map<std::array<int, 5>, std::vector<Level>>
            counted_; //!< by cells of level 0, levels and direct range
};

} // namespace farfield

#endif
