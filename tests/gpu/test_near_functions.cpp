/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Near functions of the CUDA backend against sums over pairs in extended precision.
 *
 *  What pairs with a width have is summed here. The rest is that of the backend without near functions.
 */
#include <set>
#include <utility>

#include "near/near_functions.h"
#include "near_systems.h"
#include "stage_pair.h"

namespace farfield
{
namespace test
{
namespace
{

//! Particles with widths, and how their near field is computed.
struct NearCase
{
    std::string box;
    int n;       //!< particles
    double edge; //!< wanted edge of a cell, nm
    int ws            = 1;
    bool reproducible = false;
};

//! The range of the functions, nm: of cells of 0.15 nm it reaches over three.
constexpr double c_range = 0.4;

const std::vector<NearCase> c_cases = {
    { "cube", 36, 0.5 },
    { "triclinic", 333, 0.4 },    // about a tile of sources and a part of another
    { "rectangular", 500, 0.25 }, // most cells hold one particle
    { "octahedron", 500, 0.2, 2 },
    { "triclinic", 700, 0.15 }, // the range is larger than near cells
    { "cube", 700, 0.15, 2, true },
    { "octahedron", 333, 0.4, 1, true },
    { "cube", 900, 1.0 }, // 110 particles in a cell
    { "dodecahedron_hexagon", 500, 0.15, 1 },
    { "cube", 200, 1.9 },  // one cell, which meets its own images
    { "long", 300, 0.15 }, // mostly empty cells
};

std::string describe(const NearCase& c)
{
    return describe(Case{ c.box, c.n, c.edge, 1, 0, c.ws })
           + (c.reproducible ? ", reproducible" : "");
}

//! What the stages give.
struct Result
{
    Evaluation sums;
    std::vector<double> potentials;
};

//! One backend, and what it has to compute.
template<class Real>
class Stages
{
public:
    Stages(const NearCase& c, const System& system) :
        backend_(makeGpuBackend<Real>(c_coulomb, omp_get_max_threads(), c.reproducible, -1))
    {
        const std::vector<Real> q(system.charges.begin(), system.charges.end());
        std::vector<int> offsets, partners;
        compressedRows(system, true, &offsets, &partners);
        backend_->setCharges(q.data(), system.size());
        backend_->setExclusions(offsets.data(), partners.data(), system.size());
        // at order 0 there are no far forces
        backend_->build(
                discretisationOf({ c.box, c.n, c.edge, 1, 0, c.ws }, system, M2lEngine::Hierarchy));
    }
    Backend<Real>& backend() { return *backend_; }

