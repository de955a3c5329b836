/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Groups of particles of which all pairs are excluded, as those of QM/MM: the pairs are
 *         many, and each is visited once.
 */
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cells/excluded_pairs.h"
#include "cpu/exclusions.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_edge = 3;

//! Charges at random places, of which all pairs are excluded, behind one that is in no pair.
struct Group
{
    int n;
    std::vector<double> x, q;

    explicit Group(int particles = 90) : n(particles)
    {
        std::mt19937 engine(15);
        std::uniform_real_distribution<double> uniform(0, 1);
        for (int i = 0; i < n; i++)
        {
            for (int k = 0; k < 3; k++)
            {
                x.push_back(c_edge * uniform(engine));
            }
            q.push_back(uniform(engine) - 0.5);
        }
    }
    size_t pairs() const { return static_cast<size_t>(n - 1) * (n - 2) / 2; }

    //! Lists pairs wherever isListed(i, j), and that \p times, in a random order.
    template<class IsListed>
    ExcludedPairs rows(int times, const IsListed& isListed) const
    {
        std::mt19937 engine(16);
        ExcludedPairs rows;
        rows.offsets = { 0 };
        for (int i = 0; i < n; i++)
        {
            const auto begin = rows.partners.size();
            for (int j = 1; j < n && i > 0; j++)
            {
                rows.partners.insert(rows.partners.end(), isListed(i, j) ? times : 0, j);
            }
            std::shuffle(rows.partners.begin() + begin, rows.partners.end(), engine);
            rows.offsets.push_back(static_cast<int>(rows.partners.size()));
        }
        return rows;
    }
    //! One way or the other, both ways, both ways and repeatedly with itself.
    std::vector<ExcludedPairs> listings() const
    {
        return { rows(1, [](int i, int j) { return i < j; }),
                 rows(1, [](int i, int j) { return i > j; }),
                 rows(1, [](int i, int j) { return (i < j) == ((i + j) % 2 == 0) && i != j; }),
                 rows(1, [](int i, int j) { return i != j; }),
                 rows(3, [](int /*i*/, int /*j*/) { return true; }) };
    }
};

struct Subtracted
{
    std::vector<double> forces;
    double energy    = 0;
    double virial[6] = { 0, 0, 0, 0, 0, 0 };
};

Subtracted subtract(const Group& group, Exclusions<double>* exclusions, int threads)
{
    Team team(threads);
    const Mat3 box = c_edge * Mat3::Identity();
    Subtracted result;
    result.forces.resize(group.x.size());
    exclusions->addSubtraction(
            box, group.x.data(), group.q.data(), 0, result.forces.data(), nullptr, &team);
    team.run();
    exclusions->addSums(&result.energy, result.virial);
    return result;
}

TEST(ExcludedGroups, HaveEachPairOnceHoweverItIsListed)
{
    const Group group;
    for (const ExcludedPairs& listed : group.listings())
    {
        Exclusions<double> exclusions;
        exclusions.set(listed.offsets.data(), listed.partners.data(), group.n, group.n, 3);
        EXPECT_EQ(exclusions.count(), group.pairs()) << listed.partners.size() << " entries";
    }
}

//! Sums over all pairs in the same order: their bits are the same.
TEST(ExcludedGroups, AreSubtractedAlikeHoweverTheyAreListed)
{
    const Group group;
    for (const int threads : { 1, 3 })
    {
        Exclusions<double> exclusions;
        Subtracted first;
        for (const ExcludedPairs& listed : group.listings())
        {
            exclusions.set(
                    listed.offsets.data(), listed.partners.data(), group.n, group.n, threads);
            const Subtracted result = subtract(group, &exclusions, threads);
            if (first.forces.empty())
            {
                first = result;
            }
            EXPECT_EQ(result.forces, first.forces);
            EXPECT_EQ(result.energy, first.energy);
            EXPECT_TRUE(std::equal(result.virial, result.virial + 6, first.virial));
        }
    }
}

