/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a choice of cells takes in boxes that are flat, long or all but empty, and at the
 *         highest orders: bounded in bytes and in work.
 *
 *  The bytes are those that the choice predicts, see MemoryOfSetUp.IsAsPredicted. The work is that
 *  of one core in its units, about nanoseconds; no clock is asked.
 */
#include <cmath>

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operators/solid_harmonics.h"
#include "plan/cost_model.h"
#include "plan/discretisation.h"
#include "plan/operator_limits.h"
#include "reference.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_second = 1e9; //!< ns
constexpr double c_GB     = 1e9;

//! Particles at random places in a corner of a rectangular box.
struct Filling
{
    Vec3 filled, box; //!< nm
    int particles;

    Mat3 vectors() const { return box.asDiagonal(); }
    Occupancy occupancy() const
    {
        std::mt19937 random(31);
        std::uniform_real_distribution<double> uniform(0, 1);
        std::vector<double> x;
        for (int i = 0; i < 3 * particles; ++i)
        {
            x.push_back(filled[i % 3] * uniform(random));
        }
        return Occupancy(x.data(), particles, vectors());
    }
};

//! What the CPU's choice takes.
struct Taken
{
    Discretisation discretisation;
    double memory; //!< bytes
    double setUp;  //!< ns of one core
    double cost;   //!< ns of an evaluation
};

Taken taken(const Filling& filling, const Options& options, int realSize)
{
    const Mat3 box         = filling.vectors();
    const Occupancy places = filling.occupancy();
    const Discretisation d = chooseDiscretisation(
            { options, Device::Cpu, box, filling.particles, places, realSize });
    const Work work(d, places, filling.particles);
    const OperatorKind kind(d.order, d.leastSquares, box);
    return { d,
             predictedMemory(work, kind, options.threads, realSize),
             predictedSetUp(work, kind),
             predictedCost(Device::Cpu, work) };
}

Options onTwoThreads()
{
    Options options;
    options.device  = Device::Cpu;
    options.threads = 2;
    return options;
}

//! Eight cells at the highest order take little beyond their operators, each of which is made once.
TEST(Bounds, OfTheHighestOrder)
{
    Options options     = onTwoThreads();
    options.order       = c_maxOrder;
    options.directRange = 2;
    options.m2l         = M2lEngine::Hierarchy;
    options.cellSize    = 1;
    const Taken t = taken({ Vec3::Constant(2), Vec3::Constant(2), 800 }, options, sizeof(double));
    EXPECT_EQ(t.discretisation.leafGrid(Mat3::Identity()).count(), 8);
    const double elements = std::pow(coefficientCount(c_maxOrder), 2);
    const double dense    = (std::pow(11, 3) - std::pow(5, 3)) * elements * sizeof(double);
    EXPECT_LT(t.memory, 1.1 * dense);
    // of 1206 operators 189 are no images of others; a product with the reduction takes 4 ms
    EXPECT_LT(t.setUp, 2 * c_second);
}

//! At the highest accuracy a droplet has no more cells and no higher order than that takes.
TEST(Bounds, OfTheHighestAccuracy)
{
    Options options  = onTwoThreads();
    options.accuracy = c_bestAccuracy<double>;
    for (const double edge : { 5.0, 20.0, 100.0 })
    {
        const Taken t = taken(
                { Vec3::Constant(4.6), Vec3::Constant(edge), 10000 }, options, sizeof(double));
        EXPECT_LT(t.memory, 1.5 * c_GB) << edge;
        EXPECT_LT(t.setUp, 2 * c_second) << edge;
    }
}

/*! A sheet that is thinner than its cells should be: no cell is larger than the shortest edge,
 *  so that there are a million leaves or more, and in a tree, whose cells may be flat, a quarter
 *  as many cells of the coarsest level. What is dilute errs more than water, and asks for a few
 *  times less. */
TEST(Bounds, OfASheet)
{
    const Filling sheet = { Vec3(1000, 1000, 1), Vec3(1000, 1000, 1), 10000 };
    for (const double less : { 1, 3, 6 })
    {
        Options options  = onTwoThreads();
        options.accuracy = 3e-4 / less;
        const Taken t    = taken(sheet, options, sizeof(float));
        EXPECT_LT(t.memory, 2.3 * c_GB) << less;
        EXPECT_LT(t.setUp, 16 * c_second) << less;
    }
}

