/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Device times of evaluations and of their stages.
 */
#ifndef FARFIELD_BENCH_TIMED_SOLVER_H
#define FARFIELD_BENCH_TIMED_SOLVER_H

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "farfield/farfield.h"
#include "farfield/farfield_cuda.h"

#include "bench_report.h"
#include "bench_systems.h"
#include "bench_timing.h"

namespace farfield
{
namespace bench
{

//! Forces are written over those before, as GROMACS asks.
inline const Request c_forcesOnly = { false, false, { 0, 0, 0 }, -1, true };
inline const Request c_withTotals = { true, true, { 0, 0, 0 }, -1, true };

//! A solver with its system on the device.
template<class Real>
class TimedSolver
{
public:
    //! \param[in] width  if > 0, charges are smeared: Gaussian charges of this width, nm
    TimedSolver(const System& system, const Options& options, double width = 0) :
        system_(system), solver_(options), x_(converted<Real>(system.x)), forces_(system.x.size())
    {
        const auto begin = std::chrono::steady_clock::now();
        load(solver_, system);
        if (width > 0)
        {
            const std::vector<Real> widths(system.size(), static_cast<Real>(width));
            solver_.setNearFunction({ PairFunction::Gaussian, WidthRule::RootSumSquare },
                                    widths.data(),
                                    system.size());
        }
        solver_.prepare(converted<Real>(system.x).data(), system.box);
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
    Setup recordSetup(nlohmann::json* result) const
    {
        const Setup s               = setup();
        (*result)["setup"]          = describe(s);
        (*result)["set_up_seconds"] = setUpSeconds_;
        return s;
    }

    //! Time of an evaluation whose stages are launched one by one.
    nlohmann::json plain(const Request& request, int samples)
    {
        const nlohmann::json result = measure(&clock_, samples, [&] { put(request); });
        wait(solver_);
        return result;
    }

    //! Time of an evaluation that was captured into a graph.
    nlohmann::json replayed(const Request& request, int samples)
    {
        put(request);
        wait(solver_);
        const Graph graph(clock_.stream(), [&] { put(request); });
        const nlohmann::json result =
                measure(&clock_, samples, [&] { graph.launch(clock_.stream()); });
        checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
        return result;
    }

    /*! \brief Time of every stage, one after the other.
     *  \returns for each stage its name and statistics, over rounds, of its median */
    nlohmann::json stages(const Request& request, int samples)
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
        nlohmann::json result = nlohmann::json::array();
        for (const std::string& name : order)
        {
            nlohmann::json entry = statistics(seconds[name]);
            entry["name"]        = name;
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
inline double secondsOf(const char* name, const nlohmann::json& stages)
{
    for (const nlohmann::json& stage : stages)
    {
        if (stage["name"] == name)
        {
            return stage["median"];
        }
    }
    return 0;
}

} // namespace bench
} // namespace farfield

#endif
