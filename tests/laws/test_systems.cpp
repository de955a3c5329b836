/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Unusual systems: exclusions, tiny and nearly empty boxes, few particles, changing
 *         boxes, restored solvers.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Evaluates with \p options and checks everything against Ewald.
template<class Real>
void expectMatchesEwald(const System& exact, const Options& options)
{
    const System system        = rounded<Real>(exact);
    const Evaluation reference = ewald(system);
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation result = evaluate(solver, system);
    SCOPED_TRACE(describe(system, solver.setup()));
    expectClose(result, reference, boundsFor<Real>(system, solver.setup(), reference));
}

template<class Config>
class Exclusions : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Exclusions, Configurations);

TYPED_TEST(Exclusions, MayBeListedOneWayOrBothWays)
{
    using Real   = typename TypeParam::Real;
    System water = rounded<Real>(pseudoWater(namedBox("triclinic", 5.0), 31));
    Solver<Real> solver(TypeParam::options());
    load(solver, water, true);
    const Evaluation both = evaluate(solver, water);
    load(solver, water, false);
    const Evaluation oneWay = evaluate(solver, water);
    // Repetitions and i-i entries change nothing either; nor does the direction.
    for (int i = 0; i < water.size(); ++i)
    {
        water.exclusions.emplace_back(i, i);
    }
    for (auto& pair : water.exclusions)
    {
        std::swap(pair.first, pair.second);
    }
    load(solver, water, false);
    const Evaluation reversed = evaluate(solver, water);
    // a pair that is left in would be 1e4 times as much
    const double rounding = pairRounding<Real>(water);
    for (const Evaluation* other : { &oneWay, &reversed })
    {
        EXPECT_LE(relativeError(other->forces, both.forces), roundingFloor<Real>());
        EXPECT_NEAR(other->energy, both.energy, rounding);
        EXPECT_LE(largestDifference(other->virial, both.virial), rounding);
    }
}

TYPED_TEST(Exclusions, CanBeReplacedAndCleared)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("cube", 3.0), 32));
    System bare        = water;
    bare.exclusions.clear();
    Solver<Real> solver(TypeParam::options());
    for (const System* system : std::vector<const System*>{ &water, &bare, &water })
    {
        load(solver, *system);
        const Evaluation result    = evaluate(solver, *system);
        const Evaluation reference = ewald(*system);
        expectClose(result, reference, boundsFor<Real>(*system, solver.setup(), reference));
    }
    // Another number of particles clears them: the first molecule without its last site.
    const std::vector<Real> q(water.charges.begin(), water.charges.end());
    bare.positions.pop_back();
    bare.charges.pop_back();
    solver.setCharges(q.data(), bare.size());
    const Evaluation reference = ewald(bare);
    expectClose(
            evaluate(solver, bare), reference, boundsFor<Real>(bare, solver.setup(), reference));
}

//! Random charges, each with a shell of opposite large charge at the given distance.
System shells(const Matrix& box, double distance, unsigned seed)
{
    System cores  = randomCharges(box, 150, seed);
    System system = cores;
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int i = 0; i < cores.size(); ++i)
    {
        Vector u            = { normal(random), normal(random), normal(random) };
        const double length = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
        Vector x            = cores.positions[i];
        for (int k = 0; k < 3; ++k)
        {
            x[k] += length == 0 ? 0 : distance * u[k] / length;
        }
        system.charges[i] += 2.5;
        system.positions.push_back(x);
        system.charges.push_back(-2.5);
        system.exclusions.emplace_back(i, cores.size() + i);
    }
    return system;
}

