/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What callers of several ranks promise, with arrays in device memory: where it is broken all
 *         ranks say so, and nothing is written.
 */
#include "farfield/farfield_cuda.h"

#include <mutex>
#include <vector>

#include "device_caller.h"
#include "in_process_ranks.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class DeviceRankPromises : public ConfiguredTest<Config>
{
public:
    using Real = typename Config::Real;

    //! Adds the totals of a rank to those of all, and its forces.
    void add(const Evaluation& part, const std::vector<int>& index, Evaluation* all)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        all->energy += part.energy;
        for (size_t i = 0; i < index.size(); i++)
        {
            all->forces[index[i]] = part.forces[i];
        }
        for (int i = 0; i < 9; i++)
        {
            all->virial[i / 3][i % 3] += part.virial[i / 3][i % 3];
        }
    }

private:
    std::mutex mutex_;
};
TYPED_TEST_SUITE(DeviceRankPromises, GpuConfigurations);

//! Before the first evaluation, and where the system is set again.
TYPED_TEST(DeviceRankPromises, ParticlesAreSetAfterTheSystem)
{
    using Real            = typename TypeParam::Real;
    constexpr int c_ranks = 2;
    const System water    = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 48));
    Options options       = TypeParam::options();
    options.threads       = 1;
    options.order         = 6;
    options.directRange   = 1;
    options.cellSize      = 0.5;
    options.m2l           = M2lEngine::Fft;
    Request request       = forcesAt(1);
    request.energy = request.virial = true;
    Solver<Real> single(options);
    load(single, water);
    const Evaluation expected = evaluate(single, water, request);
    std::vector<Evaluation> after(2);
    for (Evaluation& all : after)
    {
        all.forces.resize(water.size());
    }
    onRanks(c_ranks,
            [&](Communicator& communicator)
            {
                DistributedSolver<Real> solver(options, &communicator);
                solver.restore(single.state());
                const Portion<Real> portion(water, domains(water, c_ranks), communicator.rank());
                const std::vector<Real> before(3 * portion.index.size(), Real(42));
                const Clock clock;
                DeviceArray<Real> x(before.size()), f(before.size());
                x.put(portion.positions(water));
                const auto put = [&] {
                    enqueue(solver,
                            x.data(),
                            Box(water.box).rows,
                            f.data(),
                            request,
                            clock.stream());
                };
                for (Evaluation& all : after)
                {
                    portion.giveSystemTo(&solver);
                    f.put(before);
                    expectError(ErrorCode::InvalidArgument, { "setLocal()", "setSystem()" }, put);
                    checkCuda(cudaStreamSynchronize(clock.stream()), "waiting for the GPU");
                    EXPECT_EQ(f.get(), before);
                    portion.giveLocalTo(&solver);
                    put();
                    const Totals totals = wait(solver);
                    this->add(evaluationOf(totals, f.get()), portion.index, &all);
                }
            });
    for (const Evaluation& all : after)
    {
        expectEqualToRounding<Real>(all, expected, water);
    }
}

} // namespace
} // namespace test
} // namespace farfield
