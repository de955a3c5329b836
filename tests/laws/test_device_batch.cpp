/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Many systems in one call, on a GPU: arrays in its memory, and systems larger than a block.
 */
#include "batch_call.h"
#include "fast_ewald.h"
#include "on_device.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class DeviceBatches : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(DeviceBatches, GpuConfigurations);

//! The arrays of a call in device memory, and its results.
template<class Real>
struct CallOnDevice
{
    explicit CallOnDevice(const Call<Real>& call) :
        systems(static_cast<int>(call.offsets.size()) - 1), x(call.x), q(call.q),
        forces(call.x.size()), potentials(call.q.size()), offsets(call.offsets), boxes(call.boxes),
        energies(systems), virials(call.boxes.size()), errors(systems)
    {
    }
    BatchInput<Real> input()
    {
        return { x.data(), q.data(), offsets.data(), boxes.data(), systems };
    }

    int systems;
    DeviceArray<Real> x, q, forces, potentials;
    DeviceArray<int> offsets;
    DeviceArray<double> boxes, energies, virials, errors;
};

TYPED_TEST(DeviceBatches, TakeArraysInDeviceMemory)
{
    using Real = typename TypeParam::Real;
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    const Call<Real> host = Call<Real>(someSystems()).by(batch);
    Direction<Real> direction(host, 17);
    direction.by(batch, host);
    CallOnDevice<Real> device(host);
    const Clock clock;
    batch.evaluate(device.input(),
                   { device.energies.data(),
                     device.forces.data(),
                     device.potentials.data(),
                     device.virials.data(),
                     device.errors.data() },
                   clock.stream());
    EXPECT_EQ(device.energies.get(), host.energies);
    EXPECT_EQ(device.forces.get(), host.forces);
    EXPECT_EQ(device.potentials.get(), host.potentials);
    EXPECT_EQ(device.virials.get(), host.virials);
    EXPECT_EQ(device.errors.get(), host.errors);
    DeviceArray<Real> dx(direction.x), dq(direction.q);
    DeviceArray<double> dBoxes(direction.boxes);
    batch.evaluateTangent(device.input(),
                          { dx.data(), dq.data(), dBoxes.data() },
                          device.errors.data(),
                          { device.forces.data(), device.potentials.data(), device.virials.data() },
                          clock.stream());
    EXPECT_EQ(device.forces.get(), direction.forces);
    EXPECT_EQ(device.potentials.get(), direction.potentials);
    EXPECT_EQ(device.virials.get(), direction.virials);
}

TYPED_TEST(DeviceBatches, AreInOrderWithAStream)
{
    using Real = typename TypeParam::Real;
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    const Call<Real> host = Call<Real>({ ofShape(c_skew, 200, 5) }).by(batch);
    CallOnDevice<Real> device(host);
    const Clock clock;
    // positions that are there after long work only
    constexpr size_t c_size = 64 << 20;
    DeviceArray<char> large(c_size);
    DeviceArray<Real> late(host.x);
    device.x.put(std::vector<Real>(host.x.size(), std::numeric_limits<Real>::quiet_NaN()));
    for (int k = 0; k < 100; ++k)
    {
        checkCuda(cudaMemsetAsync(large.data(), k, c_size, clock.stream()), "clearing memory");
    }
    checkCuda(cudaMemcpyAsync(device.x.data(),
                              late.data(),
                              host.x.size() * sizeof(Real),
                              cudaMemcpyDeviceToDevice,
                              clock.stream()),
              "copying positions");
    batch.evaluate(device.input(), { nullptr, device.forces.data() }, clock.stream());
    EXPECT_EQ(device.forces.get(), host.forces);
}

//! Sorted into cells, some of which have most of the particles.
TYPED_TEST(DeviceBatches, MatchEwaldWhereParticlesCrowd)
{
    using Real    = typename TypeParam::Real;
    System system = ofShape(c_long, 1500, 31, 2);
    for (int i = 0; i < system.size(); i += 3)
    {
        for (int k = 0; k < 3; ++k)
        {
            system.positions[i][k] = 0.5 * (system.positions[i][k] + 0.1);
        }
    }
    system                    = rounded<float>(system);
    const double accuracy     = 1e-4;
    const Call<Real> call     = Call<Real>({ system }).by(withAccuracy<TypeParam>(accuracy));
    const Evaluation expected = fastEwald(system);
    const double error        = relativeError(call.of(0).forces, expected.forces);
    const double energy       = call.energies[0];
    EXPECT_LE(error, accuracy);
    EXPECT_NEAR(energy,
                expected.energy,
                energyBound(system, accuracy, rootMeanSquare(expected.forces)));
}

