/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What callers of several ranks promise: where it is broken all ranks say so, and none waits or
 *         computes. And what they may change at any time: the system.
 */
#include <cmath>

#include <functional>
#include <limits>
#include <random>

#include "changing_systems.h"
#include "in_process_ranks.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Nothing is left to choose, so that it takes no time.
Options withCells()
{
    Options options;
    options.device      = Device::Cpu;
    options.threads     = 1;
    options.order       = 2;
    options.directRange = 1;
    options.cellSize    = 0.7;
    return options;
}

//! What a rank is given, right as long as nobody changes it.
struct Given
{
    int rank;
    Options options;
    System system; //!< its positions and charges
    std::vector<int> offsets, partners, index;
    double box[3][3];
    Request request;

    Given(const System& all, int ofRank) : rank(ofRank), options(withCells()), system(all)
    {
        const Portion<double> portion(all, domains(all, 2), rank);
        index    = portion.index;
        offsets  = portion.offsets;
        partners = portion.partners;
        const Box rows(all.box);
        std::copy_n(&rows.rows[0][0], 9, &box[0][0]);
        request.replaceForces = true;
    }
    void tellSystem(DistributedSolver<double>* solver) const
    {
        solver->setSystem(
                { system.size(), system.charges.data(), offsets.data(), partners.data() });
    }
    void tellLocal(DistributedSolver<double>* solver) const
    {
        solver->setLocal(index.data(), static_cast<int>(index.size()));
    }
    //! Forces on the particles of this rank.
    std::vector<double> evaluate(DistributedSolver<double>* solver) const
    {
        std::vector<double> x, f(3 * index.size(), 42); // replaced
        for (const int i : index)
        {
            const Vector& r = system.positions[std::clamp(i, 0, system.size() - 1)];
            x.insert(x.end(), r.begin(), r.end());
        }
        solver->evaluate(x.data(), box, f.data(), request);
        return f;
    }
};


//! Water on two ranks.
System smallWater()
{
    return pseudoWater(namedBox("cube", 2.2 * 2.2 * 2.2), 3);
}

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

//! Short dipoles at the points of a lattice; each a pair that may be excluded.
System dipoles(int across, double spacing, double length)
{
    System system;
    system.box = {
        { { across * spacing, 0, 0 }, { 0, across * spacing, 0 }, { 0, 0, across * spacing } }
    };
    for (int k = 0; k < across * across * across; k++)
    {
        // directions that no symmetry cancels
        const double z = std::cos(2.4 * k), phi = 1.7 * k, flat = std::sqrt(1 - z * z);
        const Vector u   = { flat * std::cos(phi), flat * std::sin(phi), z };
        const int cell[] = { k % across, k / across % across, k / across / across };
        for (const double sign : { 1.0, -1.0 })
        {
            Vector x;
            for (int c = 0; c < 3; c++)
            {
                x[c] = (cell[c] + 0.5) * spacing + 0.5 * sign * length * u[c];
            }
            system.positions.push_back(x);
            system.charges.push_back(sign);
        }
    }
    return system;
}

System withPairsExcluded(System system)
{
    for (int i = 0; i < system.size(); i += 2)
    {
        system.exclusions.emplace_back(i, i + 1);
    }
    return system;
}

//! Forces of two ranks that have evaluated systems one after the other, of the last one.
struct AfterOthers
{
    std::vector<Vector> forces;
    Setup setup;
    std::vector<double> state;
};

AfterOthers evaluateInTurn(const std::vector<System>& systems, const Options& options)
{
    AfterOthers result;
    result.forces.resize(systems.back().size());
    onRanks(2,
            [&](Communicator& communicator)
            {
                DistributedSolver<double> solver(options, &communicator);
                for (const System& system : systems)
                {
                    Given given(system, communicator.rank());
                    given.tellSystem(&solver);
                    given.tellLocal(&solver);
                    const std::vector<double> f = given.evaluate(&solver);
                    for (size_t k = 0; &system == &systems.back() && k < f.size(); k++)
                    {
                        result.forces[given.index[k / 3]][k % 3] = f[k];
                    }
                }
                if (communicator.rank() == 0)
                {
                    result.setup = solver.setup();
                    result.state = solver.state();
                }
            });
    return result;
}

