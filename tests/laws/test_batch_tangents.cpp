/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Second derivatives of many systems in one call.
 */
#include "batch_call.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class BatchTangents : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(BatchTangents, Configurations);

template<class Config>
class DoubleBatchTangents : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(DoubleBatchTangents, DoubleConfigurations);

TYPED_TEST(DoubleBatchTangents, AreDifferencesAlongADirection)
{
    for (int kind = 0; kind < 4; ++kind)
    {
        SCOPED_TRACE(kind);
        BatchOptions options = withAccuracy<TypeParam>(1e-10);
        options.channels     = 2;
        options.boundary     = kind == 3   ? Boundary::Slab
                               : kind == 2 ? Boundary::Open
                                           : Boundary::Periodic;
        options.smearing     = kind == 1 ? 0.1 : 0;
        Batch<double> batch(options);
        Call<double> call(
                { ofShape(c_tilted, 20, 61, 1), ofShape(c_skew, 1, 62), ofShape(c_skew, 9, 63) },
                2);
        call.q.resize(2 * call.q.size());
        std::generate(call.q.begin() + static_cast<long>(call.q.size() / 2),
                      call.q.end(),
                      [n = 0]() mutable { return std::cos(7 * n++); });
        call.by(batch);
        Direction<double> direction(call, 64);
        direction.by(batch, call);
        constexpr double c_step = 1e-5;
        const auto at           = [&](double step)
        {
            Call<double> moved   = call;
            const auto addScaled = [&](std::vector<double>* to, const std::vector<double>& by)
            {
                for (size_t i = 0; i < by.size(); ++i)
                {
                    (*to)[i] += step * by[i];
                }
            };
            addScaled(&moved.x, direction.x);
            addScaled(&moved.q, direction.q);
            addScaled(&moved.boxes, direction.boxes);
            return moved.by(options);
        };
        const Call<double> after = at(c_step), before = at(-c_step);
        const auto expectSlope = [&](const std::vector<double>& found,
                                     const std::vector<double>& b,
                                     const std::vector<double>& a)
        {
            std::vector<double> slope(found.size());
            std::transform(b.begin(),
                           b.end(),
                           a.begin(),
                           slope.begin(),
                           [](double u, double v) { return (u - v) / (2 * c_step); });
            // third derivatives, as of forces, and the errors of both
            EXPECT_LE(relativeDifference(found, slope), 1e-7);
        };
        expectSlope(direction.forces, after.forces, before.forces);
        expectSlope(direction.potentials, after.potentials, before.potentials);
        expectSlope(direction.virials, after.virials, before.virials);
    }
}

//! However short the sums are: the energy has one matrix of second derivatives.
TYPED_TEST(BatchTangents, AreSymmetric)
{
    using Real = typename TypeParam::Real;
    Batch<Real> batch(withAccuracy<TypeParam>(1e-3));
    const Call<Real> call = Call<Real>(someSystems()).by(batch);
    Direction<Real> a(call, 71), b(call, 72);
    for (auto* direction : { &a, &b })
    {
        std::fill(direction->boxes.begin(), direction->boxes.end(), 0.0);
        direction->by(batch, call);
    }
    // of the energy along both directions
    const auto product = [](const Direction<Real>& left, const Direction<Real>& right)
    {
        double sum = 0, magnitude = 0;
        for (size_t i = 0; i < left.x.size(); ++i)
        {
            const double term =
                    -static_cast<double>(left.x[i]) * static_cast<double>(right.forces[i]);
            sum += term;
            magnitude += std::abs(term);
        }
        for (size_t i = 0; i < left.q.size(); ++i)
        {
            const double term =
                    static_cast<double>(left.q[i]) * static_cast<double>(right.potentials[i]);
            sum += term;
            magnitude += std::abs(term);
        }
        return std::make_pair(sum, magnitude);
    };
    const auto ab = product(a, b), ba = product(b, a);
    EXPECT_NEAR(ab.first, ba.first, 32 * std::numeric_limits<Real>::epsilon() * ab.second);
}

TYPED_TEST(BatchTangents, OfSinglePrecisionAreThoseOfDouble)
{
    using Real          = typename TypeParam::Real;
    const auto accuracy = sizeof(Real) == 4 ? 3e-6 : 1e-8;
    const auto systems =
            std::vector<System>{ ofShape(c_skew, 200, 81, 2), ofShape(c_cube, 30, 82) };
    const auto tangentBy = [&](auto real, double wanted)
    {
        using Kind = decltype(real);
        Batch<Kind> batch(withAccuracy<TypeParam>(wanted));
        const Call<Kind> call = Call<Kind>(systems).by(batch);
        Direction<Kind> direction(call, 83);
        // of both precisions
        std::transform(direction.x.begin(),
                       direction.x.end(),
                       direction.x.begin(),
                       [](Kind v) { return static_cast<float>(v); });
        std::transform(direction.q.begin(),
                       direction.q.end(),
                       direction.q.begin(),
                       [](Kind v) { return static_cast<float>(v); });
        return direction.by(batch, call);
    };
    const Direction<Real> found      = tangentBy(Real(0), accuracy);
    const Direction<double> expected = tangentBy(0.0, 1e-11);
    const std::vector<double> forces(found.forces.begin(), found.forces.end());
    const std::vector<double> potentials(found.potentials.begin(), found.potentials.end());
    EXPECT_LE(relativeDifference(forces, expected.forces), 3 * accuracy);
    EXPECT_LE(relativeDifference(potentials, expected.potentials), 3 * accuracy);
    EXPECT_LE(relativeDifference(found.virials, expected.virials), 10 * accuracy);
}

TYPED_TEST(BatchTangents, DoNotDependOnTheSystemsAround)
{
    using Real                        = typename TypeParam::Real;
    const std::vector<System> systems = someSystems();
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    const Call<Real> all = Call<Real>(systems).by(batch);
    Direction<Real> direction(all, 91);
    direction.by(batch, all);
    const int s      = 4;
    const auto slice = [](const auto& from, int first, int last, int width) {
        return std::decay_t<decltype(from)>(from.begin() + width * first,
                                            from.begin() + width * last);
    };
    const int first = all.offsets[s], last = all.offsets[s + 1];
    const Call<Real> one = Call<Real>({ systems[s] }).by(batch);
    Direction<Real> part(one, 0);
    part.x     = slice(direction.x, first, last, 3);
    part.q     = slice(direction.q, first, last, 1);
    part.boxes = slice(direction.boxes, s, s + 1, 9);
    part.by(batch, one);
    EXPECT_EQ(part.forces, slice(direction.forces, first, last, 3));
    EXPECT_EQ(part.potentials, slice(direction.potentials, first, last, 1));
    EXPECT_EQ(part.virials, slice(direction.virials, s, s + 1, 9));
}

TYPED_TEST(BatchTangents, RefuseErrorsThatNoEvaluationHas)
{
    using Real = typename TypeParam::Real;
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    Call<Real> call = Call<Real>({ ofShape(c_cube, 5, 1), ofShape(c_cube, 6, 2) }).by(batch);
    for (const double wrong : { -1.0, std::numeric_limits<double>::quiet_NaN() })
    {
        call.errors[1] = wrong;
        Direction<Real> direction(call, 1);
        expectError(ErrorCode::InvalidArgument,
                    { "System 1", "error" },
                    [&] { direction.by(batch, call); });
    }
}

} // namespace
} // namespace test
} // namespace farfield
