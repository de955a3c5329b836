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
#include "choice/chosen.h"
#include "fake_backend.h"
#include "operators/m2l_periodic_operators.h"
#include "plan/error_estimate.h"
#include "plan/operator_limits.h"

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

OperatorFrame frameOf(const Mat3& box, const Mat3& strain = Mat3::Zero())
{
    OperatorFrame frame;
    frame.box    = box;
    frame.strain = strain;
    return frame;
}

BoxPlan plan(const Mat3& from, const Mat3& to, const Mat3& strain = Mat3::Zero())
{
    return planForBox(to, cellsFor(from), Device::Cpu, c_tolerance, frameOf(from, strain));
}

//! A box with edges longer by parts of themselves.
Mat3 stretched(const Mat3& box, double x, double y, double z)
{
    return box * (Mat3::Identity() + Mat3(Eigen::Vector3d(x, y, z).asDiagonal()));
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
        EXPECT_LT(scaled.frame.strain.cwiseAbs().maxCoeff(), 1e-14);
        EXPECT_EQ(scaled.frame.rotation, Mat3::Identity());
        EXPECT_EQ(scaled.frame.box, 1.1 * box);
    }
}

TEST(BoxFollower, SplitsASmallDeformationIntoStrainAndRotation)
{
    constexpr double c_size = 1e-3;
    Mat3 box                = skewed();
    box(0, 0) *= 1 + c_size;
    box(1, 0) += c_size;
    box(2, 1) -= c_size;
    const BoxPlan way = plan(skewed(), box);
    ASSERT_EQ(way.change, BoxChange::Strained);
    const OperatorFrame& change = way.frame;
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
    EXPECT_EQ(change.frame.strain, strain);
}

TEST(BoxFollower, BuildsTheSameCellsAnewBeyondFirstOrder)
{
    // two thirds of the change of one edge are a strain; its square may be a tenth of the error
    const double most = 1.5 * std::sqrt(0.1 * c_tolerance);
    for (const Mat3& box : { rectangular(), skewed() })
    {
        EXPECT_EQ(plan(box, stretched(box, 0.95 * most, 0, 0)).change, BoxChange::Strained);
        EXPECT_EQ(plan(box, stretched(box, 1.05 * most, 0, 0)).change, BoxChange::SameCellsAnew);
    }
}

//! Beyond five times the error the virial needs derivatives at another strain.
TEST(BoxFollower, InterpolatesDerivativesAlongTheStrain)
{
    for (const Mat3& box : { rectangular(), skewed() })
    {
        const Discretisation d = cellsFor(box);
        OperatorFrame frame    = frameOf(box);
        const auto follow      = [&](double x, double y, double z)
        {
            const BoxPlan way =
                    planForBox(stretched(box, x, y, z), d, Device::Cpu, c_tolerance, frame);
            EXPECT_EQ(way.change, BoxChange::Strained);
            frame = way.frame;
        };
        follow(6 * c_tolerance, 0, 0);
        EXPECT_EQ(frame.virialStrain, Mat3::Zero());
        follow(9 * c_tolerance, 0, 0);
        const Mat3 first = frame.virialStrain;
        // along the strain, as far as operators follow
        EXPECT_NEAR(first.cwiseAbs().maxCoeff(), std::sqrt(0.1 * c_tolerance), 1e-12);
        const double along = alongStrain(frame.strain, first);
        EXPECT_LT((frame.strain - along * first).cwiseAbs().maxCoeff(), 1e-12);
        // it serves all strains near the line, on both sides
        follow(13 * c_tolerance, 2 * c_tolerance, 0);
        follow(-13 * c_tolerance, 0, 2 * c_tolerance);
        follow(0, 0, 0);
        EXPECT_EQ(frame.virialStrain, first);
        // away from the line another one is needed
        follow(0, 13 * c_tolerance, 0);
        EXPECT_GT(frame.virialStrain(1, 1), 0.9 * std::sqrt(0.1 * c_tolerance));
    }
}

