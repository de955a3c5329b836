/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Which wave vectors the blocks of the periodic M2L work on; runs on the host.
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "m2l_periodic/index.h"

namespace farfield
{
namespace
{

//! Grids with representatives as PeriodicM2lOperators has them: odd, even and flat ones.
std::vector<WaveGrid> waveGrids()
{
    std::vector<WaveGrid> grids;
    for (const Int3& N : { Int3{ 8, 6, 4 },
                           Int3{ 7, 5, 9 },
                           Int3{ 5, 8, 1 },
                           Int3{ 6, 1, 1 },
                           Int3{ 1, 1, 5 },
                           Int3{ 2, 3, 2 },
                           Int3{ 1, 1, 1 } })
    {
        const int half = N[2] / 2 + 1;
        grids.push_back(waveGrid(N, { N[0] / 2 + 1, N[1] / 2 + 1, half }, 4));
        grids.push_back(waveGrid(N, { N[0], N[1], half }, 1));
    }
    return grids;
}

std::string nameOf(const WaveGrid& w)
{
    std::string name = "copies " + std::to_string(w.copies) + ", cells";
    for (const int length : w.lengths)
    {
        name += " " + std::to_string(length);
    }
    return name;
}

/*! \brief Blocks of threads of any width have every representative once, and these and their copies
 *         every wave vector that is stored. */
TEST(GpuWaveGrid, BlocksHaveEveryWaveVectorOnce)
{
    for (const WaveGrid& w : waveGrids())
    {
        for (int width = 1; width <= 4; width++)
        {
            SCOPED_TRACE(nameOf(w) + ", width " + std::to_string(width));
            const int blocks = w.ranges[0] * w.ranges[1] * ((w.ranges[2] + width - 1) / width);
            std::vector<int> representatives;
            std::vector<int> waves(w.stored[0] * w.stored[1] * w.stored[2], 0);
            for (int b = 0; b < blocks; b++)
            {
                const BlockOfWaves block(w, width, b);
                for (int member = 0; member < width; member++)
                {
                    if (block.has(member))
                    {
                        representatives.push_back(block.representative(member));
                    }
                    for (int copy = 0; copy < w.copies; copy++)
                    {
                        if (const int wave = block.wave(member, copy); wave >= 0)
                        {
                            waves.at(wave)++;
                        }
                    }
                }
            }
            std::vector<int> once(w.ranges[0] * w.ranges[1] * w.ranges[2]);
            std::iota(once.begin(), once.end(), 0);
            EXPECT_EQ(representatives, once);
            EXPECT_EQ(waves, std::vector<int>(waves.size(), 1));
        }
    }
}

} // namespace
} // namespace farfield
