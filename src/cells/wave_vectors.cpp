/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cells/wave_vectors.h"

#include "cells/interaction_list.h"

namespace farfield
{

WaveVectors::WaveVectors(const Grid& grid)
{
    const IntMat& H = grid.H();
    const bool rectangular =
            H[1][0] == 0 && H[2][0] == 0 && H[2][1] == 0 && areRectangular(grid.edges());
    const Int3 N   = grid.lengths();
    const int half = N[2] / 2 + 1;
    copies_        = rectangular ? 4 : 1;
    ranges_        = { rectangular ? N[0] / 2 + 1 : N[0], rectangular ? N[1] / 2 + 1 : N[1], half };
    for (int z = 0; z < ranges_[0]; z++)
    {
        for (int y = 0; y < ranges_[1]; y++)
        {
            for (int x = 0; x < half; x++)
            {
                waves_.push_back({ -1, -1, -1, -1 });
                for (int copy = 0; copy < copies_; copy++)
                {
                    const int cz = (copy & c_copyReflectsZ) ? (N[0] - z) % N[0] : z;
                    const int cy = (copy & c_copyReflectsY) ? (N[1] - y) % N[1] : y;
                    // a wave vector on a mirror plane is its own image
                    const bool repeated = ((copy & c_copyReflectsZ) && cz == z)
                                          || ((copy & c_copyReflectsY) && cy == y);
                    waves_.back()[copy] = repeated ? -1 : (cz * N[1] + cy) * half + x;
                }
            }
        }
    }
}

} // namespace farfield
