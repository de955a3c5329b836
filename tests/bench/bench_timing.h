/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Device time of repeated work: medians and quartiles of many samples.
 */
#ifndef FARFIELD_BENCH_TIMING_H
#define FARFIELD_BENCH_TIMING_H

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "on_device.h"

namespace farfield
{
namespace bench
{

//! Median and quartiles.
inline nlohmann::json statistics(std::vector<double> samples)
{
    std::sort(samples.begin(), samples.end());
    const auto at = [&](double fraction)
    {
        const double place = fraction * static_cast<double>(samples.size() - 1);
        const size_t k     = static_cast<size_t>(place);
        const size_t next  = std::min(k + 1, samples.size() - 1);
        return samples[k] + (place - static_cast<double>(k)) * (samples[next] - samples[k]);
    };
    if (samples.empty())
    {
        return nullptr;
    }
    return { { "median", at(0.5) },
             { "lower_quartile", at(0.25) },
             { "upper_quartile", at(0.75) },
             { "minimum", samples.front() },
             { "samples", samples.size() } };
}

/*! \brief Seconds of one piece of work on the device, from several samples.
 *
 *  After a warm-up every sample repeats the work until it takes about a millisecond, so that
 *  neither the resolution of events nor the first launch counts. */
template<class Work>
nlohmann::json measure(Clock* clock, int samples, const Work& work)
{
    for (int i = 0; i < 3; i++)
    {
        work();
    }
    const double once = clock->seconds(work);
    const int repeats =
            static_cast<int>(std::clamp(std::ceil(1e-3 / std::max(once, 1e-7)), 1.0, 100.0));
    std::vector<double> seconds;
    for (int i = 0; i < samples; i++)
    {
        seconds.push_back(clock->seconds(
                                  [&]
                                  {
                                      for (int k = 0; k < repeats; k++)
                                      {
                                          work();
                                      }
                                  })
                          / repeats);
    }
    return statistics(seconds);
}

} // namespace bench
} // namespace farfield

#endif
