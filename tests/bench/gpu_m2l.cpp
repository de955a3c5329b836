/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_gpu_benchmark m2l: the engines, and the microkernels that bound them.
 */
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "bench_systems.h"
#include "command_line.h"
#include "gpu_benchmarks.h"
#include "microkernels.h"
#include "timed_solver.h"

namespace farfield
{
namespace bench
{
namespace
{

using nlohmann::json;

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

/*! \brief The microkernels, for the work of the engines.
 *
 *  Compute bound: the multiply-adds of dense operators, and those that are left when the
 *  displacements related by reflections share products. */
template<class Real>
void addBounds(const CommonOptions& common, Report* report, const M2lWork& work, int n)
{
    const auto add = [&](const char* name, double multiplyAdds, double bytes, const auto& launch)
    {
        const json entry        = { { "engine", name },
                                    { "precision", test::precisionName<Real>() },
                                    { "order", work.order },
                                    { "cells_per_edge", n },
                                    { "executed_fma", multiplyAdds },
                                    { "bytes", bytes },
                                    { "list_fma", classicalMultiplyAdds(work) } };
        const std::string label = std::string("M2L ") + name + " " + test::precisionName<Real>()
                                  + " p " + std::to_string(work.order) + ", " + std::to_string(n)
                                  + "^3 cells: ";
        runCase(report,
                entry,
                label,
                [&](json* result)
                {
                    Clock clock;
                    const json times = measure(
                            &clock, std::min(common.samples, 5), [&] { launch(clock.stream()); });
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

//! Multiply-adds that an engine executes on the FP32 or FP64 lanes; 0 if it uses tensor cores.
double executed(M2lEngine engine, const M2lWork& work, bool rectangular)
{
    if (engine != M2lEngine::Symmetric)
    {
        return 0;
    }
    return rectangular ? symmetricMultiplyAdds(work, true) : classicalMultiplyAdds(work) / 2;
}

//! The cases in one precision.
template<class Real>
class M2lCases
{
public:
    M2lCases(const M2lBenchmark& benchmark, const CommonOptions& common, Report* report) :
        benchmark_(benchmark), common_(common), report_(report)
    {
    }

    void addAll()
    {
        for (int order : benchmark_.orders)
        {
            for (int n : benchmark_.cells)
            {
                if (!report_->timeLeft())
                {
                    return;
                }
                addGrid(order, n);
            }
        }
    }

private:
    //! All engines on n^3 leaf cells, and the bounds.
    void addGrid(int order, int n)
    {
        const double edge   = 0.5 * n;
        const System system = randomCharges(benchmark_.perCell * n * n * n, edge, common_.seed);
        // so little sheared that the cells stay, but reflections no longer map them on each
        // other: the symmetric engine is left with the inversion
        System sheared    = system;
        sheared.box[1][0] = 0.1 * edge / n;
        sheared.box[2][0] = -0.1 * edge / n;
        sheared.box[2][1] = 0.1 * edge / n;
        M2lWork work      = { order, 1, static_cast<long long>(n) * n * n };
        for (const std::string& engine : benchmark_.engines)
        {
            // the accuracy decides the format of the operands of gemm, and nothing else
            for (size_t k = 0; k < (engine == "gemm" ? benchmark_.accuracies.size() : 1); k++)
            {
                if (!report_->timeLeft())
                {
                    return;
                }
                Options options;
                options.device      = Device::Gpu;
                options.order       = order;
                options.directRange = 1;
                options.cellSize    = edge / n;
                options.m2l         = engineNamed(engine);
                options.accuracy    = benchmark_.accuracies[k];
                addEngine(system, options, n, &work);
                if (options.m2l == M2lEngine::Symmetric)
                {
                    addEngine(sheared, options, n, &work);
                }
            }
        }
        if (benchmark_.bounds && report_->timeLeft())
        {
            addBounds<Real>(common_, report_, work, n);
        }
    }

    //! \param[out] work  what M2L over interaction lists did, if there were any
    void addEngine(const System& system, const Options& options, int n, M2lWork* work)
    {
        const bool rectangular = system.box[1][0] == 0;
        const json entry       = { { "engine", nameOf(options.m2l) },
                                   { "shape", rectangular ? "rectangular" : "sheared" },
                                   { "precision", test::precisionName<Real>() },
                                   { "order", options.order },
                                   { "cells_per_edge", n },
                                   { "accuracy", options.accuracy } };
        const std::string label =
                std::string("M2L ") + nameOf(options.m2l) + (rectangular ? " " : " (sheared) ")
                + test::precisionName<Real>() + " p " + std::to_string(options.order) + ", "
                + std::to_string(n) + "^3 cells: ";
        runCase(report_,
                entry,
                label,
                [&](json* result)
                {
                    TimedSolver<Real> solver(system, options);
                    const Setup s            = solver.recordSetup(result);
                    const json stages        = solver.stages(c_forcesOnly, common_.samples);
                    (*result)["stages"]      = stages;
                    const double seconds     = secondsOf("M2L", stages);
                    (*result)["seconds"]     = seconds;
                    (*result)["closure_fma"] = periodicFma(s);
                    std::string line         = text("%.1f us", 1e6 * seconds);
                    if (s.levels > 1)
                    {
                        const double lists        = seconds - periodicSeconds(system, s);
                        (*result)["list_seconds"] = lists;
                        *work                     = listWork(s);
                        (*result)["list_fma"]     = classicalMultiplyAdds(*work);
                        (*result)["executed_fma"] = executed(options.m2l, *work, rectangular);
                        line += text(", without the periodic M2L %.1f us", 1e6 * lists);
                    }
                    return line;
                });
    }

    //! What the periodic M2L of the coarsest level takes: the stage M2L of the engine Fft on its
    //! cells.
    double periodicSeconds(const System& system, const Setup& s)
    {
        const int coarse                 = s.cells[0][0] >> (s.levels - 1);
        const std::array<int, 3> setting = { coarse, s.order, system.box[1][0] != 0 };
        if (periodicM2ls_.count(setting) == 0)
        {
            Options options;
            options.device      = Device::Gpu;
            options.order       = s.order;
            options.directRange = s.directRange;
            options.cellSize    = system.box[0][0] / coarse;
            options.m2l         = M2lEngine::Fft;
            TimedSolver<Real> solver(system, options);
            periodicM2ls_[setting] = secondsOf("M2L", solver.stages(c_forcesOnly, common_.samples));
        }
        return periodicM2ls_[setting];
    }

    const M2lBenchmark& benchmark_;
    const CommonOptions& common_;
    Report* report_;
    //! Seconds for a number of cells per edge, an order and whether the box is sheared.
    std::map<std::array<int, 3>, double> periodicM2ls_;
};

} // namespace

void M2lBenchmark::run(const CommonOptions& common, Report* report) const
{
    M2lCases<float>(*this, common, report).addAll();
    if (common.doublePrecision)
    {
        M2lCases<double>(*this, common, report).addAll();
    }
}

} // namespace bench
} // namespace farfield
