/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A caller of farfield_cuda.h, for tests.
 */
#ifndef FARFIELD_TESTS_DEVICE_CALLER_H
#define FARFIELD_TESTS_DEVICE_CALLER_H

#include "farfield/farfield_cuda.h"

#include <memory>

#include "on_device.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

//! A solver, its arrays and the stream of a caller.
template<class Real>
class Caller
{
public:
    Caller(const System& system, const Options& options) :
        solver_(options), box_(system.box), x_(flatPositions<Real>(system)),
        forces_(3 * static_cast<size_t>(system.size()))
    {
        load(solver_, system);
    }
    void put(const System& system)
    {
        x_.put(flatPositions<Real>(system));
        box_ = Box(system.box);
    }
    void prepare(const System& system)
    {
        solver_.prepare(flatPositions<Real>(system).data(), box_.rows);
    }
    void enqueue(const Request& request)
    {
        farfield::enqueue(solver_, x_.data(), box_.rows, forces_.data(), request, clock_.stream());
    }
    Totals wait()
    {
        synchronize();
        return farfield::wait(solver_);
    }
    //! An evaluation to be launched any number of times.
    std::unique_ptr<Graph> record(const Request& request)
    {
        return std::make_unique<Graph>(clock_.stream(), [&] { enqueue(request); });
    }
    //! Does not wait for it.
    void start(const Graph& graph) { graph.launch(clock_.stream()); }
    void launch(const Graph& graph)
    {
        start(graph);
        synchronize();
    }
    //! Those of what has been enqueued or launched; waits for it.
    std::vector<Vector> forces() const
    {
        synchronize();
        return vectorsOf(forces_.get());
    }
    Solver<Real>& solver() { return solver_; }
    Setup setup() const { return solver_.setup(); }
    //! Stages that have been timed, other than the set-up.
    std::vector<std::string> stagesTimed() const
    {
        std::vector<std::string> names;
        for (const StageTime& stage : solver_.timings())
        {
            if (stage.name != "Set-up")
            {
                names.push_back(stage.name);
            }
        }
        return names;
    }

private:
    void synchronize() const
    {
        checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
    }

    Solver<Real> solver_;
    Box box_;
    DeviceArray<Real> x_, forces_;
    Clock clock_;
};

//! Forces alone, at a step of the motion.
inline Request forcesAt(long long step)
{
    Request request;
    request.energy        = false;
    request.virial        = false;
    request.replaceForces = true;
    request.step          = step;
    return request;
}

} // namespace test
} // namespace farfield

#endif
