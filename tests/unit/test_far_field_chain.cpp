/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A charge and a dipole through every stage of the CPU's far field, each stage against the
 *         potential of the charges themselves.
 *
 *  With |a| and |b| the distances of source and target from the centres of their cells, D between
 *  the centres and rho = (|a| + |b|) / |D|, terms of degrees l, l' of the bipolar expansion are at
 *  most binomial(l + l', l) |a|^l |b|^l' / |D|^(l + l' + 1). Those that operators of order p omit
 *  have l + l' > p, so they add up to less than rho^(p + 1) / (|D| (1 - rho)): a bound without a
 *  factor to choose. Potentials are in e/nm.
 */
#include <cmath>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "far_field_chain.h"
#include "reference.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! What is omitted of a pair of charges in cells D apart, times |D|; infinite if it diverges.
double omitted(double rho, int order)
{
    return rho < 1 ? std::pow(rho, order + 1) / (1 - rho) : std::numeric_limits<double>::infinity();
}

constexpr int c_orders[] = { 3, 6, 11 };

template<class Real>
class FarFieldChain : public testing::Test
{
public:
    //! Calls check(chain) for all cases and orders.
    template<class Check>
    static void forAll(const Check& check)
    {
        for (const ChainCase& c : chainCases())
        {
            for (const int order : c_orders)
            {
                SCOPED_TRACE(std::string(c.name) + ", order " + std::to_string(order));
                check(Chain<Real>(c, placesOf(c), order, false));
            }
        }
    }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(FarFieldChain, Reals);

//! P2M on the leaves and M2M above: the potential of the multipoles at all places in far cells.
TYPED_TEST(FarFieldChain, MultipolesHaveThePotentialOfTheCharges)
{
    int compared = 0;
    this->forAll(
            [&](const Chain<TypeParam>& chain)
            {
                for (int level = 0; level < chain.setting.levels; ++level)
                {
                    const Int3 cell = chain.inCell(chain.sources()[0], level).cell;
                    const double* M = chain.of(chain.multipoles[level], level, cell);
                    for (const Place& target : chain.targets())
                    {
                        const InCell to = chain.inCell(target, level);
                        const Int3 D    = { to.cell[0] - cell[0],
                                            to.cell[1] - cell[1],
                                            to.cell[2] - cell[2] };
                        if (isNear(D, chain.setting.ws))
                        {
                            continue;
                        }
                        const Vec3 r = chain.grids[level].displacement(D) + to.r;
                        double size = 0, expected = 0, bound = 0;
                        const double found = chain.potential(M, level, r, false, &size);
                        for (const Place& source : chain.sources())
                        {
                            const Vec3 a = chain.inCell(source, level).r;
                            expected += source.charge / (r - a).norm();
                            // each end of a dipole is rounded on its own
                            size += std::abs(source.charge) / (r - a).norm();
                            bound += std::abs(source.charge) / r.norm()
                                     * omitted(a.norm() / r.norm(), chain.order);
                        }
                        EXPECT_NEAR(found, expected, bound + roundingFloor<TypeParam>() * size)
                                << "level " << level;
                        ++compared;
                    }
                }
            });
    EXPECT_GT(compared, 500);
}

//! The M2L of a tree: at a target the charges in the interaction list, and no others.
TYPED_TEST(FarFieldChain, ListsHaveThePotentialOfTheirCharges)
{
    int compared = 0;
    this->forAll(
            [&](const Chain<TypeParam>& chain)
            {
                for (int level = 1; level < chain.setting.levels; ++level)
                {
                    const Grid& grid  = chain.grids[level];
                    const int ws      = chain.setting.ws;
                    const Int3 source = chain.inCell(chain.sources()[0], level).cell;
                    for (const Place& target : chain.targets())
                    {
                        const InCell to = chain.inCell(target, level);
                        double handed = 0, all = 0, expected = 0, bound = 0;
                        const double found =
                                chain.potential(chain.of(chain.locals[level], level, to.cell),
                                                level,
                                                to.r,
                                                true,
                                                &all)
                                - chain.potential(chain.of(chain.handedDown[level], level, to.cell),
                                                  level,
                                                  to.r,
                                                  true,
                                                  &handed);
                        const int width = 4 * ws + 3;
                        for (int code = 0; code < width * width * width; ++code)
                        {
                            const Int3 D = { code % width - 2 * ws - 1,
                                             code / width % width - 2 * ws - 1,
                                             code / width / width - 2 * ws - 1 };
                            Int3 from, parents;
                            for (int k = 0; k < 3; ++k)
                            {
                                from[k]    = to.cell[k] - D[k];
                                parents[k] = floorDivide(to.cell[k], 2) - floorDivide(from[k], 2);
                            }
                            if (isNear(D, ws) || !isNear(parents, ws)
                                || grid.reduce(from) != source)
                            {
                                continue;
                            }
                            const Vec3 d = grid.displacement(D);
                            for (const Place& place : chain.sources())
                            {
                                const Vec3 a = chain.inCell(place, level).r;
                                expected += place.charge / (d + to.r - a).norm();
                                all += std::abs(place.charge) / (d + to.r - a).norm();
                                bound +=
                                        std::abs(place.charge) / d.norm()
                                        * omitted((a.norm() + to.r.norm()) / d.norm(), chain.order);
                            }
                            ++compared;
                        }
                        EXPECT_NEAR(found,
                                    expected,
                                    bound + roundingFloor<TypeParam>() * (all + handed))
                                << "level " << level;
                    }
                }
            });
    EXPECT_GT(compared, 200);
}

//! Potential at a place of unit charges at others and all their images, in conducting surroundings
//! with a neutralising background.
double ewaldPotential(const Mat3& box, const Vec3& d)
{
    System system;
    for (int k = 0; k < 9; ++k)
    {
        system.box[k / 3][k % 3] = box(k / 3, k % 3);
    }
    system.positions   = { { 0, 0, 0 } };
    system.charges     = { 1 };
    const double alone = ewald(system).energy;
    system.positions.push_back({ d[0], d[1], d[2] });
    system.charges.push_back(1);
    return (ewald(system).energy - 2 * alone) / c_coulomb;
}

//! What operators of the periodic M2L omit of a charge at all far images, and the rest beyond.
double omittedOfImages(const Grid& grid, int ws, const Int3& D0, double radius, int order)
{
    constexpr int c_reach = 9; // cells
    double sum = 0, nearest = std::numeric_limits<double>::max();
    for (int x = -c_reach; x <= c_reach; ++x)
    {
        for (int y = -c_reach; y <= c_reach; ++y)
        {
            for (int z = -c_reach; z <= c_reach; ++z)
            {
                const double d = grid.displacement({ x, y, z }).norm();
                if (std::max({ std::abs(x), std::abs(y), std::abs(z) }) == c_reach)
                {
                    nearest = std::min(nearest, d);
                }
                if (!isNear({ x, y, z }, ws) && grid.reduce({ x, y, z }) == D0)
                {
                    sum += omitted(radius / d, order) / d;
                }
            }
        }
    }
    // an integral over the rest, one image per box; twice for their uneven places
    const double volume = std::pow(grid.unit(), 3) * static_cast<double>(grid.count());
    return sum
           + 2 * 4 * M_PI / volume * std::pow(radius, order + 1) * std::pow(nearest, 1 - order)
                     / (order - 1) / (1 - radius / nearest);
}

//! The periodic M2L: what is left of the Ewald potential without near cells and what the background
//! adds within cells, see m2l_periodic.h.
TYPED_TEST(FarFieldChain, PeriodicM2lHasThePotentialOfAllImages)
{
    for (const ChainCase& c : chainCases())
    {
        const std::vector<Place> places = placesOf(c);
        // potentials do not depend on the order
        std::vector<std::vector<double>> potentials;
        const Chain<TypeParam> any(c, places, 3, false);
        for (const Place& source : any.sources())
        {
            potentials.emplace_back();
            for (const Place& target : any.targets())
            {
                potentials.back().push_back(
                        ewaldPotential(any.box, c.edges.transpose() * (target.t - source.t)));
            }
        }
        for (const int order : c_orders)
        {
            SCOPED_TRACE(std::string(c.name) + ", order " + std::to_string(order));
            const Chain<TypeParam> chain(c, places, order, false);
            const Grid& grid        = chain.grids[0];
            const double background = 2 * M_PI / 3 / chain.box.determinant();
            for (size_t t = 0; t < chain.targets().size(); ++t)
            {
                const InCell to = chain.inCell(chain.targets()[t], 0);
                double size = 0, expected = 0, bound = 0;
                const double found = chain.potential(
                        chain.of(chain.locals[0], 0, to.cell), 0, to.r, true, &size);
                for (size_t s = 0; s < chain.sources().size(); ++s)
                {
                    const InCell from = chain.inCell(chain.sources()[s], 0);
                    double potential  = potentials[s][t]
                                       - background * (from.r.squaredNorm() + to.r.squaredNorm());
                    const Int3 way = grid.reduce({ to.cell[0] - from.cell[0],
                                                   to.cell[1] - from.cell[1],
                                                   to.cell[2] - from.cell[2] });
                    for (const Int3& D : nearDisplacements(c.ws))
                    {
                        if (grid.reduce(D) == way)
                        {
                            potential -= 1 / (grid.displacement(D) + to.r - from.r).norm();
                        }
                    }
                    const double q = chain.sources()[s].charge;
                    expected += q * potential;
                    bound += std::abs(q)
                             * omittedOfImages(grid, c.ws, way, from.r.norm() + to.r.norm(), order);
                    size += std::abs(q) * (std::abs(potentials[s][t]) + 1 / grid.unit());
                }
                EXPECT_NEAR(found, expected, bound + roundingFloor<TypeParam>() * size);
            }
        }
    }
}

//! L2L: the same potential from another centre; what the background adds about the centre of the
//! parent becomes what it adds about that of the child.
TYPED_TEST(FarFieldChain, ChildrenInheritThePotential)
{
    this->forAll(
            [&](const Chain<TypeParam>& chain)
            {
                const double background =
                        2 * M_PI / 3 / chain.box.determinant() * chain.netCharge();
                for (int level = 1; level < chain.setting.levels; ++level)
                {
                    for (const Place& target : chain.targets())
                    {
                        const InCell child  = chain.inCell(target, level);
                        const InCell parent = chain.inCell(target, level - 1);
                        double size         = 0;
                        const double found  = chain.potential(
                                chain.of(chain.handedDown[level], level, child.cell),
                                level,
                                child.r,
                                true,
                                &size);
                        const double expected =
                                chain.potential(
                                        chain.of(chain.locals[level - 1], level - 1, parent.cell),
                                        level - 1,
                                        parent.r,
                                        true,
                                        &size)
                                + background * (parent.r.squaredNorm() - child.r.squaredNorm());
                        EXPECT_NEAR(found, expected, roundingFloor<TypeParam>() * size)
                                << "level " << level;
                    }
                }
            });
}

//! L2P: charges of which no two are near feel the gradient of the local expansion and the pull of
//! the background.
TYPED_TEST(FarFieldChain, ForcesAreTheGradientOfTheLocalExpansion)
{
    for (const ChainCase& c : chainCases())
    {
        std::vector<Place> apart;
        for (Place place : placesOf(c))
        {
            const auto isClose = [&](const Place& other)
            {
                Int3 D;
                for (int k = 0; k < 3; ++k)
                {
                    D[k] = static_cast<int>(std::floor(place.t[k]) - std::floor(other.t[k]));
                }
                const CellGrid grid = CellGrid::of(c.leafCells);
                for (const Int3& near : nearDisplacements(c.ws))
                {
                    Int3 image = { D[0] - near[0], D[1] - near[1], D[2] - near[2] };
                    grid.reduceDistant(image.data());
                    if (image == Int3{ 0, 0, 0 })
                    {
                        return true;
                    }
                }
                return false;
            };
            if (std::none_of(apart.begin(), apart.end(), isClose))
            {
                place.charge = 0.5 + 0.25 * static_cast<double>(apart.size() % 4);
                apart.push_back(place);
            }
        }
        ASSERT_GT(apart.size(), c.ws == 1 ? 3U : 1U) << c.name;
        for (const int order : { 1, 4, 9 })
        {
            for (const bool leastSquares : { false, true })
            {
                SCOPED_TRACE(std::string(c.name) + ", order " + std::to_string(order));
                const Chain<TypeParam> chain(c, apart, order, leastSquares);
                const int leaf    = c.levels - 1;
                const double unit = chain.grids[leaf].unit();
                const double pull = 4 * M_PI / 3 / chain.box.determinant() * chain.netCharge();
                const auto terms  = derivativeTerms(order);
                std::vector<double> u(coefficientCount(order));
                for (size_t i = 0; i < apart.size(); ++i)
                {
                    const InCell in = chain.inCell(apart[i], leaf);
                    const double* L = chain.of(chain.locals[leaf], leaf, in.cell);
                    solidHarmonics(order, in.r / unit, u.data());
                    Vec3 force  = -apart[i].charge * pull * in.r;
                    double size = force.norm();
                    for (const DerivativeTerm& term : terms)
                    {
                        const double part = apart[i].charge * L[term.from] * term.value * u[term.to]
                                            / (unit * unit);
                        force[term.axis] -= part;
                        size += std::abs(part);
                    }
                    for (int k = 0; k < 3; ++k)
                    {
                        EXPECT_NEAR(chain.forces[3 * i + k],
                                    force[k],
                                    roundingFloor<TypeParam>() * size)
                                << "particle " << i;
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
