/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A caller whose stream and arrays are on another device than the solver, as mdrun may be.
 *
 *  Where there is one device it is both.
 */
#include <memory>
#include <string>
#include <vector>

#include "device_caller.h"
#include "moving_water.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! The device of the caller is the first, that of the solver the last one.
constexpr int c_home = 0;

int lastDevice()
{
    int devices = 0;
    checkCuda(cudaGetDeviceCount(&devices), "counting devices");
    return devices - 1;
}

//! Arrays of a device, and its stream and an event.
template<class Real>
struct ArraysOf
{
    explicit ArraysOf(int size) : x(3 * static_cast<size_t>(size)), forces(x.size())
    {
        checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
    }
    ~ArraysOf() { cudaEventDestroy(event); }
    ArraysOf(const ArraysOf&)            = delete;
    ArraysOf& operator=(const ArraysOf&) = delete;

    //! What another stream gets from now on comes after what this one has got.
    void holdBack(cudaStream_t other) const
    {
        checkCuda(cudaEventRecord(event, clock.stream()), "recording an event");
        checkCuda(cudaStreamWaitEvent(other, event, 0), "waiting for an event");
    }
    //! Copies an array in this stream, between any devices.
    void copy(DeviceArray<Real>& to, DeviceArray<Real>& from) const
    {
        checkCuda(cudaMemcpyAsync(to.data(),
                                  from.data(),
                                  from.size() * sizeof(Real),
                                  cudaMemcpyDefault,
                                  clock.stream()),
                  "copying between devices");
    }

    DeviceArray<Real> x, forces;
    Clock clock;
    cudaEvent_t event = nullptr;
};

template<class Real>
std::unique_ptr<ArraysOf<Real>> arraysOf(int device, int size)
{
    checkCuda(cudaSetDevice(device), "choosing a device");
    auto arrays = std::make_unique<ArraysOf<Real>>(size);
    checkCuda(cudaSetDevice(c_home), "choosing a device");
    return arrays;
}

//! A caller on the first device with a solver on the last one.
template<class Real>
class DistantCaller
{
public:
    DistantCaller(const System& system, Options options) :
        home_(arraysOf<Real>(c_home, system.size())),
        there_(arraysOf<Real>(lastDevice(), system.size())), box_(system.box)
    {
        connectDevices(c_home, lastDevice());
        options.deviceId = lastDevice();
        solver_          = std::make_unique<Solver<Real>>(options);
        load(*solver_, system);
    }
    void put(const System& system)
    {
        home_->x.put(flatPositions<Real>(system));
        box_ = Box(system.box);
    }
    void enqueue(const Request& request)
    {
        home_->holdBack(there_->clock.stream());
        there_->copy(there_->x, home_->x);
        farfield::enqueue(*solver_,
                          there_->x.data(),
                          box_.rows,
                          there_->forces.data(),
                          request,
                          there_->clock.stream());
        there_->copy(home_->forces, there_->forces);
        there_->holdBack(home_->clock.stream());
    }
    std::unique_ptr<Graph> record(const Request& request)
    {
        return std::make_unique<Graph>(home_->clock.stream(), [&] { enqueue(request); });
    }
    void launch(const Graph& graph) { graph.launch(home_->clock.stream()); }
    std::vector<Vector> forces() const
    {
        checkCuda(cudaStreamSynchronize(home_->clock.stream()), "waiting for the GPU");
        return vectorsOf(home_->forces.get());
    }
    Solver<Real>& solver() { return *solver_; }

private:
    std::unique_ptr<ArraysOf<Real>> home_, there_;
    Box box_;
    std::unique_ptr<Solver<Real>> solver_;
};

template<class Config>
class OtherDevice : public ConfiguredTest<Config>
{
protected:
    static Options options(M2lEngine engine)
    {
        Options options     = Config::options();
        options.m2l         = engine;
        options.cellSize    = 0.5;
        options.order       = 8;
        options.directRange = 1;
        options.deviceId    = c_home;
        return options;
    }
    //! The same with the device of the caller as a helper, if that is another one.
    static Options optionsWithHelper(M2lEngine engine)
    {
        Options options = OtherDevice::options(engine);
        if (lastDevice() != c_home)
        {
            options.helperDevices = { c_home };
        }
        return options;
    }
};

TYPED_TEST_SUITE(OtherDevice, GpuConfigurations);

//! Evaluations one by one, and graphs that are launched where the caller is, through changes of the box.
TYPED_TEST(OtherDevice, GivesWhatThatOfTheCallerGives)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        System water = movingWater<Real>("triclinic", 0);
        DistantCaller<Real> distant(water, TestFixture::optionsWithHelper(engine));
        Solver<Real> alone(TestFixture::options(engine));
        load(alone, water);
        std::unique_ptr<Graph> graph;
        for (int step = 0; step < 24; ++step)
        {
            SCOPED_TRACE(std::string(nameOf(engine)) + ", step " + std::to_string(step));
            const double scale = step >= 16 ? 1.0005 : 1.0;
            water              = movingWater<Real>("triclinic", step);
            for (auto& row : water.box)
            {
                for (double& element : row)
                {
                    element *= scale;
                }
            }
            water = rounded<Real>(water);
            if (step == 16)
            {
                graph.reset();
            }
            distant.put(water);
            Request request = forcesAt(step);
            request.energy = request.virial = step % 6 == 4;
            if (request.energy || step < 6 || step == 16)
            {
                distant.enqueue(request);
            }
            else
            {
                if (!graph || mustRecordAgain(distant.solver()))
                {
                    graph = distant.record(request);
                }
                distant.launch(*graph);
            }
            const std::vector<Vector> forces = distant.forces();
            const Totals totals              = wait(distant.solver());
            Request onHost                   = request;
            onHost.energy = onHost.virial = true;
            const Evaluation wanted       = evaluate(alone, water, onHost);
            EXPECT_LE(relativeError(forces, wanted.forces), c_sameForces<Real>);
            if (request.energy)
            {
                EXPECT_NEAR(totals.energy, wanted.energy, pairRounding<Real>(water));
                EXPECT_LE(largestDifference(evaluationOf(totals, std::vector<Real>()).virial,
                                            wanted.virial),
                          pairRounding<Real>(water));
            }
        }
    }
}

TEST(Devices, AreConnectedWhereTheyExist)
{
    const std::string reason = whyUnavailable(Device::Gpu);
    if (!reason.empty())
    {
        GTEST_SKIP() << reason;
    }
    connectDevices(c_home, c_home);
    const int none = lastDevice() + 1;
    expectError(ErrorCode::Unsupported,
                { "GPU " + std::to_string(none), "reach" },
                [&] { connectDevices(c_home, none); });
}

} // namespace
} // namespace test
} // namespace farfield
