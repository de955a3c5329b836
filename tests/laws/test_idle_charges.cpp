/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles that take part and do nothing: many of them cost no more than charges do.
 */
#include <cfenv>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "farfield/farfield.h"

#include "solver_input.h"

namespace farfield
{
namespace test
{
namespace
{

/*! Processors take ten times as long for sums with subnormal numbers, and tell of them by the exception
 *  "underflow". One thread, as each has exceptions of its own, and the second evaluation: set-up has
 *  exponentials of large numbers. */
void expectNoSubnormalNumbers(const std::function<void()>& evaluation)
{
    evaluation();
    std::feclearexcept(FE_ALL_EXCEPT);
    evaluation();
    EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0);
}

class IdleCharges : public ::testing::TestWithParam<Boundary>
{
public:
    IdleCharges()
    {
        Options options;
        options.device   = Device::Cpu;
        options.threads  = 1;
        options.boundary = GetParam();
        solver           = Solver<float>(options);
        request.energy = request.virial = false;
        for (size_t i = 0; i < half.size() / 2; ++i)
        {
            half[i] = 0;
        }
    }

    const System system        = rounded<float>(pseudoWater(namedBox("cube", 15.0), 3));
    const Box box              = Box(system.box);
    const std::vector<float> x = flatPositions<float>(system);
    const std::vector<float> all{ system.charges.begin(), system.charges.end() };
    const int n             = system.size();
    std::vector<float> half = all, f = std::vector<float>(x.size());
    Solver<float> solver{ Options() };
    Request request;
};

TEST_P(IdleCharges, OfALambdaMakeNoSubnormalNumbers)
{
    solver.setPerturbedCharges(all.data(), half.data(), n);
    request.lambda = 1;
    expectNoSubnormalNumbers([&] { solver.evaluate(x.data(), box.rows, f.data(), request); });
}

TEST_P(IdleCharges, WithPotentialsMakeNoSubnormalNumbers)
{
    std::vector<float> potentials(n);
    solver.setCharges(half.data(), n);
    expectNoSubnormalNumbers(
            [&] { solver.evaluate(x.data(), box.rows, f.data(), request, potentials.data()); });
}

TEST_P(IdleCharges, OfPointsMakeNoSubnormalNumbers)
{
    const std::vector<float> charged(x.begin() + 3 * (n / 2), x.end());
    std::vector<float> potentials(n);
    solver.setCharges(all.data() + n / 2, n - n / 2);
    expectNoSubnormalNumbers(
            [&] {
                solver.evaluateAt(
                        charged.data(), box.rows, x.data(), n / 2, potentials.data(), f.data());
            });
}

// A slab has exponentials of large numbers in every evaluation
INSTANTIATE_TEST_SUITE_P(Boundaries,
                         IdleCharges,
                         ::testing::Values(Boundary::Periodic, Boundary::Open));

} // namespace
} // namespace test
} // namespace farfield
