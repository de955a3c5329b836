/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges in device memory: results are those of charges of the host.
 */
#include <limits>

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
class DeviceCharges : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(DeviceCharges, GpuConfigurations);

//! 63 charges, all scaled alike.
template<class Real>
System systemOf(double scale)
{
    System system = rounded<Real>(bonded(namedBox("cube", 4.0), 63)).charges;
    for (int i = 0; i < system.size(); ++i)
    {
        // others, not those of before in another unit
        system.charges[i] = static_cast<Real>(scale * system.charges[i] + 0.01 * (scale - 1));
    }
    return system;
}

//! \returns charges, [n]
template<class Real>
std::vector<Real> chargesOf(const System& system)
{
    return { system.charges.begin(), system.charges.end() };
}

template<class Real>
void setOnDevice(Solver<Real>& solver, const std::vector<Real>& q)
{
    const Clock clock;
    DeviceArray<Real> there(q);
    setCharges(solver,
               static_cast<const Real*>(there.data()),
               static_cast<int>(q.size()),
               clock.stream());
    there.put(std::vector<Real>(q.size(), Real(7))); // they are the caller's again
}

//! Within rounding: sums have another order.
template<class Real>
void expectSame(const All<Real>& all, const All<Real>& expected)
{
    expectNear(all.forces, expected.forces);
    expectNear(all.potentials, expected.potentials);
    expectNear(all.hessians, expected.hessians);
    EXPECT_NEAR(all.totals.energy,
                expected.totals.energy,
                10 * roundingFloor<Real>() * std::abs(expected.totals.energy));
}

//! They stay on the device the second and third time, when as many were there before.
TYPED_TEST(DeviceCharges, GiveWhatThoseOfTheHostGive)
{
    using Real       = typename TypeParam::Real;
    Options options  = this->options();
    options.order    = 8;
    options.cellSize = 0.7;
    Solver<Real> solver(options), other(options);
    for (const double scale : { 1.0, 1.3, 0.8 })
    {
        SCOPED_TRACE("scale " + std::to_string(scale));
        const System system = systemOf<Real>(scale);
        load(other, system);
        setOnDevice(solver, chargesOf<Real>(system));
        loadExclusions(solver, system, true);
        expectSame(evaluateAll(solver, system), evaluateAll(other, system));
    }
    System system = systemOf<Real>(1.1);
    for (const size_t i : { 0, 17, 62 })
    {
        system.charges[i] = 0;
    }
    load(other, system);
    setOnDevice(solver, chargesOf<Real>(system));
    expectSame(evaluateAll(solver, system), evaluateAll(other, system));
    // one of those before is zero, of these none
    system = systemOf<Real>(0.9);
    load(other, system);
    setOnDevice(solver, chargesOf<Real>(system));
    expectSame(evaluateAll(solver, system), evaluateAll(other, system));
}

//! What needs charges on the host finds those that stay on the device.
TYPED_TEST(DeviceCharges, AreKnownOnTheHost)
{
    using Real = typename TypeParam::Real;
    Solver<Real> solver(this->options()), other(this->options());
    const System first = systemOf<Real>(1.0), system = systemOf<Real>(1.2);
    for (auto* own : { &solver, &other })
    {
        load(*own, first);
        evaluateAll(*own, first);
    }
    setOnDevice(solver, chargesOf<Real>(system));
    other.setCharges(chargesOf<Real>(system).data(), static_cast<int>(system.size()));
    const std::vector<Real> dipoles(3 * system.size(), Real(0.01));
    const auto withDipoles = [&](Solver<Real>& own)
    {
        own.setDipoles(dipoles.data(), static_cast<int>(system.size()));
        return evaluateAll(own, system);
    };
    expectSame(withDipoles(solver), withDipoles(other));
    for (auto* own : { &solver, &other })
    {
        own->setDipoles(nullptr, static_cast<int>(system.size()));
    }
    expectSame(evaluateAll(solver, system), evaluateAll(other, system));
}

//! A charge that is refused leaves those before, which are on the device alone.
TYPED_TEST(DeviceCharges, TellWhatIsWrong)
{
    using Real          = typename TypeParam::Real;
    const System system = systemOf<Real>(1.2);
    Solver<Real> solver(this->options());
    load(solver, systemOf<Real>(1.0));
    setOnDevice(solver, chargesOf<Real>(system));
    const All<Real> good = evaluateAll(solver, system);
    for (const Real wrong : { std::numeric_limits<Real>::quiet_NaN(),
                              std::numeric_limits<Real>::infinity(),
                              Real(1e13) })
    {
        setOnDevice(solver, chargesOf<Real>(system));
        std::vector<Real> q = chargesOf<Real>(systemOf<Real>(0.7));
        q[5]                = wrong;
        expectError(ErrorCode::InvalidArgument,
                    { "charge", "particle 5" },
                    [&] { setOnDevice(solver, q); });
        expectSame(evaluateAll(solver, system), good);
        const std::vector<Real> dipoles(3 * system.size(), Real(0));
        solver.setDipoles(dipoles.data(), static_cast<int>(system.size()));
        solver.setDipoles(nullptr, static_cast<int>(system.size()));
        expectSame(evaluateAll(solver, system), good);
    }
    Options onHost;
    onHost.device = Device::Cpu;
    Solver<Real> without(onHost);
    expectError(ErrorCode::Unsupported,
                { "device" },
                [&] { setOnDevice(without, chargesOf<Real>(system)); });
}

} // namespace
} // namespace test
} // namespace farfield
