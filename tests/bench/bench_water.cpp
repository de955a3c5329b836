/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Oxygens are a fluid of hard spheres: a lattice would have its sites at the same places of many
// cells at once, where errors of expansions are those of crystals.
#include <iterator>
#include <numeric>

#include "bench_random.h"

namespace farfield
{
namespace bench
{
namespace
{

constexpr double c_waterDensity  = 33.4; // molecules per nm^3
constexpr double c_oxygenApart   = 0.25; // nm
constexpr double c_bond          = 0.09572;
constexpr double c_angle         = 104.52 * c_pi / 180;
constexpr int c_droplets         = 27;
constexpr int c_dropletMolecules = 3710;

using Molecule = std::array<Point, 3>;

//! The molecule with its oxygen at a place, in a random orientation.
Molecule orient(const Point& oxygen, Random* random)
{
    const Point axis = random->direction();
    // a second direction, made perpendicular to the first
    Point side    = random->direction();
    double length = 0;
    do
    {
        side             = random->direction();
        const double dot = axis[0] * side[0] + axis[1] * side[1] + axis[2] * side[2];
        for (int k = 0; k < 3; k++)
        {
            side[k] -= dot * axis[k];
        }
        length = std::sqrt(side[0] * side[0] + side[1] * side[1] + side[2] * side[2]);
    } while (length < 1e-3);
    Molecule m;
    for (int k = 0; k < 3; k++)
    {
        const double along  = c_bond * std::cos(c_angle / 2) * axis[k];
        const double across = c_bond * std::sin(c_angle / 2) * side[k] / length;
        m[0][k]             = oxygen[k];
        m[1][k]             = oxygen[k] + along + across;
        m[2][k]             = oxygen[k] + along - across;
    }
    return m;
}

/*! \brief Points in a cube, found by place: neighbours up to a cell away. */
class Neighbourhood
{
public:
    /*! \param[in] reach     nm: neighbours as near as this are found
     *  \param[in] periodic  whether the cube continues beyond its faces */
    Neighbourhood(double edge, double reach, bool periodic) :
        edge_(edge), cells_(std::max(1, static_cast<int>(edge / reach))), periodic_(periodic),
        members_(static_cast<size_t>(cells_) * cells_ * cells_)
    {
    }
    void add(int number, const Point& at) { members_[cellOf(at)].push_back(number); }
    void remove(int number, const Point& at)
    {
        auto& all = members_[cellOf(at)];
        all.erase(std::find(all.begin(), all.end(), number));
    }
    //! Calls visit(number, shift) for all that may be near, with the image that is.
    template<class Visit>
    void visitNear(const Point& at, const Visit& visit) const
    {
        int c[3];
        for (int k = 0; k < 3; k++)
        {
            c[k] = cellAlong(at[k]);
        }
        const int reach = cells_ > 2 ? 1 : 0; // else all are near
        for (int d = 0; d < 27; d++)
        {
            const int D[3] = { d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1 };
            int cell       = 0;
            bool outside   = false;
            Point shift    = { 0, 0, 0 };
            for (int k = 2; k >= 0; k--)
            {
                int own = c[k] + D[k];
                outside = outside || std::abs(D[k]) > reach
                          || (!periodic_ && (own < 0 || own >= cells_));
                shift[k] = own < 0 ? -edge_ : own >= cells_ ? edge_ : 0;
                own      = (own + cells_) % cells_;
                cell     = cell * cells_ + own;
            }
            for (size_t k = 0; !outside && k < members_[cell].size(); k++)
            {
                visit(members_[cell][k], shift);
            }
        }
    }

private:
    int cellAlong(double x) const
    {
        return std::clamp(static_cast<int>(x / edge_ * cells_), 0, cells_ - 1);
    }
    size_t cellOf(const Point& at) const
    {
        return (static_cast<size_t>(cellAlong(at[2])) * cells_ + cellAlong(at[1])) * cells_
               + cellAlong(at[0]);
    }

