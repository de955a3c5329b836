/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Request::gridOffset: the position of the grid changes nothing but the error.
 */
#include <limits>

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class GridOffset : public ::testing::Test
{
};
TYPED_TEST_SUITE(GridOffset, Configurations);

Request requestAt(const std::array<double, 3>& offset)
{
    Request request;
    request.gridOffset = offset;
    return request;
}

TYPED_TEST(GridOffset, KeepsTheResultWithinTheError)
{
    using Real    = typename TypeParam::Real;
    unsigned seed = 500;
    for (const double netCharge : { 0.0, 5.0 })
    {
        const System system =
                rounded<Real>(randomCharges(namedBox("triclinic", 9.0), 400, ++seed, netCharge));
        const Evaluation reference = ewald(system);
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            Options options     = TypeParam::options();
            options.order       = 8;
            options.directRange = 1;
            options.cellSize    = 0.5;
            options.m2l         = engine;
            Solver<Real> solver(options);
            load(solver, system);
            for (const auto& offset : std::array<std::array<double, 3>, 2>{
                         { { 0.5, 0.25, 0.75 }, { 0.999, 0.0, 1.0 } } })
            {
                const Evaluation result = evaluate(solver, system, requestAt(offset));
                SCOPED_TRACE(describe(system, solver.setup()));
                expectClose(result, reference, boundsFor<Real>(system, solver.setup(), reference));
            }
        }
    }
}

TYPED_TEST(GridOffset, EqualsAShiftOfTheParticles)
{
    using Real = typename TypeParam::Real;
    // not rounded: the shifted positions would have to be representable as well
    const System system = rounded<float>(pseudoWater(namedBox("cube", 8.0), 77));
    Options options     = TypeParam::options();
    options.order       = 6;
    options.directRange = 1;
    options.cellSize    = 0.5;
    Solver<Real> solver(options);
    load(solver, system);
    const std::array<double, 3> offset = { 0.5, 0.25, 0.75 };
    const Evaluation moved             = evaluate(solver, system, requestAt(offset));
    const auto cells                   = solver.setup().cells;
    Vector shift;
    for (int k = 0; k < 3; k++)
    {
        shift[k] = -offset[k] * system.box[k][k] / cells[k][k];
    }
    const Evaluation shiftedResult = evaluate(solver, shifted(system, shift));
    EXPECT_LE(relativeError(moved.forces, shiftedResult.forces), roundingFloor<Real>());
    EXPECT_NEAR(moved.energy / shiftedResult.energy, 1, roundingFloor<Real>());
    // and it is not without effect: the error of the cells is another one
    const Evaluation still = evaluate(solver, system);
    EXPECT_GT(relativeError(moved.forces, still.forces), 1e-5);
}

TYPED_TEST(GridOffset, HasARange)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(randomCharges(namedBox("cube", 4.0), 20, 78));
    Solver<Real> solver(TypeParam::options());
    load(solver, system);
    for (const double bad : { -0.1, 1.1, std::numeric_limits<double>::quiet_NaN() })
    {
        try
        {
            evaluate(solver, system, requestAt({ 0, bad, 0 }));
            ADD_FAILURE() << "a grid offset of " << bad << " was accepted";
        }
        catch (const Error& error)
        {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_NE(std::string(error.what()).find("grid offset"), std::string::npos);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
