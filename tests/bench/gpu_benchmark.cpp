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
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "farfield/farfield.h"
#include "farfield/farfield_cuda.h"

#include "bench_report.h"
#include "bench_systems.h"
#include "bench_timing.h"
#include "microkernels.h"

namespace farfield
{
namespace bench
{
namespace
{

using nlohmann::json;

//! The engine with a name that the command line has checked.
M2lEngine engineNamed(const std::string& name)
{
    return std::find_if(std::begin(c_m2lEngines),
                        std::end(c_m2lEngines),
                        [&](const M2lEngineDescription& engine) { return name == engine.name; })
            ->value;
}

//! What all benchmarks can be told.
struct Common
{
    std::string output;
    std::string command;
    int samples          = 15;
    double limit         = 0;
    unsigned seed        = 1;
    bool doublePrecision = false;
};

const Request c_forcesOnly = { false, false, { 0, 0, 0 } };
const Request c_withTotals = { true, true, { 0, 0, 0 } };

template<class Real>
constexpr const char* c_precision = sizeof(Real) == 4 ? "float" : "double";

std::string text(const char* format, double value)
{
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), format, value);
    return buffer;
}

template<class Real>
std::vector<Real> converted(const std::vector<double>& values)
{
    return std::vector<Real>(values.begin(), values.end());
}

json describe(const Setup& s)
{
    return { { "order", s.order },
             { "direct_range", s.directRange },
             { "engine", nameOf(s.m2l) },
             { "least_squares", s.leastSquares },
             { "cells", s.cells },
             { "levels", s.levels },
             { "leaf_cells", s.leafCells },
             { "cell_size", s.cellSize },
             { "estimated_error", s.estimatedError },
             { "device", s.deviceName } };
}

//! A solver with its system on the device.
template<class Real>
class Run
{
public:
    Run(const System& system, const Options& options) :
        system_(system), solver_(options), x_(converted<Real>(system.x)), forces_(system.x.size())
    {
        const auto begin          = std::chrono::steady_clock::now();
        const std::vector<Real> q = converted<Real>(system.q);
        const std::vector<Real> x = converted<Real>(system.x);
        solver_.setCharges(q.data(), system.size());
        solver_.setExclusions(system.offsets.data(), system.partners.data(), system.size());
        solver_.prepare(x.data(), system.box);
        setUpSeconds_ =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        checkCuda(cudaMemset(forces_.data(), 0, system.x.size() * sizeof(Real)),
                  "clearing the forces");
        checkCuda(cudaDeviceSynchronize(), "clearing the forces");
        put(c_withTotals);
        wait(solver_);
    }

    Setup setup() const { return solver_.setup(); }
    //! Writes what was chosen, and how long that and the operators took.
    Setup recordSetup(json* result) const
    {
        const Setup s               = setup();
        (*result)["setup"]          = describe(s);
        (*result)["set_up_seconds"] = setUpSeconds_;
        return s;
    }

    //! Time of an evaluation whose stages are launched one by one.
    json plain(const Request& request, int samples)
    {
        const json result = measure(&clock_, samples, [&] { put(request); });
        wait(solver_);
        return result;
    }

    //! Time of an evaluation that was captured into a graph.
    json replayed(const Request& request, int samples)
    {
        put(request);
        wait(solver_);
        const Graph graph(clock_.stream(), [&] { put(request); });
        const json result = measure(&clock_, samples, [&] { graph.launch(clock_.stream()); });
        checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
        return result;
    }

