/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What energy and virial cost on the CPU beside the forces.
 *
 *  farfield_cpu_benchmark [atoms [orders ...]]: a line per engine, precision and order.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "farfield/farfield.h"

#include "bench_systems.h"
#include "command_line.h"

namespace farfield
{
namespace bench
{
namespace
{

//! Evaluations per kind; the kinds take turns, so that they see the same load of the machine.
constexpr int c_repeats = 40;

//! The least is the time of the work; the rest of a busy machine only adds to it.
double least(const std::vector<double>& samples)
{
    return *std::min_element(samples.begin(), samples.end());
}

double secondsOf(const std::vector<StageTime>& times, const std::string& stage)
{
    for (const StageTime& t : times)
    {
        if (t.name == stage)
        {
            return t.seconds;
        }
    }
    return 0;
}

template<class Real>
void timeTotals(const System& system, M2lEngine engine, int order)
{
    Options options;
    options.device = Device::Cpu;
    options.m2l    = engine;
    options.order  = order;
    Solver<Real> solver(options);
    load(solver, system);
    const std::vector<Real> x = converted<Real>(system.x);
    std::vector<Real> forces(x.size());
    Request kinds[3];
    kinds[0].energy = kinds[0].virial = false;
    kinds[1].virial                   = false;
    std::vector<double> whole[3], m2l[3], p2p[3];
    for (int i = -2; i < c_repeats; i++)
    {
        for (int kind = 0; kind < 3; kind++)
        {
            solver.resetTimings();
            const auto begin = std::chrono::steady_clock::now();
            solver.evaluate(x.data(), system.box, forces.data(), kinds[kind]);
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
            if (i >= 0)
            {
                whole[kind].push_back(1e3 * spent.count());
                m2l[kind].push_back(1e3 * secondsOf(solver.timings(), "M2L"));
                p2p[kind].push_back(1e3 * secondsOf(solver.timings(), "P2P"));
            }
        }
    }
    const Setup setup = solver.setup();
    std::printf("%-9s %-6s %2d %9lld %7.3f |",
                nameOf(engine),
                test::precisionName<Real>(),
                setup.order,
                setup.leafCells,
                setup.cellSize);
    for (const auto* samples : { whole, m2l, p2p })
    {
        for (int kind = 0; kind < 3; kind++)
        {
            std::printf(" %8.3f", least(samples[kind]));
        }
        std::printf(" |");
    }
    std::printf(
            " %5.2f %5.2f\n", least(whole[1]) / least(whole[0]), least(whole[2]) / least(whole[0]));
    std::fflush(stdout);
}

} // namespace
} // namespace bench
} // namespace farfield

int main(int argc, char** argv)
{
    using namespace farfield;
    const bench::System water = bench::waterBox(argc > 1 ? std::atoi(argv[1]) : 23262, 1);
    std::vector<int> orders   = { 4, 8, 12 };
    if (argc > 2)
    {
        orders.clear();
        std::transform(argv + 2, argv + argc, std::back_inserter(orders), std::atoi);
    }
    std::printf("%d atoms of water; ms per evaluation of forces, with the energy, with energy and "
                "virial\n",
                water.size());
    std::printf(
            "engine    real   p leaf cells edge/nm | %-26s | %-26s | %-26s | ratios to forces\n",
            "whole",
            "M2L",
            "P2P");
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const int order : orders)
        {
            bench::timeTotals<float>(water, engine, order);
            bench::timeTotals<double>(water, engine, order);
        }
    }
    return 0;
}