//! A gas gets the engine of the lower cost, and no more cells than that takes.
TEST(Bounds, OfAGas)
{
    const Filling gas  = { Vec3::Constant(80), Vec3::Constant(80), 50000 };
    Options options    = onTwoThreads();
    const Taken chosen = taken(gas, options, sizeof(float));
    EXPECT_LT(chosen.memory, 0.05 * c_GB);
    EXPECT_LT(chosen.setUp, c_second);
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        options.m2l       = engine;
        const Taken other = taken(gas, options, sizeof(float));
        EXPECT_LE(chosen.cost, other.cost) << nameOf(engine);
        if (engine != chosen.discretisation.engineInUse())
        {
            EXPECT_LT(chosen.cost, 0.5 * other.cost) << nameOf(engine);
        }
    }
}

//! A droplet in a box of a million times its volume takes memory for its particles, not for the
//! box.
TEST(Bounds, OfADropletInALargeBox)
{
    const Filling droplet = { Vec3::Constant(2.15), Vec3::Constant(1000), 1000 };
    const Taken t         = taken(droplet, onTwoThreads(), sizeof(float));
    EXPECT_LT(t.memory, 0.01 * c_GB);
    EXPECT_LT(t.setUp, 0.1 * c_second);
    EXPECT_LT(t.cost, 1e-3 * c_second);
}

//! What would take longer than is allowed is refused by name, or another engine is taken.
TEST(Bounds, OfSetUpHoldForExplicitOptions)
{
    const Mat3 box = 60 * Mat3::Identity();
    Options options;
    options.order    = c_maxOrder;
    options.cellSize = 0.5; // 216 000 operators of a convolution, of milliseconds each
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Auto })
    {
        options.m2l = engine;
        try
        {
            // memory of the host does not bound what is chosen for a GPU
            const Discretisation d =
                    chooseDiscretisation({ options, Device::Gpu, box, 1000000, box.determinant() });
            EXPECT_EQ(engine, M2lEngine::Auto);
            EXPECT_EQ(d.engineInUse(), M2lEngine::Hierarchy);
            EXPECT_EQ(whyTooLarge(d, Device::Gpu, sizeof(float)), "");
        }
        catch (const Error& error)
        {
            EXPECT_EQ(engine, M2lEngine::Fft);
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_STREQ(error.parameter(), "cellSize");
            const std::string text = error.what();
            EXPECT_NE(text.find("minutes of one core"), std::string::npos) << text;
            EXPECT_NE(text.find("larger cells"), std::string::npos) << text;
        }
    }
}

//! What comes closest to an accuracy that nothing meets is within the bounds.
TEST(Bounds, HoldForWhatDoesNotSuffice)
{
    const Mat3 box = 60 * Mat3::Identity();
    Options options;
    options.m2l      = M2lEngine::Fft;
    options.accuracy = 1e-30;
    const Discretisation d =
            chooseDiscretisation({ options, Device::Gpu, box, 1000000, box.determinant() });
    EXPECT_EQ(whyTooLarge(d, Device::Gpu, sizeof(float)), "");
}

//! More cells may come out than are asked for.
TEST(Bounds, HoldForCellsAsTheyAreLaidOut)
{
    Options options;
    options.order       = 12;
    options.directRange = 1;
    options.m2l         = M2lEngine::Fft;
    int chosen = 0, refused = 0;
    for (const NamedBox& named : allBoxes(1e5))
    {
        const Mat3 box = Eigen::Map<const Mat3>(&named.box[0][0]).transpose();
        for (options.cellSize = 0.3; options.cellSize < 1.5; options.cellSize *= 1.01)
        {
            try
            {
                const Discretisation d = chooseDiscretisation(
                        { options, Device::Gpu, box, 1000000, box.determinant() });
                EXPECT_EQ(whyTooLarge(d, Device::Gpu, sizeof(float)), "")
                        << named.name << ", " << options.cellSize;
                chosen++;
            }
            catch (const Error&)
            {
                refused++;
            }
        }
    }
    EXPECT_GT(chosen, 0);
    EXPECT_GT(refused, 0);
}

} // namespace
} // namespace test
} // namespace farfield
