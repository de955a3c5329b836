/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Ranks that are processes of an MPI library, to be started by mpirun: the results of one.
 *
 *  With CUDA and an MPI library that takes device memory also on GPUs, which processes may share.
 */
#include <mpi.h>

#include <algorithm>

#include <gtest/gtest.h>

#ifdef FARFIELD_TESTS_WITH_CUDA
#include "farfield/farfield_cuda_mpi.h"

#include "device_caller.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif
#include "farfield/farfield_mpi.h"

#include "in_process_ranks.h"
#include "reference.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Water whose molecules move by up to half a cell.
std::vector<System> movingWater(int states)
{
    std::vector<System> all = trajectory(pseudoWater(namedBox("triclinic", 12), 7), states, 0.15);
    std::transform(all.begin(), all.end(), all.begin(), rounded<float>);
    return all;
}

//! What one rank has for each state, the grid of cells at another place in each.
std::vector<Evaluation> ofOne(const std::vector<System>& states, Solver<float>* one)
{
    load(*one, states[0]);
    std::vector<Evaluation> all;
    for (size_t k = 0; k < states.size(); k++)
    {
        Request request;
        request.step = static_cast<long long>(k);
        all.push_back(evaluate(*one, states[k], request));
    }
    return all;
}

//! Expects the forces on this rank's particles, and the totals of all ranks.
void expectPart(const Portion<float>& portion,
                const Totals& totals,
                const std::vector<float>& f,
                const System& system,
                const Evaluation& expected)
{
    const Evaluation part = evaluationOf(totals, f);
    Evaluation all        = expected; // forces on particles of others
    for (size_t i = 0; i < portion.index.size(); i++)
    {
        all.forces[portion.index[i]] = part.forces[i];
    }
    MPI_Allreduce(&part.energy, &all.energy, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&part.virial, &all.virial, 9, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expectEqualToRounding<float>(all, expected, system);
}

Options optionsOn(Device device)
{
    Options options;
    options.device  = device;
    options.m2l     = M2lEngine::Fft;
    options.threads = 1;
    return options;
}

TEST(MpiRanks, GiveWhatOneGives)
{
    const std::vector<System> states = movingWater(5);
    Solver<float> one(optionsOn(Device::Cpu));
    const std::vector<Evaluation> expected = ofOne(states, &one);
    MpiCommunicator communicator(MPI_COMM_WORLD);
    DistributedSolver<float> solver(optionsOn(Device::Cpu), &communicator);
    solver.restore(one.state());
    const Portion<float> portion(
            states[0], domains(states[0], communicator.size()), communicator.rank());
    portion.giveTo(&solver);
    for (size_t k = 0; k < states.size(); k++)
    {
        Request request;
        request.step               = static_cast<long long>(k);
        request.replaceForces      = true;
        const std::vector<float> x = portion.positions(states[k]);
        std::vector<float> f(x.size());
        const Totals totals = solver.evaluate(x.data(), Box(states[k].box).rows, f.data(), request);
        expectPart(portion, totals, f, states[k], expected[k]);
    }
    EXPECT_EQ(solver.traffic().messages > 0, communicator.size() > 1);
}

#ifdef FARFIELD_TESTS_WITH_CUDA
TEST(MpiRanks, OfGpusGiveWhatOneGives)
{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    const bool takesDeviceMemory = MPIX_Query_cuda_support() == 1;
#else
    const bool takesDeviceMemory = false;
#endif
    int gpus = 0;
    if (!takesDeviceMemory || cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0)
    {
        GTEST_SKIP() << "no GPU, or an MPI library that does not take device memory";
    }
    const std::vector<System> states = movingWater(12);
    Solver<float> one(optionsOn(Device::Gpu));
    const std::vector<Evaluation> expected = ofOne(states, &one);
    MpiCommunicator communicator(MPI_COMM_WORLD);
    GpuAwareMpiCommunicator between(&communicator);
    Options options  = optionsOn(Device::Gpu);
    options.deviceId = communicator.rank() % gpus;
    checkCuda(cudaSetDevice(options.deviceId), "choosing a GPU");
    DistributedSolver<float> solver(options, &communicator, &between);
    solver.restore(one.state());
    const Portion<float> portion(
            states[0], domains(states[0], communicator.size()), communicator.rank());
    const Clock clock;
    DeviceArray<float> x(3 * portion.index.size()), f(3 * portion.index.size());
    portion.giveTo(&solver);
    for (size_t k = 0; k < states.size(); k++)
    {
        Request request;
        request.step          = static_cast<long long>(k);
        request.replaceForces = true;
        x.put(portion.positions(states[k]));
        enqueue(solver, x.data(), Box(states[k].box).rows, f.data(), request, clock.stream());
        checkCuda(cudaStreamSynchronize(clock.stream()), "waiting for the GPU");
        expectPart(portion, wait(solver), f.get(), states[k], expected[k]);
    }
}
#endif

} // namespace
} // namespace test
} // namespace farfield

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    const int failed = RUN_ALL_TESTS();
    int any          = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}
