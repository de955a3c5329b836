/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What is asked for besides the forces: each total is what all of them together give, and
 *         forces are the same.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Requests : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    //! Expects an evaluation to be that part of another that was asked for.
    static void expectPartOf(const Evaluation& all,
                             const Evaluation& part,
                             const Request& request,
                             const System& system)
    {
        SCOPED_TRACE(std::string("energy ") + (request.energy ? "yes" : "no") + ", virial "
                     + (request.virial ? "yes" : "no"));
        const double rounding = roundingFloor<Real>();
        EXPECT_LE(relativeError(part.forces, all.forces), rounding);
        // the virial implies the energy
        if (request.energy || request.virial)
        {
            EXPECT_NEAR(part.energy, all.energy, pairRounding<Real>(system));
        }
        else
        {
            EXPECT_EQ(part.energy, 0);
        }
        if (request.virial)
        {
            EXPECT_LE(largestDifference(part.virial, all.virial), pairRounding<Real>(system));
        }
        else
        {
            EXPECT_EQ(largestDifference(part.virial, Matrix{}), 0);
        }
    }
    //! Bound pairs and others, of which some coincide nearly, with a net charge.
    static System bound()
    {
        System system = randomCharges(namedBox("cube", 6.0), 200, 91, 3.0);
        for (int i = 0; i < system.size(); i += 4)
        {
            for (int k = 0; k < 3; ++k)
            {
                system.positions[i + 1][k] = system.positions[i][k] + (i % 8 == 0 ? 1e-3 : 0.1);
            }
            system.exclusions.emplace_back(i, i + 1);
        }
        system.name = "bound pairs with a net charge";
        return system;
    }
};
TYPED_TEST_SUITE(Requests, Configurations);

TYPED_TEST(Requests, OfOneTotalGetWhatAllTogetherGive)
{
    using Real    = typename TypeParam::Real;
    Matrix strain = unitMatrix();
    strain[0][0]  = 1.0007;
    for (const System& system :
         { pseudoWater(namedBox("triclinic", 6.0), 9), TestFixture::bound() })
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            Options options  = TypeParam::options();
            options.m2l      = engine;
            options.order    = 6;
            options.cellSize = 0.35;
            Solver<Real> solver(options);
            load(solver, system);
            for (const System& now :
                 { rounded<Real>(system), rounded<Real>(deformed(system, strain)) })
            {
                const Evaluation all = evaluate(solver, now, { true, true });
                SCOPED_TRACE(describe(now, solver.setup()));
                // whatever was asked for before
                for (const Request& before : { Request{ true, true }, Request{ false, false } })
                {
                    for (const Request& request : { Request{ true, false },
                                                    Request{ false, true },
                                                    Request{ false, false } })
                    {
                        evaluate(solver, now, before);
                        TestFixture::expectPartOf(
                                all, evaluate(solver, now, request), request, now);
                    }
                }
            }
        }
    }
}

//! A solver whose first evaluation is one of those.
TYPED_TEST(Requests, OfOneTotalMayComeFirst)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("octahedron", 6.0), 92));
    Solver<Real> solver(TypeParam::options());
    load(solver, system);
    const Evaluation all = evaluate(solver, system, { true, true });
    for (const Request& request : { Request{ true, false }, Request{ false, true } })
    {
        Solver<Real> other(TypeParam::options());
        load(other, system);
        TestFixture::expectPartOf(all, evaluate(other, system, request), request, system);
    }
}

} // namespace
} // namespace test
} // namespace farfield
