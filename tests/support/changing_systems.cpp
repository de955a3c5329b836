/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "changing_systems.h"

#include <cmath>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "system_building.h"

namespace farfield
{
namespace test
{
namespace
{

Sample kindNamed(const std::string& name)
{
    for (const SystemKind& kind : systemKinds())
    {
        if (kind.name == name)
        {
            return kind.make();
        }
    }
    return {};
}

//! 512 ions of a melt, or 216 molecules of water, and copies of them.
System copies(const std::string& name, const std::array<int, 3>& repeats)
{
    return supercell(kindNamed(name).system, repeats).system;
}

//! The same particles in a part of the box.
System crammed(const System& system, double part)
{
    System result = system;
    for (Vector& x : result.positions)
    {
        x = { part * x[0], part * x[1], part * x[2] };
    }
    return result;
}

//! The charges of some particles are zero. \param[in] kept  those that keep theirs: every so many
System discharged(const System& system, int kept)
{
    System result = system;
    for (int i = 0; i < result.size(); ++i)
    {
        result.charges[i] = i / 2 % kept == 0 ? result.charges[i] : 0; // pairs are neutral
    }
    return result;
}

System withOneFarAway(const System& system, int particle, double z)
{
    System result                 = system;
    result.positions[particle][2] = z;
    return result;
}

//! A drop or film of n ions, without images along some axes.
System ionsInOrder(int n, double edge)
{
    std::mt19937 random(2001);
    System system    = emptySystem(boxOf(edge, edge, edge));
    const int across = static_cast<int>(std::lround(edge / 0.3));
    for (int k = 0; k < n; ++k)
    {
        const int a = k % across, b = k / across % across, c = k / across / across;
        system.positions.push_back(plus(
                { (a + 0.5) * edge / across, (b + 0.5) * edge / across, (c + 0.5) * edge / across },
                gaussian(random, 0.02)));
        system.charges.push_back((a + b + c) % 2 == 0 ? 1 : -1);
    }
    return system;
}

} // namespace

System facesAndTetrahedra(int cells, double edge, bool areAllFilled)
{
    System system  = emptySystem(boxOf(cells * edge, cells * edge, cells * edge));
    const auto add = [&](double x, double y, double z, double q)
    {
        for (int k = 0; k < cells * cells * cells; ++k)
        {
            // off the faces of the box
            system.positions.push_back({ edge * (k % cells + x) + 0.0371,
                                         edge * (k / cells % cells + y) + 0.0529,
                                         edge * (k / cells / cells + z) + 0.0813 });
            system.charges.push_back(q);
        }
    };
    const double faces[4][3] = { { 0, 0, 0 }, { 0.5, 0.5, 0 }, { 0.5, 0, 0.5 }, { 0, 0.5, 0.5 } };
    for (const auto& f : faces)
    {
        add(f[0], f[1], f[2], areAllFilled ? 2 : 1);
        add(f[0] + 0.25, f[1] + 0.25, f[2] + 0.25, -1);
        if (areAllFilled)
        {
            add(f[0] + 0.75, f[1] + 0.75, f[2] + 0.75, -1);
        }
    }
    return system;
}

System withContacts(const System& system, int pairs, double distance, std::mt19937& random)
{
    System result = system;
    std::set<std::pair<int, int>> excluded;
    for (const auto& [i, j] : system.exclusions)
    {
        excluded.insert({ std::min(i, j), std::max(i, j) });
    }
    std::vector<int> charged;
    for (int i = 0; i < system.size(); ++i)
    {
        if (system.charges[i] != 0)
        {
            charged.push_back(i);
        }
    }
    const int stride = std::max<int>(2, static_cast<int>(charged.size()) / std::max(1, pairs));
    for (size_t k = 0; k + 1 < charged.size() && pairs > 0; k += stride)
    {
        // the first that follows and is not excluded
        size_t other = k + 1;
        while (other < charged.size() && excluded.count({ charged[k], charged[other] }) > 0)
        {
            ++other;
        }
        if (other < std::min(charged.size(), k + stride))
        {
            result.positions[charged[other]] =
                    plus(result.positions[charged[k]], direction(random), distance);
            --pairs;
        }
    }
    return result;
}

System displaced(const System& system, double width, std::mt19937& random)
{
    System result = system;
    for (Vector& x : result.positions)
    {
        x = plus(x, gaussian(random, width));
    }
    return result;
}

System scattered(const System& system, std::mt19937& random)
{
    System result = system;
    for (Vector& x : result.positions)
    {
        x = combine(system.box, uniform(random), uniform(random), uniform(random));
    }
    return result;
}

SettlingIons settlingIons()
{
    std::mt19937 random(7);
    const System settled = displaced(rockSalt(4, 0.25), 0.005, random);
    return { scattered(settled, random), settled };
}

JudgedForces judgedForces(const System& system,
                          const std::vector<double>& forces,
                          const std::vector<Vector>& exact,
                          double leastPart)
{
    //! Forces of so many medians are those of contacts.
    constexpr double c_contact = 10;
    //! Beside contacts, forces that cancel better than to this part of a pair's are no scale.
    constexpr double c_settled = 0.3;
    const size_t n             = exact.size();
    JudgedForces result;
    std::vector<double> sizes, charged;
    for (size_t i = 0; i < n; ++i)
    {
        sizes.push_back(std::sqrt(dot(exact[i], exact[i])));
        if (system.charges[i] != 0)
        {
            charged.push_back(sizes.back());
        }
    }
    if (charged.empty())
    {
        return result;
    }
    std::nth_element(charged.begin(), charged.begin() + charged.size() / 2, charged.end());
    // where forces cancel, rounding is nothing to be judged by
    std::vector<Vector> ofNone;
    const double least = forceScale(system, ofNone, leastPart);
    const double bound = c_contact * std::max(charged[charged.size() / 2], least);
    double squares = 0, errors = 0, ofContacts = 0, all = 0;
    for (size_t i = 0; i < n; ++i)
    {
        double square = 0;
        for (int k = 0; k < 3; ++k)
        {
            square += std::pow(forces[3 * i + k] - exact[i][k], 2);
        }
        all += square;
        result.strongest = std::max(result.strongest, sizes[i]);
        if (sizes[i] > bound)
        {
            ++result.inContact;
            ofContacts += square / (sizes[i] * sizes[i]);
            continue;
        }
        squares += sizes[i] * sizes[i];
        errors += square;
    }
    result.ofAll = std::sqrt(all / static_cast<double>(n)) / forceScale(system, exact, leastPart);
    const double others = std::max<double>(1, static_cast<double>(n) - result.inContact);
    const double part   = result.inContact > 0 ? std::max(leastPart, c_settled) : leastPart;
    result.scale        = std::max(std::sqrt(squares / others), forceScale(system, ofNone, part));
    result.error        = std::sqrt(errors / others) / result.scale;
    result.contacts     = std::sqrt(ofContacts / std::max(1, result.inContact));
    return result;
}

namespace
{

//! The molten salt of the systems, of which there are so many copies along each axis.
struct Melt
{
    std::string size; //!< for names
    std::array<int, 3> repeats;

