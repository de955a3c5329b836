/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials on a GPU: into arrays in device memory, also in CUDA graphs, and those of the
 *         CPU.
 */
#include "farfield/farfield_cuda.h"

#include "on_device.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class DevicePotentials : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(DevicePotentials, GpuConfigurations);

template<class Real>
std::vector<Real> onHost(Solver<Real>& solver, const System& system)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    std::vector<Real> f(x.size()), potentials(system.size());
    solver.evaluate(x.data(), Box(system.box).rows, f.data(), {}, potentials.data());
    return potentials;
}

TYPED_TEST(DevicePotentials, AreThoseOfHostArraysAndOfTheCpu)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("triclinic", 8.0), 577));
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        Options options     = this->options();
        options.m2l         = engine;
        options.order       = 7;
        options.directRange = 1;
        options.cellSize    = 0.5;
        Solver<Real> solver(options), cpu(optionsOnCpu(options));
        load(solver, system);
        load(cpu, system);
        const std::vector<Real> expected = onHost(solver, system), reference = onHost(cpu, system);
        for (int i = 0; i < system.size(); ++i)
        {
            // sums of as many terms as there are near particles, of up to this
            ASSERT_NEAR(expected[i], reference[i], roundingFloor<Real>() * c_coulomb / 0.05 * 10);
        }

        const std::vector<Real> x = flatPositions<Real>(system);
        DeviceArray<Real> positions(x), forces(x.size()), potentials(system.size());
        const Box box(system.box);
        Clock clock;
        const auto put = [&]
        {
            Request request;
            request.replaceForces = true;
            enqueue(solver,
                    static_cast<const Real*>(positions.data()),
                    box.rows,
                    forces.data(),
                    request,
                    clock.stream(),
                    potentials.data());
        };
        put();
        wait(solver);
        EXPECT_EQ(potentials.get(), expected);
        const Graph graph(clock.stream(), put);
        potentials.put(std::vector<Real>(system.size(), Real(1)));
        graph.launch(clock.stream());
        wait(solver);
        EXPECT_EQ(potentials.get(), expected);
    }
}

} // namespace
} // namespace test
} // namespace farfield
