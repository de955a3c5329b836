/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials and fields at points with arrays in device memory: those of arrays of the host.
 */
#include <cmath>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "device_caller.h"
#include "open_systems.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Real>
struct Fields
{
    std::vector<Real> potentials, fields;
};

template<class Real>
Fields<Real> onHost(Solver<Real>& solver, const System& system, const std::vector<Real>& at)
{
    const size_t points = at.size() / 3;
    Fields<Real> result = { std::vector<Real>(points), std::vector<Real>(at.size()) };
    solver.evaluateAt(flatPositions<Real>(system).data(),
                      Box(system.box).rows,
                      at.data(),
                      static_cast<int>(points),
                      result.potentials.data(),
                      result.fields.data());
    return result;
}

template<class Real>
Fields<Real> onDevice(Solver<Real>& solver, const System& system, const std::vector<Real>& at)
{
    const size_t points = at.size() / 3;
    const Clock clock;
    DeviceArray<Real> x(flatPositions<Real>(system)), places(at);
    // nothing that is left is taken for a result
    const Real none = std::numeric_limits<Real>::quiet_NaN();
    DeviceArray<Real> potentials(std::vector<Real>(points, none)),
            fields(std::vector<Real>(at.size(), none));
    evaluateAt(solver,
               x.data(),
               Box(system.box).rows,
               places.data(),
               static_cast<int>(points),
               potentials.data(),
               fields.data(),
               Request(),
               clock.stream());
    return { potentials.get(), fields.get() };
}

template<class Config>
class DevicePointFields : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static Options options(Boundary boundary)
    {
        Options options      = Config::options();
        options.boundary     = boundary;
        options.reproducible = true;
        return options;
    }
    //! Within rounding; the grid of cells is the same.
    static void expectEqual(const std::vector<Real>& a, const std::vector<Real>& b)
    {
        double differences = 0, squares = 0;
        for (size_t i = 0; i < a.size(); ++i)
        {
            const double reference = static_cast<double>(b[i]);
            differences += std::pow(static_cast<double>(a[i]) - reference, 2);
            squares += reference * reference;
        }
        EXPECT_LE(std::sqrt(differences), roundingFloor<Real>() * std::sqrt(squares));
    }
};
TYPED_TEST_SUITE(DevicePointFields, GpuConfigurations);

TYPED_TEST(DevicePointFields, AreThoseOfArraysOfTheHost)
{
    using Real         = typename TypeParam::Real;
    const System block = rounded<Real>(film("film", { 9, 8, 5 }, 0.2, 0.001));
    System periodic    = block;
    periodic.box[2]    = { 0, 0.1, 2.5 };
    for (const auto& [boundary, system] : { std::pair(Boundary::Periodic, periodic),
                                            std::pair(Boundary::Slab, block),
                                            std::pair(Boundary::Open, block) })
    {
        Solver<Real> solver(TestFixture::options(boundary));
        load(solver, system);
        for (const int points : { 300, 300, 7, 1 })
        {
            std::vector<Real> at;
            for (int i = 0; i < 3 * points; ++i)
            {
                at.push_back(static_cast<Real>(-1 + 5 * std::fmod(0.618 * (i + points), 1.0)));
            }
            SCOPED_TRACE(std::string(nameOf(boundary)) + ", " + std::to_string(points));
            const Fields<Real> host = onHost(solver, system, at);
            const Fields<Real> own  = onDevice(solver, system, at);
            TestFixture::expectEqual(own.potentials, host.potentials);
            TestFixture::expectEqual(own.fields, host.fields);
        }
    }
}

TYPED_TEST(DevicePointFields, AreZeroWithoutCharges)
{
    using Real    = typename TypeParam::Real;
    System system = rounded<Real>(molecules("block", { 0, 0, 0 }, { 3, 3, 3 }));
    std::fill(system.charges.begin(), system.charges.end(), 0.0);
    Solver<Real> solver(TestFixture::options(Boundary::Open));
    load(solver, system);
    const Fields<Real> none = onDevice(solver, system, std::vector<Real>{ 1, 1, 1 });
    EXPECT_EQ(none.potentials, std::vector<Real>(1, 0));
    EXPECT_EQ(none.fields, std::vector<Real>(3, 0));
}

TYPED_TEST(DevicePointFields, HaveClearErrors)
{
    using Real             = typename TypeParam::Real;
    const Real nan         = std::numeric_limits<Real>::quiet_NaN();
    const System system    = rounded<Real>(pseudoWater(namedBox("cube", 3.0), 51));
    System broken          = system;
    broken.positions[5][2] = std::numeric_limits<double>::quiet_NaN();
    Solver<Real> solver(TestFixture::options(Boundary::Periodic));
    load(solver, system);
    const std::vector<Real> two = { 0, 0, 0, 0, nan, 0 };
    expectError(ErrorCode::InvalidArgument,
                { "point 1", "not finite" },
                [&] { onDevice(solver, system, two); });
    expectError(ErrorCode::InvalidArgument,
                { "particle 5", "not finite" },
                [&] {
                    onDevice(solver, broken, std::vector<Real>{ 1, 1, 1 });
                });
    const Fields<Real> after = onDevice(solver, system, std::vector<Real>{ 1, 1, 1 });
    TestFixture::expectEqual(after.fields,
                             onHost(solver, system, std::vector<Real>{ 1, 1, 1 }).fields);
    Solver<Real> other(optionsOnCpu(TestFixture::options(Boundary::Periodic)));
    load(other, system);
    expectError(ErrorCode::Unsupported,
                { "'gpu'", "'cpu'" },
                [&] {
                    onDevice(other, system, std::vector<Real>{ 1, 1, 1 });
                });
}

} // namespace
} // namespace test
} // namespace farfield
