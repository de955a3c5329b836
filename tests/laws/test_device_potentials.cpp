/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Potentials on a GPU, their derivatives, and torques: into arrays in device memory, also in CUDA graphs, and
 *         those of the CPU.
 */
#include "farfield/farfield_cuda.h"

#include "multipole_sites.h"
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
                    Outputs<Real>{ potentials.data() });
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

//! Derivatives and torques, too, of sites of which some have no charge.
TYPED_TEST(DevicePotentials, AndTheirDerivativesAreThoseOfHostArrays)
{
    using Real = typename TypeParam::Real;
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Slab, Boundary::Open })
    {
        for (const bool hasQuadrupoles : { false, true })
        {
            Sites sites = rounded<Real>(bonded(namedBox("cube", 4.0), 60));
            std::fill_n(sites.charges.charges.begin(), 5, 0.0);
            if (hasQuadrupoles)
            {
                sites.quadrupoles = randomQuadrupoles(sites.charges.size(), 574);
            }
            Options options  = this->options();
            options.boundary = boundary;
            options.order    = 8;
            options.cellSize = 0.7;
            Solver<Real> solver(options);
            loadSites(solver, sites);
            const All<Real> expected = evaluateAll(solver, sites.charges);
            const size_t n           = sites.charges.size();
            DeviceArray<Real> x(flatPositions<Real>(sites.charges)), forces(3 * n), potentials(n),
                    gradients(3 * n), hessians(6 * n), torques(3 * n);
            const Outputs<Real> outputs = {
                potentials.data(), gradients.data(), hessians.data(), torques.data()
            };
            const Box box(sites.charges.box);
            Clock clock;
            Request request;
            request.replaceForces = true;
            const auto put        = [&]
            {
                enqueue(solver,
                        static_cast<const Real*>(x.data()),
                        box.rows,
                        forces.data(),
                        request,
                        clock.stream(),
                        outputs);
            };
            const auto expectAll = [&]
            {
                wait(solver);
                EXPECT_EQ(forces.get(), expected.forces);
                EXPECT_EQ(potentials.get(), expected.potentials);
                EXPECT_EQ(gradients.get(), expected.gradients);
                EXPECT_EQ(hessians.get(), expected.hessians);
                EXPECT_EQ(torques.get(), expected.torques);
            };
            put();
            expectAll();
            if (boundary == Boundary::Periodic)
            {
                const Graph graph(clock.stream(), put);
                for (DeviceArray<Real>* array : { &gradients, &hessians, &torques })
                {
                    array->put(std::vector<Real>(array->get().size(), Real(1)));
                }
                graph.launch(clock.stream());
                expectAll();
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