TYPED_TEST(Exclusions, OfCloseShellsKeepAccuracy)
{
    using Real = typename TypeParam::Real;
    for (const double distance : { 0.0, 1e-4, 1e-3, 1e-2 })
    {
        const System system        = rounded<Real>(shells(namedBox("cube", 6.0), distance, 33));
        const Evaluation reference = ewald(system);
        Options options            = TypeParam::options();
        options.order              = 12;
        options.directRange        = 2;
        options.cellSize           = 0.4;
        Solver<Real> solver(options);
        load(solver, system);
        const Evaluation result = evaluate(solver, system);
        SCOPED_TRACE(describe(system, solver.setup()) + ", distance " + std::to_string(distance));
        // A pair at 1e-4 nm has 1e6 times the force of any other: it must be skipped, not
        // subtracted. What is left is the ordinary rounding of single precision.
        const double truncation = slack(system.size())
                                  * boundsFor<Real>(system, solver.setup(), reference).predicted
                                  / rootMeanSquare(reference.forces);
        EXPECT_LE(relativeError(result.forces, reference.forces), truncation + 1e-5);
        EXPECT_TRUE(std::isfinite(result.energy));
        expectClose(result, reference, boundsFor<Real>(system, solver.setup(), reference));
    }
}

TYPED_TEST(Exclusions, WorkThroughTheBoundary)
{
    using Real = typename TypeParam::Real;
    for (const auto& named : allBoxes(6.0))
    {
        // Molecules on every face, half of whose sites are given at another image.
        System system = pseudoWater(named.box, 34);
        system        = shifted(system, { 0.155, 0.155, 0.155 });
        for (int i = 1; i < system.size(); i += 3)
        {
            const int image = (i / 3) % 3;
            for (int k = 0; k < 3; ++k)
            {
                system.positions[i][k] += system.box[image][k] * ((i / 9) % 2 == 0 ? 1 : -1);
            }
        }
        Options options  = TypeParam::options();
        options.order    = 12;
        options.cellSize = 0.4;
        SCOPED_TRACE(named.name);
        expectMatchesEwald<Real>(system, options);
    }
}

TYPED_TEST(Exclusions, MayReachBeyondTheDirectRange)
{
    // A chain of excluded pairs up to 0.9 nm long, further than the near cells at 0.25 nm.
    using Real    = typename TypeParam::Real;
    System system = randomCharges(namedBox("rectangular", 8.0), 150, 35);
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = 0; j < i; ++j)
        {
            double r2 = 0;
            for (int k = 0; k < 3; ++k)
            {
                const double length = system.box[k][k];
                double d            = system.positions[i][k] - system.positions[j][k];
                d -= length * std::round(d / length);
                r2 += d * d;
            }
            if (r2 < 0.9 * 0.9 && (i + j) % 7 == 0)
            {
                system.exclusions.emplace_back(i, j);
            }
        }
    }
    ASSERT_GT(system.exclusions.size(), 100U);
    Options options     = TypeParam::options();
    options.order       = 12;
    options.directRange = 1;
    options.cellSize    = 0.25;
    expectMatchesEwald<Real>(system, options);
}

template<class Config>
class TinyBoxes : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(TinyBoxes, Configurations);

TYPED_TEST(TinyBoxes, MatchEwald)
{
    using Real = typename TypeParam::Real;
    for (const double edge : { 0.5, 1.0 })
    {
        for (const auto& named : allBoxes(edge * edge * edge))
        {
            const System system = randomCharges(named.box, 10, 36, 0.5, 0.05);
            for (const int directRange : { 1, 2 })
            {
                Options options     = TypeParam::options();
                options.order       = 8;
                options.directRange = directRange;
                SCOPED_TRACE(named.name);
                expectMatchesEwald<Real>(system, options);
            }
        }
    }
}

TYPED_TEST(TinyBoxes, WithAnyNumberOfCellsMatchEwald)
{
    using Real        = typename TypeParam::Real;
    const double edge = 1.2;
    for (const int cells : { 1, 2, 3, 5 })
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            const System system = randomCharges(namedBox("cube", edge * edge * edge), 60, 37);
            Options options     = TypeParam::options();
            options.order       = 9;
            options.cellSize    = edge / cells * 0.9999;
            options.m2l         = engine;
            expectMatchesEwald<Real>(system, options);
        }
    }
}

template<class Config>
class Systems : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Systems, Configurations);

TYPED_TEST(Systems, WithoutParticlesHaveNoEnergy)
{
    using Real = typename TypeParam::Real;
    System nothing;
    nothing.box = namedBox("octahedron", 8.0);
    Solver<Real> solver(TypeParam::options());
    load(solver, nothing);
    const Evaluation result = evaluate(solver, nothing);
    EXPECT_EQ(result.energy, 0);
    EXPECT_EQ(largestDifference(result.virial, Matrix{}), 0);
    // Null pointers are as good as empty arrays.
    solver.setCharges(nullptr, 0);
    const Totals totals = solver.evaluate(nullptr, Box(nothing.box).rows, nullptr);
    EXPECT_EQ(totals.energy, 0);
}