    /*! \brief Time of every stage, one after the other.
     *  \returns { stage: statistics }, statistics over rounds of the median of each */
    json stages(const Request& request, int samples)
    {
        const auto measureRound = [&](int repeats) {
            return measureStages(solver_, x_.data(), system_.box, forces_.data(), request, repeats);
        };
        double once = 0;
        for (const StageTime& stage : measureRound(1))
        {
            once += stage.seconds;
        }
        // slow engines take seconds: about one for all rounds is enough
        const int evaluations =
                static_cast<int>(std::clamp(1.0 / std::max(once, 1e-6), 3.0, 10.0 * samples));
        const int rounds = std::min(5, evaluations);
        std::vector<std::string> order;
        std::map<std::string, std::vector<double>> seconds;
        for (int round = 0; round < rounds; round++)
        {
            std::map<std::string, double> sums;
            for (const StageTime& stage : measureRound(evaluations / rounds))
            {
                if (std::find(order.begin(), order.end(), stage.name) == order.end())
                {
                    order.push_back(stage.name);
                }
                sums[stage.name] += stage.seconds;
            }
            for (const auto& [name, sum] : sums)
            {
                seconds[name].push_back(sum);
            }
        }
        json result = json::array();
        for (const std::string& name : order)
        {
            json entry    = statistics(seconds[name]);
            entry["name"] = name;
            result.push_back(entry);
        }
        return result;
    }

private:
    void put(const Request& request)
    {
        enqueue(solver_, x_.data(), system_.box, forces_.data(), request, clock_.stream());
    }

    const System& system_;
    Solver<Real> solver_;
    DeviceArray<Real> x_, forces_;
    Clock clock_;
    double setUpSeconds_ = 0;
};

//! Median of a stage; 0 if it did not run.
double secondsOf(const char* name, const json& stages)
{
    for (const json& stage : stages)
    {
        if (stage["name"] == name)
        {
            return stage["median"];
        }
    }
    return 0;
}

/*! \brief M2L over interaction lists, all levels together.
 *
 *  A full periodic level has the same number of sources for every cell. */
M2lWork listWork(const Setup& s)
{
    M2lWork work    = { s.order, s.directRange, 0 };
    long long cells = s.leafCells;
    for (int k = 1; k < s.levels; k++, cells /= 8)
    {
        work.cells += cells;
    }
    return work;
}

/*! \brief Multiply-adds of the convolution: real operators on complex vectors, and the transforms.
 *
 *  A real transform of N numbers takes 2.5 N log2 N operations, counted as half as many
 *  multiply-adds. */
double periodicFma(const Setup& s)
{
    const double cells        = static_cast<double>(s.leafCells) / std::pow(8, s.levels - 1);
    const double coefficients = std::pow(s.order + 1, 2);
    return cells * coefficients * coefficients
           + 2 * coefficients * 1.25 * cells * std::log2(std::max(cells, 2.0));
}

//! Runs a case; what it throws becomes the result.
template<class Work>
void runCase(Report* report, json entry, const std::string& label, const Work& work)
{
    std::string line = label;
    try
    {
        line += work(&entry);
    }
    catch (const std::exception& error)
    {
        entry["error"] = error.what();
        line += std::string("  ") + error.what();
    }
    report->add(entry, line);
}

//! M2L against the order: engines and the bounds.
struct M2lBenchmark
{
    std::vector<int> orders, cells = { 8, 16 };
    std::vector<std::string> engines = { "naive", "dynamic", "symmetric", "gemm", "fft" };
    std::vector<double> accuracies   = { 1e-2, 3e-4, 1e-5 };
    int perCell                      = 8;
    bool bounds                      = true;

