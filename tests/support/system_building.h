/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What systems are built from: molecules, places in a periodic box, a relaxation.
 *
 *  Units: nm, e. All random numbers come from the caller's generator.
 */
#ifndef FARFIELD_TESTS_SYSTEM_BUILDING_H
#define FARFIELD_TESTS_SYSTEM_BUILDING_H

#include <array>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "geometry.h"
#include "reference.h"

namespace farfield
{
namespace test
{

//! a + factor b.
Vector plus(const Vector& a, const Vector& b, double factor = 1);
//! Fractional coordinates in a lower triangular box.
Vector fractional(const Matrix& box, const Vector& x);
//! The image of a displacement with fractional coordinates in [-1/2, 1/2].
Vector nearImage(const Matrix& box, const Vector& d);

double uniform(std::mt19937& random, double low = 0, double high = 1);
//! True with probability \p p.
bool chance(std::mt19937& random, double p);
//! Any magnitude from \p low to \p high is as likely as another.
double logUniform(std::mt19937& random, double low, double high);
//! A number from 0 to \p n - 1.
int below(std::mt19937& random, int n);
Vector gaussian(std::mt19937& random, double width = 1);
//! A random unit vector.
Vector direction(std::mt19937& random);
//! A random rotation: rows of an orthonormal right-handed frame.
Matrix rotation(std::mt19937& random);

//! Sites in a periodic box, looked up by place.
class Places
{
public:
    Places(const Matrix& box, double closest) : box_(box), closest_(closest)
    {
        // A cell is at least as wide as the distance, measured across its faces; few are used.
        const double widths[3] = { across(0), across(1), across(2) };
        for (int k = 0; k < 3; ++k)
        {
            lengths_[k] = std::max(1LL, static_cast<long long>(widths[k] / closest));
        }
    }
    bool isFree(const Vector& x) const
    {
        const Vector s = fractional(box_, x);
        std::array<long long, 3> home;
        Vector inside;
        wrap(s, &home, &inside);
        for (int c = 0; c < 27; ++c)
        {
            std::array<long long, 3> cell, turns;
            const int offset[3] = { c / 9 - 1, c / 3 % 3 - 1, c % 3 - 1 };
            for (int k = 0; k < 3; ++k)
            {
                const long long i = home[k] + offset[k];
                turns[k]          = i < 0 ? -1 : i >= lengths_[k] ? 1 : 0;
                cell[k]           = i - turns[k] * lengths_[k];
            }
            const auto found = sites_.find(cell);
            if (found == sites_.end())
            {
                continue;
            }
            for (const Vector& other : found->second)
            {
                const Vector d = combine(box_,
                                         inside[0] - other[0] - turns[0],
                                         inside[1] - other[1] - turns[1],
                                         inside[2] - other[2] - turns[2]);
                if (dot(d, d) < closest_ * closest_)
                {
                    return false;
                }
            }
        }
        return true;
    }
    void add(const Vector& x)
    {
        std::array<long long, 3> home;
        Vector inside;
        wrap(fractional(box_, x), &home, &inside);
        sites_[home].push_back(inside);
    }

private:
    double across(int k) const
    {
        // 1 / |g_k|, the rows of the inverse of a lower triangular box
        Vector g = {};
        for (int j = 0; j < 3; ++j)
        {
            Vector e = {};
            e[j]     = 1;
            g[j]     = fractional(box_, e)[k];
        }
        return 1 / std::sqrt(dot(g, g));
    }
    void wrap(const Vector& s, std::array<long long, 3>* cell, Vector* inside) const
    {
        for (int k = 0; k < 3; ++k)
        {
            (*inside)[k] = s[k] - std::floor(s[k]);
            (*cell)[k] =
                    std::min(static_cast<long long>((*inside)[k] * lengths_[k]), lengths_[k] - 1);
        }
    }
    Matrix box_;
    double closest_;
    std::array<long long, 3> lengths_;
    std::map<std::array<long long, 3>, std::vector<Vector>> sites_;
};

//! A rectangular box.
Matrix boxOf(double x, double y, double z);

//! A rigid molecule: sites, charges; all pairs of its sites are excluded.
struct Molecule
{
    std::vector<Vector> sites;
    std::vector<double> charges;
};
//! TIP3P.
Molecule threeSiteWater();
//! TIP4P: the oxygen without charge, the charge on a site 0.015 nm from it.
Molecule fourSiteWater();
//! A single ion.
Molecule ion(double charge);

/*! \brief Fills a parallelepiped with molecules in random orientation on a jittered grid.
 *
 *  \param[in] molecules  what is placed, in turn
 *  \param[in] origin,region  the parallelepiped; may be smaller than the box of \p system
 *  \param[in] inside     whether a site of the grid is to be filled
 *  \param[in] density    molecules per nm^3
 *  \param[in,out] system  box and what is there already; sites keep 0.15 nm apart where an
 *                        orientation for that could be found
 */
void fill(System* system,
          const std::vector<Molecule>& molecules,
          const Vector& origin,
          const Matrix& region,
          const std::function<bool(const Vector&)>& inside,
          double density,
          std::mt19937& random);

/*! \brief Puts \p count molecules at random places, no site closer to another than \p closest. */
void scatter(System* system,
             const Molecule& molecule,
             int count,
             double closest,
             std::mt19937& random);

/*! \brief Metropolis moves of the molecules (what exclusions connect) at 300 K, or at
 *         \p temperature, K: gives liquids their structure.
 *
 *  Coulomb interaction with a cut-off and a repulsion of the sites; good enough for a
 *  structure, no force field. */
void relax(System* system, int sweeps, double temperature, std::mt19937& random);

//! A system without particles.
System emptySystem(const Matrix& box);
//! The sites of a system.
Places placesOf(const System& system, double closest);
//! Sites of a molecule at a place.
std::vector<Vector> placed(const Molecule& molecule,
                           const Vector& centre,
                           const Matrix& orientation);
//! Adds a molecule; all its pairs are excluded.
void append(System* system, const std::vector<Vector>& sites, const std::vector<double>& charges);
/*! \brief Adds a molecule in random orientation, where its sites are free.
 *
 *  \param[in] attempts  so many places and orientations are tried; the last is taken if none is
 *         free
 *  \param[in] centre    draws a place
 *  \param[in,out] places  the sites of \p system */
void insert(System* system,
            const Molecule& molecule,
            int attempts,
            const std::function<Vector()>& centre,
            Places* places,
            std::mt19937& random);
//! Adds a chain of charged beads 0.15 nm apart; first and second neighbours are excluded.
void addChain(System* system, int beads, const Vector& start, double charge, std::mt19937& random);
//! The molecules of a system, that is, what exclusions connect, as indices of particles.
std::vector<std::vector<int>> moleculesOf(const System& system);

} // namespace test
} // namespace farfield

#endif