TYPED_TEST(Systems, OfOneParticleMatchEwald)
{
    using Real = typename TypeParam::Real;
    for (const double charge : { 0.0, -2.0 })
    {
        for (const auto& named : allBoxes(2.0))
        {
            if (named.name != "cube" && named.name != "triclinic" && named.name != "long")
            {
                continue;
            }
            System one;
            one.name                   = "one particle";
            one.box                    = named.box;
            one.positions              = { { 0.3, 0.1, -0.2 } };
            one.charges                = { charge };
            Options options            = TypeParam::options();
            options.order              = 16;
            options.cellSize           = 0.4;
            const System system        = rounded<Real>(one);
            const Evaluation reference = ewald(system);
            Solver<Real> solver(options);
            load(solver, system);
            const Evaluation result = evaluate(solver, system);
            SCOPED_TRACE(named.name + ": " + describe(system, solver.setup()));
            // No force by symmetry, so the bound is relative to a neighbour's at one cell.
            const double scale = c_coulomb * charge * charge;
            EXPECT_LE(rootMeanSquare(result.forces),
                      1e-2 * scale * 1e-2 + roundingFloor<Real>() * scale / 0.16);
            const Bounds bounds = boundsFor<Real>(system, solver.setup(), reference);
            EXPECT_LE(std::abs(result.energy - reference.energy), bounds.energy);
            EXPECT_LE(largestDifference(result.virial, reference.virial), bounds.virial);
        }
    }
}

TYPED_TEST(Systems, WithoutChargesHaveNoForces)
{
    using Real    = typename TypeParam::Real;
    System system = randomCharges(namedBox("cube", 4.0), 100, 41);
    std::fill(system.charges.begin(), system.charges.end(), 0.0);
    Solver<Real> solver(TypeParam::options());
    load(solver, system);
    const Evaluation result = evaluate(solver, system);
    EXPECT_EQ(result.energy, 0);
    EXPECT_EQ(rootMeanSquare(result.forces), 0);
    EXPECT_EQ(largestDifference(result.virial, Matrix{}), 0);
}

//! Water inside a ball or a slab, the rest of the box empty.
System partlyFilled(const Matrix& box, double radius, bool slab, unsigned seed)
{
    Matrix small = unitMatrix();
    for (int k = 0; k < 3; ++k)
    {
        small[k][k] = slab && k < 2 ? box[k][k] : 2 * radius;
    }
    const System all = pseudoWater(small, seed);
    System system;
    system.name = slab ? "slab" : "droplet";
    system.box  = box;
    for (int i = 0; i < all.size(); i += 3)
    {
        double r2 = 0;
        for (int k = 0; k < 3; ++k)
        {
            r2 += std::pow(all.positions[i][k] - radius, 2);
        }
        if (slab || r2 < radius * radius)
        {
            const int first = system.size();
            for (int s = 0; s < 3; ++s)
            {
                system.positions.push_back(all.positions[i + s]);
                system.charges.push_back(all.charges[i + s]);
            }
            system.exclusions.emplace_back(first, first + 1);
            system.exclusions.emplace_back(first, first + 2);
            system.exclusions.emplace_back(first + 1, first + 2);
        }
    }
    return system;
}