//! More than the threads of the block that lists them; some without particles or charges, and some
//! that have another round.
TYPED_TEST(DeviceBatches, PlanThousandsOfSystems)
{
    using Real                = typename TypeParam::Real;
    std::vector<System> kinds = someSystems();
    kinds.erase(kinds.begin() + 4, kinds.begin() + 6); // large ones
    kinds.push_back(kinds[2]);
    kinds.back().charges.assign(kinds.back().charges.size(), 0);
    kinds.push_back(kinds[2]);
    kinds.back().positions.clear();
    kinds.back().charges.clear();
    constexpr int c_systems = 1300;
    std::vector<System> systems;
    std::mt19937 random(3);
    std::vector<int> kindOf;
    for (int s = 0; s < c_systems; ++s)
    {
        kindOf.push_back(static_cast<int>(random() % kinds.size()));
        systems.push_back(kinds[kindOf.back()]);
    }
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    const Call<Real> all = Call<Real>(systems).by(batch);
    ASSERT_EQ(batch.setup().tightening, 1);
    EXPECT_GT(batch.setup().measuredError, 0);
    std::vector<Call<Real>> alone;
    for (const System& kind : kinds)
    {
        alone.push_back(Call<Real>({ kind }).by(withAccuracy<TypeParam>(1e-4)));
    }
    for (int s = 0; s < c_systems; ++s)
    {
        const Call<Real>& own = alone[kindOf[s]];
        EXPECT_EQ(all.energies[s], own.energies[0]) << s;
        EXPECT_EQ(all.errors[s], own.errors[0]) << s;
        EXPECT_EQ(all.of(s).forces, own.of(0).forces) << s;
        EXPECT_EQ(all.of(s).virial, own.of(0).virial) << s;
    }
}

TYPED_TEST(DeviceBatches, HaveTheTangentsOfTheCpu)
{
    using Real                  = typename TypeParam::Real;
    const double accuracy       = sizeof(Real) == 4 ? 3e-6 : 1e-9;
    std::vector<System> systems = someSystems();
    systems.push_back(ofShape(c_skew, 1100, 41, 1)); // two chunks
    // there is nothing but potentials of the charges to come
    systems.push_back(systems[3]);
    systems.back().charges.assign(systems.back().charges.size(), 0);
    BatchOptions options = withAccuracy<TypeParam>(accuracy);
    Batch<Real> gpu(options);
    options.device = Device::Cpu;
    Batch<Real> cpu(options);
    Call<Real> onGpu = Call<Real>(systems).by(gpu), onCpu = Call<Real>(systems).by(cpu);
    Direction<Real> found(onGpu, 43), expected(onCpu, 43);
    found.by(gpu, onGpu);
    expected.by(cpu, onCpu);
    const double bound = 10 * accuracy; // of second derivatives, and of both
    EXPECT_LE(relativeDifference(found.forces, expected.forces), bound);
    EXPECT_LE(relativeDifference(found.potentials, expected.potentials), bound);
    EXPECT_LE(relativeDifference(found.virials, expected.virials), bound);
}

TEST(DeviceBatchOptions, ChooseTheDevice)
{
    const std::string reason = whyUnavailable(Device::Gpu);
    if (!reason.empty())
    {
        GTEST_SKIP() << reason;
    }
    EXPECT_EQ(Batch<float>(BatchOptions()).setup().device, Device::Cpu);
    BatchOptions options;
    options.device = Device::Cpu;
    EXPECT_EQ(Batch<float>(options).setup().device, Device::Cpu);
    options.device   = Device::Gpu;
    options.deviceId = 0;
    EXPECT_EQ(Batch<double>(options).setup().deviceId, 0);
    options.deviceId = 999;
    expectError(ErrorCode::DeviceFailure, { "999" }, [&] { const Batch<float> batch(options); });
}

} // namespace
} // namespace test
} // namespace farfield
