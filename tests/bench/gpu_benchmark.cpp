/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Benchmarks of the CUDA backend through the public interface; results as JSON.
 *
 *  tests/bench/figures draws them. Times are device times of work in one stream.
 */
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gpu_benchmarks.h"

namespace farfield
{
namespace bench
{
namespace
{

//! Accepts names of engines.
CLI::IsMember isEngine()
{
    std::vector<std::string> names;
    for (const M2lEngineDescription& engine : c_m2lEngines)
    {
        names.push_back(engine.name);
    }
    return CLI::IsMember(names);
}

//! Adds a command that takes what all take.
CLI::App* addCommand(CLI::App* app, const char* name, const char* what, CommonOptions* common)
{
    CLI::App* command = app->add_subcommand(name, what);
    command->add_option("-o,--output", common->output, "JSON file (default: gpu_<benchmark>.json)");
    command->add_option("--samples", common->samples, "samples per time")
            ->check(CLI::Range(1, 10000));
    command->add_option("--seconds", common->limit, "begin no further case after this time");
    command->add_option("--seed", common->seed, "of the generated configurations");
    command->add_flag("--double", common->doublePrecision, "double precision as well");
    return command;
}

void addM2l(CLI::App* app, CommonOptions* common, M2lBenchmark* m2l)
{
    m2l->orders.resize(c_maxOrder + 1);
    std::iota(m2l->orders.begin(), m2l->orders.end(), 0);
    CLI::App* command =
            addCommand(app, "m2l", "time of M2L against the order, for every engine", common);
    command->add_option("--orders", m2l->orders, "multipole orders")
            ->check(CLI::Range(0, c_maxOrder));
    command->add_option("--cells", m2l->cells, "leaf cells per edge")->check(CLI::Range(4, 64));
    command->add_option("--engines", m2l->engines, "M2L engines")->check(isEngine());
    command->add_option("--accuracies", m2l->accuracies, "wanted accuracies, for gemm");
    command->add_flag("!--no-bounds", m2l->bounds, "leave out the microkernels");
    command->add_option("--per-cell", m2l->perCell, "particles per cell")
            ->check(CLI::Range(1, 100));
}

void addEvaluations(CLI::App* app, CommonOptions* common, EvaluationBenchmark* evaluations)
{
    CLI::App* total =
            addCommand(app, "total", "time of an evaluation against the number of atoms", common);
    total->add_option("--sizes", evaluations->sizes, "atoms")->check(CLI::Range(3, 100000000));
    total->add_option("--systems", evaluations->systems, "systems")
            ->check(CLI::IsMember(c_evaluated));
    total->add_option("--cells", evaluations->cells, "leaf cells per edge; 0: automatic");
    CLI::App* droplets =
            addCommand(app, "droplets", "27 droplets of water, 300 510 atoms in all", common);
    droplets->add_option("--edges", evaluations->edges, "edges of the box, nm");
    droplets->add_option("--cells", evaluations->dropletCells, "leaf cells per edge; 0: automatic");
    for (CLI::App* command : { total, droplets })
    {
        command->add_option("--engines", evaluations->engines, "M2L engines")->check(isEngine());
        command->add_option("--accuracy", evaluations->accuracy, "wanted accuracy");
        command->add_flag("!--forces-only", evaluations->totals, "leave out energy and virial");
    }
}

void addP2p(CLI::App* app, CommonOptions* common, P2pBenchmark* p2p)
{
    CLI::App* command =
            addCommand(app, "p2p", "near-field pairs per second against atoms per cell", common);
    command->add_option("--sizes", p2p->sizes, "atoms")->check(CLI::Range(3, 100000000));
    command->add_option("--per-cell", p2p->perCell, "atoms per cell")
            ->check(CLI::Range(1.0, 10000.0));
    command->add_flag("--reproducible", p2p->reproducible, "with a fixed order of summation");
    command->add_option("--width", p2p->width, "of Gaussian charges, nm; 0: point charges")
            ->check(CLI::Range(0.0, 0.5));
}

void addAccuracy(CLI::App* app, CommonOptions* common, AccuracyBenchmark* accuracy)
{
    CLI::App* command = addCommand(app, "accuracy", "relative RMS force error", common);
    command->add_option("--reference", accuracy->references, "files with converged forces")
            ->check(CLI::ExistingFile);
    command->add_option("--sizes", accuracy->sizes, "atoms of water, without reference files");
    command->add_option("--reference-order",
                        accuracy->referenceOrder,
                        "order of the CPU's result to compare with");
    command->add_option("--orders", accuracy->orders, "multipole orders; -1: automatic")
            ->check(CLI::Range(-1, c_maxOrder));
    command->add_option("--ranges", accuracy->ranges, "direct ranges")->check(CLI::Range(1, 2));
    command->add_option("--engines", accuracy->engines, "M2L engines")->check(isEngine());
    command->add_option("--cell-size", accuracy->cellSize, "edge of cells, nm; 0: automatic");
    command->add_option("--accuracy", accuracy->accuracy, "wanted accuracy");
    command->add_option("--shifts", accuracy->shifts, "positions of the grid")
            ->check(CLI::Range(1, 1000));
    command->add_flag("--cpu", accuracy->cpu, "the same on the CPU");
}

int program(int argc, char** argv)
{
    CLI::App app("Benchmarks of the CUDA backend of farfield; results as JSON.");
    app.require_subcommand(1);
    CommonOptions common;
    for (int i = 1; i < argc; i++)
    {
        common.command += (i > 1 ? " " : "farfield_gpu_benchmark ") + std::string(argv[i]);
    }
    M2lBenchmark m2l;
    EvaluationBenchmark evaluations;
    P2pBenchmark p2p;
    AccuracyBenchmark accuracy;
    addM2l(&app, &common, &m2l);
    addEvaluations(&app, &common, &evaluations);
    addP2p(&app, &common, &p2p);
    addAccuracy(&app, &common, &accuracy);

    CLI11_PARSE(app, argc, argv);
    const std::string name = app.get_subcommands().front()->get_name();
    Report report(name,
                  common.command,
                  common.output.empty() ? "gpu_" + name + ".json" : common.output,
                  common.limit);
    if (name == "m2l")
    {
        m2l.run(common, &report);
    }
    else if (name == "total")
    {
        evaluations.run(common, &report);
    }
    else if (name == "droplets")
    {
        evaluations.runDroplets(common, &report);
    }
    else if (name == "p2p")
    {
        p2p.run(common, &report);
    }
    else
    {
        accuracy.run(common, &report);
    }
    return 0;
}

} // namespace

M2lEngine engineNamed(const std::string& name)
{
    return std::find_if(std::begin(c_m2lEngines),
                        std::end(c_m2lEngines),
                        [&](const M2lEngineDescription& engine) { return name == engine.name; })
            ->value;
}

} // namespace bench
} // namespace farfield

int main(int argc, char** argv)
{
    try
    {
        return farfield::bench::program(argc, argv);
    }
    catch (const std::exception& error)
    {
        std::fprintf(stderr, "farfield_gpu_benchmark: %s\n", error.what());
        return 1;
    }
}