TEST(ExcludedGroups, LoseTheEnergyOfEachPairOnce)
{
    const Group group;
    const ExcludedPairs listed = group.listings().front();
    double energy = 0, magnitude = 0;
    for (int i = 1; i < group.n; i++)
    {
        for (int j = i + 1; j < group.n; j++)
        {
            double r2 = 0;
            for (int k = 0; k < 3; k++)
            {
                double d = group.x[3 * i + k] - group.x[3 * j + k];
                d -= c_edge * std::round(d / c_edge);
                r2 += d * d;
            }
            energy -= group.q[i] * group.q[j] / std::sqrt(r2);
            magnitude += std::abs(group.q[i] * group.q[j]) / std::sqrt(r2);
        }
    }
    // each term is rounded a few times, and the sum at each of them
    const double rounding =
            magnitude * static_cast<double>(group.pairs()) * std::numeric_limits<double>::epsilon();
    for (const int threads : { 1, 3 })
    {
        Exclusions<double> exclusions;
        exclusions.set(listed.offsets.data(), listed.partners.data(), group.n, group.n, threads);
        const Subtracted result = subtract(group, &exclusions, threads);
        EXPECT_NEAR(result.energy, energy, rounding);
        EXPECT_TRUE(exclusions.close().empty());
        // nothing acts on the one that is in no pair, and all else cancels
        double sum[3] = { 0, 0, 0 }, largest = 0;
        for (size_t k = 0; k < result.forces.size(); k++)
        {
            sum[k % 3] += result.forces[k];
            largest = std::max(largest, std::abs(result.forces[k]));
        }
        EXPECT_EQ(result.forces[0], 0);
        EXPECT_NEAR(std::hypot(sum[0], sum[1], sum[2]),
                    0,
                    largest * group.n * group.n * std::numeric_limits<double>::epsilon());
    }
}

//! However a large molecule is cut: it is cut where there are several threads.
TEST(ExcludedGroups, OfAMoleculeDoNotDependOnThreadsButForRounding)
{
    const Group group(1000);
    const ExcludedPairs listed =
            group.rows(1, [](int i, int j) { return i != j && std::abs(i - j) <= 6; });
    const Mat3 box     = c_edge * Mat3::Identity();
    const double close = 0.5;
    Subtracted one;
    std::vector<std::pair<int, int>> closeOfOne;
    for (const int threads : { 1, 2, 3, 16 })
    {
        Team team(threads);
        Exclusions<double> exclusions;
        exclusions.set(listed.offsets.data(), listed.partners.data(), group.n, group.n, threads);
        EXPECT_EQ(exclusions.count(), listed.partners.size() / 2);
        Subtracted result;
        result.forces.assign(group.x.size(), 1e9); // is overwritten
        std::vector<double> potentials(group.q.size(), 1e9);
        exclusions.addSubtraction(box,
                                  group.x.data(),
                                  group.q.data(),
                                  close,
                                  result.forces.data(),
                                  potentials.data(),
                                  &team);
        team.run();
        exclusions.addSums(&result.energy, result.virial);
        double ofPotentials = 0;
        for (size_t i = 0; i < potentials.size(); i++)
        {
            ofPotentials += 0.5 * group.q[i] * potentials[i];
        }
        if (threads == 1)
        {
            one        = result;
            closeOfOne = exclusions.close();
            EXPECT_FALSE(closeOfOne.empty());
        }
        EXPECT_EQ(exclusions.close(), closeOfOne);
        const double rounding = static_cast<double>(exclusions.count())
                                * std::numeric_limits<double>::epsilon() / (close * close);
        EXPECT_NEAR(result.energy, one.energy, rounding);
        EXPECT_NEAR(ofPotentials, one.energy, rounding);
        for (int c = 0; c < 6; c++)
        {
            EXPECT_NEAR(result.virial[c], one.virial[c], rounding);
        }
        for (size_t k = 0; k < one.forces.size(); k++)
        {
            EXPECT_NEAR(result.forces[k], one.forces[k], rounding);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
