/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What energy and virial cost on the CPU beside the forces, and how stages scale with
 *         threads.
 *
 *  farfield_cpu_benchmark [atoms [orders ...]]: a line per engine, precision and order.
 *
 *  farfield_cpu_benchmark --threads N ... [--water ATOMS ...] [--protein ATOMS ...]
 *  [--evaluations N] [--json FILE]: a table per system, of stages and numbers of threads. Threads are
 *  pinned to cores unless OMP_PROC_BIND says otherwise.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include "farfield/farfield.h"

#include "bench_systems.h"
#include "command_line.h"
#include "cpu_threads.h"

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

/*! \brief Reads options of the measurement of threads.
 *  \returns false if there is none of them, or if one is not known */
bool readThreadsCase(int argc, char** argv, ThreadsCase* what)
{
    const std::map<std::string, std::vector<int>*> lists = { { "--threads", &what->threads },
                                                             { "--water", &what->water },
                                                             { "--protein", &what->protein } };
    std::vector<int>* list                               = nullptr;
    for (int i = 1; i < argc; i++)
    {
        what->command += std::string(i > 1 ? " " : "") + argv[i];
        const auto found = lists.find(argv[i]);
        const bool isOne = i + 1 < argc;
        if (found != lists.end())
        {
            list = found->second;
        }
        else if (isOne && argv[i] == std::string("--json"))
        {
            what->json = argv[i + 1];
            what->command += std::string(" ") + argv[++i];
        }
        else if (isOne && argv[i] == std::string("--evaluations"))
        {
            what->evaluations = std::max(1, std::atoi(argv[i + 1]));
            what->command += std::string(" ") + argv[++i];
        }
        else if (list != nullptr && std::atoi(argv[i]) > 0)
        {
            list->push_back(std::atoi(argv[i]));
        }
        else
        {
            return false;
        }
    }
    return !what->threads.empty();
}

//! Starts the program again with pinned threads, unless the user has decided: OpenMP reads the
//! variable when a program begins.
void pinThreads(char** argv)
{
    if (std::getenv("OMP_PROC_BIND") == nullptr)
    {
        setenv("OMP_PROC_BIND", "close", 1);
        setenv("OMP_PLACES", "cores", 0);
        execv("/proc/self/exe", argv);
    }
}

} // namespace
} // namespace bench
} // namespace farfield

int main(int argc, char** argv)
{
    using namespace farfield;
    bench::ThreadsCase threads;
    if (bench::readThreadsCase(argc, argv, &threads))
    {
        bench::pinThreads(argv);
        if (threads.water.empty() && threads.protein.empty())
        {
            threads.water   = { 23262 };
            threads.protein = { 20640 };
        }
        bench::measureThreads(threads);
        return 0;
    }
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
