/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_helpers_benchmark: evaluations with helpers for the near field.
 *
 *      farfield_helpers_benchmark [--atoms 23262,93048,372192,1116576,-100000] [--helpers 0,1,3]
 *          [--cells 0] [--tune 1] [--accuracy 3e-4] [--replays 300]
 *
 *  Numbers of atoms below zero are those of a protein in water. Helpers are the devices from 1 on;
 *  cells are edges in nm, 0: automatic. A line of JSON for each case: microseconds of an evaluation of
 *  forces in a graph, as the median of groups of replays, of one that is not recorded by the caller,
 *  and of one with totals; the shares of the helpers; and the largest difference of a force component
 *  from those of one GPU with the same cells, relative to the root mean square.
 */
#include <cmath>
#include <cstdio>

#include <algorithm>
#include <array>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "farfield/farfield_cuda.h"

#include "bench_systems.h"
#include "command_line.h"
#include "on_device.h"

namespace farfield
{
namespace bench
{
namespace
{

struct Settings
{
    std::string atoms = "23262,93048,372192,1116576,-100000", helpers = "0,1,3", cells = "0";
    double accuracy = 3e-4;
    int tune = 1, replays = 300;
};

std::vector<double> numbers(const std::string& list)
{
    std::vector<double> all;
    std::istringstream text(list);
    for (std::string entry; std::getline(text, entry, ',');)
    {
        all.push_back(std::atof(entry.c_str()));
    }
    return all;
}

//! Copies of a system side by side.
System repeated(const System& unit, const std::array<int, 3>& times)
{
    System all;
    all.name = unit.name;
    for (int k = 0; k < 3; k++)
    {
        for (int c = 0; c < 3; c++)
        {
            all.box[k][c] = times[k] * unit.box[k][c];
        }
    }
    all.offsets.push_back(0);
    for (int copy = 0; copy < times[0] * times[1] * times[2]; copy++)
    {
        const int at[3] = { copy % times[0],
                            copy / times[0] % times[1],
                            copy / times[0] / times[1] };
        const int first = all.size();
        for (int i = 0; i < unit.size(); i++)
        {
            for (int c = 0; c < 3; c++)
            {
                all.x.push_back(unit.x[3 * static_cast<size_t>(i) + c] + at[0] * unit.box[0][c]
                                + at[1] * unit.box[1][c] + at[2] * unit.box[2][c]);
            }
            all.q.push_back(unit.q[i]);
            for (int k = unit.offsets[i]; k < unit.offsets[i + 1]; k++)
            {
                all.partners.push_back(first + unit.partners[k]);
            }
            all.offsets.push_back(static_cast<int>(all.partners.size()));
        }
    }
    return all;
}

//! Water of about so many atoms; large boxes are copies of one of 93 048. Less than zero: a protein in
//! water.
System systemOf(int atoms)
{
    constexpr int c_unit = 93048;
    if (atoms < 0)
    {
        System protein = proteinInWater(-atoms, 0.4, 1);
        protein.name   = "protein";
        return protein;
    }
    const int copies = std::max(1, (atoms + c_unit / 2) / c_unit);
    if (copies == 1)
    {
        return waterBox(atoms, 1);
    }
    std::array<int, 3> best = { copies, 1, 1 };
    for (int a = 1; a <= copies; a++)
    {
        for (int b = 1; copies % a == 0 && b <= copies / a; b++)
        {
            const std::array<int, 3> now = { a, b, copies / a / b };
            if (a * b * now[2] == copies && a + b + now[2] < best[0] + best[1] + best[2])
            {
                best = now;
            }
        }
    }
    return repeated(waterBox(c_unit, 1), best);
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

//! Evaluates a system with some helpers.
class Case
{
public:
    //! \param[in] state  cells and order, of another solver; empty: they are chosen
    Case(const System& system, const Options& options, const std::vector<double>& state = {}) :
        system_(system), solver_(options), x_(converted<float>(system.x)), forces_(system.x.size())
    {
        if (!state.empty())
        {
            solver_.restore(state);
        }
        load(solver_, system);
        solver_.prepare(converted<float>(system.x).data(), system.box);
        for (int k = 0; k < 5; k++)
        {
            put(false);
        }
        wait(solver_);
    }
    Setup setup() const { return solver_.setup(); }
    std::vector<double> state() const { return solver_.state(); }

    //! s of an evaluation in a graph.
    double replayed(int replays)
    {
        put(false);
        const Graph graph(clock_.stream(), [&] { put(false); });
        step_ += 3 * replays; // steps of replays are counted on the device
        const auto many = [&](int count)
        {
            return clock_.seconds(
                           [&]
                           {
                               for (int k = 0; k < count; k++)
                               {
                                   graph.launch(clock_.stream());
                               }
                           })
                   / count;
        };
        many(replays); // shares find their place
        std::vector<double> seconds;
        for (int k = 0; k < 11; k++)
        {
            seconds.push_back(many(std::max(1, replays / 11)));
        }
        wait(solver_);
        return median(seconds);
    }
    //! s of evaluations that are put into a stream one after the other.
    double enqueued(bool totals, int count)
    {
        put(totals);
        put(totals);
        const double seconds = clock_.seconds(
                [&]
                {
                    for (int k = 0; k < count; k++)
                    {
                        put(totals);
                    }
                });
        wait(solver_);
        return seconds / count;
    }
    //! Forces of a step.
    std::vector<float> forces(long long step)
    {
        step_ = step;
        put(false);
        checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
        wait(solver_);
        return forces_.get();
    }

private:
    Request request(bool totals) const
    {
        Request request;
        request.energy = request.virial = totals;
        request.replaceForces           = true;
        request.step                    = step_;
        return request;
    }
    void put(bool totals)
    {
        enqueue(solver_, x_.data(), system_.box, forces_.data(), request(totals), clock_.stream());
        step_++;
    }

    const System& system_;
    Solver<float> solver_;
    DeviceArray<float> x_, forces_;
    Clock clock_;
    long long step_ = 0;
};

//! Largest difference of a component, relative to the root mean square of all.
double largestDifference(const std::vector<float>& a, const std::vector<float>& b)
{
    double largest = 0, square = 0;
    for (size_t k = 0; k < a.size(); k++)
    {
        const double d = static_cast<double>(a[k]) - static_cast<double>(b[k]);
        largest        = std::max(largest, std::abs(d));
        square += static_cast<double>(b[k]) * static_cast<double>(b[k]);
    }
    return largest / std::sqrt(square / static_cast<double>(a.size()));
}

void run(const Settings& settings)
{
    int devices = 0;
    checkCuda(cudaGetDeviceCount(&devices), "counting devices");
    for (const double atoms : numbers(settings.atoms))
    {
        const System system = systemOf(static_cast<int>(atoms));
        for (const double cell : numbers(settings.cells))
        {
            double alonePerStep = 0;
            for (const double helpers : numbers(settings.helpers))
            {
                if (helpers >= devices)
                {
                    continue;
                }
                Options options;
                options.device   = Device::Gpu;
                options.deviceId = 0;
                options.accuracy = settings.accuracy;
                options.cellSize = cell;
                options.tune     = settings.tune != 0 && cell == 0;
                Options onOne    = options;
                for (int h = 1; h <= static_cast<int>(helpers); h++)
                {
                    options.helperDevices.add(h);
                }
                Case one(system, options);
                const double graph = one.replayed(settings.replays);
                const double plain = one.enqueued(false, settings.replays / 3);
                const double total = one.enqueued(true, settings.replays / 10 + 1);
                const Setup setup  = one.setup();
                alonePerStep       = helpers == 0 ? graph : alonePerStep;
                std::string shares;
                for (const HelperDevice& helper : setup.helpers)
                {
                    shares += (shares.empty() ? "" : ", ") + std::to_string(helper.share);
                }
                std::printf("{\"system\": \"%s\", \"atoms\": %d, \"helpers\": %d, \"order\": %d, "
                            "\"ws\": %d, \"levels\": %d, \"cell\": %.3f, \"graph_us\": %.1f, "
                            "\"enqueued_us\": %.1f, \"totals_us\": %.1f, \"shares\": [%s]",
                            system.name.c_str(),
                            system.size(),
                            static_cast<int>(helpers),
                            setup.order,
                            setup.directRange,
                            setup.levels,
                            setup.cellSize,
                            1e6 * graph,
                            1e6 * plain,
                            1e6 * total,
                            shares.c_str());
                if (alonePerStep > 0)
                {
                    std::printf(", \"speedup\": %.3f", alonePerStep / graph);
                }
                if (helpers > 0)
                {
                    onOne.tune = false;
                    Case alone(system, onOne, one.state());
                    std::printf(", \"difference\": %.2e",
                                largestDifference(one.forces(1000), alone.forces(1000)));
                }
                std::printf("}\n");
                std::fflush(stdout);
            }
        }
    }
}

} // namespace
} // namespace bench
} // namespace farfield

int main(int argc, char** argv)
{
    using namespace farfield;
    bench::Settings settings;
    const bool right = test::parseOptions(argc,
                                          argv,
                                          { { "--atoms", test::setText(&settings.atoms) },
                                            { "--helpers", test::setText(&settings.helpers) },
                                            { "--cells", test::setText(&settings.cells) },
                                            { "--accuracy", test::setNumber(&settings.accuracy) },
                                            { "--tune", test::setNumber(&settings.tune) },
                                            { "--replays", test::setNumber(&settings.replays) } });
    if (!right)
    {
        std::fprintf(
                stderr,
                "farfield_helpers_benchmark [--atoms N,...] [--helpers N,...] [--cells nm,...] "
                "[--accuracy A] [--tune 0|1] [--replays N]\n");
        return 1;
    }
    try
    {
        bench::run(settings);
    }
    catch (const std::exception& error)
    {
        std::fprintf(stderr, "farfield_helpers_benchmark: %s\n", error.what());
        return 1;
    }
    return 0;
}
