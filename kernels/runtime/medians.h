/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Medians of times.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_MEDIANS_H
#define FARFIELD_KERNELS_RUNTIME_MEDIANS_H

#include <algorithm>
#include <vector>

namespace farfield
{

/*! \brief Medians of several times.
 *  \param[in] count    times of a sample
 *  \param[in] sample   sample(seconds) sets [count]; the first few, of a cold device, do not count
 *  \returns [count] */
template<class Sample>
std::vector<double> medians(int count, int repeats, const Sample& sample)
{
    constexpr int c_cold = 3;
    std::vector<std::vector<double>> samples(count);
    for (int repeat = -c_cold; repeat < repeats; repeat++)
    {
        std::vector<double> seconds(count, 0.0);
        sample(seconds.data());
        for (int k = 0; k < count && repeat >= 0; k++)
        {
            samples[k].push_back(seconds[k]);
        }
    }
    std::vector<double> result;
    for (std::vector<double>& all : samples)
    {
        std::sort(all.begin(), all.end());
        result.push_back(all.empty() ? 0.0 : all[all.size() / 2]);
    }
    return result;
}

} // namespace farfield

#endif