    System settled() const { return copies("molten salt", repeats); }
};

//! So many pairs of a melt at a distance, and the melt without them.
ChangingKind meltWithContacts(const Melt& melt, int pairs, double distance)
{
    std::ostringstream name;
    name << "contacts: " << pairs << " of " << melt.size << ", " << distance << " nm";
    return {
        name.str(),
        Images::Everywhere,
        [=]
        {
            std::mt19937 random(2002);
            const System settled = melt.settled();
            return std::vector<System>{ withContacts(settled, pairs, distance, random), settled };
        }
    };
}

//! Starts from which a melt settles: contacts, anywhere, all in a part of the box.
std::vector<ChangingKind> badStarts(const Melt& melt,
                                    const std::vector<std::pair<int, double>>& contacts)
{
    std::vector<ChangingKind> kinds;
    for (const auto& [pairs, distance] : contacts)
    {
        kinds.push_back(meltWithContacts(melt, pairs, distance));
    }
    kinds.push_back({ "random start of " + melt.size,
                      Images::Everywhere,
                      [melt]
                      {
                          std::mt19937 random(2003);
                          const System settled = melt.settled();
                          return std::vector<System>{ scattered(settled, random), settled };
                      } });
    kinds.push_back({ "crammed start of " + melt.size,
                      Images::Everywhere,
                      [melt]
                      {
                          const System settled = melt.settled();
                          return std::vector<System>{ crammed(settled, 0.5), settled };
                      } });
    return kinds;
}

} // namespace

std::vector<ChangingKind> largeKinds()
{
    std::vector<ChangingKind> kinds;
    for (const Melt& melt : { Melt{ "65k", { 4, 4, 8 } }, Melt{ "197k", { 8, 8, 6 } } })
    {
        const std::vector<ChangingKind> own = badStarts(
                melt, { { 1, 1e-5 }, { 3, 1e-3 }, { 40, 0.01 }, { 2000, 0.001 }, { 2000, 0.1 } });
        kinds.insert(kinds.end(), own.begin(), own.end());
    }
    return kinds;
}

// Longer than other functions: a table, one entry a kind.
std::vector<ChangingKind> changingKinds()
{
    std::vector<ChangingKind> kinds;
    const auto add = [&](const std::string& name,
                         const std::function<std::vector<System>()>& make,
                         Images images = Images::Everywhere) {
        kinds.push_back({ name, images, make });
    };
    const Melt small{ "4k", { 2, 2, 2 } };
    const auto melt  = [small] { return small.settled(); };
    const auto water = [] { return copies("water", { 2, 2, 2 }); };
    for (const Melt& size : { small, Melt{ "25k", { 4, 4, 3 } } })
    {
        const std::vector<ChangingKind> own =
                badStarts(size, { { 1, 1e-5 }, { 3, 1e-3 }, { 40, 0.01 }, { 200, 0.1 } });
        kinds.insert(kinds.end(), own.begin(), own.end());
    }
    add("contacts: 100 of 5k in water, 0.001 nm",
        [water]
        {
            std::mt19937 random(2004);
            const System settled = water();
            return std::vector<System>{ withContacts(settled, 100, 0.001, random), settled };
        });
    add("contacts later: 20 of 4k, 0.01 nm",
        [melt]
        {
            std::mt19937 random(2005);
            const System settled = melt();
            return std::vector<System>{ settled, withContacts(settled, 20, 0.01, random), settled };
        });
    for (const int kept : { 2, 20, 400 })
    {
        add("charges become zero, but one in " + std::to_string(kept),
            [melt, kept]
            {
                const System all = melt();
                return std::vector<System>{ all, discharged(all, kept), all };
            });
    }
    for (const Images images : { Images::InThePlane, Images::Nowhere })
    {
        const std::string what = images == Images::InThePlane ? "slab" : "cluster";
        for (const double z : { 100.0, 12000.0 })
        {
            add(
                    "far particle: " + what + ", " + std::to_string(static_cast<int>(z)) + " nm",
                    [z]
                    {
                        const System all = ionsInOrder(600, 3);
                        return std::vector<System>{ withOneFarAway(all, 300, z),
                                                    all,
                                                    withOneFarAway(all, 299, -z) };
                    },
                    images);
        }
    }
    for (const int n : { 2, 3, 6 })
    {
        add("crystal: rock salt, " + std::to_string(8 * n * n * n),
            [n] { return std::vector<System>{ rockSalt(n, 0.282) }; });
        add("crystal: caesium chloride, " + std::to_string(16 * n * n * n),
            [n] { return std::vector<System>{ caesiumChloride(2 * n, 0.357) }; });
        add("crystal: zinc blende, " + std::to_string(8 * n * n * n),
            [n] { return std::vector<System>{ facesAndTetrahedra(n, 0.541, false) }; });
        add("crystal: fluorite, " + std::to_string(12 * n * n * n),
            [n] { return std::vector<System>{ facesAndTetrahedra(n, 0.546, true) }; });
    }
    for (const std::string& name : { std::string("vapour, 12 nm"),
                                     std::string("200 ions in 50 nm"),
                                     std::string("10 ions in 1000 nm"),
                                     std::string("two waters in 100 nm") })
    {
        add("dilute: " + name, [name] { return std::vector<System>{ kindNamed(name).system }; });
    }
    return kinds;
}

} // namespace test
} // namespace farfield
