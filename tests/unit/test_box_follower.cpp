/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What happens when the box changes.
 */
#include <cmath>

#include <gtest/gtest.h>

#include "cells/cell_shape.h"
#include "evaluation/box_follower.h"
#include "fake_backend.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_tolerance = 1e-3;

Mat3 rectangular()
{
    return Eigen::Vector3d(4.0, 4.4, 4.8).asDiagonal();
}
Mat3 skewed()
{
    Mat3 box;
    box << 4, 0, 0, 1.3, 3.8, 0, 1.2, 1.3, 3.6;
    return box;
}

Discretisation cellsFor(const Mat3& box)
{
    Discretisation d;
    d.order        = 6;
    d.leafCells    = chooseCells(box, 0.5, d.ws, 1);
    d.referenceBox = box;
    return d;
}

BoxPlan plan(const Mat3& from, const Mat3& to, const Mat3& strain = Mat3::Zero())
{
    return planForBox(to, cellsFor(from), c_tolerance, from, strain);
}

TEST(BoxFollower, DoesNothingInTheSameBox)
{
    EXPECT_EQ(plan(skewed(), skewed()).change, BoxChange::None);
}

TEST(BoxFollower, NeedsNoStrainWhereTheBoxIsScaled)
{
    for (const Mat3& box : { rectangular(), skewed() })
    {
        const BoxPlan scaled = plan(box, 1.1 * box);
        EXPECT_EQ(scaled.change, BoxChange::Strained);
        EXPECT_LT(scaled.strain.cwiseAbs().maxCoeff(), 1e-14);
        EXPECT_EQ(scaled.rotation, Mat3::Identity());
    }
}

TEST(BoxFollower, SplitsASmallDeformationIntoStrainAndRotation)
{
    constexpr double c_size = 1e-3;
    Mat3 box                = skewed();
    box(0, 0) *= 1 + c_size;
    box(1, 0) += c_size;
    box(2, 1) -= c_size;
    const BoxPlan change = plan(skewed(), box);
    ASSERT_EQ(change.change, BoxChange::Strained);
    EXPECT_NEAR(change.strain.trace(), 0, 1e-14);
    EXPECT_LT((change.strain - change.strain.transpose()).cwiseAbs().maxCoeff(), 1e-14);
    EXPECT_GT((change.rotation - Mat3::Identity()).cwiseAbs().maxCoeff(), 1e-5);
    // without the change of volume, which is divided out to first order only
    const double scale = std::cbrt(box.determinant() / skewed().determinant());
    const Mat3 again   = scale * skewed() * (Mat3::Identity() + change.strain) * change.rotation;
    EXPECT_LT((again - box).cwiseAbs().maxCoeff(), 20 * c_size * c_size);
}

TEST(BoxFollower, KeepsTheStrainWhereOnlyRoundingHasChanged)
{
    Mat3 strain  = Mat3::Zero();
    strain(0, 0) = 1e-9;
    strain(2, 2) = -1e-9;
    Mat3 box     = rectangular();
    box(1, 1) *= 1 + 1e-8;
    const BoxPlan change = plan(rectangular(), box, strain);
    EXPECT_EQ(change.change, BoxChange::Strained);
    EXPECT_EQ(change.strain, strain);
}

TEST(BoxFollower, BuildsTheSameCellsAnewBeyondFirstOrder)
{
    // two thirds of the change of one edge are a strain
    Mat3 box = rectangular();
    box(0, 0) *= 1 + 6 * c_tolerance;
    EXPECT_EQ(plan(rectangular(), box).change, BoxChange::Strained);
    // energies and forces would still do, the virial would not
    box(0, 0) = rectangular()(0, 0) * (1 + 9 * c_tolerance);
    EXPECT_EQ(plan(rectangular(), box).change, BoxChange::SameCellsAnew);
}

