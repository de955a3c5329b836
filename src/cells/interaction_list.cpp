/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cells/interaction_list.h"

#include <algorithm>
#include <cstdlib>

#include "cells/grid.h"

namespace farfield
{

std::vector<ListDisplacement> interactionList(int ws)
{
    std::vector<ListDisplacement> list;
    const int reach = 2 * ws + 1;
    for (int x = -reach; x <= reach; x++)
    {
        for (int y = -reach; y <= reach; y++)
        {
            for (int z = -reach; z <= reach; z++)
            {
                if (std::max({ std::abs(x), std::abs(y), std::abs(z) }) <= ws)
                {
                    continue;
                }
                ListDisplacement next;
                next.D   = { x, y, z };
                bool any = false;
                for (int o = 0; o < 8; o++)
                {
                    const int source[3] = { floorDivide((o & 1) - x, 2),
                                            floorDivide(((o >> 1) & 1) - y, 2),
                                            floorDivide((o >> 2) - z, 2) };
                    next.from[o]        = std::max({ std::abs(source[0]),
                                                     std::abs(source[1]),
                                                     std::abs(source[2]) })
                                   <= ws;
                    any = any || next.from[o];
                }
                if (any)
                {
                    list.push_back(next);
                }
            }
        }
    }
    return list;
}

} // namespace farfield