//! The virial of lists on the GPU has derivatives, too, which are those of the reference box.
TEST(BoxFollower, BuildsTreesOnTheGpuAnewWhereTheirVirialNeedsIt)
{
    const Mat3 box   = rectangular();
    const auto after = [&](Device device, int levels, double strain)
    {
        Discretisation d = cellsFor(box);
        d.levels         = levels;
        d.leafCells      = chooseCells(box, 0.5, d.ws, 1 << (levels - 1));
        return planForBox(stretched(box, 1.5 * strain, 0, 0), d, device, c_tolerance, frameOf(box))
                .change;
    };
    EXPECT_EQ(after(Device::Gpu, 2, 6 * c_tolerance), BoxChange::SameCellsAnew);
    EXPECT_EQ(after(Device::Gpu, 2, 4 * c_tolerance), BoxChange::Strained);
    EXPECT_EQ(after(Device::Gpu, 1, 6 * c_tolerance), BoxChange::Strained);
    EXPECT_EQ(after(Device::Cpu, 2, 6 * c_tolerance), BoxChange::Strained);
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
        bool isOther = false;
        chosen.followBox(box, [&] { isOther = true; });
        return isOther;
    }
    FakeBackend backend;
    OperatorsInUse<double> operators{ &backend };
    Chosen<double> chosen{ Options(), Device::Cpu, &operators };
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

//! Cells of another shape have another error, which may be beyond the request.
TEST_F(Operators, AreMeasuredAgainWhereTheirErrorMayBeAnother)
{
    const double request = Options().accuracy;
    const double then    = chosen.predictedError();
    const auto measure   = [&](double worst)
    { chosen.change([&] { chosen.setError(0.5 * worst, worst / then); }); };
    Mat3 little = skewed();
    little(2, 2) *= 1.05;
    EXPECT_FALSE(follow(little));
    const double growth = chosen.predictedError() / then;
    ASSERT_GT(growth, 1.02);
    ASSERT_LT(growth, 1.4);
    for (const double worst : { 1.01 * request / growth, 0.99 * request / growth, 2 * request })
    {
        EXPECT_FALSE(follow(skewed()));
        measure(worst);
        EXPECT_FALSE(chosen.mustMeasure());
        EXPECT_FALSE(follow(little));
        EXPECT_EQ(chosen.mustMeasure(), worst < request && growth * worst > request);
    }
    // errors of high orders grow fast
    Discretisation high = cellsFor(skewed());
    high.order          = 18;
    operators.change([&] { operators.build(high); });
    const double ofHigh = chosen.predictedError();
    chosen.change([&] { chosen.setError(0.01 * request, 0.01 * request / ofHigh); });
    EXPECT_FALSE(follow(little));
    ASSERT_GT(chosen.predictedError(), 1.5 * ofHigh);
    EXPECT_TRUE(chosen.mustMeasure());
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

//! Derivatives are computed once for a line of strains, and again after a failure.
TEST_F(Operators, HaveOneLineOfStrainsForTheVirial)
{
    using Calls         = std::vector<std::string>;
    const Mat3 strain   = Eigen::Vector3d(1e-3, -1e-3, 0).asDiagonal();
    OperatorFrame frame = frameOf(skewed(), strain);
    frame.virialStrain  = 2 * strain;
    const auto setFrame = [&] { operators.change([&] { operators.setBox(frame); }); };
    setFrame();
    EXPECT_EQ(backend.calls, Calls({ "setBox", "setVirialStrain" }));
    EXPECT_EQ(backend.virialStrain, frame.virialStrain);
    setFrame();
    EXPECT_EQ(backend.calls, Calls({ "setBox", "setVirialStrain", "setBox" }));
    const OperatorFrame before = frame;
    frame.virialStrain *= 2;
    backend.failing = "setVirialStrain";
    EXPECT_THROW(setFrame(), Error);
    EXPECT_EQ(operators.frame().virialStrain, before.virialStrain);
    backend.failing = "";
    backend.calls.clear();
    operators.rebuild();
    EXPECT_EQ(backend.calls, Calls({ "build", "setBox", "setVirialStrain" }));
    EXPECT_EQ(backend.virialStrain, before.virialStrain);
    // operators of another box have none
    operators.change([&] { operators.build(cellsFor(rectangular())); });
    EXPECT_EQ(operators.frame().virialStrain, Mat3::Zero());
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