    double edge_;
    int cells_;
    bool periodic_;
    std::vector<std::vector<int>> members_;
};

double squaredDistance(const Point& a, const Point& b, const Point& shift)
{
    double sum = 0;
    for (int k = 0; k < 3; k++)
    {
        sum += std::pow(a[k] - b[k] - shift[k], 2);
    }
    return sum;
}

/*! \brief Moves hard spheres from their lattice until nothing is left of it.
 *  \param[in] isInside  whether a place is allowed; where it is periodic, all are */
template<class IsInside>
void melt(double edge,
          bool periodic,
          const IsInside& isInside,
          Random* random,
          std::vector<Point>* centres)
{
    constexpr int c_sweeps      = 40;
    constexpr double c_farthest = 0.12; // nm along each axis
    Neighbourhood near(edge, c_oxygenApart, periodic);
    const int count = static_cast<int>(centres->size());
    for (int i = 0; i < count; i++)
    {
        near.add(i, (*centres)[i]);
    }
    for (int step = 0; step < c_sweeps * count; step++)
    {
        const int i = step % count;
        Point to    = (*centres)[i];
        for (double& x : to)
        {
            x += random->uniform(-c_farthest, c_farthest);
            x -= periodic ? edge * std::floor(x / edge) : 0;
        }
        bool isFree = isInside(to);
        near.visitNear(to,
                       [&](int other, const Point& shift)
                       {
                           isFree = isFree
                                    && (other == i
                                        || squaredDistance(to, (*centres)[other], shift)
                                                   >= c_oxygenApart * c_oxygenApart);
                       });
        if (isFree)
        {
            near.remove(i, (*centres)[i]);
            (*centres)[i] = to;
            near.add(i, to);
        }
    }
}

//! Molecules in orientations that are random as far as atoms of different molecules allow.
std::vector<Molecule>
orientAll(const std::vector<Point>& oxygens, double edge, bool periodic, Random* random)
{
    constexpr int c_tries  = 12;
    constexpr double c_far = 0.16 * 0.16; // nm^2
    Neighbourhood near(edge, 2 * c_bond + 0.16, periodic);
    std::vector<Molecule> molecules;
    molecules.reserve(oxygens.size());
    for (const Point& oxygen : oxygens)
    {
        std::vector<Molecule> others;
        near.visitNear(oxygen,
                       [&](int other, const Point& shift)
                       {
                           others.push_back(molecules[other]);
                           for (Point& atom : others.back())
                           {
                               for (int k = 0; k < 3; k++)
                               {
                                   atom[k] += shift[k];
                               }
                           }
                       });
        Molecule best;
        double farthest = -1;
        for (int attempt = 0; attempt < c_tries && farthest < c_far; attempt++)
        {
            const Molecule candidate = orient(oxygen, random);
            double closest           = edge * edge;
            for (const Molecule& other : others)
            {
                for (const Point& a : candidate)
                {
                    for (const Point& b : other)
                    {
                        closest = std::min(closest, squaredDistance(a, b, { 0, 0, 0 }));
                    }
                }
            }
            if (closest > farthest)
            {
                farthest = closest;
                best     = candidate;
            }
        }
        near.add(static_cast<int>(molecules.size()), oxygen);
        molecules.push_back(best);
    }
    return molecules;
}

//! The chosen sites of a cubic lattice. \param[in] chosen  indices of sites, x fastest
std::vector<Point> latticeSites(int sites, double spacing, const std::vector<int>& chosen)
{
    std::vector<Point> result;
    for (int site : chosen)
    {
        result.push_back({ (site % sites + 0.5) * spacing,
                           (site / sites % sites + 0.5) * spacing,
                           (site / sites / sites + 0.5) * spacing });
    }
    return result;
}

//! A site of a model of water.
struct Site
{
    double charge;       //!< e
    int atom;            //!< from which it is displaced: oxygen, hydrogens
    double along    = 0; //!< the bisector of the hydrogens, nm
    double anywhere = 0; //!< in a random direction, nm
};
using Model = std::vector<Site>;

const Model c_threeSites = { { -0.834, 0 }, { 0.417, 1 }, { 0.417, 2 } };
const Model c_fourSites  = { { 0, 0 }, { 0.52, 1 }, { 0.52, 2 }, { -1.04, 0, 0.015 } };
const Model c_drudeSites = { { 1.71636, 0 },
                             { 0.55733, 1 },
                             { 0.55733, 2 },
                             { -1.11466, 0, 0.024034 },
                             { -1.71636, 0, 0, 0.01 } };

Point positionOf(const Site& site, const Molecule& m, Random* random)
{
    Point p = m[site.atom];
    if (site.anywhere > 0)
    {
        const Point direction = random->direction();
        for (int k = 0; k < 3; k++)
        {
            p[k] += site.anywhere * direction[k];
        }
    }
    for (int k = 0; k < 3; k++)
    {
        const double bisector =
                (m[1][k] + m[2][k] - 2 * m[0][k]) / (2 * c_bond * std::cos(c_angle / 2));
        p[k] += site.along * bisector;
    }
    return p;
}

void append(const std::vector<Molecule>& molecules,
            const Point& shift,
            const Model& model,
            Random* random,
            System* system)
{
    const int sites = static_cast<int>(model.size());
    for (const Molecule& m : molecules)
    {
        const int first = system->size();
        for (int i = 0; i < sites; i++)
        {
            const Point p = positionOf(model[i], m, random);
            for (int k = 0; k < 3; k++)
            {
                system->x.push_back(single(p[k] + shift[k]));
            }
            system->q.push_back(single(model[i].charge));
            for (int j = 0; j < sites; j++)
            {
                if (i != j)
                {
                    system->partners.push_back(first + j);
                }
            }
            system->offsets.push_back(static_cast<int>(system->partners.size()));
        }
    }
}

//! \param[in] shuffled  molecules in random order
System waterOf(const Model& model, const char* name, int atoms, bool shuffled, unsigned seed)
{
    Random random(seed);
    const int ofMolecule = static_cast<int>(model.size());
    const int molecules  = std::max(1, (atoms + ofMolecule / 2) / ofMolecule);
    int sites            = 1;
    while (static_cast<long long>(sites) * sites * sites < molecules)
    {
        sites++;
    }
    System system;
    const double edge = std::cbrt(molecules / c_waterDensity);
    setCube(edge, &system);
    system.name = name;
    std::vector<int> chosen(static_cast<size_t>(sites) * sites * sites);
    std::iota(chosen.begin(), chosen.end(), 0);
    // vacancies at random; neighbours in the list stay neighbours in space
    random.draw(&chosen, molecules);
    chosen.resize(molecules);
    std::sort(chosen.begin(), chosen.end());
    std::vector<Point> oxygens = latticeSites(sites, edge / sites, chosen);
    melt(
            edge, true, [](const Point&) { return true; }, &random, &oxygens);
    std::vector<Molecule> placed = orientAll(oxygens, edge, true, &random);
    if (shuffled)
    {
        random.draw(&placed, molecules);
    }
    append(placed, { 0, 0, 0 }, model, &random, &system);
    return system;
}

} // namespace

System waterBox(int atoms, unsigned seed)
{
    return waterOf(c_threeSites, "water", atoms, false, seed);
}

System shuffledWater(int atoms, unsigned seed)
{
    return waterOf(c_threeSites, "shuffled water", atoms, true, seed);
}

System fourSiteWater(int atoms, unsigned seed)
{
    return waterOf(c_fourSites, "four-site water", atoms, false, seed);
}

System drudeWater(int atoms, unsigned seed)
{
    return waterOf(c_drudeSites, "Drude water", atoms, false, seed);
}

System waterDroplets(double edge, unsigned seed)
{
    Random random(seed);
    System system;
    setCube(edge, &system);
    system.name          = "droplets";
    const double spacing = 1 / std::cbrt(c_waterDensity);
    const double radius  = std::cbrt(3 * c_dropletMolecules / (4 * c_pi * c_waterDensity));
    const int sites      = 2 * static_cast<int>(std::ceil(radius / spacing)) + 3;
    for (int d = 0; d < c_droplets; d++)
    {
        const int where[3] = { d % 3, d / 3 % 3, d / 9 };
        // the centre lies anywhere between the lattice sites
        Point centre, shift;
        for (int k = 0; k < 3; k++)
        {
            centre[k] = (0.5 * sites + random.uniform(-0.5, 0.5)) * spacing;
            shift[k]  = (where[k] + 0.5 + random.uniform(-0.1, 0.1)) * edge / 3 - centre[k];
        }
        std::vector<int> all(static_cast<size_t>(sites) * sites * sites);
        std::iota(all.begin(), all.end(), 0);
        const auto distance = [&](const Point& at) {
            return squaredDistance(at, centre, { 0, 0, 0 });
        };
        std::vector<Point> oxygens = latticeSites(sites, spacing, all);
        std::nth_element(oxygens.begin(),
                         oxygens.begin() + c_dropletMolecules - 1,
                         oxygens.end(),
                         [&](const Point& a, const Point& b) { return distance(a) < distance(b); });
        oxygens.resize(c_dropletMolecules);
        const double outermost = distance(oxygens.back());
        melt(
                sites * spacing,
                false,
                [&](const Point& at) { return distance(at) <= outermost; },
                &random,
                &oxygens);
        append(orientAll(oxygens, sites * spacing, false, &random),
               shift,
               c_threeSites,
               &random,
               &system);
    }
    return system;
}

} // namespace bench
} // namespace farfield