    template<class Real>
    void run(const Common& common, Report* report)
    {
        for (int order : orders)
        {
            for (int n : cells)
            {
                const double edge   = 0.5 * n;
                const System system = randomCharges(perCell * n * n * n, edge, common.seed);
                // so little sheared that the cells stay, but reflections no longer map them on
                // each other: the symmetric engine is left with the inversion
                System sheared    = system;
                sheared.box[1][0] = 0.1 * edge / n;
                sheared.box[2][0] = -0.1 * edge / n;
                sheared.box[2][1] = 0.1 * edge / n;
                M2lWork work      = { order, 1, static_cast<long long>(n) * n * n };
                for (const std::string& engine : engines)
                {
                    // the accuracy decides the format of the operands of gemm, and nothing else
                    for (size_t k = 0; k < (engine == "gemm" ? accuracies.size() : 1); k++)
                    {
                        if (!report->timeLeft())
                        {
                            return;
                        }
                        Options options;
                        options.device      = Device::Gpu;
                        options.order       = order;
                        options.directRange = 1;
                        options.cellSize    = edge / n;
                        options.m2l         = engineNamed(engine);
                        options.accuracy    = accuracies[k];
                        one<Real>(common, report, system, options, engine, n, &work);
                        if (engine == "symmetric")
                        {
                            one<Real>(common, report, sheared, options, engine, n, &work);
                        }
                    }
                }
                if (bounds && report->timeLeft())
                {
                    addBounds<Real>(common, report, work, n);
                }
            }
        }
    }

private:
    /*! \brief The microkernels, for the work of the engines.
     *
     *  Compute bound: the multiply-adds of dense operators, and those that are left when the
     *  displacements related by reflections share products. */
    template<class Real>
    static void addBounds(const Common& common, Report* report, const M2lWork& work, int n)
    {
        const auto add =
                [&](const char* name, double multiplyAdds, double bytes, const auto& launch)
        {
            const json entry        = { { "engine", name },
                                        { "precision", c_precision<Real> },
                                        { "order", work.order },
                                        { "cells_per_edge", n },
                                        { "executed_fma", multiplyAdds },
                                        { "bytes", bytes },
                                        { "list_fma", classicalMultiplyAdds(work) } };
            const std::string label = std::string("M2L ") + name + " " + c_precision<Real> + " p "
                                      + std::to_string(work.order) + ", " + std::to_string(n)
                                      + "^3 cells: ";
            runCase(report,
                    entry,
                    label,
                    [&](json* result)
                    {
                        Clock clock;
                        const json times     = measure(&clock,
                                                   std::min(common.samples, 5),
                                                   [&] { launch(clock.stream()); });
                        (*result)["time"]    = times;
                        (*result)["seconds"] = times["median"];
                        return text("%.1f us", 1e6 * times["median"].get<double>());
                    });
        };
        DeviceArray<Real> sink(1);
        const auto compute = [&](double multiplyAdds)
        {
            return [&sink, multiplyAdds](cudaStream_t stream)
            { computeBound(multiplyAdds, sink.data(), stream); };
        };
        const double dense  = classicalMultiplyAdds(work);
        const double shared = symmetricMultiplyAdds(work, true);
        add("compute bound", dense, 0, compute(dense));
        add("compute bound, shared", shared, 0, compute(shared));
        const size_t operators  = memoryBoundOperators(work);
        const size_t expansions = memoryBoundExpansions(work);
        DeviceArray<Real> memory(operators), multipoles(expansions);
        checkCuda(cudaMemset(memory.data(), 0, operators * sizeof(Real)), "clearing memory");
        checkCuda(cudaMemset(multipoles.data(), 0, expansions * sizeof(Real)), "clearing memory");
        checkCuda(cudaDeviceSynchronize(), "clearing memory");
        add("memory bound",
            dense,
            memoryBoundBytes<Real>(work),
            [&](cudaStream_t stream)
            { memoryBound(work, memory.data(), multipoles.data(), sink.data(), stream); });
    }

    /*! \brief Multiply-adds that an engine executes on the FP32 or FP64 lanes; 0 if it is none of
     *         those that do. */
    static double executed(const std::string& engine, const M2lWork& work, bool rectangular)
    {
        const double dense = classicalMultiplyAdds(work);
        if (engine == "symmetric")
        {
            return rectangular ? symmetricMultiplyAdds(work, true) : dense / 2;
        }
        return engine == "naive" || engine == "dynamic" ? dense : 0;
    }

    //! What the periodic M2L of the coarsest level takes: the stage M2L of the engine Fft on its
    //! cells.
    template<class Real>
    double periodicSeconds(const Common& common, const System& system, const Setup& s)
    {
        const int coarse                 = s.cells[0][0] >> (s.levels - 1);
        const std::array<int, 4> setting = {
            coarse, s.order, static_cast<int>(sizeof(Real)), system.box[1][0] != 0
        };
        if (periodicM2ls_.count(setting) == 0)
        {
            Options options;
            options.device      = Device::Gpu;
            options.order       = s.order;
            options.directRange = s.directRange;
            options.cellSize    = system.box[0][0] / coarse;
            options.m2l         = M2lEngine::Fft;
            Run<Real> run(system, options);
            periodicM2ls_[setting] = secondsOf("M2L", run.stages(c_forcesOnly, common.samples));
        }
        return periodicM2ls_[setting];
    }

