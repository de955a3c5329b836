/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The settings among which timing may decide.
#include <cmath>

#include <gtest/gtest.h>

#include "plan/discretisation.h"
#include "plan/error_estimate.h"

namespace farfield
{
namespace
{

Mat3 cube(double edge)
{
    return edge * Mat3::Identity();
}

Mat3 dodecahedron(double edge)
{
    Mat3 box;
    box << edge, 0, 0, 0, edge, 0, edge / 2, edge / 2, edge / std::sqrt(2.0);
    return box;
}

void expectSame(const Discretisation& a, const Discretisation& b)
{
    EXPECT_EQ(a.order, b.order);
    EXPECT_EQ(a.ws, b.ws);
    EXPECT_EQ(a.levels, b.levels);
    EXPECT_EQ(a.engine, b.engine);
    EXPECT_EQ(a.leafCells, b.leafCells);
}

TEST(DiscretisationsToTime, MeetTheAccuracyAndDiffer)
{
    for (const double accuracy : { 1e-3, 3e-4, 1e-5 })
    {
        for (const Mat3& box : { cube(6.1), cube(22.4), dodecahedron(6.8) })
        {
            for (const double occupied : { 1.0, 0.02 })
            {
                Options options;
                options.accuracy     = accuracy;
                const double volume  = occupied * box.determinant();
                const auto particles = static_cast<long long>(100 * volume);
                const auto settings =
                        discretisationsToTime({ options, Device::Gpu, box, particles, volume });
                ASSERT_FALSE(settings.empty());
                EXPECT_LE(settings.size(), 6U);
                expectSame(settings.front(),
                           chooseDiscretisation({ options, Device::Gpu, box, particles, volume }));
                for (size_t i = 0; i < settings.size(); i++)
                {
                    EXPECT_LE(estimatedError(settings[i], settings[i].leafGrid(box)), accuracy);
                    for (size_t j = 0; j < i; j++)
                    {
                        EXPECT_TRUE(settings[i].leafCells != settings[j].leafCells
                                    || settings[i].levels != settings[j].levels
                                    || settings[i].engine != settings[j].engine
                                    || settings[i].ws != settings[j].ws);
                    }
                }
            }
        }
    }
}

//! Of a film from which something has gone far along z: the coarsest level follows all of that.
TEST(ChooseDiscretisation, KeepsTheCoarsestLevelOfLongSlabsSmall)
{
    const Vec3 extent(9.6, 9.6, 400);
    const double filled = 9.6 * 9.6 * 8.4;
    Options options;
    options.boundary = Boundary::Slab;
    options.threads  = 1;
    for (const Device device : { Device::Cpu, Device::Gpu })
    {
        const Mat3 box         = Vec3(9.6, 9.6, 1000).asDiagonal();
        PlanTask task          = { options, device, box, 70000, Occupancy(filled) };
        task.extent            = extent;
        const Discretisation d = chooseDiscretisation(task);
        const IntMat coarse    = d.coarseCells();
        EXPECT_GT(d.levels, 2);
        EXPECT_LT(coarse[0][0] * coarse[1][1] * coarse[2][2], 10000)
                << coarse[0][0] << " x " << coarse[1][1] << " x " << coarse[2][2];
    }
}

TEST(DiscretisationsToTime, AreWhatTheOptionsLeaveOpen)
{
    Options options;
    options.order       = 6;
    options.directRange = 2;
    for (const Discretisation& d :
         discretisationsToTime({ options, Device::Gpu, cube(8.0), 50000, 512 }))
    {
        EXPECT_EQ(d.order, 6);
        EXPECT_EQ(d.ws, 2);
    }
    options.cellSize    = 0.5;
    options.m2l         = M2lEngine::Gemm;
    const auto settings = discretisationsToTime({ options, Device::Gpu, cube(8.0), 50000, 512 });
    ASSERT_EQ(settings.size(), 1U);
    EXPECT_EQ(settings[0].engine, M2lEngine::Gemm);
    EXPECT_EQ(settings[0].leafCells[0][0], 16);
    options.cellSize = 9;
    EXPECT_THROW(discretisationsToTime({ options, Device::Gpu, cube(8.0), 50000, 512 }), Error);
}

} // namespace
} // namespace farfield