TYPED_TEST(Systems, WithMuchVacuumMatchEwald)
{
    using Real           = typename TypeParam::Real;
    const System droplet = partlyFilled(namedBox("cube", 8 * 8 * 8), 0.9, false, 42);
    const System slab    = partlyFilled(namedBox("cube", 3 * 3 * 3), 0.3, true, 43);
    for (const System& exact : { droplet, slab })
    {
        const System system        = rounded<Real>(exact);
        const Evaluation reference = ewald(system);
        for (const M2lEngine engine : { M2lEngine::Hierarchy, M2lEngine::Fft, M2lEngine::Auto })
        {
            Options options = TypeParam::options();
            options.m2l     = engine;
            if (engine != M2lEngine::Auto)
            {
                options.cellSize = 0.5;
                options.order    = 10;
            }
            Solver<Real> solver(options);
            load(solver, system);
            const Evaluation result = evaluate(solver, system);
            Setup setup             = solver.setup();
            SCOPED_TRACE(describe(system, setup));
            // Density matters where the particles are: 100 atoms per nm^3.
            setup.leafCells = std::max(
                    1LL,
                    static_cast<long long>(system.size() / 100.0 / std::pow(setup.cellSize, 3)));
            expectClose(result, reference, boundsFor<Real>(system, setup, reference));
        }
    }
}

TYPED_TEST(Systems, CrowdedIntoOneCellMatchEwald)
{
    using Real        = typename TypeParam::Real;
    const double edge = 0.4;
    System system     = randomCharges(namedBox("cube", edge * edge * edge), 80, 44, 0, 0.05);
    for (auto& x : system.positions)
    {
        for (double& component : x)
        {
            component = component - edge * std::floor(component / edge) + 0.81;
        }
    }
    system.box       = namedBox("cube", 64.0);
    Options options  = TypeParam::options();
    options.cellSize = 0.8;
    options.order    = 10;
    expectMatchesEwald<Real>(system, options);
}

TYPED_TEST(Systems, ManyImagesAwayMatchEwald)
{
    using Real = typename TypeParam::Real;
    for (const std::string name : { "cube", "triclinic", "octahedron" })
    {
        System exact = randomCharges(namedBox(name, 4.0), 120, 45);
        std::mt19937 random(46);
        std::uniform_int_distribution<int> images(-20, 20);
        double farthest = 0;
        for (auto& x : exact.positions)
        {
            for (int v = 0; v < 3; ++v)
            {
                const int n = images(random);
                for (int k = 0; k < 3; ++k)
                {
                    x[k] += n * exact.box[v][k];
                }
            }
            farthest = std::max({ farthest, std::abs(x[0]), std::abs(x[1]), std::abs(x[2]) });
        }
        const System system        = rounded<Real>(exact);
        const Evaluation reference = ewald(system);
        Solver<Real> solver(TypeParam::options());
        load(solver, system);
        const Evaluation result = evaluate(solver, system);
        SCOPED_TRACE(name + ": " + describe(system, solver.setup()));
        Bounds bounds = boundsFor<Real>(system, solver.setup(), reference);
        // The positions themselves are known to half a unit in the last place only; to reduce
        // them costs no more than that.
        const double position = farthest * std::numeric_limits<Real>::epsilon();
        const double relative = 2 * position / 0.1;
        bounds.force += relative * rootMeanSquare(reference.forces);
        bounds.energy += relative * system.size() * c_coulomb * system.meanSquareCharge() / 0.2;
        bounds.virial += relative * system.size() * c_coulomb * system.meanSquareCharge() / 0.2;
        expectClose(result, reference, bounds);
    }
}

TYPED_TEST(Systems, WithParticlesOnCellBoundariesMatchEwald)
{
    using Real = typename TypeParam::Real;
    // 8^3 sites exactly on corners of 0.25 nm cells, the upper box faces included.
    System system;
    system.name = "particles on corners";
    system.box  = namedBox("cube", 8.0);
    for (int i = 0; i < 512; ++i)
    {
        // Sites at 0 and at 2 alternate: both are the same face of the box.
        const double top = (i / 64) % 2 == 0 ? 2.0 : 0.0;
        const int n[3]   = { i % 8, (i / 8) % 8, i / 64 };
        system.positions.push_back({ n[0] == 0 ? top : 0.25 * n[0],
                                     n[1] == 0 ? top : 0.25 * n[1],
                                     n[2] == 0 ? 2.0 : 0.25 * n[2] });
        system.charges.push_back(((i * 7919) % 13) - 6);
    }
    for (const int cells : { 4, 8 })
    {
        Options options     = TypeParam::options();
        options.cellSize    = 2.0 / cells;
        options.order       = 14;
        options.directRange = 2;
        // Every source sits in the worst place, a corner, and so does every target.
        const System input         = rounded<Real>(system);
        const Evaluation reference = ewald(input);
        Solver<Real> solver(options);
        load(solver, input);
        const Evaluation result = evaluate(solver, input);
        SCOPED_TRACE(describe(input, solver.setup()));
        Bounds bounds      = boundsFor<Real>(input, solver.setup(), reference);
        const double rho   = std::sqrt(0.75) / (solver.setup().directRange + 1 - std::sqrt(0.75));
        const double worst = (options.order + 1) * std::pow(rho, options.order);
        bounds.force       = std::max(bounds.force, worst * rootMeanSquare(reference.forces));
        bounds.energy      = std::max(bounds.energy, worst * std::abs(reference.energy));
        bounds.virial      = std::max(bounds.virial, worst * std::abs(reference.energy));
        expectClose(result, reference, bounds);
    }
}

