/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_gpu_benchmark total and droplets: whole evaluations and their stages.
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

//! \param[in] n  leaf cells per edge; 0: automatic
template<class Real>
void addEvaluation(const EvaluationBenchmark& benchmark,
                   const CommonOptions& common,
                   Report* report,
                   const System& system,
                   const std::string& engine,
                   int n)
{
    Options options;
    options.device          = Device::Gpu;
    options.m2l             = engineNamed(engine);
    options.accuracy        = benchmark.accuracy;
    options.cellSize        = n > 0 ? system.box[0][0] / n : 0;
    const char* precision   = test::precisionName<Real>();
    const json entry        = { { "system", system.name },   { "atoms", system.size() },
                                { "box", system.box[0][0] }, { "precision", precision },
                                { "engine", engine },        { "accuracy", benchmark.accuracy },
                                { "cells_per_edge", n } };
    const std::string label = system.name + " " + std::to_string(system.size()) + " atoms in "
                              + text("%.1f nm, ", system.box[0][0])
                              + (n > 0 ? std::to_string(n) + " cells per edge: " : "automatic: ");
    runCase(report,
            entry,
            label,
            [&](json* result)
            {
                TimedSolver<Real> solver(system, options);
                const Setup s               = solver.recordSetup(result);
                const Occupation filled     = occupation(system, s.cells, s.directRange);
                (*result)["near_pairs"]     = filled.nearPairs;
                (*result)["occupied_cells"] = filled.cells;
                std::string line            = "p " + std::to_string(s.order) + ", ws "
                                   + std::to_string(s.directRange) + ", " + nameOf(s.m2l) + ", "
                                   + text("%.3f nm", s.cellSize);
                for (bool all : { false, true })
                {
                    if (all && !benchmark.totals)
                    {
                        continue;
                    }
                    const Request& request = all ? c_withTotals : c_forcesOnly;
                    json& part             = (*result)[all ? "with_totals" : "forces"];
                    part["plain"]          = solver.plain(request, common.samples);
                    part["stages"]         = solver.stages(request, common.samples);
                    part["graph"]          = solver.replayed(request, common.samples);
                    line += (all ? "; with totals " : "; forces ")
                            + text("%.1f us", 1e6 * part["plain"]["median"].get<double>())
                            + text(", graph %.1f us", 1e6 * part["graph"]["median"].get<double>());
                }
                return line;
            });
}

//! Every size of cells and engine on one system; false if the time is used up.
template<class Real>
bool addSystem(const EvaluationBenchmark& benchmark,
               const CommonOptions& common,
               Report* report,
               const System& system)
{
    for (int n : benchmark.cells)
    {
        // other sizes of cells are never a choice
        const double perCell = n > 0 ? system.size() / std::pow(n, 3) : 20;
        if (perCell < 4 || perCell > 150)
        {
            continue;
        }
        for (const std::string& engine : benchmark.engines)
        {
            if (!report->timeLeft())
            {
                return false;
            }
            addEvaluation<Real>(benchmark, common, report, system, engine, n);
        }
    }
    return true;
}

template<class Real>
void addSystems(const EvaluationBenchmark& benchmark, const CommonOptions& common, Report* report)
{
    for (int size : benchmark.sizes)
    {
        for (const std::string& name : benchmark.systems)
        {
            const System system = c_evaluated.at(name)(size, common.seed);
            if (!addSystem<Real>(benchmark, common, report, system))
            {
                return;
            }
        }
    }
}

template<class Real>
void addDroplets(const EvaluationBenchmark& benchmark, const CommonOptions& common, Report* report)
{
    for (double edge : benchmark.edges)
    {
        const System system = waterDroplets(edge, common.seed);
        for (int n : benchmark.dropletCells)
        {
            for (const std::string& engine : benchmark.engines)
            {
                if (report->timeLeft())
                {
                    addEvaluation<Real>(benchmark, common, report, system, engine, n);
                }
            }
        }
    }
}

} // namespace

void EvaluationBenchmark::run(const CommonOptions& common, Report* report) const
{
    addSystems<float>(*this, common, report);
    if (common.doublePrecision)
    {
        addSystems<double>(*this, common, report);
    }
}

void EvaluationBenchmark::runDroplets(const CommonOptions& common, Report* report) const
{
    addDroplets<float>(*this, common, report);
    if (common.doublePrecision)
    {
        addDroplets<double>(*this, common, report);
    }
}

} // namespace bench
} // namespace farfield