Options toChoose()
{
    Options options;
    options.device  = Device::Cpu;
    options.threads = 1;
    options.tune    = false; // messages are not timed
    return options;
}

//! What is left of forces without the excluded pairs is far less than they were.
TEST(RankChoice, IsMadeAnewWhereExclusionsHaveCome)
{
    const System free = dipoles(9, 0.32, 0.025), excluded = withPairsExcluded(free);
    const Options options     = toChoose();
    const AfterOthers changed = evaluateInTurn({ free, excluded }, options);
    const AfterOthers fresh   = evaluateInTurn({ excluded }, options);
    EXPECT_EQ(changed.setup.order, fresh.setup.order);
    EXPECT_EQ(changed.setup.cells, fresh.setup.cells);
    EXPECT_LE(relativeError(changed.forces, ewald(excluded).forces), options.accuracy);
}

TEST(RankChoice, IsMadeAnewForOtherNumbersOfParticles)
{
    const System few          = pseudoWater(namedBox("cube", 8), 5),
                 many         = pseudoWater(namedBox("cube", 24), 5);
    const Options options     = toChoose();
    System stretched          = few; // in the box of the others, so that only numbers differ
    stretched.box             = many.box;
    const AfterOthers changed = evaluateInTurn({ stretched, many }, options);
    const AfterOthers fresh   = evaluateInTurn({ many }, options);
    EXPECT_EQ(changed.setup.order, fresh.setup.order);
    EXPECT_EQ(changed.setup.cells, fresh.setup.cells);
    EXPECT_EQ(changed.state, fresh.state);
}

/*! \brief Forces become weaker as ions that began anywhere settle, and stronger as a crystal melts: cells
 *         do then, and are no more expensive than those of a fresh start. */
TEST(RankChoice, IsMadeAnewWhereForcesHaveChanged)
{
    std::mt19937 random(7);
    const System crystal = rockSalt(4, 0.25), atRandom = scattered(crystal, random),
                 settled            = displaced(crystal, 0.02, random);
    Options options                 = toChoose();
    options.accuracy                = 1e-3;
    const std::vector<Vector> exact = fastEwald(settled).forces;
    for (const System* start : { &atRandom, &crystal })
    {
        SCOPED_TRACE(start == &crystal ? "crystal" : "at random");
        const AfterOthers changed = evaluateInTurn({ *start, settled }, options);
        const double error        = relativeError(changed.forces, exact);
        EXPECT_LE(error, options.accuracy);
        EXPECT_LT(error, 2 * changed.setup.estimatedError);
        EXPECT_GT(error, changed.setup.estimatedError / 2);
    }
}

//! By the same rule as that of Solver: a factor of 1.5; and the state tells the number of the choice.
TEST(RankChoice, StaysForLikeNumbers)
{
    const System all = pseudoWater(namedBox("cube", 12), 6);
    System fewer     = all;
    for (int i = 0; i < all.size() / 4; i++)
    {
        fewer.charges[i] = 0;
    }
    const Options options    = toChoose();
    const AfterOthers stayed = evaluateInTurn({ all, fewer }, options);
    EXPECT_EQ(stayed.state, evaluateInTurn({ all }, options).state);
    Solver<double> single(options);
    load(single, all);
    evaluate(single, all);
    const std::vector<double> ofSingle = single.state();
    loadCharges(single, fewer);
    evaluate(single, fewer);
    EXPECT_EQ(single.state(), ofSingle);
}

//! Charges that become zero, and come back.
TEST(RankChoice, OfChargesThatAreAllZeroIsNone)
{
    const System water = smallWater();
    System neutral     = water;
    neutral.charges.assign(water.size(), 0);
    const std::vector<Vector> none(water.size(), Vector{ 0, 0, 0 });
    EXPECT_EQ(evaluateInTurn({ neutral }, withCells()).forces, none);
    EXPECT_EQ(evaluateInTurn({ water, neutral }, withCells()).forces, none);
    EXPECT_EQ(evaluateInTurn({ water, neutral, water }, withCells()).forces,
              evaluateInTurn({ water }, withCells()).forces);
}

} // namespace
} // namespace test
} // namespace farfield
