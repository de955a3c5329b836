/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Trees of cells on a GPU over motions in which the occupied cells change at every step:
 *         forces of every step against the CPU backend on the same grid.
 */
#include <array>
#include <memory>
#include <random>

#include "device_caller.h"

namespace farfield
{
namespace test
{
namespace
{

//! Particles in a part of a box, and how they move.
struct Scene
{
    System system;
    std::vector<Vector> velocities; //!< nm per step
    std::array<bool, 3> bound;      //!< axes along which particles turn back at the walls
    Vector low, high;               //!< the walls
};

//! Edge of a parent of leaf cells, nm.
constexpr double c_parent = 1.2;

/*! \brief Random charges between walls, in a box with room around.
 *  \param[in] extent  between the walls; 0: the whole edge of the box, without walls */
Scene scene(const std::string& name, const Vector& extent, int particles, unsigned seed)
{
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::normal_distribution<double> normal(0, 0.006);
    Scene result;
    result.system.name = name;
    for (int k = 0; k < 3; k++)
    {
        const double edge       = extent[k] > 0 ? 20.0 : 7.7;
        result.system.box[k]    = { 0, 0, 0 };
        result.system.box[k][k] = edge;
        result.bound[k]         = extent[k] > 0;
        result.low[k]           = extent[k] > 0 ? 5.0 + uniform(generator) : 0.0;
        result.high[k]          = extent[k] > 0 ? result.low[k] + extent[k] : edge;
    }
    for (int i = 0; i < particles; i++)
    {
        Vector r, v;
        for (int k = 0; k < 3; k++)
        {
            r[k] = result.low[k] + (result.high[k] - result.low[k]) * uniform(generator);
            v[k] = normal(generator);
        }
        result.system.positions.push_back(r);
        result.velocities.push_back(v);
        result.system.charges.push_back(i % 2 == 0 ? 1.0 : -1.0);
    }
    return result;
}

//! One step of the motion; some particles change their image.
void move(Scene* scene, int step)
{
    for (int i = 0; i < scene->system.size(); i++)
    {
        for (int k = 0; k < 3; k++)
        {
            double& x = scene->system.positions[i][k];
            double& v = scene->velocities[i][k];
            x += v;
            if (scene->bound[k] && ((x < scene->low[k] && v < 0) || (x > scene->high[k] && v > 0)))
            {
                v = -v;
            }
        }
        if ((i + step) % 97 == 0)
        {
            const int k = i % 3;
            scene->system.positions[i][k] += (step % 2 == 0 ? 1 : -1) * scene->system.box[k][k];
            scene->velocities[i][k] = scene->bound[k] ? 0 : scene->velocities[i][k];
        }
    }
}

//! All that is thin, small, or comes apart.
std::vector<Scene> scenes()
{
    std::vector<Scene> all;
    for (int axis = 0; axis < 3; axis++)
    {
        for (const double thickness : { 0.5, 1.0, 1.5, 2.0, 3.0, 6.0 })
        {
            Vector extent = { 0, 0, 0 };
            extent[axis]  = thickness * c_parent;
            all.push_back(scene("film", extent, 1000, 10 * axis + static_cast<int>(thickness)));
        }
        Vector fibre = { 1.3, 1.3, 1.3 };
        fibre[axis]  = 0;
        all.push_back(scene("fibre", fibre, 400, 40 + axis));
    }
    // two sheets, one of which falls away from the other
    Scene sheets = scene("two sheets", { 0, 0, 0.4 }, 1200, 50);
    for (int i = 0; i < sheets.system.size(); i += 2)
    {
        sheets.system.positions[i][2] += 3.1;
        sheets.velocities[i] = { 0, 0, 0.021 };
    }
    sheets.bound = { false, false, false };
    all.push_back(sheets);
    // clusters that drift apart
    Scene clusters = scene("clusters", { 1.0, 1.0, 1.0 }, 600, 51);
    clusters.bound = { false, false, false };
    for (int i = 0; i < clusters.system.size(); i++)
    {
        const int of           = i % 6;
        clusters.velocities[i] = { 0.01 * (of % 3 - 1),
                                   0.02 * (of / 3) - 0.01,
                                   0.013 * (of - 2.5) };
    }
    all.push_back(clusters);
    // a droplet of which all evaporates, at 12 nm/ps if a step is 2 fs
    Scene droplet = scene("evaporating droplet", { 2.0, 2.0, 2.0 }, 800, 52);
    droplet.bound = { false, false, false };
    for (Vector& v : droplet.velocities)
    {
        v = { 4 * v[0], 4 * v[1], 4 * v[2] };
    }
    all.push_back(droplet);
    return all;
}

template<class Config>
class DeviceTrees : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    static Options options()
    {
        Options options  = Config::options();
        options.order    = 4;
        options.accuracy = 1e-5; // operands keep all their digits
        options.cellSize = 0.5 * c_parent;
        options.m2l      = M2lEngine::Hierarchy;
        return options;
    }
    //! A solver on the CPU with the same grid.
    static std::unique_ptr<Solver<Real>> twin(const System& system, const Solver<Real>& solver)
    {
        auto result = std::make_unique<Solver<Real>>(optionsOnCpu(options()));
        load(*result, system);
        result->restore(solver.state());
        return result;
    }
    static void expectForcesOf(Solver<Real>& reference,
                               const Caller<Real>& caller,
                               const System& system,
                               long long step)
    {
        const Evaluation wanted = evaluate(reference, system, forcesAt(step));
        // both round; a force that is lost is of the order of all of it
        ASSERT_LE(relativeError(caller.forces(), wanted.forces), 2 * roundingFloor<Real>())
                << system.name << ", step " << step;
    }
};
TYPED_TEST_SUITE(DeviceTrees, GpuConfigurations);

TYPED_TEST(DeviceTrees, LoseNoParticleInMotion)
{
    using Real          = typename TypeParam::Real;
    constexpr int steps = 130;
    for (Scene scene : scenes())
    {
        Caller<Real> caller(rounded<Real>(scene.system), TestFixture::options());
        caller.prepare(rounded<Real>(scene.system));
        ASSERT_GT(caller.setup().levels, 1);
        const auto reference = TestFixture::twin(scene.system, caller.solver());
        for (int step = 0; step < steps; step++)
        {
            move(&scene, step);
            const System now = rounded<Real>(scene.system);
            caller.put(now);
            caller.enqueue(forcesAt(step));
            TestFixture::expectForcesOf(*reference, caller, now, step);
            if (this->HasFatalFailure())
            {
                return;
            }
        }
        EXPECT_NO_THROW(caller.wait());
    }
}

//! As mdrun does it: two graphs in turn, recorded again where the solver asks for it.
TYPED_TEST(DeviceTrees, LoseNoParticleInReplays)
{
    using Real          = typename TypeParam::Real;
    constexpr int steps = 130;
    int recordings      = 0;
    for (Scene scene : scenes())
    {
        Caller<Real> caller(rounded<Real>(scene.system), TestFixture::options());
        caller.prepare(rounded<Real>(scene.system));
        const auto reference = TestFixture::twin(scene.system, caller.solver());
        std::unique_ptr<Graph> graphs[2];
        bool hadItsTurn = false;
        for (int step = 0; step < steps; step++)
        {
            move(&scene, step);
            const System now = rounded<Real>(scene.system);
            caller.put(now);
            auto& graph = graphs[step % 2];
            if (step == 0 || (mustRecordAgain(caller.solver()) && !hadItsTurn))
            {
                graphs[0].reset();
                graphs[1].reset();
                caller.enqueue(forcesAt(step));
                hadItsTurn = true;
            }
            else
            {
                if (!graph)
                {
                    graph = caller.record(forcesAt(step));
                    recordings++;
                    hadItsTurn = mustRecordAgain(caller.solver());
                }
                caller.launch(*graph);
            }
            TestFixture::expectForcesOf(*reference, caller, now, step);
            if (this->HasFatalFailure())
            {
                return;
            }
        }
        EXPECT_NO_THROW(caller.wait());
    }
    EXPECT_GT(recordings, 2 * static_cast<int>(scenes().size())) << "none was recorded again";
}

//! Where steps do not follow one another, or the caller says so, particles may be anywhere.
TYPED_TEST(DeviceTrees, FollowJumps)
{
    using Real         = typename TypeParam::Real;
    const Scene thin   = scene("film", { 0, 0, 0.6 }, 1000, 70);
    const System& film = thin.system;
    System gas         = film;
    std::mt19937 generator(71);
    for (Vector& r : gas.positions)
    {
        for (int k = 0; k < 3; k++)
        {
            r[k] = gas.box[k][k] * std::uniform_real_distribution<double>(0, 1)(generator);
        }
    }
    Caller<Real> caller(rounded<Real>(film), TestFixture::options());
    caller.prepare(rounded<Real>(film));
    const auto reference = TestFixture::twin(film, caller.solver());
    const System there   = rounded<Real>(gas);
    caller.put(there);
    caller.enqueue(forcesAt(7));
    TestFixture::expectForcesOf(*reference, caller, there, 7);

    Caller<Real> other(rounded<Real>(film), TestFixture::options());
    other.enqueue(forcesAt(3));
    other.put(there);
    Request request       = forcesAt(4);
    request.mayHaveJumped = true;
    other.enqueue(request);
    TestFixture::expectForcesOf(*reference, other, there, 4);
}

/*! \brief A caller that breaks its promise gets no numbers, an error, and right forces afterwards.
 *
 *  If the device is so slow that the first count is looked at in time, room is made, and that is
 *  right as well. */
TYPED_TEST(DeviceTrees, HandOutNoWrongForce)
{
    using Real        = typename TypeParam::Real;
    const Scene thin  = scene("film", { 0, 0, 0.6 }, 1000, 72);
    const System film = rounded<Real>(thin.system);
    System gas        = film;
    std::mt19937 generator(73);
    for (Vector& r : gas.positions)
    {
        r[2] = gas.box[2][2] * std::uniform_real_distribution<double>(0, 1)(generator);
    }
    gas = rounded<Real>(gas);
    Caller<Real> caller(film, TestFixture::options());
    caller.enqueue(forcesAt(0));
    const auto reference = TestFixture::twin(film, caller.solver());
    caller.put(gas);
    caller.enqueue(forcesAt(1)); // the step after: nothing can have moved so far
    for (const Vector& f : caller.forces())
    {
        ASSERT_TRUE(std::isnan(f[0]) && std::isnan(f[1]) && std::isnan(f[2]));
    }
    expectError(ErrorCode::InvalidArgument,
                { "moved farther", "mayHaveJumped" },
                [&] { caller.wait(); });
    caller.enqueue(forcesAt(2));
    TestFixture::expectForcesOf(*reference, caller, gas, 2);
    EXPECT_NO_THROW(caller.wait());
    // the next call tells as well as wait()
    Caller<Real> another(film, TestFixture::options());
    another.enqueue(forcesAt(0));
    another.put(gas);
    another.enqueue(forcesAt(1));
    checkCuda(cudaDeviceSynchronize(), "waiting for the GPU");
    expectError(ErrorCode::InvalidArgument,
                { "moved farther", "mayHaveJumped" },
                [&] { another.enqueue(forcesAt(2)); });
    another.enqueue(forcesAt(3));
    TestFixture::expectForcesOf(*reference, another, gas, 3);
}

//! Totals are those of the last evaluation that has run, a replay as well as another.
TYPED_TEST(DeviceTrees, TellTheTotalsOfReplays)
{
    using Real = typename TypeParam::Real;
    Scene now  = scene("film", { 0, 2.0, 0 }, 1000, 74);
    Caller<Real> caller(rounded<Real>(now.system), TestFixture::options());
    caller.prepare(rounded<Real>(now.system));
    const auto reference = TestFixture::twin(now.system, caller.solver());
    Request all          = forcesAt(0);
    all.energy = all.virial = true;
    const auto graph        = caller.record(all);
    for (int step = 0; step < 4; step++)
    {
        move(&now, step);
        const System system = rounded<Real>(now.system);
        caller.put(system);
        all.step                = 2 * step;
        const Evaluation wanted = evaluate(*reference, system, all);
        if (step > 0)
        {
            caller.enqueue(forcesAt(2 * step - 1)); // without totals
            EXPECT_EQ(caller.wait().energy, 0);
        }
        caller.launch(*graph);
        EXPECT_NEAR(caller.wait().energy, wanted.energy, pairRounding<Real>(system));
    }
}

} // namespace
} // namespace test
} // namespace farfield
