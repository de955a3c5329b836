/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Induced dipoles: each is its polarisability times the field, of all others, too.
 *
 *  tests/python compares them with matrices that NumPy solves, and with another program.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Particles that are polarisable, but for every fifth.
template<class Real>
struct Polarisable
{
    System system;
    std::vector<Real> polarisabilities, permanent;

    Polarisable(const Matrix& box, int n) :
        system(rounded<Real>(randomCharges(box, n, 811, 2.0, 0.25))), polarisabilities(n)
    {
        std::mt19937 generator(812);
        std::uniform_real_distribution<double> uniform(-1, 1);
        for (int i = 0; i < n; ++i)
        {
            polarisabilities[i] =
                    i % 5 == 0 ? Real(0) : static_cast<Real>(1e-3 * (1.3 + uniform(generator)));
            for (int k = 0; k < 3; ++k)
            {
                permanent.push_back(static_cast<Real>(0.01 * uniform(generator)));
            }
        }
        // nearer than what could be induced
        for (int i = 0; i < n / 4; i += 2)
        {
            for (int k = 0; k < 3; ++k)
            {
                system.positions[i + 1][k] = system.positions[i][k] + 0.03 + 0.01 * k;
            }
            system.exclusions.emplace_back(i, i + 1);
        }
        system = rounded<Real>(system);
    }
};

template<class Config>
class InducedDipoles : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(InducedDipoles, Configurations);

TYPED_TEST(InducedDipoles, AreProportionalToTheField)
{
    using Real             = typename TypeParam::Real;
    const double tolerance = sizeof(Real) == 4 ? 2e-6 : 1e-9;
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Slab, Boundary::Open })
    {
        for (const M2lEngine engine : enginesOf(TypeParam::device))
        {
            const Matrix box = boundary == Boundary::Periodic ? namedBox("triclinic", 27.0)
                                                              : namedBox("cube", 27.0);
            const Polarisable<Real> given(box, 240);
            const int n      = given.system.size();
            Options options  = TypeParam::options();
            options.boundary = boundary;
            options.m2l      = engine;
            options.accuracy = 1e-4;
            Solver<Real> solver(options);
            load(solver, given.system);
            solver.setDipoles(given.permanent.data(), n);
            const std::vector<Real> x = flatPositions<Real>(given.system);
            const Box rows(box);
            std::vector<Real> dipoles(3 * static_cast<size_t>(n), Real(0));
            const Induction found = solver.induceDipoles(
                    x.data(), rows.rows, given.polarisabilities.data(), dipoles.data(), tolerance);
            SCOPED_TRACE(describe(given.system, solver.setup()));
            EXPECT_LE(found.residual, tolerance);
            EXPECT_GE(found.iterations, 2);
            EXPECT_LE(found.iterations, 40);

            // by an evaluation of all of them
            std::vector<Real> all = given.permanent;
            std::transform(all.begin(), all.end(), dipoles.begin(), all.begin(), std::plus<>());
            solver.setDipoles(all.data(), n);
            std::vector<Real> forces(3 * static_cast<size_t>(n)), gradients(forces.size());
            solver.evaluate(x.data(),
                            rows.rows,
                            forces.data(),
                            {},
                            Outputs<Real>{ nullptr, gradients.data(), nullptr });
            double wrong = 0, size = 0, cost = 0;
            for (size_t k = 0; k < dipoles.size(); ++k)
            {
                const auto alpha = static_cast<double>(given.polarisabilities[k / 3]);
                const auto mu    = static_cast<double>(dipoles[k]);
                wrong += std::pow(
                        mu + alpha * static_cast<double>(gradients[k]) / options.coulombConstant,
                        2);
                size += mu * mu;
                cost += alpha > 0 ? 0.5 * options.coulombConstant * mu * mu / alpha : 0;
            }
            // here cells are chosen for all dipoles, and by induceDipoles() for those that were set
            EXPECT_LE(std::sqrt(wrong / size), 3 * options.accuracy);
            EXPECT_GT(size, 0);
            EXPECT_NEAR(found.selfEnergy, cost, 1e-5 * cost);
        }
    }
}

TYPED_TEST(InducedDipoles, LeaveTheSolverAsItWas)
{
    using Real       = typename TypeParam::Real;
    const Matrix box = namedBox("cube", 27.0);
    const Polarisable<Real> given(box, 200);
    const int n = given.system.size();
    Solver<Real> solver(this->options());
    load(solver, given.system);
    solver.setDipoles(given.permanent.data(), n);
    const std::vector<Real> x = flatPositions<Real>(given.system);
    const Evaluation before   = evaluate(solver, given.system);
    std::vector<Real> dipoles(3 * static_cast<size_t>(n), Real(0)), tooMuch(n, Real(1));
    solver.induceDipoles(x.data(), Box(box).rows, given.polarisabilities.data(), dipoles.data());
    expectSameBits(evaluate(solver, given.system), before);
    const std::vector<Real> found = dipoles;
    EXPECT_THROW(solver.induceDipoles(x.data(), Box(box).rows, tooMuch.data(), dipoles.data()),
                 Error);
    EXPECT_EQ(dipoles, found);
    expectSameBits(evaluate(solver, given.system), before);
}

} // namespace
} // namespace test
} // namespace farfield