template<class Config>
class ChangingBox : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(ChangingBox, Configurations);

TYPED_TEST(ChangingBox, KeepsAccuracy)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        System system   = pseudoWater(namedBox("triclinic", 8.0), 51);
        Options options = TypeParam::options();
        options.order   = 10; // so that truncation does not hide what the strain does
        options.m2l     = engine;
        Solver<Real> solver(options);
        load(solver, system);

        Matrix scaled = unitMatrix(), slight = unitMatrix(), small = unitMatrix(),
               big = unitMatrix();
        for (int k = 0; k < 3; ++k)
        {
            scaled[k][k] = 1.03;
        }
        slight[0][0] = 1.0005;
        slight[1][1] = 0.9995;
        small[2][2]  = 1.005;
        small[1][0]  = -0.005;
        big[0][0]    = 1.05;
        big[2][1]    = 0.04;
        struct Change
        {
            std::string name;
            Matrix deformation;
            double strain; //!< largest departure from a scaled box
        };
        double followed = 0; // since operators were certainly built for the present shape
        for (const Change& change : { Change{ "start", unitMatrix(), 0 },
                                      Change{ "scaled by 3 %", scaled, 0 },
                                      Change{ "0.05 %", slight, 0.001 },
                                      Change{ "0.5 %", small, 0.005 },
                                      Change{ "scaled again", scaled, 0 },
                                      Change{ "5 %", big, 0 },
                                      Change{ "0.05 % after that", slight, 0.001 } })
        {
            system                     = deformed(system, change.deformation);
            followed                   = change.name == "5 %" ? 0 : followed + change.strain;
            const System input         = rounded<Real>(system);
            const Evaluation reference = ewald(input);
            const Evaluation result    = evaluate(solver, input);
            SCOPED_TRACE(change.name + ": " + describe(input, solver.setup()));
            Bounds bounds = boundsFor<Real>(input, solver.setup(), reference);
            // Operators followed to first order: a term of degree j = l + l' has the remainder
            // 1/2 (j+1)(j+2) strain^2 in forces and energies and (j+1)(j+2) strain in the virial;
            // j = 2 (dipole-dipole) matters most. The far potential of a particle is about force
            // times cell edge, its sign random.
            const double rms = rootMeanSquare(reference.forces);
            const double far = 0.5 * std::sqrt(input.size()) * rms * solver.setup().cellSize;
            bounds.force += 6 * followed * followed * rms;
            bounds.energy += 6 * followed * followed * far;
            bounds.virial += 12 * followed * far;
            expectClose(result, reference, bounds);
        }
    }
}

TYPED_TEST(ChangingBox, MayFlip)
{
    using Real = typename TypeParam::Real;
    // Shear until the box vector flips by a whole lattice vector: the same lattice, another box.
    System system    = pseudoWater(namedBox("triclinic", 8.0), 52);
    system.box[1][0] = 0.5 * system.box[0][0];
    Options options  = TypeParam::options();
    options.order    = 8;
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation before = evaluate(solver, rounded<Real>(system));
    const System start      = rounded<Real>(system);
    system.box[1][0] -= system.box[0][0];
    const System input         = rounded<Real>(system);
    const Evaluation reference = ewald(input);
    const Evaluation after     = evaluate(solver, input);
    SCOPED_TRACE(describe(input, solver.setup()));
    const Bounds bounds = boundsFor<Real>(input, solver.setup(), reference);
    expectClose(after, reference, bounds);
    // Same lattice, same particles: the same answer, and back again.
    expectClose(before, reference, bounds);
    const Evaluation back = evaluate(solver, start);
    expectClose(back, reference, bounds);
}

