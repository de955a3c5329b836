/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{
namespace
{

/*! \brief Errors for a direct range of 1 and 2; of another kernel or other points they are off by some factor.
 *
 *  Measured for 1/r with 5e4 charges in a cube, degrees 1 to 12: within a factor of 2. Those of r^-n are smaller in
 *  larger cells, as fields are mostly of the nearest charges: of r^-6 measured as about the fourth power of the edge. */
struct ErrorModel
{
    double start, perDegree;

    //! \param[in] points  in a leaf
    double error(int degree, double points, int exponent) const
    {
        return start * std::pow(perDegree, -degree) * std::pow(points / c_points, -power(exponent));
    }
    //! Points in a leaf that such an error needs; infinitely many if there is none.
    double pointsFor(double error, int degree, int exponent) const
    {
        const double over = start * std::pow(perDegree, -degree) / error;
        const double most = std::numeric_limits<double>::infinity();
        return power(exponent) > 0 ? c_points * std::pow(over, 1 / power(exponent))
               : over <= 1         ? 0
                                   : most;
    }

private:
    static constexpr double c_points = 20;
    static double power(int exponent) { return std::max(0, exponent - 2) / 3.0; }
};
constexpr ErrorModel c_errors[] = { { 0.1, 3 }, { 0.05, 4.5 } };

//! Few points have no nearest ones that most of a field would be of.
int exponentOf(const PairKernel& kernel, int points)
{
    constexpr int c_few = 1000;
    return points < c_few ? 0 : kernel.exponent();
}

} // namespace

double modelError(const KernelPlan& plan, const PairKernel& kernel, KernelCosts* costs)
{
    return c_errors[plan.ws - 1].error(
            plan.degree, costs->pointsInLeaf(plan), exponentOf(kernel, costs->points()));
}

KernelPlan cheapestPlan(KernelCosts* costs,
                        const PairKernel& kernel,
                        double wanted,
                        const std::array<double, 2>& off,
                        int levels,
                        double* cost)
{
    KernelPlan best;
    *cost = std::numeric_limits<double>::infinity();
    for (int ws = 1; ws <= 2; ws++)
    {
        for (int degree = 1; degree <= c_highestDegree; degree++)
        {
            double points = c_errors[ws - 1].pointsFor(
                    wanted / off[ws - 1], degree, exponentOf(kernel, costs->points()));
            if (degree == c_highestDegree && ws == 2 && !std::isfinite(*cost))
            {
                points = 0; // what reaches most
            }
            if (!std::isfinite(points))
            {
                continue;
            }
            double ofPlan;
            const KernelPlan plan = costs->cheapest(degree, ws, levels, points, &ofPlan);
            if (ofPlan < *cost)
            {
                *cost = ofPlan;
                best  = plan;
            }
        }
    }
    return best;
}

} // namespace farfield