    //! \param[in] totals  whether energy, virial and potentials are wanted
    Result run(const System& system, bool totals)
    {
        const std::vector<Real> x = flatPositions<Real>(system);
        std::vector<Real> forces(x.size()), potentials(system.size());
        Request request;
        request.energy = request.virial = totals;
        request.gridOffset              = { 0.3, 0.6, 0.9 };
        backend_->setTask({ x.data(),
                            nullptr,
                            forces.data(),
                            totals ? potentials.data() : nullptr,
                            request });
        backend_->sort();
        backend_->exclusions();
        if (backend_->hasNearFunction())
        {
            backend_->nearFunction();
        }
        backend_->p2p();
        backend_->p2m();
        backend_->m2l(0);
        backend_->l2p();
        const Totals sums = backend_->collect();
        return { evaluationOf(sums, forces), { potentials.begin(), potentials.end() } };
    }

private:
    std::unique_ptr<GpuBackend<Real>> backend_;
};

//! The width of the law's pairs that has the range of all tests; none of the particles is wider.
template<class Real>
double widthFor(const Law& law)
{
    const Real one[] = { 1 };
    const NearPairs<Real> pairs(law.function, one, 1, 1e-16);
    return c_range / pairs.range;
}

//! What the potentials of particles have beyond those of 1/r in withNearLaw().
std::vector<double> potentialsOfPairs(const System& system,
                                      const Law& law,
                                      const std::vector<double>& widths)
{
    std::set<std::pair<int, int>> excluded;
    for (const auto& [i, j] : system.exclusions)
    {
        excluded.emplace(std::min(i, j), std::max(i, j));
    }
    std::vector<double> sums(system.size(), 0.0);
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = i + 1; j < system.size(); ++j)
        {
            const double b = law.width(widths[i], widths[j]);
            if (b == 0 || excluded.count({ i, j }) > 0)
            {
                continue;
            }
            const Vector d = nearestImage(system, 3, i, j);
            const long double r =
                    std::sqrt(static_cast<long double>(d[0]) * d[0] + d[1] * d[1] + d[2] * d[2]);
            // as withNearLaw() leaves pairs out
            const long double f = law.terms(r, b).value - (r < b ? 0 : 1 / r);
            sums[i] += static_cast<double>(c_coulomb * system.charges[j] * f);
            sums[j] += static_cast<double>(c_coulomb * system.charges[i] * f);
        }
    }
    return sums;
}

std::vector<double> flat(const std::vector<Vector>& vectors)
{
    std::vector<double> values;
    for (const Vector& v : vectors)
    {
        values.insert(values.end(), v.begin(), v.end());
    }
    return values;
}

template<class Real>
class GpuNearFunctions : public GpuStages<Real>
{
protected:
    //! Pairs that are excluded: at one place, near, far, twice, and of particles with many partners.
    static void exclude(System* system)
    {
        system->exclusions = { { 1, 2 }, { 4, 5 }, { 6, 30 }, { 12, 11 }, { 1, 35 }, { 12, 11 } };
        for (int j = 20; j < 34; ++j)
        {
            system->exclusions.emplace_back(3, j);
        }
    }
    //! Compares with the sums of pairs, with and without totals.
    static void expectSums(const NearCase& c, const Law& law, bool excludes)
    {
        std::vector<double> widths;
        System system = overlapping(namedBox(c.box, 8.0), widthFor<Real>(law), &widths, c.n);
        if (excludes)
        {
            exclude(&system);
        }
        system = rounded<Real>(system);
        widths = roundedWidths<Real>(widths);
        const std::vector<Real> given(widths.begin(), widths.end());
        Stages<Real> stages(c, system);
        stages.backend().setNearPairs(
                NearPairs<Real>(law.function, given.data(), system.size(), 1e-16));
        ASSERT_TRUE(stages.backend().hasNearFunction());

        std::vector<double> potentials;
        const auto coulomb = [&](const System& apart)
        {
            const Result result = Stages<Real>(c, apart).run(apart, true);
            potentials          = result.potentials;
            return result.sums;
        };
        const Evaluation expected = withNearLaw(system, law.terms, law.widthOf(widths), 3, coulomb);
        const std::vector<double> ofPairs = potentialsOfPairs(system, law, widths);
        for (int i = 0; i < system.size(); ++i)
        {
            potentials[i] += ofPairs[i];
        }

        const Result forcesAlone = stages.run(system, false);
        const Result all         = stages.run(system, true);
        for (const Result* result : { &forcesAlone, &all })
        {
            expectSame<Real>(flat(result->sums.forces),
                             flat(expected.forces),
                             system.size(),
                             result == &all ? "forces" : "forces alone");
        }
        expectSame<Real>(all.potentials, potentials, system.size(), "potentials");
        // of the size of the terms that are summed
        const double rounding = 4 * pairRounding<Real>(system);
        EXPECT_NEAR(all.sums.energy, expected.energy, rounding);
        EXPECT_LE(largestDifference(all.sums.virial, expected.virial), rounding);
        if (c.reproducible)
        {
            const Result again = stages.run(system, true);
            EXPECT_EQ(again.sums.forces, all.sums.forces);
            EXPECT_EQ(again.sums.energy, all.sums.energy);
            EXPECT_EQ(again.sums.virial, all.sums.virial);
        }
    }
};
TYPED_TEST_SUITE(GpuNearFunctions, Precisions);

//! Each case with two of the functions, of which one has excluded pairs.
TYPED_TEST(GpuNearFunctions, MatchSumsOfPairs)
{
    const std::vector<Law> all = laws();
    size_t next                = 0;
    for (const NearCase& c : chosen(c_cases))
    {
        for (const bool excludes : { false, true })
        {
            const Law& law = all[next++ % all.size()];
            SCOPED_TRACE(law.name + ", " + describe(c) + (excludes ? ", with excluded pairs" : ""));
            this->expectSums(c, law, excludes);
        }
        next += next % 8 == 0 ? 1 : 0; // so that each is met with and without excluded pairs
    }
}

//! Widths that are set, changed and given up between evaluations.
TYPED_TEST(GpuNearFunctions, FollowTheWidths)
{
    using Real       = TypeParam;
    const NearCase c = { "cube", 100, 0.5, 1, true };
    const Law law    = laws()[1];
    const Matrix box = namedBox(c.box, 8.0);
    std::vector<double> widths;
    overlapping(box, widthFor<Real>(law), &widths, c.n);
    const System system = rounded<Real>(randomCharges(box, c.n, 5));
    const auto pairsOf  = [&](double factor)
    {
        std::vector<Real> given;
        for (const double w : widths)
        {
            given.push_back(static_cast<Real>(factor * w));
        }
        return NearPairs<Real>(law.function, given.data(), system.size(), 1e-16);
    };
    Stages<Real> stages(c, system), fresh(c, system);
    const Result plain = stages.run(system, true);
    stages.backend().setNearPairs(pairsOf(0.5));
    const Result half = stages.run(system, true);
    EXPECT_NE(half.sums.forces, plain.sums.forces);
    stages.backend().setNearPairs(pairsOf(1));
    fresh.backend().setNearPairs(pairsOf(1));
    const Result whole = stages.run(system, true), expected = fresh.run(system, true);
    EXPECT_EQ(whole.sums.forces, expected.sums.forces);
    EXPECT_EQ(whole.sums.virial, expected.sums.virial);
    EXPECT_EQ(whole.potentials, expected.potentials);
    for (const auto& none : { NearPairs<Real>(), pairsOf(0) })
    {
        stages.backend().setNearPairs(none);
        EXPECT_FALSE(stages.backend().hasNearFunction());
        const Result again = stages.run(system, true);
        EXPECT_EQ(again.sums.forces, plain.sums.forces);
        EXPECT_EQ(again.sums.energy, plain.sums.energy);
        EXPECT_EQ(again.sums.virial, plain.sums.virial);
        EXPECT_EQ(again.potentials, plain.potentials);
    }
}

//! By a search over all cells; runs on the host.
TEST(GpuFartherCells, AreAllThatHoldPairsWithinTheRange)
{
    for (const std::string box : { "cube", "triclinic", "octahedron", "flat" })
    {
        for (const Boundary boundary : { Boundary::Periodic, Boundary::Open })
        {
            const Case c = { box, 1, 0.15, 1, 0 };
            System system;
            system.box             = namedBox(box, 8.0);
            const Discretisation d = discretisationOf(c, system, M2lEngine::Fft);
            const Grid grid        = d.leafGrid(d.referenceBox);
            for (const double range : { 0.0, 0.1, 0.3, 0.44 })
            {
                const FartherCells cells =
                        FartherCells::of(grid.plain(), grid.edges(), boundary, d.ws, range);
                std::set<std::vector<int>> listed;
                for (int number = 0; number < cells.count(); ++number)
                {
                    int D[3];
                    if (cells.displacement(number, D))
                    {
                        EXPECT_TRUE(cells.any());
                        EXPECT_TRUE(listed.insert({ D[0], D[1], D[2] }).second);
                    }
                }
                // points of a lattice in two cells, at their corners and between
                for (const Int3& D : nearDisplacements(7))
                {
                    bool isNear = true, isApart = false;
                    double closest = HUGE_VAL;
                    for (int k = 0; k < 3; ++k)
                    {
                        isNear  = isNear && std::abs(D[k]) <= d.ws;
                        isApart = isApart || std::abs(D[k]) > mostApart(grid.H()[k][k]);
                    }
                    for (int n = 0; n < 125; ++n)
                    {
                        const Vec3 between(n % 5 / 2.0 - 1, n / 5 % 5 / 2.0 - 1, n / 25 / 2.0 - 1);
                        const Vec3 cell(D[0], D[1], D[2]);
                        closest = std::min(closest,
                                           (grid.edges().transpose() * (cell + between)).norm());
                    }
                    if (isNear || (isApart && boundary == Boundary::Open))
                    {
                        EXPECT_EQ(listed.count({ D[0], D[1], D[2] }), 0U);
                    }
                    else if (closest < range)
                    {
                        EXPECT_EQ(listed.count({ D[0], D[1], D[2] }), 1U)
                                << box << ", range " << range << ", displacement " << D[0] << " "
                                << D[1] << " " << D[2];
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
