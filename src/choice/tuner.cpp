/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/tuner.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>

#include "plan/cost_model.h"

namespace farfield
{
namespace
{

//! Settings that were timed differ if their times differ by more than this.
constexpr double c_timingNoise = 0.03;
//! No further setting is timed after so many seconds.
constexpr double c_longestTuning = 20;
constexpr double c_nsPerSecond   = 1e9;

//! Settings whose errors suffice, the cheapest first; for several ranks those that one would take
//! follow.
template<class Real>
std::vector<Discretisation> settingsToTime(const Options& options,
                                           const Mat3& box,
                                           const Occupancy& occupied,
                                           const Discretisation& sufficient,
                                           const AccuracyControl<Real>& accuracy)
{
    Options ofWater  = options;
    ofWater.accuracy = options.accuracy / std::max(sufficient.systemFactor, 1e-3);
    PlanTask task    = accuracy.taskOf(ofWater, box, sufficient.extent);
    task.occupancy   = occupied;
    task.network     = accuracy.network();
    auto settings    = discretisationsToTime(task);
    if (task.network.ranks() > 1)
    {
        // between these and those for one rank are all that may be the fastest
        task.network = {};
        for (const Discretisation& d : discretisationsToTime(task))
        {
            if (std::none_of(settings.begin(),
                             settings.end(),
                             [&](const Discretisation& other) { return d.hasSettingOf(other); }))
            {
                settings.push_back(d);
            }
        }
    }
    for (Discretisation& d : settings)
    {
        d.exclusionRange = sufficient.exclusionRange;
    }
    return settings;
}

//! Time of an evaluation of forces with the operators that are built, by the ranks of a network.
template<class Real>
double secondsOf(const typename GpuBackend<Real>::DeviceArrays& arrays,
                 const Work& work,
                 const Network& network,
                 Evaluator<Real>* evaluator)
{
    constexpr int c_repeats = 15;
    Request request;
    request.energy              = false;
    request.virial              = false;
    request.replaceForces       = true;
    request.step                = 0; // the grid moves as it does later
    GpuBackend<Real>* const gpu = evaluator->gpu();
    const auto evaluation       = [&] {
        evaluator->pipeline().enqueue({ arrays.x, nullptr, arrays.forces, nullptr, request });
    };
    evaluation();
    gpu->wait();
    const double whole =
            gpu->measure(GpuBackend<Real>::Measure::Whole, c_repeats, evaluation).front();
    const int ranks = network.ranks();
    if (ranks == 1)
    {
        return whole;
    }
    const double messages = network.cost(predictedTraffic(Device::Gpu, work, network));
    const std::vector<double> stages =
            gpu->measure(GpuBackend<Real>::Measure::Stages, c_repeats, evaluation);
    const double all   = std::accumulate(stages.begin(), stages.end(), 0.0);
    const double alike = stages[static_cast<int>(Stage::M2l)] / all; // part that all ranks do
    return whole * (alike + (1 - alike) / ranks) + messages / c_nsPerSecond;
}

} // namespace

template<class Real>
std::vector<TimedSetting> tune(const Options& options,
                               const ChargeSet<Real>& charges,
                               const Mat3& box,
                               const Real* x,
                               Evaluator<Real>* evaluator,
                               AccuracyControl<Real>* accuracy)
{
    OperatorsInUse<Real>* const operators = &evaluator->operators();
    const Discretisation sufficient       = operators->discretisation();
    const Occupancy occupied              = charges.occupancy(x, box);
    const auto settings = settingsToTime(options, box, occupied, sufficient, *accuracy);
    if (settings.size() < 2)
    {
        return {};
    }
    const auto arrays = evaluator->gpu()->place(x);
    const auto begin  = std::chrono::steady_clock::now();
    const auto spent  = [&]
    { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    std::vector<TimedSetting> timed;
    size_t best = 0, built = 0;
    for (size_t k = 0; k < settings.size() && (k == 0 || spent() < c_longestTuning); k++)
    {
        const Discretisation& d = settings[k];
        built                   = k;
        try
        {
            operators->build(d);
            const Grid leaf      = d.leafGrid(box);
            const double seconds = secondsOf(arrays,
                                             Work(d, occupied, charges.takingPart()),
                                             accuracy->network(),
                                             evaluator);
            timed.push_back({ d.order,
                              d.ws,
                              d.levels,
                              d.engineInUse(),
                              leaf.count(),
                              leaf.unit(),
                              seconds });
        }
        catch (const Error& error)
        {
            if (k == 0 || error.code() != ErrorCode::OutOfMemory)
            {
                throw;
            }
            break; // the first one fitted
        }
        if (timed[k].seconds < (1 - c_timingNoise) * timed[best].seconds)
        {
            best = k;
        }
    }
    if (built != best)
    {
        operators->build(settings[best]);
    }
    if (!accuracy->stillSuffices(x, box))
    {
        // what was measured before is known to do; it need not be one of those that were timed
        operators->build(sufficient);
        best = 0;
        while (best < timed.size() && !settings[best].hasSettingOf(sufficient))
        {
            best++;
        }
    }
    if (best < timed.size())
    {
        timed[best].isInUse = true;
    }
    return timed;
}

template decltype(tune<float>) tune<float>;
template decltype(tune<double>) tune<double>;

} // namespace farfield