TYPED_TEST(ChangingBox, ScalingNeedsNoNewOperators)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 53));
    Options options     = TypeParam::options();
    options.order       = 12;
    Solver<Real> solver(options);
    load(solver, system);
    evaluate(solver, system);
    const auto states = solver.state();
    Matrix scale      = unitMatrix();
    for (int k = 0; k < 3; ++k)
    {
        scale[k][k] = 1.01;
    }
    // Twice: what a scaled box gives must not depend on where the solver started.
    const System larger   = rounded<Real>(deformed(system, scale));
    const Evaluation kept = evaluate(solver, larger);
    EXPECT_EQ(solver.state().size(), states.size());
    const Evaluation reference = ewald(larger);
    expectClose(kept, reference, boundsFor<Real>(larger, solver.setup(), reference));
}

template<class Config>
class State : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(State, Configurations);

TYPED_TEST(State, RestoresBitwise)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Auto, M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        const System water   = rounded<Real>(pseudoWater(namedBox("dodecahedron_square", 8.0), 61));
        Options options      = TypeParam::options();
        options.m2l          = engine;
        options.reproducible = true;
        Solver<Real> first(options);
        EXPECT_TRUE(first.state().empty());
        load(first, water);
        evaluate(first, water);
        // The box has moved on since the operators were built.
        Matrix slight    = unitMatrix();
        slight[0][0]     = 1.0007;
        const System now = rounded<Real>(deformed(water, slight));
        evaluate(first, now);
        const std::vector<double> state = first.state();
        ASSERT_FALSE(state.empty());

        Solver<Real> second(options);
        second.restore(state);
        load(second, now);
        Matrix next       = unitMatrix();
        next[1][1]        = 1.0004;
        const System then = rounded<Real>(deformed(now, next));
        for (const System* system : { &now, &then })
        {
            const Evaluation a = evaluate(first, *system), b = evaluate(second, *system);
            EXPECT_EQ(a.forces, b.forces);
            EXPECT_EQ(a.energy, b.energy);
            EXPECT_EQ(a.virial, b.virial);
        }
        EXPECT_EQ(first.setup().cells, second.setup().cells);
        EXPECT_EQ(first.setup().order, second.setup().order);
        EXPECT_EQ(first.state(), second.state());
    }
}

template<class Config>
class Solvers : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Solvers, Configurations);

TYPED_TEST(Solvers, CanBeMovedAndReused)
{
    using Real           = typename TypeParam::Real;
    const System first   = rounded<Real>(randomCharges(namedBox("cube", 4.0), 100, 71));
    const System second  = rounded<Real>(randomCharges(namedBox("long", 5.0), 130, 72));
    Options options      = TypeParam::options();
    options.reproducible = true;
    Solver<Real> solver(options);
    load(solver, first);
    const Evaluation a = evaluate(solver, first);
    Solver<Real> moved(std::move(solver));
    EXPECT_EQ(evaluate(moved, first).forces, a.forces);
    // Another system in the same solver.
    load(moved, second);
    const Evaluation reference = ewald(second);
    expectClose(
            evaluate(moved, second), reference, boundsFor<Real>(second, moved.setup(), reference));
    Solver<Real> target(TypeParam::options());
    target = std::move(moved);
    EXPECT_EQ(evaluate(target, second).forces.size(), second.positions.size());
}