TEST(BoxFollower, BuildsAnewWhatReliesOnReflections)
{
    Mat3 box  = rectangular();
    box(1, 0) = 0.05 * c_tolerance;
    EXPECT_EQ(plan(rectangular(), box).change, BoxChange::SameCellsAnew);
    Mat3 other = skewed();
    other(1, 0) += 0.05 * c_tolerance;
    EXPECT_EQ(plan(skewed(), other).change, BoxChange::Strained);
}

TEST(BoxFollower, ChoosesCellsAnewWhereTheirSizeOrShapeDoesNotSuit)
{
    EXPECT_EQ(plan(rectangular(), 1.2 * rectangular()).change, BoxChange::CellsAnew);
    EXPECT_EQ(plan(rectangular(), 0.8 * rectangular()).change, BoxChange::CellsAnew);
    Mat3 flat = rectangular();
    flat(0, 0) *= 1.5;
    flat(2, 2) /= 1.5;
    EXPECT_EQ(plan(rectangular(), flat).change, BoxChange::CellsAnew);
}

//! Operators of a box, with a backend that can fail.
class Operators : public ::testing::Test
{
protected:
    void SetUp() override
    {
        operators.change([&] { operators.build(cellsFor(skewed())); });
        backend.calls.clear();
    }
    //! Follows to a box. \returns whether cells were to be chosen
    bool follow(const Mat3& box)
    {
        bool chosen = false;
        followBox(box, Device::Cpu, &operators, [&] { chosen = true; });
        return chosen;
    }
    FakeBackend backend;
    OperatorsInUse<double> operators{ &backend };
};

TEST_F(Operators, FollowABoxByTheLeastThatDoes)
{
    using Calls = std::vector<std::string>;
    EXPECT_FALSE(follow(skewed()));
    EXPECT_EQ(backend.calls, Calls());
    EXPECT_FALSE(follow(1.05 * skewed()));
    EXPECT_EQ(backend.calls, Calls({ "setBox" }));
    EXPECT_EQ(operators.box(), 1.05 * skewed());
    Mat3 strained = skewed();
    strained(2, 2) *= 1.05;
    EXPECT_FALSE(follow(strained));
    EXPECT_EQ(backend.calls, Calls({ "setBox", "build" }));
    EXPECT_EQ(operators.discretisation().referenceBox, strained);
    EXPECT_TRUE(follow(2 * skewed()));
}

TEST_F(Operators, AreNotBuiltAnewWhereTheyAreTooLarge)
{
    Discretisation d = cellsFor(skewed());
    d.order          = c_maxOrder;
    d.leafCells      = chooseCells(skewed(), 0.01, d.ws, 1);
    operators.change([&] { operators.build(d); });
    ASSERT_NE(whyTooLarge(d, Device::Cpu, sizeof(double)), "");
    Mat3 strained = skewed();
    strained(2, 2) *= 1.05;
    EXPECT_TRUE(follow(strained));
    EXPECT_EQ(operators.discretisation().referenceBox, skewed());
}

TEST_F(Operators, AreBuiltAgainAfterAFailure)
{
    Mat3 strained = skewed();
    strained(2, 2) *= 1.05;
    backend.failing = "build";
    EXPECT_THROW(follow(strained), Error);
    EXPECT_EQ(operators.box(), skewed());
    EXPECT_EQ(operators.discretisation().referenceBox, skewed());
    backend.failing = "";
    backend.calls.clear();
    EXPECT_FALSE(follow(skewed()));
    EXPECT_EQ(backend.calls, std::vector<std::string>({ "build", "setBox" }));
    EXPECT_EQ(backend.built.referenceBox, skewed());
    // and then they stand
    EXPECT_FALSE(follow(skewed()));
    EXPECT_EQ(backend.calls.size(), 2U);
}

TEST_F(Operators, StandWhereNothingWasBuilt)
{
    EXPECT_THROW(operators.change([] { throw Error(ErrorCode::InvalidArgument, "no choice"); }),
                 Error);
    EXPECT_FALSE(follow(skewed()));
    EXPECT_TRUE(backend.calls.empty());
}

} // namespace
} // namespace test
} // namespace farfield
