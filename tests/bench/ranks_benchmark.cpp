/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Several ranks of one process beside one rank with as many threads: times, and what is sent.
 *
 *  farfield_ranks_benchmark [atoms [ranks ...]]: water, a line per engine and number of ranks. Ranks have
 *  a thread each, and exchanges are planned anew at every 20th evaluation, as at pair searches of mdrun.
 *  farfield_ranks_benchmark --at-scale: what the cost model expects of larger systems on more ranks.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "farfield/farfield_parallel.h"

#include "bench_systems.h"
#include "in_process_ranks.h"
#include "parallel/measured_network.h"
#include "plan/cost_model.h"
#include "ranks_at_scale.h"

namespace farfield
{
namespace bench
{
namespace
{

constexpr int c_interval    = 20; //!< evaluations from plan to plan
constexpr int c_evaluations = 10 * c_interval;

Options optionsFor(M2lEngine engine, int threads)
{
    Options options;
    options.device  = Device::Cpu;
    options.m2l     = engine;
    options.threads = threads;
    return options;
}

//! Evaluates so often, with the grid at another place each time; returns ms per evaluation.
template<class Evaluate>
double milliseconds(const Evaluate& evaluate)
{
    Request request;
    request.energy = request.virial = false;
    request.replaceForces           = true;
    std::vector<double> blocks;
    for (int i = -c_interval; i < c_evaluations; i += c_interval)
    {
        const auto begin = std::chrono::steady_clock::now();
        for (int k = 0; k < c_interval; k++)
        {
            request.step = i + k + c_interval;
            evaluate(request, k == 0);
        }
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        if (i >= 0)
        {
            blocks.push_back(1e3 * spent.count() / c_interval);
        }
    }
    return *std::min_element(blocks.begin(), blocks.end());
}

//! The domain of each particle.
std::vector<int> domainsOf(const System& system, const Int3& parts)
{
    std::vector<int> rankOf(system.size());
    for (int i = 0; i < system.size(); i++)
    {
        int rank = 0;
        for (int k = 0; k < 3; k++)
        {
            const double s = system.x[3 * i + k] / system.box[k][k];
            rank           = rank * parts[k]
                   + std::min(parts[k] - 1, static_cast<int>(parts[k] * (s - std::floor(s))));
        }
        rankOf[i] = rank;
    }
    return rankOf;
}

//! What the library's cost model counts of evenly filled cells.
Work workOf(const System& system, const Setup& setup)
{
    const double volume = system.box[0][0] * system.box[1][1] * system.box[2][2];
    const Int3 lengths  = { setup.cells[0][0], setup.cells[1][1], setup.cells[2][2] };
    return Work(setup.order,
                setup.directRange,
                lengths,
                setup.levels,
                volume,
                Occupancy(volume),
                system.size());
}

void compare(const System& system, M2lEngine engine, int ranks)
{
    const std::vector<float> x       = converted<float>(system.x);
    const std::vector<float> charges = converted<float>(system.q);
    std::vector<float> forces(x.size());
    Solver<float> one(optionsFor(engine, ranks));
    load(one, system);
    one.prepare(x.data(), system.box);
    const double ofOne =
            milliseconds([&](const Request& request, bool /*isFirst*/)
                         { one.evaluate(x.data(), system.box, forces.data(), request); });
    Mat3 box = Mat3::Zero();
    for (int k = 0; k < 3; k++)
    {
        box(k, k) = system.box[k][k];
    }
    const Int3 parts              = evenDomains(ranks, box);
    const std::vector<int> rankOf = domainsOf(system, parts);
    Network network;
    double ofSeveral = 0;
    Traffic traffic;
    std::vector<StageTime> times, timesOfOne = one.timings();
    test::onRanks(ranks,
                  [&](Communicator& communicator)
                  {
                      std::vector<int> index;
                      std::vector<float> ownX;
                      for (int i = 0; i < system.size(); i++)
                      {
                          if (rankOf[i] == communicator.rank())
                          {
                              index.push_back(i);
                              ownX.insert(ownX.end(), x.begin() + 3 * i, x.begin() + 3 * i + 3);
                          }
                      }
                      DistributedSolver<float> solver(optionsFor(engine, 1), &communicator);
                      solver.setSystem({ system.size(),
                                         charges.data(),
                                         system.offsets.data(),
                                         system.partners.data() });
                      solver.restore(one.state());
                      std::vector<float> own(ownX.size());
                      const double spent = milliseconds(
                              [&](const Request& request, bool isFirst)
                              {
                                  if (isFirst)
                                  {
                                      solver.setLocal(index.data(), static_cast<int>(index.size()));
                                  }
                                  solver.evaluate(ownX.data(), system.box, own.data(), request);
                              });
                      Ranks all(&communicator);
                      const Network measured = measuredNetwork(&all, sizeof(float));
                      if (communicator.rank() == 0)
                      {
                          network   = measured;
                          ofSeveral = spent;
                          traffic   = solver.traffic();
                          times     = solver.timings();
                      }
                  });
    const Setup setup               = one.setup();
    const Work work                 = workOf(system, setup);
    network.parts                   = parts;
    const auto per                  = static_cast<double>(traffic.evaluations);
    const PredictedTraffic expected = predictedTraffic(Device::Cpu, work, network);
    std::printf("%-9s %2d %5d %8lld | %8.3f %8.3f %6.2f | %8.3f %8.3f | %6.1f %9.1f %9.1f %9.1f | "
                "%6.2f %6.2f",
                nameOf(setup.m2l),
                setup.order,
                ranks,
                setup.leafCells,
                ofOne,
                ofSeveral,
                ofSeveral / ofOne,
                1e-6 * predictedCost(Device::Cpu, work) / ranks,
                1e-6 * predictedCost(Device::Cpu, work, network),
                static_cast<double>(traffic.messages) / per,
                1e-3 * static_cast<double>(traffic.bytes) / per,
                1e-3 * sizeof(float) * expected.numbers,
                1e-3 * static_cast<double>(traffic.planBytes) / static_cast<double>(traffic.plans),
                1e-3 * network.message,
                network.number / sizeof(float));
    for (const auto* stages : { &timesOfOne, &times })
    {
        std::printf("\n         ");
        for (const StageTime& t : *stages)
        {
            std::printf(" %s %.3f", t.name.c_str(), 1e3 * t.seconds / per);
        }
    }
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace
} // namespace bench
} // namespace farfield

int main(int argc, char** argv)
{
    using namespace farfield;
    if (argc == 2 && std::strcmp(argv[1], "--at-scale") == 0)
    {
        bench::printRanksAtScale();
        return 0;
    }
    const bench::System water = bench::waterBox(argc > 1 ? std::atoi(argv[1]) : 23262, 1);
    std::vector<int> ranks    = { 2 };
    if (argc > 2)
    {
        ranks.clear();
        std::transform(argv + 2, argv + argc, std::back_inserter(ranks), std::atoi);
    }
    std::printf("%d atoms of water; ms per evaluation of forces, one rank with as many threads and "
                "ranks "
                "with one each,\nand both by the library's cost model; sent by the first rank per "
                "evaluation and "
                "per plan; the network, us per\nmessage and ns per byte; stages of one, and of the "
                "first rank, "
                "ms\n"
                "engine     p ranks    cells |      one    ranks  ratio |    model    ranks | "
                "messages       kB "
                "    model   kB/plan | us/msg ns/byte\n",
                water.size());
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const int number : ranks)
        {
            bench::compare(water, engine, number);
        }
    }
    return 0;
}
