/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Many systems in one call, on a GPU: arrays in its memory, and systems larger than a block.
 */
#include <optional>

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

//! Waits for all that a stream was given.
void wait(const Clock& clock)
{
    checkCuda(cudaStreamSynchronize(clock.stream()), "waiting for a stream");
}

//! The arrays of a call in device memory, and its results.
template<class Real>
struct CallOnDevice
{
    explicit CallOnDevice(const Call<Real>& call) :
        systems(static_cast<int>(call.offsets.size()) - 1), count(call.x.size() / 3), x(call.x),
        q(call.q), forces(call.x.size()), potentials(call.q.size()), offsets(call.offsets),
        boxes(call.boxes), energies(systems), virials(call.boxes.size()), errors(systems)
    {
    }
    //! \param[in] particles  BatchInput::particles
    BatchInput<Real> input(int particles = -1)
    {
        return { x.data(), q.data(), offsets.data(), boxes.data(), systems, particles };
    }
    int particles() const { return static_cast<int>(count); }
    BatchOutput<Real> output()
    {
        return { energies.data(), forces.data(), potentials.data(), virials.data(), errors.data() };
    }

    int systems;
    size_t count;
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
    batch.evaluate(device.input(), device.output(), clock.stream());
    wait(clock);
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
    wait(clock);
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
    wait(clock);
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

template<class Config>
class AsynchronousBatches : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    void SetUp() override
    {
        ConfiguredTest<Config>::SetUp();
        if (!this->IsSkipped())
        {
            clock_.emplace();
        }
    }
    cudaStream_t stream() const { return clock_->stream(); }
    static BatchOptions options(bool asynchronous = true)
    {
        BatchOptions result = withAccuracy<Config>(1e-4);
        result.asynchronous = asynchronous;
        return result;
    }
    //! What a batch gives that waits.
    static Call<Real> expected(const Call<Real>& call)
    {
        Call<Real> result = call;
        return result.by(options(false));
    }
    void evaluate(Batch<Real>* batch, CallOnDevice<Real>* call)
    {
        batch->evaluate(call->input(call->particles()), call->output(), stream());
    }
    void expectEqual(const CallOnDevice<Real>& found, const Call<Real>& expected)
    {
        wait(*clock_);
        EXPECT_EQ(found.energies.get(), expected.energies);
        EXPECT_EQ(found.forces.get(), expected.forces);
        EXPECT_EQ(found.potentials.get(), expected.potentials);
        EXPECT_EQ(found.virials.get(), expected.virials);
        EXPECT_EQ(found.errors.get(), expected.errors);
    }
    template<class T>
    void expectNoNumbers(const DeviceArray<T>& found)
    {
        wait(*clock_);
        const auto values = found.get();
        EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](T v) { return std::isnan(v); }));
    }
    void expectNoNumbers(const CallOnDevice<Real>& found)
    {
        expectNoNumbers(found.energies);
        expectNoNumbers(found.forces);
        expectNoNumbers(found.potentials);
        expectNoNumbers(found.virials);
        expectNoNumbers(found.errors);
    }
    //! Evaluates while the stream is held back: who waits for it would wait until that ends.
    template<class Work>
    void expectNoWait(const Work& work)
    {
        Gate gate(stream());
        work();
        EXPECT_TRUE(gate.open());
    }

    std::optional<Clock> clock_; //!< where there is a GPU
};
TYPED_TEST_SUITE(AsynchronousBatches, GpuConfigurations);

//! One of the systems needs a second round of sums.
TYPED_TEST(AsynchronousBatches, ReturnBeforeTheGpuIsDone)
{
    using Real            = typename TypeParam::Real;
    const Call<Real> host = this->expected(Call<Real>(someSystems()));
    Batch<Real> batch(this->options()), waiting(this->options(false));
    CallOnDevice<Real> device(host);
    this->evaluate(&batch, &device);
    for (int k = 0; k < 6; ++k) // more than there are records
    {
        device.forces.put(std::vector<Real>(host.forces.size(), 7));
        this->expectNoWait([&] { this->evaluate(&batch, &device); });
        this->expectEqual(device, host);
    }
    Direction<Real> direction(host, 17);
    direction.by(waiting, host);
    DeviceArray<Real> dx(direction.x), dq(direction.q);
    DeviceArray<double> dBoxes(direction.boxes);
    const auto tangent = [&]
    {
        batch.evaluateTangent(
                device.input(device.particles()),
                { dx.data(), dq.data(), dBoxes.data() },
                device.errors.data(),
                { device.forces.data(), device.potentials.data(), device.virials.data() },
                this->stream());
    };
    tangent(); // which makes room
    for (int k = 0; k < 2; ++k)
    {
        device.forces.put(std::vector<Real>(host.forces.size(), 7));
        this->expectNoWait(tangent);
        wait(*this->clock_);
        EXPECT_EQ(device.forces.get(), direction.forces);
        EXPECT_EQ(device.potentials.get(), direction.potentials);
        EXPECT_EQ(device.virials.get(), direction.virials);
    }
    batch.finish();
    EXPECT_GT(batch.setup().measuredError, 0);
}

