/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/force_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{
namespace
{

//! Fields beyond so many medians are those of particles in contact; of few, so many of the largest.
constexpr double c_cap = 2.5;
//! Mean squares without these particles are so much too small in settled systems at most.
constexpr double c_trimmed = 1.44;
//! Forces of a settled system are no smaller than this part of the force of a typical pair.
constexpr double c_settled = 0.3;
//! Of fewer charges a median says little: all count, and those in contact decide.
constexpr int c_fewest = 32;

double squaredForce(const std::vector<double>& forces, int i)
{
    const double* f = forces.data() + 3 * static_cast<size_t>(i);
    return f[0] * f[0] + f[1] * f[1] + f[2] * f[2];
}

} // namespace

double leastForce(const Options& options, int realSize, const ChargeSums& charges, double volume)
{
    return leastPartOfPairForce(options.accuracy, realSize)
           * typicalPairForce(options.coulombConstant, charges.squared, charges.charged, volume);
}

template<class Real>
ForceScale::ForceScale(const std::vector<double>& forces,
                       const ChargeSet<Real>& charges,
                       double pairForce,
                       double least) :
    square(0)
{
    const int n          = charges.count();
    const double charged = static_cast<double>(charges.charged());
    std::vector<double> squares(n), fields(n, 0.0); // fields of those whose charge does something
    std::vector<double> sorted;
    for (int i = 0; i < n; i++)
    {
        squares[i] = squaredForce(forces, i);
        square += squares[i];
        if (charges.isActing(i))
        {
            fields[i] =
                    std::sqrt(squares[i]) / std::abs(static_cast<double>(charges.strengths()[i]));
            sorted.push_back(fields[i]);
        }
    }
    ofAll            = std::max(square, charged * least * least);
    const bool isFew = charges.acting() < c_fewest;
    double typical   = 0; // median, or the largest of few
    if (!sorted.empty())
    {
        const size_t rank = isFew ? sorted.size() - 1 : sorted.size() / 2;
        const auto place  = sorted.begin() + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(sorted.begin(), place, sorted.end());
        typical = *place;
    }
    const double weakest = weakestField(least, charges.squaredCharges(), charges.charged());
    field.cap            = c_cap * std::max(typical, weakest);
    double capped        = 0;
    double ordinary      = 0;
    int ordinaryCount    = 0;
    for (int i = 0; i < n; i++)
    {
        if (!charges.isActing(i))
        {
            continue;
        }
        // what is not a number counts as beyond
        const double inCaps = fields[i] < field.cap ? fields[i] / field.cap : 1;
        capped += inCaps * inCaps;
        if (inCaps < 1)
        {
            ordinary += squares[i];
            ordinaryCount++;
        }
    }
    const auto acting = static_cast<double>(charges.acting());
    // what errors are relative to, even where that is not of these forces
    field.level = acting > 0 ? std::max(field.cap * std::sqrt(capped / acting), weakest) : 0;
    if (!isFew && ordinaryCount > 0)
    {
        const double settled = std::max(c_trimmed * ordinary / ordinaryCount,
                                        c_settled * c_settled * pairForce * pairForce)
                               * charged;
        if (settled < square)
        {
            square = settled;
            weights.assign(n, 1.0);
            for (int i = 0; i < n; i++)
            {
                const double inCaps = fields[i] / field.cap; // 0 where a charge does nothing
                weights[i]          = inCaps > 1 ? 1 / (inCaps * inCaps) : 1;
            }
        }
    }
    square = std::max(square, charged * least * least);
}

template ForceScale::ForceScale(const std::vector<double>&,
                                const ChargeSet<float>&,
                                double,
                                double);
template ForceScale::ForceScale(const std::vector<double>&,
                                const ChargeSet<double>&,
                                double,
                                double);

double weakestField(double least, double squaredCharges, long long charged)
{
    return least / std::sqrt(squaredCharges / static_cast<double>(charged));
}

double fieldRatio(double cappedFields, const MeasuredField& then, double least, long long acting)
{
    if (then.cap == 0 || cappedFields < 0 || acting == 0)
    {
        return 1;
    }
    const double now = then.cap * std::sqrt(cappedFields / static_cast<double>(acting));
    return std::max(least, now) / std::max(least, then.level);
}

bool isLikeField(double ratio, long long acting)
{
    if (acting == 0)
    {
        return true;
    }
    const double allowed = 1.15 + 10 / std::sqrt(static_cast<double>(acting));
    return ratio > 1 / allowed && ratio < std::max(1.5, allowed);
}

} // namespace farfield
