/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges of two states with arrays in device memory, also in CUDA graphs: what evaluations
 *         of host arrays give.
 */
#include "farfield/farfield_cuda.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "accuracy_case.h"
#include "on_device.h"
#include "test_support.h"
#include "two_states.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class DevicePerturbedCharges : public ReproducibleTest<Config>
{
public:
    static Options options(M2lEngine engine)
    {
        return withCells(ReproducibleTest<Config>::options(), engine, 7, 0.5);
    }
};
TYPED_TEST_SUITE(DevicePerturbedCharges, GpuConfigurations);

template<class Real>
struct Result
{
    Totals totals;
    std::vector<Real> forces;
};

//! Forces are added to those that are there.
template<class Real>
constexpr Real c_before = 2;

template<class Real>
Result<Real> onHost(Solver<Real>& solver, const System& system, const Request& request)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    Result<Real> result       = { {}, std::vector<Real>(x.size(), c_before<Real>) };
    result.totals = solver.evaluate(x.data(), Box(system.box).rows, result.forces.data(), request);
    return result;
}

//! Equal but for the rounding of what is added last.
template<class Real>
void expectSame(const Result<Real>& result, const Result<Real>& expected, const System& system)
{
    Real largest = 0;
    for (const Real f : expected.forces)
    {
        largest = std::max(largest, std::abs(f));
    }
    for (size_t i = 0; i < expected.forces.size(); ++i)
    {
        ASSERT_NEAR(result.forces[i],
                    expected.forces[i],
                    4 * std::numeric_limits<Real>::epsilon() * largest);
    }
    EXPECT_EQ(result.totals.energy, expected.totals.energy);
    EXPECT_NEAR(result.totals.dEnergyDLambda,
                expected.totals.dEnergyDLambda,
                1e-12 * pairEnergies(system));
    for (int k = 0; k < 9; ++k)
    {
        EXPECT_EQ(result.totals.virial[k / 3][k % 3], expected.totals.virial[k / 3][k % 3]);
    }
}

//! Arrays in device memory.
template<class Real>
class OnDevice
{
public:
    OnDevice(Solver<Real>& solver, const System& system) :
        solver_(solver), size_(3 * static_cast<size_t>(system.size())), box_(system.box),
        x_(flatPositions<Real>(system)), f_(size_)
    {
    }
    void put(const Request& request)
    {
        enqueue(solver_,
                static_cast<const Real*>(x_.data()),
                box_.rows,
                f_.data(),
                request,
                clock_.stream());
    }
    void move(const System& system) { x_.put(flatPositions<Real>(system)); }
    void clear() { f_.put(std::vector<Real>(size_, c_before<Real>)); }
    Result<Real> result()
    {
        checkCuda(cudaStreamSynchronize(clock_.stream()), "waiting for the GPU");
        const Totals totals = wait(solver_);
        return { totals, f_.get() };
    }
    cudaStream_t stream() const { return clock_.stream(); }

private:
    Solver<Real>& solver_;
    size_t size_;
    Box box_;
    DeviceArray<Real> x_, f_;
    Clock clock_;
};

Request requestAt(double lambda, bool slope)
{
    Request request;
    request.lambda         = lambda;
    request.dEnergyDLambda = slope;
    return request;
}

TYPED_TEST(DevicePerturbedCharges, GiveWhatHostArraysGive)
{
    using Real = typename TypeParam::Real;
    for (const TwoStates& states : twoStates<Real>())
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            Solver<Real> host(this->options(engine)), solver(this->options(engine));
            load(host, states);
            load(solver, states);
            OnDevice<Real> device(solver, states.a);
            for (const double lambda : { 0.0, 0.3, 0.3, 1.0 })
            {
                for (const bool slope : { true, false })
                {
                    SCOPED_TRACE(states.name + " at lambda " + std::to_string(lambda));
                    const Request request = requestAt(lambda, slope);
                    device.clear();
                    device.put(request);
                    expectSame(device.result(), onHost(host, states.a, request), states.a);
                }
            }
        }
    }
}

TYPED_TEST(DevicePerturbedCharges, CanBeRecorded)
{
    using Real             = typename TypeParam::Real;
    const TwoStates states = twoStates<Real>()[0];
    Solver<Real> host(this->options(M2lEngine::Fft)), solver(this->options(M2lEngine::Fft));
    load(host, states);
    load(solver, states);
    EXPECT_TRUE(mustRecordAgain(solver));
    solver.prepare(flatPositions<Real>(states.a).data(), Box(states.a.box).rows);
    OnDevice<Real> device(solver, states.a);
    const Request request       = requestAt(0.4, true);
    const Result<Real> expected = onHost(host, states.a, request);
    device.clear();
    device.put(request);
    device.result();
    EXPECT_FALSE(mustRecordAgain(solver));
    const Graph graph(device.stream(), [&] { device.put(request); });
    for (int launch = 0; launch < 3; ++launch)
    {
        device.clear();
        graph.launch(device.stream());
        expectSame(device.result(), expected, states.a);
    }
    load(solver, states);
    EXPECT_TRUE(mustRecordAgain(solver));
}

