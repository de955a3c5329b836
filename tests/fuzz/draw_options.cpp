/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "draw_options.h"

#include <algorithm>
#include <iterator>

#include "system_building.h"

namespace farfield
{
namespace test
{

Options drawOptions(std::mt19937& random, const FuzzSettings& settings, int realSize)
{
    Options o;
    o.device   = settings.device;
    o.threads  = 1 + below(random, settings.mostThreads);
    o.accuracy = logUniform(random, realSize == 4 ? 2.1e-6 : 1e-9, 0.09);
    if (chance(random, 0.02))
    {
        o.accuracy = realSize == 4 ? 2e-6 : 1e-11;
    }
    if (chance(random, 0.25))
    {
        o.order = chance(random, 0.1) ? below(random, c_maxOrder + 1) : below(random, 13);
    }
    if (chance(random, 0.3))
    {
        o.directRange = 1 + below(random, 2);
    }
    if (chance(random, 0.2))
    {
        o.cellSize = logUniform(random, 0.2, 3);
    }
    if (chance(random, 0.4))
    {
        // those for a GPU only come last
        const auto engines =
                std::count_if(std::begin(c_m2lEngines),
                              std::end(c_m2lEngines),
                              [&](const M2lEngineDescription& engine)
                              { return !engine.isForGpuOnly || settings.device == Device::Gpu; });
        o.m2l = c_m2lEngines[below(random, static_cast<int>(engines))].value;
    }
    const double boundary = uniform(random);
    if (boundary < 0.15)
    {
        o.boundary = Boundary::Open;
    }
    else if (boundary < 0.3)
    {
        o.boundary = Boundary::Slab;
    }
    o.leastSquares = chance(random, 0.7);
    o.reproducible = chance(random, 0.3);
    return o;
}

} // namespace test
} // namespace farfield
