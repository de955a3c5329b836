/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Several ranks of one process beside one rank with as many threads: times, and what is sent.
 *
 *  farfield_ranks_benchmark [atoms [ranks ...]]: water, a line per engine and number of ranks. Ranks have
 *  a thread each, and exchanges are planned anew at every 20th evaluation, as at pair searches of mdrun.
 */
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "farfield/farfield_parallel.h"

#include "bench_systems.h"
#include "in_process_ranks.h"

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

//! Numbers of domains along each axis, as even as the number of ranks allows.
std::array<int, 3> partsOf(int ranks)
{
    std::array<int, 3> parts = { 1, 1, 1 };
    for (int left = ranks, axis = 2; left > 1; axis = (axis + 2) % 3)
    {
        int factor = 2;
        while (left % factor != 0)
        {
            factor++;
        }
        parts[axis] *= factor;
        left /= factor;
    }
    return parts;
}

//! The domain of each particle.
std::vector<int> domainsOf(const System& system, const std::array<int, 3>& parts)
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

/*! \brief Bytes that a rank sends per evaluation in a cube of even density, as docs/ranks.md has it.
 *
 *  \param[in] parts  domains along each axis */
double predictedBytes(const System& system, const Setup& setup, const std::array<int, 3>& parts)
{
    const double R = parts[0] * parts[1] * parts[2], n = (setup.order + 1.0) * (setup.order + 1);
    const auto box = [&](int cells, double more)
    {
        double inside = 1;
        for (const int part : parts)
        {
            inside *= part == 1 ? cells : std::min<double>(cells, double(cells) / part + more);
        }
        return inside;
    };
    const int leaf = setup.cells[0][0], ws = setup.directRange;
    // cells that particles may be in reach beyond a domain by the offset of the grid, a cell, and the
    // drift on both sides, and are whole
    constexpr double c_drift = 0.35, c_reach = 1 + 2 * c_drift;
    const double perCell = system.size() / std::pow(leaf, 3);
    const double home    = system.size() / R;
    const double ghosts =
            std::min(perCell * box(leaf, 2 * (ws + 0.5 + c_reach)), double(system.size())) - home;
    double numbers = 3 * ghosts;
    if (setup.levels == 1)
    {
        const double waves = leaf * leaf * (leaf / 2 + 1);
        numbers += n * (1 - 1 / R) * (2 * box(leaf, c_reach + 1) + 2 * 2 * waves / R);
    }
    else
    {
        int cells = leaf;
        for (int level = setup.levels - 1; level > 0; level--, cells /= 2)
        {
            // to each neighbour, those of ours that are near parents of its cells: both reach beyond
            // the border, parents are twice as large, and half a cell is lost to their grid
            const double shared = c_reach + 1 + 2 * ws + 0.5;
            double all          = 1;
            for (const int part : parts)
            {
                const double own  = double(cells) / part + c_reach + 1;
                const double most = part == 2 ? own : 2 * own;
                all *= part == 1 ? cells : own + std::min(2 * shared, most);
            }
            numbers += n * (all - box(cells, c_reach + 1));
        }
        numbers += n * (R - 1) * box(cells, c_reach + 1);
    }
    return numbers * sizeof(float);
}

void compare(const System& system, M2lEngine engine, int ranks)
{
    const std::vector<float> x = converted<float>(system.x);
    std::vector<float> forces(x.size());
    Solver<float> one(optionsFor(engine, ranks));
    load(one, system);
    one.prepare(x.data(), system.box);
    const double ofOne =
            milliseconds([&](const Request& request, bool /*isFirst*/)
                         { one.evaluate(x.data(), system.box, forces.data(), request); });
    const std::array<int, 3> parts = partsOf(ranks);
    const std::vector<int> rankOf  = domainsOf(system, parts);
    double ofSeveral               = 0;
    Traffic traffic;
    std::vector<StageTime> times, timesOfOne = one.timings();
    test::onRanks(ranks,
                  [&](Communicator& communicator)
                  {
                      std::vector<int> index, offsets = { 0 }, partners;
                      std::vector<float> ownX, ownQ;
                      for (int i = 0; i < system.size(); i++)
                      {
                          if (rankOf[i] != communicator.rank())
                          {
                              continue;
                          }
                          index.push_back(i);
                          ownX.insert(ownX.end(), x.begin() + 3 * i, x.begin() + 3 * i + 3);
                          ownQ.push_back(static_cast<float>(system.q[i]));
                          partners.insert(partners.end(),
                                          system.partners.begin() + system.offsets[i],
                                          system.partners.begin() + system.offsets[i + 1]);
                          offsets.push_back(static_cast<int>(partners.size()));
                      }
                      LocalParticles<float> local;
                      local.count             = static_cast<int>(index.size());
                      local.index             = index.data();
                      local.charges           = ownQ.data();
                      local.exclusionOffsets  = offsets.data();
                      local.exclusionPartners = partners.data();
                      DistributedSolver<float> solver(optionsFor(engine, 1), &communicator);
                      solver.restore(one.state());
                      std::vector<float> own(ownX.size());
                      const double spent = milliseconds(
                              [&](const Request& request, bool isFirst)
                              {
                                  if (isFirst)
                                  {
                                      solver.setLocal(local);
                                  }
                                  solver.evaluate(ownX.data(), system.box, own.data(), request);
                              });
                      if (communicator.rank() == 0)
                      {
                          ofSeveral = spent;
                          traffic   = solver.traffic();
                          times     = solver.timings();
                      }
                  });
    const Setup setup = one.setup();
    const auto per    = static_cast<double>(traffic.evaluations);
    std::printf("%-9s %2d %5d %8lld | %8.3f %8.3f %6.2f | %6.1f %9.1f %9.1f %9.1f |",
                nameOf(setup.m2l),
                setup.order,
                ranks,
                setup.leafCells,
                ofOne,
                ofSeveral,
                ofSeveral / ofOne,
                static_cast<double>(traffic.messages) / per,
                1e-3 * static_cast<double>(traffic.bytes) / per,
                1e-3 * predictedBytes(system, setup, parts),
                1e-3 * static_cast<double>(traffic.planBytes) / static_cast<double>(traffic.plans));
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
    const bench::System water = bench::waterBox(argc > 1 ? std::atoi(argv[1]) : 23262, 1);
    std::vector<int> ranks    = { 2 };
    if (argc > 2)
    {
        ranks.clear();
        std::transform(argv + 2, argv + argc, std::back_inserter(ranks), std::atoi);
    }
    std::printf(
            "%d atoms of water; ms per evaluation of forces, one rank with as many threads and "
            "ranks "
            "with one each;\nsent by the first rank per evaluation and per plan; stages of one, "
            "and of the first rank, ms\n"
            "engine     p ranks    cells |      one    ranks  ratio | messages       kB predicted  "
            " kB/plan |\n",
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