//! Another state takes the place of two, and the other way round.
TYPED_TEST(DevicePerturbedCharges, ComeAndGo)
{
    using Real             = typename TypeParam::Real;
    const TwoStates states = twoStates<Real>()[1];
    Solver<Real> host(this->options(M2lEngine::Fft)), solver(this->options(M2lEngine::Fft));
    OnDevice<Real> device(solver, states.a);
    for (int round = 0; round < 2; ++round)
    {
        load(host, states.b);
        load(solver, states.b);
        device.clear();
        device.put(requestAt(0.3, false));
        expectSame(device.result(), onHost(host, states.b, requestAt(0.3, false)), states.b);
        load(host, states);
        load(solver, states);
        device.clear();
        device.put(requestAt(0.3, true));
        expectSame(device.result(), onHost(host, states.a, requestAt(0.3, true)), states.a);
    }
}

//! Forces that were added to what was there before, within the accuracy.
template<class Real>
void expectAccurate(std::vector<Real> forces, const Evaluation& exact, double accuracy)
{
    for (Real& f : forces)
    {
        f -= c_before<Real>;
    }
    EXPECT_LE(std::sqrt(meanSquareError(forces, exact.forces)),
              accuracy * rootMeanSquare(exact.forces));
}

//! The fields that an evaluation in a stream leaves are looked at by the one that follows wait().
TYPED_TEST(DevicePerturbedCharges, MeetTheAccuracyOncePairsHavePartedElsewhere)
{
    using Real               = typename TypeParam::Real;
    const PartingPairs pairs = partingPairs<Real>();
    Options options          = ReproducibleTest<TypeParam>::options();
    options.accuracy         = 1e-4;
    Solver<Real> solver(options);
    load(solver, pairs.states);
    OnDevice<Real> device(solver, pairs.touching);
    const auto evaluate = [&]
    {
        device.clear();
        device.put(requestAt(0.5, false));
        return device.result();
    };
    for (int k = 0; k < 3; ++k)
    {
        evaluate();
    }
    device.move(pairs.states.a);
    evaluate();
    const Evaluation exact = mixed(ewald(pairs.states.a), ewald(pairs.states.b), 0.5);
    for (int k = 0; k < 3; ++k)
    {
        SCOPED_TRACE(k);
        expectAccurate(evaluate().forces, exact, options.accuracy);
    }
}

//! What follows in the stream may be elsewhere: it is compared with the places where errors were measured.
TYPED_TEST(DevicePerturbedCharges, MeetTheAccuracyWherePairsPartBeforeTheFirstWait)
{
    using Real               = typename TypeParam::Real;
    const PartingPairs pairs = partingPairs<Real>();
    Options options          = ReproducibleTest<TypeParam>::options();
    options.accuracy         = 1e-4;
    Solver<Real> solver(options);
    load(solver, pairs.states);
    OnDevice<Real> device(solver, pairs.touching);
    Request request = requestAt(0.5, false);
    device.clear();
    device.put(request);
    checkCuda(cudaStreamSynchronize(device.stream()), "waiting for the GPU");
    device.move(pairs.states.a);
    request.mayHaveJumped = true;
    const auto evaluate   = [&]
    {
        device.clear();
        device.put(request);
    };
    for (int k = 0; k < 50; ++k)
    {
        evaluate();
    }
    device.result();
    evaluate();
    const Evaluation exact = mixed(ewald(pairs.states.a), ewald(pairs.states.b), 0.5);
    expectAccurate(device.result().forces, exact, options.accuracy);
}

TYPED_TEST(DevicePerturbedCharges, NameParticlesAsTheCallerDoes)
{
    using Real       = typename TypeParam::Real;
    TwoStates states = twoStates<Real>()[1];
    Solver<Real> solver(this->options(M2lEngine::Fft));
    load(solver, states);
    states.a.positions[77][1] = std::nan("");
    OnDevice<Real> device(solver, states.a);
    expectError(ErrorCode::InvalidArgument, { "77" }, [&] { device.put(requestAt(0.5, false)); });
}

} // namespace
} // namespace test
} // namespace farfield