    std::map<std::array<int, 4>, double> periodicM2ls_;

    template<class Real>
    void one(const Common& common,
             Report* report,
             const System& system,
             const Options& options,
             const std::string& engine,
             int n,
             M2lWork* work)
    {
        const bool rectangular  = system.box[1][0] == 0;
        const json entry        = { { "engine", engine },
                                    { "shape", rectangular ? "rectangular" : "sheared" },
                                    { "precision", c_precision<Real> },
                                    { "order", options.order },
                                    { "cells_per_edge", n },
                                    { "accuracy", options.accuracy } };
        const std::string label = "M2L " + engine + (rectangular ? " " : " (sheared) ")
                                  + c_precision<Real> + " p " + std::to_string(options.order) + ", "
                                  + std::to_string(n) + "^3 cells: ";
        runCase(report,
                entry,
                label,
                [&](json* result)
                {
                    Run<Real> run(system, options);
                    const Setup s            = run.recordSetup(result);
                    const json stages        = run.stages(c_forcesOnly, common.samples);
                    (*result)["stages"]      = stages;
                    const double seconds     = secondsOf("M2L", stages);
                    (*result)["seconds"]     = seconds;
                    (*result)["closure_fma"] = periodicFma(s);
                    std::string line         = text("%.1f us", 1e6 * seconds);
                    if (s.levels > 1)
                    {
                        const double lists = seconds - periodicSeconds<Real>(common, system, s);
                        (*result)["list_seconds"] = lists;
                        *work                     = listWork(s);
                        (*result)["list_fma"]     = classicalMultiplyAdds(*work);
                        (*result)["executed_fma"] = executed(engine, *work, rectangular);
                        line += text(", without the periodic M2L %.1f us", 1e6 * lists);
                    }
                    return line;
                });
    }
};

//! Whole evaluations against the number of particles and the size of cells.
struct TotalBenchmark
{
    std::vector<int> sizes           = { 23262, 46650, 93237, 372948, 1118844 };
    std::vector<std::string> systems = { "water", "random" };
    std::vector<int> cells           = { 0, 8, 12, 16, 20, 24, 32, 40, 48, 64 };
    std::vector<std::string> engines = { "auto" };
    std::vector<double> edges        = { 40, 80 };
    std::vector<int> dropletCells    = { 0 };
    double accuracy                  = 3e-4;
    bool totals                      = true;

    template<class Real>
    void run(const Common& common, Report* report) const
    {
        for (int size : sizes)
        {
            for (const std::string& name : systems)
            {
                const System system = name == "water" ? waterBox(size, common.seed)
                                                      : randomCharges(size, common.seed);
                for (int n : cells)
                {
                    // other sizes of cells are never a choice
                    const double perCell = n > 0 ? system.size() / std::pow(n, 3) : 20;
                    if (perCell < 4 || perCell > 150)
                    {
                        continue;
                    }
                    for (const std::string& engine : engines)
                    {
                        if (!report->timeLeft())
                        {
                            return;
                        }
                        one<Real>(common, report, system, engine, n);
                    }
                }
            }
        }
    }

