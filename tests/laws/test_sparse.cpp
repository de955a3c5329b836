/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What sparse boxes, high orders and virials cost on the CPU, counted in cells and bytes.
 */
#include <random>

#include "memory_in_use.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

Options onCpu()
{
    Options options;
    options.device  = Device::Cpu;
    options.threads = 2;
    return options;
}

//! Charges of alternating sign at random places in one corner of a cubic box.
System droplet(int n, double width, double edge)
{
    std::mt19937 engine(31);
    std::uniform_real_distribution<double> uniform(0, width);
    System system;
    system.name = "droplet";
    for (int i = 0; i < 3; ++i)
    {
        system.box[i][i] = edge;
    }
    for (int i = 0; i < n; ++i)
    {
        system.positions.push_back({ uniform(engine), uniform(engine), uniform(engine) });
        system.charges.push_back(i % 2 ? 0.5 : -0.5);
    }
    return system;
}

farfield::Setup prepared(const System& system)
{
    Solver<float> solver(onCpu());
    load(solver, system);
    solver.prepare(flatPositions<float>(system).data(), Box(system.box).rows);
    return solver.setup();
}

TEST(SparseBox, DropletVisitsNoMoreCellsThanItHasPairs)
{
    // tables over all cells are visited at every step, about as fast as pairs of particles
    const double pairs = 0.5 * 1000 * 1000;
    for (const double edge : { 100.0, 1000.0 })
    {
        const auto setup = prepared(droplet(1000, 2.15, edge));
        EXPECT_LE(static_cast<double>(setup.leafCells), pairs) << "box of " << edge << " nm";
    }
}

TEST(SparseBox, DiluteParticlesShareCells)
{
    // One particle in 10 nm^3: with as many cells as particles or more, most exchanges of
    // expansions, which cost as much as hundreds of pairs, would be those of single particles.
    const int n      = 50000;
    const auto setup = prepared(droplet(n, 80, 80));
    EXPECT_LT(setup.leafCells, n / 2);
}

TEST(Memory, IsRefusedBeforeItIsTaken)
{
    // 64 million cells with operators of order 20: tens of terabytes
    const System system = droplet(10, 3, 80);
    Options options     = onCpu();
    options.order       = 20;
    options.cellSize    = 0.2;
    options.m2l         = M2lEngine::Fft;
    Solver<float> solver(options);
    load(solver, system);
    const size_t before = peakInUse();
    try
    {
        solver.prepare(flatPositions<float>(system).data(), Box(system.box).rows);
        FAIL() << "no error";
    }
    catch (const Error& error)
    {
        // where there is much memory the time that they take to build is farther beyond its limit
        EXPECT_TRUE(error.code() == ErrorCode::OutOfMemory
                    || error.code() == ErrorCode::InvalidArgument);
        EXPECT_STREQ(error.parameter(), "cellSize");
    }
    EXPECT_LT(peakInUse(), before + (32 << 20));
}

TEST(Memory, OfTheVirialOfATreeIsLessThanThatOfItsOperators)
{
    const System system = droplet(1000, 3, 3);
    Options options     = onCpu();
    options.m2l         = M2lEngine::Hierarchy;
    options.order       = 8;
    options.cellSize    = 0.5;
    options.threads     = 2; // each has arrays of its own
    Solver<double> solver(options);
    load(solver, system);
    const size_t empty = heapInUse();
    evaluate(solver, system, { false, false });
    const size_t forces = heapInUse();
    evaluate(solver, system, { true, true });
    EXPECT_LT(heapInUse() - forces, (forces - empty) / 2);
}

} // namespace
} // namespace test
} // namespace farfield
