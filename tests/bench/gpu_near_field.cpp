/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_gpu_benchmark p2p: the near field.
 */
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "bench_systems.h"
#include "command_line.h"
#include "gpu_benchmarks.h"
#include "timed_solver.h"

namespace farfield
{
namespace bench
{
namespace
{

using nlohmann::json;

//! The number without prime factors above 5 that is nearest: others are no choice for a grid.
int quickLength(double wanted)
{
    const auto isQuick = [](int n)
    {
        for (int factor : { 2, 3, 5 })
        {
            while (n % factor == 0)
            {
                n /= factor;
            }
        }
        return n == 1;
    };
    int best = 1;
    for (int n = 1; n < 2 * wanted + 2; n++)
    {
        best = isQuick(n) && std::abs(n - wanted) < std::abs(best - wanted) ? n : best;
    }
    return best;
}

template<class Real>
void addGrid(const P2pBenchmark& benchmark,
             const CommonOptions& common,
             Report* report,
             const System& system,
             int n)
{
    Options options;
    options.device       = Device::Gpu;
    options.m2l          = M2lEngine::Fft;
    options.order        = 2; // the near field does not depend on it; set-up is quick
    options.directRange  = 1;
    options.cellSize     = system.box[0][0] / n;
    options.reproducible = benchmark.reproducible;
    const json entry     = { { "system", system.name },
                             { "atoms", system.size() },
                             { "precision", test::precisionName<Real>() },
                             { "reproducible", benchmark.reproducible },
                             { "width", benchmark.width },
                             { "cells_per_edge", n } };
    const std::string label =
            "P2P " + std::to_string(system.size()) + " atoms, " + std::to_string(n) + "^3 cells: ";
    runCase(report,
            entry,
            label,
            [&](json* result)
            {
                TimedSolver<Real> solver(system, options, benchmark.width);
                const Setup s           = solver.setup();
                const long long pairs   = occupation(system, s.cells, s.directRange).nearPairs;
                (*result)["setup"]      = describe(s);
                (*result)["near_pairs"] = pairs;
                const double perCell    = static_cast<double>(system.size()) / s.leafCells;
                (*result)["per_cell"]   = perCell;
                std::string line        = text("%.1f per cell, ", perCell);
                for (bool all : { false, true })
                {
                    const json stages =
                            solver.stages(all ? c_withTotals : c_forcesOnly, common.samples);
                    const double seconds     = secondsOf("P2P", stages);
                    json& part               = (*result)[all ? "with_totals" : "forces"];
                    part["stages"]           = stages;
                    part["seconds"]          = seconds;
                    part["pairs_per_second"] = seconds > 0 ? pairs / seconds : 0.0;
                    line += (all ? ", with totals " : "") + text("%.1f us ", 1e6 * seconds)
                            + text("%.2fe12 pairs/s",
                                   1e-12 * part["pairs_per_second"].get<double>());
                }
                return line;
            });
}

template<class Real>
void addGrids(const P2pBenchmark& benchmark, const CommonOptions& common, Report* report)
{
    for (int size : benchmark.sizes)
    {
        const System system = waterBox(size, common.seed);
        int last            = 0;
        for (double wanted : benchmark.perCell)
        {
            const int n = quickLength(std::cbrt(system.size() / wanted));
            if (n == last || !report->timeLeft())
            {
                continue;
            }
            last = n;
            addGrid<Real>(benchmark, common, report, system, n);
        }
    }
}

} // namespace

void P2pBenchmark::run(const CommonOptions& common, Report* report) const
{
    addGrids<float>(*this, common, report);
    if (common.doublePrecision)
    {
        addGrids<double>(*this, common, report);
    }
}

} // namespace bench
} // namespace farfield
