/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/system_plan.h"

#include <algorithm>
#include <cmath>

#include "choice/force_scale.h"

namespace farfield
{
namespace
{

constexpr double c_pi = 3.14159265358979323846;
//! Before forces are known they are taken for this part of the force between typical neighbours.
constexpr double c_usual = 0.3;
//! Particles with a force so many times the usual one are in contact.
constexpr double c_contact = 2.5;

} // namespace

ForceAim::ForceAim(const BatchOptions& options,
                   const SystemTraits& traits,
                   const Sharpness& sharpness,
                   int realSize) :
    accuracy_(options.accuracy / sharpness.tightening),
    charged_(traits.charged), mayChange_(sharpness.force == 0 && options.waveCutoff == 0)
{
    const double pair = typicalPairForce(
            options.coulombConstant, traits.squaredCharges, traits.charged, traits.volume);
    least_ = pair * leastPartOfPairForce(options.accuracy, realSize);
    setForce(sharpness.force > 0 ? sharpness.force : std::max(least_, c_usual * pair));
}

void ForceAim::setForce(double force)
{
    force_ = force;
    error_ = accuracy_ * force;
}

bool ForceAim::suffices(double squares)
{
    const double found = std::max(least_, std::sqrt(squares / charged_));
    if (!mayChange_ || found >= force_)
    {
        return true;
    }
    // somewhat less, or rounding would ask for another round
    setForce(std::max(least_, 0.9 * found));
    return false;
}

EwaldPlan planFor(const BatchOptions& options,
                  const SystemTraits& traits,
                  double error,
                  double detour,
                  double pairCost)
{
    const EwaldCase model = {
        traits.charged, options.coulombConstant * traits.squaredCharges, traits.volume, error
    };
    if (options.smearing == 0)
    {
        return fastestPlan(model, detour, pairCost);
    }
    EwaldPlan plan  = planOfWaves(model, 1 / (std::sqrt(2.0) * options.smearing));
    plan.waveCutoff = options.waveCutoff > 0 ? options.waveCutoff : plan.waveCutoff * detour;
    return plan;
}

std::array<double, 2> constantsOf(const BatchOptions& options, const EwaldPlan& plan, double volume)
{
    const double k    = options.coulombConstant;
    const bool points = options.smearing == 0;
    return { points || !options.selfEnergy ? k * plan.splitting / std::sqrt(c_pi) : 0,
             points ? k * c_pi / (2 * plan.splitting * plan.splitting * volume) : 0 };
}

template<class Real>
double errorOfForces(const Real* forces, const Real* others, int n, double scale, double smearing)
{
    double square = 0;
    for (int i = 0; i < n; i++)
    {
        double error = 0, force = 0;
        for (int k = 0; k < 3; k++)
        {
            const size_t at = 3 * static_cast<size_t>(i) + k;
            const auto f    = static_cast<double>(forces[at]);
            const double d  = f - static_cast<double>(others[at]);
            error += d * d;
            force += f * f;
        }
        // in contact the error is rounding, relative to the force
        square += error / std::max(1.0, force / (c_contact * scale * c_contact * scale));
    }
    // both have the error; Gaussian charges have more waves at the other place
    const double share = smearing > 0 ? 1 : 0.5;
    return std::sqrt(share * square / n) / scale;
}

template double errorOfForces(const float*, const float*, int, double, double);
template double errorOfForces(const double*, const double*, int, double, double);

} // namespace farfield
