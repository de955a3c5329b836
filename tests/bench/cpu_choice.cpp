/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Whether the cells that the CPU's cost model chooses are about the fastest.
 *
 *  farfield_cpu_choice: for systems from dense to very sparse, the time of the setting that is
 *  chosen, and of others of the same order and engine or of the other engine.
 */
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "farfield/farfield.h"

namespace farfield
{
namespace bench
{
namespace
{

struct Case
{
    std::string name;
    double box[3];
    double filled[3]; //!< edges of the part of the box in which the particles are
    int particles;
};

//! CPU time of this thread, which other work on the machine does not add to.
double now()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Timed
{
    double ms, setUp;
    Setup setup;
};

Timed timed(const Case& c, const Options& options)
{
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> uniform(0, 1);
    std::vector<float> x, q;
    for (int i = 0; i < c.particles; i++)
    {
        for (int k = 0; k < 3; k++)
        {
            x.push_back(static_cast<float>(0.3 * c.box[k] + c.filled[k] * uniform(engine)));
        }
        q.push_back(i % 2 ? 0.5f : -0.5f);
    }
    const double box[3][3] = { { c.box[0], 0, 0 }, { 0, c.box[1], 0 }, { 0, 0, c.box[2] } };
    Solver<float> solver(options);
    solver.setCharges(q.data(), c.particles);
    std::vector<float> forces(x.size());
    const double begin = now();
    solver.prepare(x.data(), box);
    Timed result = { 1e30, now() - begin, solver.setup() };
    Request request;
    request.energy = request.virial = false;
    double spent                    = 0;
    for (int i = 0; i < 4 || (i < 10 && spent < 0.3); i++)
    {
        const double start = now();
        solver.evaluate(x.data(), box, forces.data(), request);
        result.ms = std::min(result.ms, 1e3 * (now() - start));
        spent += now() - start;
    }
    return result;
}

void report(const Case& c)
{
    Options options;
    options.device     = Device::Cpu;
    options.threads    = 1;
    const Timed chosen = timed(c, options);
    double best        = chosen.ms;
    Timed fastest      = chosen;
    options.order      = chosen.setup.order;
    for (const M2lEngine m2l : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (double factor : { 0.5, 0.7, 1.0, 1.4, 2.0 })
        {
            options.m2l        = m2l;
            options.cellSize   = factor * chosen.setup.cellSize;
            const double cells = c.box[0] * c.box[1] * c.box[2]
                                 / (options.cellSize * options.cellSize * options.cellSize);
            if (options.cellSize > *std::min_element(c.box, c.box + 3)
                || cells > (m2l == M2lEngine::Fft ? 3e4 : 3e6))
            {
                continue;
            }
            const Timed other = timed(c, options);
            if (other.ms < best)
            {
                best    = other.ms;
                fastest = other;
            }
        }
    }
    std::printf("%-28s %6d | p %2d %-9s %10lld cells %8.3f nm %9.2f ms, set-up %7.2f s | best %-9s "
                "%8.3f nm %9.2f ms | %5.2f\n",
                c.name.c_str(),
                c.particles,
                chosen.setup.order,
                nameOf(chosen.setup.m2l),
                chosen.setup.leafCells,
                chosen.setup.cellSize,
                chosen.ms,
                chosen.setUp,
                nameOf(fastest.setup.m2l),
                fastest.setup.cellSize,
                best,
                chosen.ms / best);
    std::fflush(stdout);
}

} // namespace
} // namespace bench
} // namespace farfield

int main()
{
    using farfield::bench::Case;
    std::vector<Case> cases;
    for (const double edge : { 80.0, 20.0, 8.0, 5.0, 3.0 })
    {
        for (const int n : { 300, 3000, 50000 })
        {
            const double density = n / (edge * edge * edge);
            if (density < 150)
            {
                cases.push_back({ "even, " + std::to_string(int(edge)) + " nm",
                                  { edge, edge, edge },
                                  { edge, edge, edge },
                                  n });
            }
        }
    }
    for (const double edge : { 10.0, 40.0, 200.0, 1000.0 })
    {
        for (const int n : { 1000, 10000 })
        {
            const double drop = n == 1000 ? 2.15 : 4.6; // 100 / nm^3
            cases.push_back({ "droplet, " + std::to_string(int(edge)) + " nm",
                              { edge, edge, edge },
                              { drop, drop, drop },
                              n });
        }
    }
    cases.push_back({ "film, 20 x 20 x 100 nm", { 20, 20, 100 }, { 20, 20, 1 }, 40000 });
    cases.push_back({ "fibre, 10 x 10 x 60 nm", { 10, 10, 60 }, { 2, 2, 60 }, 24000 });
    cases.push_back({ "film, 100 x 100 x 4 nm", { 100, 100, 4 }, { 100, 100, 4 }, 10000 });
    for (const Case& c : cases)
    {
        farfield::bench::report(c);
    }
    return 0;
}
