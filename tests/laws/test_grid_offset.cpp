/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Request::gridOffset: the position of the grid changes nothing but the error.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class GridOffset : public ConfiguredTest<Config>
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

} // namespace
} // namespace test
} // namespace farfield
