/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The memory that set-up takes, against what the choice of cells predicts.
 *
 *  In the program whose allocations are counted, see laws/out_of_memory.cpp.
 */
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "counted_allocations.h"
#include "plan/cost_model.h"
#include "plan/discretisation.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Cells of a box.
struct Cells
{
    const char* name;
    std::array<double, 3> box; //!< lengths, nm
    double shear;              //!< of the second box vector, nm
    double edge;               //!< nm
    int order;
    M2lEngine m2l;
    bool leastSquares;
    int particles;
};

template<class Real>
Occupancy randomPlaces(const Cells& c, const Mat3& box, std::vector<Real>* x, std::vector<Real>* q)
{
    unsigned random = 1;
    for (int i = 0; i < c.particles; i++)
    {
        q->push_back(static_cast<Real>(i % 2 ? 1 : -1));
        for (int k = 0; k < 3; k++)
        {
            random = random * 1664525u + 1013904223u;
            x->push_back(static_cast<Real>((random >> 8) / 16777216.0 * c.box[k]));
        }
    }
    return Occupancy(x->data(), c.particles, box);
}

//! Checks the memory that is predicted against what preparing a solver takes.
template<class Real>
void expectPredictedMemory(const Cells& c)
{
    Options options;
    options.device       = Device::Cpu;
    options.threads      = 2;
    options.order        = c.order;
    options.directRange  = 1;
    options.cellSize     = c.edge;
    options.m2l          = c.m2l;
    options.leastSquares = c.leastSquares;
    double rows[3][3]    = { { c.box[0], 0, 0 }, { c.shear, c.box[1], 0 }, { 0, 0, c.box[2] } };
    const Mat3 box       = Eigen::Map<Mat3>(&rows[0][0]).transpose();
    std::vector<Real> x, q;
    const Occupancy occupied = randomPlaces(c, box, &x, &q);
    const double taken       = mostBytesOf(
            [&]
            {
                Solver<Real> solver(options);
                solver.setCharges(q.data(), c.particles);
                solver.prepare(x.data(), rows);
            });
    const Discretisation d = chooseDiscretisation(
            { options, Device::Cpu, box, c.particles, occupied, sizeof(Real) });
    const double predicted = predictedMemory(Work(d, occupied, c.particles),
                                             OperatorKind(d.order, d.leastSquares, box),
                                             options.threads,
                                             sizeof(Real));
    // Tables of the order and of threads, which do not grow, are not predicted: a few MB of tens.
    EXPECT_LT(taken, 1.05 * predicted) << c.name;
    // What does not happen at the same time is predicted by its largest, and some is not the case.
    EXPECT_LT(predicted, 2 * taken) << c.name;
}

TEST(MemoryOfSetUp, IsAsPredicted)
{
    const auto fft = M2lEngine::Fft, tree = M2lEngine::Hierarchy;
    size_t number = 0;
    for (const Cells& c :
         { Cells{ "a cube, convolution", { 6, 6, 6 }, 0, 0.5, 8, fft, true, 20000 },
           Cells{ "a cube, tree", { 6, 6, 6 }, 0, 0.5, 8, tree, true, 20000 },
           Cells{ "a sheared cube, convolution", { 6, 6, 6 }, 2, 0.5, 8, fft, true, 20000 },
           Cells{ "a sheared cube, truncated tree", { 6, 6, 6 }, 2, 0.5, 8, tree, false, 20000 },
           Cells{ "many particles", { 6, 6, 6 }, 0, 0.6, 6, tree, true, 100000 },
           Cells{ "a slab, convolution", { 150, 150, 1 }, 0, 1, 4, fft, true, 1000 },
           Cells{ "a slab, a higher order", { 100, 100, 1 }, 0, 1, 8, fft, true, 1000 },
           Cells{ "a slab, tree", { 100, 100, 1 }, 0, 1, 6, tree, true, 1000 },
           Cells{ "a needle", { 1, 1, 1000 }, 0, 1, 8, fft, true, 1000 } })
    {
        ++number;
        if (isTurnOf<float>(number))
        {
            expectPredictedMemory<float>(c);
        }
        if (isTurnOf<double>(number))
        {
            expectPredictedMemory<double>(c);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
