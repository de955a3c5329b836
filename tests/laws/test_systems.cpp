/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Unusual systems: tiny and nearly empty boxes, few particles, particles far away.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class TinyBoxes : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(TinyBoxes, Configurations);

TYPED_TEST(TinyBoxes, MatchEwald)
{
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const double edge : { 0.5, 1.0 })
    {
        for (const auto& named : allBoxes(edge * edge * edge))
        {
            const System system = randomCharges(named.box, 10, 36, 0.5, 0.05);
            ++number;
            for (const int directRange : { 1, 2 })
            {
                if (!isTurnOf<Real>(number + directRange))
                {
                    continue;
                }
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
    size_t number     = 0;
    for (const int cells : { 1, 2, 3, 5 })
    {
        ++number;
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            if (!isTurnOf<Real>(number + (engine == M2lEngine::Fft ? 0 : 1)))
            {
                continue;
            }
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
    using Real    = typename TypeParam::Real;
    size_t number = 0;
    for (const double charge : { 0.0, -2.0 })
    {
        for (const auto& named : allBoxes(2.0))
        {
            if ((named.name != "cube" && named.name != "triclinic" && named.name != "long")
                || !isTurnOf<Real>(number++))
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

} // namespace
} // namespace test
} // namespace farfield