    template<class Real>
    void runDroplets(const Common& common, Report* report) const
    {
        for (double edge : edges)
        {
            const System system = waterDroplets(edge, common.seed);
            for (int n : dropletCells)
            {
                for (const std::string& engine : engines)
                {
                    if (report->timeLeft())
                    {
                        one<Real>(common, report, system, engine, n);
                    }
                }
            }
        }
    }

private:
    template<class Real>
    void one(const Common& common,
             Report* report,
             const System& system,
             const std::string& engine,
             int n) const
    {
        Options options;
        options.device   = Device::Gpu;
        options.m2l      = engineNamed(engine);
        options.accuracy = accuracy;
        options.cellSize = n > 0 ? system.box[0][0] / n : 0;
        const json entry = { { "system", system.name },   { "atoms", system.size() },
                             { "box", system.box[0][0] }, { "precision", c_precision<Real> },
                             { "engine", engine },        { "accuracy", accuracy },
                             { "cells_per_edge", n } };
        const std::string label =
                system.name + " " + std::to_string(system.size()) + " atoms in "
                + text("%.1f nm, ", system.box[0][0])
                + (n > 0 ? std::to_string(n) + " cells per edge: " : "automatic: ");
        runCase(report,
                entry,
                label,
                [&](json* result)
                {
                    Run<Real> run(system, options);
                    const Setup s               = run.recordSetup(result);
                    const Occupation filled     = occupation(system, s.cells, s.directRange);
                    (*result)["near_pairs"]     = filled.nearPairs;
                    (*result)["occupied_cells"] = filled.cells;
                    std::string line            = "p " + std::to_string(s.order) + ", ws "
                                       + std::to_string(s.directRange) + ", " + nameOf(s.m2l) + ", "
                                       + text("%.3f nm", s.cellSize);
                    for (bool all : { false, true })
                    {
                        if (all && !totals)
                        {
                            continue;
                        }
                        const Request& request = all ? c_withTotals : c_forcesOnly;
                        json& part             = (*result)[all ? "with_totals" : "forces"];
                        part["plain"]          = run.plain(request, common.samples);
                        part["stages"]         = run.stages(request, common.samples);
                        part["graph"]          = run.replayed(request, common.samples);
                        line += (all ? "; with totals " : "; forces ")
                                + text("%.1f us", 1e6 * part["plain"]["median"].get<double>())
                                + text(", graph %.1f us",
                                       1e6 * part["graph"]["median"].get<double>());
                    }
                    return line;
                });
    }
};

//! Useful pairs per second of the near field.
struct P2pBenchmark
{
    std::vector<int> sizes      = { 93237, 1118844 };
    std::vector<double> perCell = { 8, 10, 12, 16, 20, 24, 28, 32 };
    bool reproducible           = false;

