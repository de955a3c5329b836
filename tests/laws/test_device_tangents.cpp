/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Tangents with arrays in device memory: those of arrays of the host.
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
class DeviceTangents : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(DeviceTangents, GpuConfigurations);

//! Random numbers of a size.
template<class Real>
std::vector<Real> randomNumbers(size_t count, double size, unsigned seed)
{
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(-size, size);
    std::vector<Real> numbers(count);
    for (Real& number : numbers)
    {
        number = static_cast<Real>(uniform(generator));
    }
    return numbers;
}

//! One direction after the other, and plain forces in between, which are as before.
TYPED_TEST(DeviceTangents, AreThoseOfHostArrays)
{
    using Real = typename TypeParam::Real;
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Slab, Boundary::Open })
    {
        for (const int charged : { 60, 40, 0 })
        {
            System system = rounded<Real>(bonded(namedBox("cube", 4.0), 60)).charges;
            std::fill(system.charges.begin() + charged, system.charges.end(), 0.0);
            SCOPED_TRACE(std::to_string(charged) + " charged particles, boundary "
                         + std::to_string(static_cast<int>(boundary)));
            Options options  = this->options();
            options.boundary = boundary;
            options.order    = 8;
            options.cellSize = 0.7;
            Solver<Real> solver(options);
            load(solver, system);
            evaluateAll(solver, system); // all take part from here on
            const Evaluation before   = evaluate(solver, system);
            const size_t n            = system.size();
            const std::vector<Real> x = flatPositions<Real>(system);
            const Box box(system.box);
            // far from a usual size
            const std::vector<Real> moves   = randomNumbers<Real>(3 * n, 1e3, 31);
            const std::vector<Real> charges = randomNumbers<Real>(n, 1e-3, 32), zeros(n, Real(0));
            const Clock clock;
            DeviceArray<Real> there(x), moved(moves), changed(charges), unchanged(zeros),
                    forces(3 * n), potentials(n);
            const auto expectSame =
                    [&](const Direction<Real>& onHost, const Direction<Real>& onDevice)
            {
                std::vector<Real> f(3 * n), p(n);
                solver.evaluateTangent(x.data(), box.rows, onHost, { f.data(), p.data() });
                evaluateTangent(solver,
                                static_cast<const Real*>(there.data()),
                                box.rows,
                                onDevice,
                                { forces.data(), potentials.data() },
                                Request(),
                                clock.stream());
                expectNear(forces.get(), f);
                expectNear(potentials.get(), p);
                expectSameBits(evaluate(solver, system), before);
            };
            expectSame({ moves.data(), nullptr }, { moved.data(), nullptr });
            expectSame({ nullptr, charges.data() }, { nullptr, changed.data() });
            expectSame({ moves.data(), charges.data() }, { moved.data(), changed.data() });
            expectSame({}, {});
            expectSame({ nullptr, zeros.data() }, { nullptr, unchanged.data() });
        }
    }
}

TYPED_TEST(DeviceTangents, TellWhatIsWrong)
{
    using Real        = typename TypeParam::Real;
    const Sites sites = bonded(namedBox("cube", 4.0), 60);
    const size_t n    = sites.charges.size();
    Solver<Real> solver(TypeParam::options());
    loadSites(solver, sites);
    std::vector<Real> x = flatPositions<Real>(sites.charges);
    const Box box(sites.charges.box);
    DeviceArray<Real> there(x), forces(3 * n);
    const Clock clock;
    const auto call = [&](Solver<Real>& own)
    {
        evaluateTangent(own,
                        static_cast<const Real*>(there.data()),
                        box.rows,
                        Direction<Real>{ there.data(), nullptr },
                        { forces.data(), nullptr },
                        Request(),
                        clock.stream());
    };
    expectError(ErrorCode::Unsupported, { "tangents", "dipoles" }, [&] { call(solver); });
    load(solver, sites.charges);
    solver.setDipoles(nullptr, sites.charges.size());
    call(solver);
    const std::vector<Real> good = forces.get();
    x[7]                         = std::numeric_limits<Real>::quiet_NaN();
    there.put(x);
    expectError(ErrorCode::InvalidArgument, { "position", "finite" }, [&] { call(solver); });
    there.put(flatPositions<Real>(sites.charges));
    call(solver);
    EXPECT_EQ(forces.get(), good);
    Solver<Real> cpu(optionsOnCpu(TypeParam::options()));
    load(cpu, sites.charges);
    expectError(ErrorCode::Unsupported, { "device" }, [&] { call(cpu); });
}

} // namespace
} // namespace test
} // namespace farfield