TYPED_TEST(Solvers, ReportSetupAndTimings)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("octahedron", 8.0), 73));
    Solver<Real> solver(TypeParam::options());
    load(solver, water);
    solver.prepare(flatPositions<Real>(water).data(), Box(water.box).rows);
    const Setup setup = solver.setup();
    EXPECT_GE(setup.order, 0);
    EXPECT_LE(setup.order, c_maxOrder);
    EXPECT_TRUE(setup.directRange == 1 || setup.directRange == 2);
    EXPECT_NE(setup.m2l, M2lEngine::Auto);
    EXPECT_EQ(setup.device, TypeParam::device);
    EXPECT_GE(setup.levels, 1);
    EXPECT_GE(setup.threads, 1);
    EXPECT_FALSE(setup.deviceName.empty());
    const long long cells = 1LL * setup.cells[0][0] * setup.cells[1][1] * setup.cells[2][2];
    EXPECT_EQ(setup.leafCells, cells);
    EXPECT_NEAR(setup.cellSize, std::cbrt(water.volume() / cells), 1e-6);
    EXPECT_EQ(setup.cells[0][1], 0);
    EXPECT_EQ(setup.cells[0][2], 0);
    EXPECT_EQ(setup.cells[1][2], 0);

    evaluate(solver, water);
    evaluate(solver, water);
    EXPECT_EQ(solver.setup().cells, setup.cells);
    bool sawPairs = false;
    for (const StageTime& stage : solver.timings())
    {
        EXPECT_FALSE(stage.name.empty());
        EXPECT_GE(stage.seconds, 0);
        sawPairs = sawPairs || (stage.name == "P2P" && stage.calls == 2);
    }
    EXPECT_TRUE(sawPairs);
    solver.resetTimings();
    for (const StageTime& stage : solver.timings())
    {
        EXPECT_EQ(stage.calls, 0) << stage.name;
        EXPECT_EQ(stage.seconds, 0) << stage.name;
    }
}

template<class Config>
class Tuning : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Tuning, Configurations);

TYPED_TEST(Tuning, TakesTheFastestSettingOnAGpu)
{
    using Real         = typename TypeParam::Real;
    const System water = rounded<Real>(pseudoWater(namedBox("rectangular", 20.0), 74));
    Options options    = TypeParam::options();
    Solver<Real> untuned(options);
    load(untuned, water);
    evaluate(untuned, water);
    EXPECT_TRUE(untuned.setup().timed.empty());

    options.tune = true;
    Solver<Real> solver(options);
    load(solver, water);
    const Evaluation result    = evaluate(solver, water);
    const Setup setup          = solver.setup();
    const Evaluation reference = ewald(water);
    expectClose(result, reference, boundsFor<Real>(water, setup, reference));
    for (const StageTime& stage : solver.timings())
    {
        EXPECT_EQ(stage.calls, 1) << stage.name << ": what was timed is no evaluation";
    }
    if (TypeParam::device == Device::Cpu)
    {
        EXPECT_TRUE(setup.timed.empty());
        EXPECT_EQ(setup.cells, untuned.setup().cells);
        return;
    }
    ASSERT_GT(setup.timed.size(), 1U);
    EXPECT_EQ(setup.timed.front().leafCells, untuned.setup().leafCells);
    EXPECT_EQ(setup.timed.front().order, untuned.setup().order);
    double taken = 0, fastest = 1e9;
    for (const TimedSetting& timed : setup.timed)
    {
        EXPECT_GT(timed.seconds, 0);
        EXPECT_LT(timed.seconds, 1);
        fastest = std::min(fastest, timed.seconds);
        if (timed.isInUse)
        {
            EXPECT_EQ(taken, 0) << "a second one in use";
            taken = timed.seconds;
            EXPECT_EQ(timed.order, setup.order);
            EXPECT_EQ(timed.directRange, setup.directRange);
            EXPECT_EQ(timed.levels, setup.levels);
            EXPECT_EQ(timed.m2l, setup.m2l);
            EXPECT_EQ(timed.leafCells, setup.leafCells);
        }
    }
    EXPECT_GT(taken, 0) << "the setting in use was timed";
    // a setting later in the list has to win by 3 %, against each that won before
    EXPECT_LE(taken, fastest / std::pow(0.97, setup.timed.size()));
    // a continued run uses what was chosen, and times nothing
    Solver<Real> second(options);
    second.restore(solver.state());
    load(second, water);
    evaluate(second, water);
    EXPECT_EQ(second.setup().cells, setup.cells);
    EXPECT_EQ(second.setup().m2l, setup.m2l);
    EXPECT_TRUE(second.setup().timed.empty());
}

} // namespace
} // namespace test
} // namespace farfield