TYPED_TEST(AsynchronousBatches, NameWhatIsRefusedLater)
{
    using Real            = typename TypeParam::Real;
    const Call<Real> host = this->expected(
            Call<Real>({ ofShape(c_cube, 5, 1), ofShape(c_cube, 6, 2), ofShape(c_skew, 7, 3) }));
    Batch<Real> batch(this->options());
    CallOnDevice<Real> good(host);
    this->evaluate(&batch, &good);
    const auto refuse = [&](const std::vector<std::string>& words, const auto& change)
    {
        Call<Real> call = host;
        change(call);
        CallOnDevice<Real> bad(call);
        for (const bool finishes : { false, true })
        {
            this->evaluate(&batch, &bad);
            this->expectNoNumbers(bad);
            expectError(ErrorCode::InvalidArgument,
                        words,
                        [&]
                        {
                            if (finishes)
                            {
                                batch.finish();
                            }
                            this->evaluate(&batch, &good);
                        });
            this->evaluate(&batch, &good);
            this->expectEqual(good, host);
        }
    };
    const Real nan = std::numeric_limits<Real>::quiet_NaN();
    refuse({ "earlier call", "system 1", "position" },
           [&](auto& call) { call.x[3 * 7 + 1] = nan; });
    refuse({ "earlier call", "system 0", "charge" }, [&](auto& call) { call.q[4] = nan; });
    refuse({ "earlier call", "system 2", "box vectors" },
           [](auto& call) { std::fill_n(call.boxes.begin() + 21, 6, 1.0); });
    refuse({ "earlier call", "system 1", "flat" },
           [](auto& call)
           {
               call.boxes[9] = call.boxes[13] = 1e-5;
               call.boxes[17]                 = 1e6;
           });
    refuse({ "earlier call", "system 1", "one place" },
           [](auto& call) { std::copy_n(call.x.begin() + 18, 3, call.x.begin() + 24); });
    for (const int wrong : { -1000000, -1, 12, 19, 1000000 })
    {
        refuse({ "earlier call", "offset" }, [=](auto& call) { call.offsets[1] = wrong; });
        refuse({ "earlier call", "offset" }, [=](auto& call) { call.offsets[3] = wrong; });
    }
    refuse({ "earlier call", "offset" }, [=](auto& call) { call.offsets[0] = 1; });
}

//! Of particles that have no charge, only potentials have no answer.
TYPED_TEST(AsynchronousBatches, TakeNeutralParticlesAtOnePlace)
{
    using Real        = typename TypeParam::Real;
    System bare       = ofShape(c_skew, 40, 5);
    bare.charges[7]   = 0;
    bare.positions[7] = bare.positions[30];
    Call<Real> host({ bare });
    BatchOptions options = this->options();
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Open })
    {
        options.boundary = boundary;
        Batch<Real> batch(options);
        CallOnDevice<Real> device(host);
        const auto forces = [&]
        {
            batch.evaluate(device.input(device.particles()),
                           { device.energies.data(), device.forces.data() },
                           this->stream());
            wait(*this->clock_);
            return device.forces.get();
        };
        const std::vector<Real> first = forces(); // which waits
        EXPECT_EQ(forces(), first);
        EXPECT_TRUE(std::isfinite(first[0]));
        batch.finish();
        this->evaluate(&batch, &device);
        this->expectNoNumbers(device);
        expectError(ErrorCode::InvalidArgument, { "one place" }, [&] { batch.finish(); });
    }
}

TYPED_TEST(AsynchronousBatches, MakeRoomForWhatHasNone)
{
    using Real = typename TypeParam::Real;
    std::vector<System> systems, longer, longest;
    for (unsigned s = 0; s < 40; ++s)
    {
        systems.push_back(ofShape(c_cube, 60, s));
        // twice as many waves, which fit in two rounds; and many more
        longer.push_back(ofShape({ { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 8 } } }, 60, s));
        longest.push_back(ofShape({ { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 100 } } }, 60, s));
    }
    Batch<Real> batch(this->options());
    CallOnDevice<Real> first((Call<Real>(systems)));
    this->evaluate(&batch, &first);
    this->expectEqual(first, this->expected(Call<Real>(systems)));
    CallOnDevice<Real> second((Call<Real>(longer)));
    this->evaluate(&batch, &second);
    batch.finish();
    this->expectEqual(second, this->expected(Call<Real>(longer)));
    CallOnDevice<Real> third((Call<Real>(longest)));
    this->evaluate(&batch, &third);
    this->expectNoNumbers(third);
    expectError(ErrorCode::OutOfMemory, { "no room" }, [&] { batch.finish(); });
    this->evaluate(&batch, &third);
    this->expectEqual(third, this->expected(Call<Real>(longest)));
}

//! Tangents of systems without charges have sums of their own.
TYPED_TEST(AsynchronousBatches, WaitWhereSystemsHaveNoCharges)
{
    using Real            = typename TypeParam::Real;
    const Call<Real> host = this->expected(
            Call<Real>({ ofShape(c_cube, 50, 1), ofShape(c_cube, 60, 2), ofShape(c_skew, 70, 3) }));
    Batch<Real> batch(this->options()), waiting(this->options(false));
    CallOnDevice<Real> device(host);
    Direction<Real> direction(host, 5);
    DeviceArray<Real> dq(direction.q);
    const auto tangent = [&]
    {
        batch.evaluateTangent(device.input(device.particles()),
                              { nullptr, dq.data() },
                              device.errors.data(),
                              { device.forces.data(), device.potentials.data() },
                              this->stream());
    };
    this->evaluate(&batch, &device);
    tangent();
    Call<Real> neutral = host;
    std::fill_n(neutral.q.begin() + 50, 60, Real(0));
    device.q.put(neutral.q);
    tangent();
    this->expectNoNumbers(device.potentials);
    expectError(ErrorCode::OutOfMemory, { "without charges" }, [&] { batch.finish(); });
    tangent();
    wait(*this->clock_);
    std::fill(direction.x.begin(), direction.x.end(), Real(0));
    std::fill(direction.boxes.begin(), direction.boxes.end(), 0);
    direction.by(waiting, neutral);
    EXPECT_EQ(device.potentials.get(), direction.potentials);
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