    template<class Real>
    void run(const Common& common, Report* report) const
    {
        for (int size : sizes)
        {
            const System system = waterBox(size, common.seed);
            int last            = 0;
            for (double wanted : perCell)
            {
                const int n = quickLength(std::cbrt(system.size() / wanted));
                if (n == last || !report->timeLeft())
                {
                    continue;
                }
                last = n;
                one<Real>(common, report, system, n);
            }
        }
    }

private:
    //! The number without prime factors above 5 that is nearest: others are no choice for a grid.
    static int quickLength(double wanted)
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
    void one(const Common& common, Report* report, const System& system, int n) const
    {
        Options options;
        options.device          = Device::Gpu;
        options.m2l             = M2lEngine::Fft;
        options.order           = 2; // the near field does not depend on it; set-up is quick
        options.directRange     = 1;
        options.cellSize        = system.box[0][0] / n;
        options.reproducible    = reproducible;
        const json entry        = { { "system", system.name },
                                    { "atoms", system.size() },
                                    { "precision", c_precision<Real> },
                                    { "reproducible", reproducible },
                                    { "cells_per_edge", n } };
        const std::string label = "P2P " + std::to_string(system.size()) + " atoms, "
                                  + std::to_string(n) + "^3 cells: ";
        runCase(report,
                entry,
                label,
                [&](json* result)
                {
                    Run<Real> run(system, options);
                    const Setup s           = run.setup();
                    const long long pairs   = occupation(system, s.cells, s.directRange).nearPairs;
                    (*result)["setup"]      = describe(s);
                    (*result)["near_pairs"] = pairs;
                    const double perCell    = static_cast<double>(system.size()) / s.leafCells;
                    (*result)["per_cell"]   = perCell;
                    std::string line        = text("%.1f per cell, ", perCell);
                    for (bool all : { false, true })
                    {
                        const json stages =
                                run.stages(all ? c_withTotals : c_forcesOnly, common.samples);
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
};

double rms(const std::vector<double>& values, size_t particles)
{
    return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0)
                     / static_cast<double>(std::max<size_t>(particles, 1)));
}

//! Errors against converged results.
struct AccuracyBenchmark
{
    std::vector<std::string> references, engines = { "auto" };
    std::vector<int> sizes  = { 23262 };
    std::vector<int> orders = { -1, 6, 8, 10, 12 };
    std::vector<int> ranges = { 1 };
    double cellSize         = 0;
    double accuracy         = 3e-4;
    int shifts              = 3;
    int referenceOrder      = 20;
    bool cpu                = false;

    void run(const Common& common, Report* report) const
    {
        for (const std::string& path : references)
        {
            compare(common, report, readReference(path), "total force");
        }
        for (size_t k = 0; k < (references.empty() ? sizes.size() : 0); k++)
        {
            compare(common, report, converge(waterBox(sizes[k], common.seed)), "Coulomb force");
        }
    }

private:
    //! Forces of the CPU backend in double precision at a high order.
    Reference converge(const System& system) const
    {
        Options options;
        options.device      = Device::Cpu;
        options.order       = referenceOrder;
        options.directRange = 2;
        options.accuracy    = 1e-10;
        Reference r;
        r.system = system;
        Solver<double> solver(options);
        const Totals totals = evaluate(solver, system, c_withTotals, &r.forces, true);
        r.energy            = totals.energy;
        std::copy_n(&totals.virial[0][0], 9, &r.virial[0][0]);
        r.rmsTotalForce = rms(r.forces, system.q.size());
        return r;
    }

    template<class Real>
    static Totals evaluate(Solver<Real>& solver,
                           const System& system,
                           const Request& request,
                           std::vector<double>* forces,
                           bool load)
    {
        const std::vector<Real> x = converted<Real>(system.x);
        if (load)
        {
            const std::vector<Real> q = converted<Real>(system.q);
            solver.setCharges(q.data(), system.size());
            solver.setExclusions(system.offsets.data(), system.partners.data(), system.size());
        }
        std::vector<Real> f(x.size(), Real(0));
        const Totals totals = solver.evaluate(x.data(), system.box, f.data(), request);
        forces->assign(f.begin(), f.end());
        return totals;
    }

    void compare(const Common& common,
                 Report* report,
                 const Reference& reference,
                 const char* norm) const
    {
        for (const std::string& engine : engines)
        {
            for (int ws : ranges)
            {
                for (int order : orders)
                {
                    for (bool leastSquares : { true, false })
                    {
                        if (!report->timeLeft())
                        {
                            return;
                        }
                        Options options;
                        options.order        = order;
                        options.directRange  = order < 0 ? 0 : ws;
                        options.cellSize     = cellSize;
                        options.accuracy     = accuracy;
                        options.leastSquares = leastSquares;
                        options.m2l          = engineNamed(engine);
                        options.device       = Device::Gpu;
                        one<float>(report, reference, norm, options, engine);
                        if (common.doublePrecision)
                        {
                            one<double>(report, reference, norm, options, engine);
                        }
                        if (cpu)
                        {
                            options.device = Device::Cpu;
                            one<float>(report, reference, norm, options, engine);
                        }
                    }
                }
            }
        }
    }

    template<class Real>
    void one(Report* report,
             const Reference& reference,
             const char* norm,
             const Options& options,
             const std::string& engine) const
    {
        const char* device = options.device == Device::Gpu ? "GPU" : "CPU";
        const json entry   = { { "system", reference.system.name },
                               { "atoms", reference.system.size() },
                               { "relative_to", norm },
                               { "backend", device },
                               { "precision", c_precision<Real> },
                               { "engine", engine },
                               { "wanted_order", options.order },
                               { "wanted_range", options.directRange },
                               { "least_squares", options.leastSquares } };
        const std::string label =
                reference.system.name + " " + device + " " + c_precision<Real> + " " + engine
                + (options.order < 0 ? " default" : " p " + std::to_string(options.order))
                + (options.leastSquares ? " least squares: " : " truncated: ");
        runCase(report,
                entry,
                label,
                [&](json* result)
                {
                    Solver<Real> solver(options);
                    const System& system = reference.system;
                    double square = 0, energy = 0, virial = 0;
                    for (int k = 0; k < shifts; k++)
                    {
                        Request request = c_withTotals;
                        // places of the grid that fill the cell evenly
                        const double step[3] = { 0.8191725134, 0.6710436067, 0.5497004779 };
                        for (int axis = 0; axis < 3; axis++)
                        {
                            request.gridOffset[axis] = k * step[axis] - std::floor(k * step[axis]);
                        }
                        std::vector<double> f;
                        const Totals totals = evaluate(solver, system, request, &f, k == 0);
                        for (size_t i = 0; i < f.size(); i++)
                        {
                            f[i] -= reference.forces[i];
                        }
                        square += std::pow(rms(f, system.q.size()) / reference.rmsTotalForce, 2)
                                  / shifts;
                        energy = std::max(energy, std::abs(totals.energy - reference.energy));
                        for (int i = 0; i < 9; i++)
                        {
                            virial = std::max(virial,
                                              std::abs(totals.virial[i / 3][i % 3]
                                                       - reference.virial[i / 3][i % 3]));
                        }
                    }
                    const Setup setup                  = solver.setup();
                    (*result)["setup"]                 = describe(setup);
                    (*result)["force_error"]           = std::sqrt(square);
                    (*result)["energy_error_per_atom"] = energy / system.size();
                    (*result)["virial_error_per_atom"] = virial / system.size();
                    return text("force %.2e, ", std::sqrt(square))
                           + text("energy %.1e kJ/mol per atom, ", energy / system.size())
                           + text("virial %.1e; ", virial / system.size())
                           + std::to_string(setup.order) + "/" + std::to_string(setup.directRange)
                           + text(" %.3f nm ", setup.cellSize) + nameOf(setup.m2l);
                });
    }
};

template<class Benchmark>
void runPrecisions(Benchmark& benchmark, const Common& common, Report* report)
{
    benchmark.template run<float>(common, report);
    if (common.doublePrecision)
    {
        benchmark.template run<double>(common, report);
    }
}

int program(int argc, char** argv)
{
    CLI::App app("Benchmarks of the CUDA backend of farfield; results as JSON.");
    app.require_subcommand(1);
    Common common;
    for (int i = 1; i < argc; i++)
    {
        common.command += (i > 1 ? " " : "farfield_gpu_benchmark ") + std::string(argv[i]);
    }
    const auto subcommand = [&](const char* name, const char* what)
    {
        CLI::App* command = app.add_subcommand(name, what);
        command->add_option(
                "-o,--output", common.output, "JSON file (default: gpu_<benchmark>.json)");
        command->add_option("--samples", common.samples, "samples per time")
                ->check(CLI::Range(1, 10000));
        command->add_option("--seconds", common.limit, "begin no further case after this time");
        command->add_option("--seed", common.seed, "of the generated configurations");
        command->add_flag("--double", common.doublePrecision, "double precision as well");
        return command;
    };
    std::vector<std::string> names;
    for (const M2lEngineDescription& engine : c_m2lEngines)
    {
        names.push_back(engine.name);
    }
    const CLI::IsMember isEngine(names);

    M2lBenchmark m2l;
    m2l.orders.resize(c_maxOrder + 1);
    std::iota(m2l.orders.begin(), m2l.orders.end(), 0);
    CLI::App* m2lCommand = subcommand("m2l", "time of M2L against the order, for every engine");
    m2lCommand->add_option("--orders", m2l.orders, "multipole orders")
            ->check(CLI::Range(0, c_maxOrder));
    m2lCommand->add_option("--cells", m2l.cells, "leaf cells per edge")->check(CLI::Range(4, 64));
    m2lCommand->add_option("--engines", m2l.engines, "M2L engines")->check(isEngine);
    m2lCommand->add_option("--accuracies", m2l.accuracies, "wanted accuracies, for gemm");
    m2lCommand->add_flag("!--no-bounds", m2l.bounds, "leave out the microkernels");
    m2lCommand->add_option("--per-cell", m2l.perCell, "particles per cell")
            ->check(CLI::Range(1, 100));

    TotalBenchmark total;
    CLI::App* totalCommand =
            subcommand("total", "time of an evaluation against the number of atoms");
    totalCommand->add_option("--sizes", total.sizes, "atoms")->check(CLI::Range(3, 100000000));
    totalCommand->add_option("--systems", total.systems, "water, random")
            ->check(CLI::IsMember({ "water", "random" }));
    totalCommand->add_option("--cells", total.cells, "leaf cells per edge; 0: automatic");
    CLI::App* dropletCommand = subcommand("droplets", "27 droplets of water, 300 510 atoms in all");
    dropletCommand->add_option("--edges", total.edges, "edges of the box, nm");
    dropletCommand->add_option("--cells", total.dropletCells, "leaf cells per edge; 0: automatic");
    for (CLI::App* command : { totalCommand, dropletCommand })
    {
        command->add_option("--engines", total.engines, "M2L engines")->check(isEngine);
        command->add_option("--accuracy", total.accuracy, "wanted accuracy");
        command->add_flag("!--forces-only", total.totals, "leave out energy and virial");
    }

    P2pBenchmark p2p;
    CLI::App* p2pCommand = subcommand("p2p", "near-field pairs per second against atoms per cell");
    p2pCommand->add_option("--sizes", p2p.sizes, "atoms")->check(CLI::Range(3, 100000000));
    p2pCommand->add_option("--per-cell", p2p.perCell, "atoms per cell")
            ->check(CLI::Range(1.0, 10000.0));
    p2pCommand->add_flag("--reproducible", p2p.reproducible, "with a fixed order of summation");

    AccuracyBenchmark accuracy;
    CLI::App* accuracyCommand = subcommand("accuracy", "relative RMS force error");
    accuracyCommand->add_option("--reference", accuracy.references, "files with converged forces")
            ->check(CLI::ExistingFile);
    accuracyCommand->add_option(
            "--sizes", accuracy.sizes, "atoms of water, without reference files");
    accuracyCommand->add_option("--reference-order",
                                accuracy.referenceOrder,
                                "order of the CPU's result to compare with");
    accuracyCommand->add_option("--orders", accuracy.orders, "multipole orders; -1: automatic")
            ->check(CLI::Range(-1, c_maxOrder));
    accuracyCommand->add_option("--ranges", accuracy.ranges, "direct ranges")
            ->check(CLI::Range(1, 2));
    accuracyCommand->add_option("--engines", accuracy.engines, "M2L engines")->check(isEngine);
    accuracyCommand->add_option(
            "--cell-size", accuracy.cellSize, "edge of cells, nm; 0: automatic");
    accuracyCommand->add_option("--accuracy", accuracy.accuracy, "wanted accuracy");
    accuracyCommand->add_option("--shifts", accuracy.shifts, "positions of the grid")
            ->check(CLI::Range(1, 1000));
    accuracyCommand->add_flag("--cpu", accuracy.cpu, "the same on the CPU");

    CLI11_PARSE(app, argc, argv);
    const std::string name = app.get_subcommands().front()->get_name();
    Report report(name,
                  common.command,
                  common.output.empty() ? "gpu_" + name + ".json" : common.output,
                  common.limit);
    if (name == "m2l")
    {
        runPrecisions(m2l, common, &report);
    }
    else if (name == "total")
    {
        runPrecisions(total, common, &report);
    }
    else if (name == "droplets")
    {
        total.runDroplets<float>(common, &report);
    }
    else if (name == "p2p")
    {
        runPrecisions(p2p, common, &report);
    }
    else
    {
        accuracy.run(common, &report);
    }
    return 0;
}

} // namespace
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
