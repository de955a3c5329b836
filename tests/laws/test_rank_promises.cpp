/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What callers of several ranks promise: where it is broken all ranks say so, and none waits or
 *         computes.
 */
#include <functional>
#include <limits>

#include "given_ranks.h"

namespace farfield
{
namespace test
{
namespace
{

//! Puts forces on the particles of a rank among those on all.
void putInto(const std::vector<double>& f, const std::vector<int>& index, std::vector<double>* all)
{
    for (size_t k = 0; k < f.size(); k++)
    {
        (*all)[3 * index[k / 3] + k % 3] = f[k];
    }
}

//! Forces of ranks that keep all promises.
std::vector<double> rightForces()
{
    const System system = smallWater();
    std::vector<double> all(3 * system.size());
    onRanks(2,
            [&](Communicator& communicator)
            {
                const Given given(system, communicator.rank());
                DistributedSolver<double> solver(given.options, &communicator);
                given.tellSystem(&solver);
                given.tellLocal(&solver);
                putInto(given.evaluate(&solver), given.index, &all);
            });
    return all;
}

/*! \brief Two ranks break a promise: that is the same error for both; then they keep it, with the
 *         same solver, and get what they get otherwise.
 *  \param[in] parts  of the message
 *  \param[in] spoil  what is given, of any rank */
void expectErrorOfAll(const std::vector<std::string>& parts,
                      const std::function<void(Given*)>& spoil,
                      bool tellsLocal = true)
{
    const System system = smallWater();
    std::vector<double> after(3 * system.size());
    onRanks(2,
            [&](Communicator& communicator)
            {
                const Given good(system, communicator.rank());
                Given bad = good;
                spoil(&bad);
                std::unique_ptr<DistributedSolver<double>> solver;
                const auto make = [&](const Options& options)
                { solver = std::make_unique<DistributedSolver<double>>(options, &communicator); };
                expectError(ErrorCode::InvalidArgument,
                            parts,
                            [&]
                            {
                                make(bad.options);
                                bad.tellSystem(solver.get());
                                if (tellsLocal)
                                {
                                    bad.tellLocal(solver.get());
                                }
                                bad.evaluate(solver.get());
                            });
                if (!solver)
                {
                    make(good.options);
                }
                good.tellSystem(solver.get());
                good.tellLocal(solver.get());
                putInto(good.evaluate(solver.get()), good.index, &after);
            });
    static const std::vector<double> right = rightForces();
    EXPECT_EQ(after, right);
}

TEST(RankPromises, EveryParticleIsOnOneRank)
{
    const auto last = [](Given* given) { return given->index.back(); };
    expectErrorOfAll({ "exactly one rank", "is on no rank" },
                     [&](Given* given)
                     {
                         if (given->rank == 1)
                         {
                             given->index.pop_back();
                         }
                     });
    expectErrorOfAll({ "exactly one rank", "is on several" },
                     [&](Given* given)
                     {
                         if (given->rank == 1)
                         {
                             given->index.push_back(last(given));
                         }
                     });
    // as many as there are
    expectErrorOfAll({ "exactly one rank", "Particle " },
                     [&](Given* given)
                     {
                         if (given->rank == 1)
                         {
                             given->index.back() = given->index[0];
                         }
                     });
}

TEST(RankPromises, ParticlesAreSetAfterTheSystem)
{
    expectErrorOfAll(
            { "setLocal()", "setSystem()" }, [](Given* /*given*/) {}, false);
}

TEST(RankPromises, IndicesAndOffsetsAreValid)
{
    const auto ofSecond = [](const std::function<void(Given*)>& spoil)
    {
        return [spoil](Given* given)
        {
            if (given->rank == 1)
            {
                spoil(given);
            }
        };
    };
    expectErrorOfAll({ "no particle" },
                     ofSecond([](Given* given) { given->index[0] = given->system.size(); }));
    expectErrorOfAll({ "no particle -1" }, ofSecond([](Given* given) { given->index[0] = -1; }));
    expectErrorOfAll({ "first offset" }, ofSecond([](Given* given) { given->offsets[0] = 1; }));
    expectErrorOfAll({ "offsets", "ascend" },
                     ofSecond([](Given* given) { given->offsets[5] = given->offsets[6] + 1; }));
    expectErrorOfAll({ "partner", "outside" },
                     ofSecond([](Given* given) { given->partners[3] = given->system.size(); }));
    expectErrorOfAll(
            { "charge", "finite" },
            ofSecond([](Given* given)
                     { given->system.charges[2] = std::numeric_limits<double>::quiet_NaN(); }));
}

//! On both ranks alike: that they have the same is not enough.
TEST(RankPromises, ExcludedPairsAreListedAtBothParticles)
{
    expectErrorOfAll({ "as excluded partner", "both" },
                     [](Given* given)
                     {
                         std::vector<int> offsets = { 0 }, partners;
                         for (int i = 0; i < given->system.size(); i++)
                         {
                             for (int k = given->offsets[i]; k < given->offsets[i + 1]; k++)
                             {
                                 if (given->partners[k] > i || i > 4)
                                 {
                                     partners.push_back(given->partners[k]);
                                 }
                             }
                             offsets.push_back(static_cast<int>(partners.size()));
                         }
                         given->offsets  = offsets;
                         given->partners = partners;
                     });
}

TEST(RankPromises, AllHaveTheSame)
{
    const auto ofSecond =
            [](const std::vector<std::string>& parts, const std::function<void(Given*)>& spoil)
    {
        SCOPED_TRACE(parts.back());
        expectErrorOfAll(parts,
                         [&spoil](Given* given)
                         {
                             if (given->rank == 1)
                             {
                                 spoil(given);
                             }
                         });
    };
    ofSecond({ "same charges" }, [](Given* given) { given->system.charges[7] += 1e-6; });
    ofSecond({ "same excluded pairs" },
             [](Given* given)
             {
                 given->offsets.assign(given->offsets.size(), 0);
                 given->partners.clear();
             });
    ofSecond({ "same number of particles" },
             [](Given* given)
             {
                 given->system.positions.pop_back();
                 given->system.charges.pop_back();
                 given->offsets.assign(given->system.charges.size() + 1, 0);
             });
    ofSecond({ "same box" }, [](Given* given) { given->box[1][1] *= 1.001; });
    ofSecond({ "box vectors" }, [](Given* given) { given->box[0][0] = -1; });
    ofSecond({ "same Request::step" }, [](Given* given) { given->request.step = 3; });
    ofSecond({ "same Request::virial" }, [](Given* given) { given->request.virial = false; });
    ofSecond({ "grid offset" }, [](Given* given) { given->request.gridOffset[0] = 2; });
    ofSecond({ "same option order" }, [](Given* given) { given->options.order = 5; });
    ofSecond({ "same option accuracy" }, [](Given* given) { given->options.accuracy = 1e-4; });
    // what is wrong on one rank only
    ofSecond({ "order", "outside its range" }, [](Given* given) { given->options.order = 99; });
}

//! What may differ does, and results are those of ranks where it does not.
TEST(RankPromises, ThreadsForcesAndRoundingOfTheBoxMayDiffer)
{
    const System system = smallWater();
    onRanks(2,
            [&](Communicator& communicator)
            {
                Given given(system, communicator.rank());
                given.options.threads       = 1 + communicator.rank();
                given.request.replaceForces = communicator.rank() == 0;
                // as in single precision
                given.box[0][0] = static_cast<double>(static_cast<float>(given.box[0][0]))
                                  * (1 + 1e-7 * communicator.rank());
                DistributedSolver<double> solver(given.options, &communicator);
                given.tellSystem(&solver);
                given.tellLocal(&solver);
                EXPECT_NO_THROW(given.evaluate(&solver));
            });
}

TEST(RankPromises, StatesAreTheSame)
{
    const System system = smallWater();
    onRanks(2,
            [&](Communicator& communicator)
            {
                const Given given(system, communicator.rank());
                DistributedSolver<double> solver(given.options, &communicator);
                given.tellSystem(&solver);
                given.tellLocal(&solver);
                const std::vector<double> before = given.evaluate(&solver);
                std::vector<double> state        = solver.state();
                if (communicator.rank() == 1)
                {
                    state.clear();
                }
                expectError(ErrorCode::InvalidArgument,
                            { "same state" },
                            [&] { solver.restore(state); });
                EXPECT_EQ(given.evaluate(&solver), before);
            });
}

//! One rank cannot have the device: none has it.
TEST(RankPromises, TheDeviceIsThatOfAll)
{
    onRanks(2,
            [](Communicator& communicator)
            {
                Options options  = withCells();
                options.device   = Device::Auto;
                options.deviceId = communicator.rank() == 0 ? -1 : c_maxDeviceId;
                const DistributedSolver<double> solver(options, &communicator);
                EXPECT_EQ(solver.setup().device, Device::Cpu);
                options.device = Device::Gpu;
                EXPECT_THROW(DistributedSolver<double>(options, &communicator), Error);
            });
}

//! Pairs that are listed twice, and particles that are their own partners, as Solver takes them.
TEST(RankPromises, PairsCountOnceHoweverOftenTheyAreListed)
{
    const System system = smallWater();
    onRanks(2,
            [&](Communicator& communicator)
            {
                const Given once(system, communicator.rank());
                Given often = once;
                often.offsets.assign(1, 0);
                often.partners.clear();
                for (int i = 0; i < system.size(); i++)
                {
                    for (int k = once.offsets[i + 1] - 1; k >= once.offsets[i]; k--)
                    {
                        // in another order, and one of them twice at one of its particles
                        often.partners.insert(often.partners.end(), i % 2 + 1, once.partners[k]);
                    }
                    often.partners.push_back(i);
                    often.offsets.push_back(static_cast<int>(often.partners.size()));
                }
                std::vector<double> forces[2];
                for (const Given* given : { &once, static_cast<const Given*>(&often) })
                {
                    DistributedSolver<double> solver(given->options, &communicator);
                    given->tellSystem(&solver);
                    given->tellLocal(&solver);
                    forces[given == &once ? 0 : 1] = given->evaluate(&solver);
                }
                EXPECT_EQ(forces[0], forces[1]);
            });
}

TEST(RanksErrors, OfOneRankAreThrownByAll)
{
    const System system = pseudoWater(namedBox("cube", 8), 12);
    for (const bool inTheFirst : { true, false })
    {
        std::mutex mutex;
        std::vector<std::string> messages;
        onRanks(3,
                [&](Communicator& communicator)
                {
                    DistributedSolver<double> solver(withCells(), &communicator);
                    const Portion<double> portion(system, domains(system, 3), communicator.rank());
                    portion.giveTo(&solver);
                    std::vector<double> x = portion.positions(system);
                    std::vector<double> f(x.size());
                    if (!inTheFirst)
                    {
                        solver.evaluate(x.data(), Box(system.box).rows, f.data());
                    }
                    if (communicator.rank() == 1)
                    {
                        x[4] = std::numeric_limits<double>::quiet_NaN();
                    }
                    try
                    {
                        solver.evaluate(x.data(), Box(system.box).rows, f.data());
                    }
                    catch (const Error& error)
                    {
                        const std::lock_guard<std::mutex> lock(mutex);
                        messages.emplace_back(error.what());
                        EXPECT_STREQ(error.parameter(), "positions");
                    }
                });
        ASSERT_EQ(messages.size(), 3u);
        EXPECT_EQ(messages[0], messages[1]);
        EXPECT_EQ(messages[0], messages[2]);
        EXPECT_NE(messages[0].find("is not finite"), std::string::npos) << messages[0];
    }
}

TEST(RanksErrors, NameWhatSeveralRanksCanNot)
{
    onRanks(2,
            [](Communicator& communicator)
            {
                Options options;
                options.device = Device::Gpu;
                options.m2l    = M2lEngine::Hierarchy;
                expectError(ErrorCode::Unsupported,
                            { "fft", "hierarchy", "device = cpu", "one rank" },
                            [&] { const DistributedSolver<float> solver(options, &communicator); });
                options          = withCells();
                options.boundary = Boundary::Open;
                expectError(ErrorCode::Unsupported,
                            { "'open'", "one rank", "'periodic'" },
                            [&] { const DistributedSolver<float> solver(options, &communicator); });
                options               = withCells();
                options.helperDevices = { 1 };
                options.tune          = true;
                expectError(ErrorCode::Unsupported,
                            { "Helper devices", "one rank" },
                            [&] { const DistributedSolver<float> solver(options, &communicator); });
                options.helpersIfFaster = true;
                const DistributedSolver<float> unhelped(options, &communicator);
                EXPECT_NE(unhelped.setup().helpersLost.find("one rank"), std::string::npos);
                DistributedSolver<float> solver(withCells(), &communicator);
                const float q[]     = { 1, -1 };
                const int offsets[] = { 0, 1, 2 }, partners[] = { 1, 7 };
                expectError(ErrorCode::InvalidArgument,
                            { "partner 7", "2 particles" },
                            [&] {
                                solver.setSystem({ 2, q, offsets, partners });
                            });
                solver.setSystem({ 2, q, nullptr, nullptr });
                const int nobody[] = { 2 };
                expectError(ErrorCode::InvalidArgument,
                            { "no particle 2", "2 of the system" },
                            [&] { solver.setLocal(nobody, 1); });
                const int first[] = { 0 }; // on both ranks, and the second on none
                solver.setLocal(first, 1);
                const float x[] = { 0.1F, 0.2F, 0.3F };
                float f[3];
                const double box[3][3] = { { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 } };
                expectError(ErrorCode::InvalidArgument,
                            { "exactly one rank" },
                            [&] { solver.evaluate(x, box, f); });
            });
}

} // namespace
} // namespace test
} // namespace farfield
