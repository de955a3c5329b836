/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench_systems.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>

namespace farfield
{
namespace bench
{
namespace
{

constexpr double c_pi            = 3.14159265358979323846;
constexpr double c_waterDensity  = 33.4; // molecules per nm^3
constexpr double c_oxygenApart   = 0.25; // nm
constexpr double c_bond          = 0.09572;
constexpr double c_angle         = 104.52 * c_pi / 180;
constexpr int c_droplets         = 27;
constexpr int c_dropletMolecules = 3710;

using Point = std::array<double, 3>;

//! Uniform numbers that are the same with every standard library.
class Random
{
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    //! In [low, high).
    double uniform(double low, double high)
    {
        return low + (high - low) * (engine_() / 4294967296.0);
    }
    //! In [0, count).
    int below(int count) { return static_cast<int>(uniform(0, count)); }
    //! Puts any of the elements to the first places.
    template<class T>
    void draw(std::vector<T>* elements, int places)
    {
        for (int size = static_cast<int>(elements->size()), k = 0; k < places; k++)
        {
            std::swap((*elements)[k], (*elements)[k + below(size - k)]);
        }
    }
    //! Uniform on the unit sphere.
    Point direction()
    {
        const double z   = uniform(-1, 1);
        const double phi = uniform(0, 2 * c_pi);
        const double r   = std::sqrt(std::max(0.0, 1 - z * z));
        return { r * std::cos(phi), r * std::sin(phi), z };
    }

private:
    std::mt19937 engine_;
};

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

/*! \brief Molecules on chosen sites of a cubic lattice.
 *
 *  \param[in] sites     sites per edge
 *  \param[in] spacing   of the lattice, nm
 *  \param[in] chosen    indices of sites, x fastest
 *  \param[in] periodic  whether the lattice continues beyond its edges */
std::vector<Molecule> placeOnLattice(int sites,
                                     double spacing,
                                     const std::vector<int>& chosen,
                                     bool periodic,
                                     Random* random)
{
    // Oxygens of neighbouring sites stay apart along the axis in which the sites differ.
    const double jitter    = std::max(0.0, (spacing - c_oxygenApart) / 2);
    const double edge      = sites * spacing;
    constexpr int c_tries  = 12;
    constexpr double c_far = 0.16 * 0.16; // nm^2
    std::vector<int> at(static_cast<size_t>(sites) * sites * sites, -1);
    std::vector<Molecule> molecules;
    molecules.reserve(chosen.size());
    for (int site : chosen)
    {
        const int c[3] = { site % sites, site / sites % sites, site / sites / sites };
        Point oxygen;
        for (int k = 0; k < 3; k++)
        {
            oxygen[k] = (c[k] + 0.5) * spacing + random->uniform(-jitter, jitter);
        }
        std::vector<Molecule> near;
        for (int d = 0; d < 27; d++)
        {
            int s[3];
            Point shift    = { 0, 0, 0 };
            bool outside   = false;
            const int D[3] = { d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1 };
            for (int k = 0; k < 3; k++)
            {
                s[k]     = (c[k] + D[k] + sites) % sites;
                shift[k] = (c[k] + D[k] - s[k]) * spacing;
                outside  = outside || (!periodic && shift[k] != 0);
            }
            const int other = at[(static_cast<size_t>(s[2]) * sites + s[1]) * sites + s[0]];
            if (!outside && other >= 0 && sites > 2)
            {
                near.push_back(molecules[other]);
                for (Point& atom : near.back())
                {
                    for (int k = 0; k < 3; k++)
                    {
                        atom[k] += shift[k];
                    }
                }
            }
        }
        Molecule best;
        double farthest = -1;
        for (int attempt = 0; attempt < c_tries && farthest < c_far; attempt++)
        {
            const Molecule candidate = orient(oxygen, random);
            double closest           = edge * edge;
            for (const Molecule& other : near)
            {
                for (const Point& a : candidate)
                {
                    for (const Point& b : other)
                    {
                        const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
                        closest = std::min(closest, x * x + y * y + z * z);
                    }
                }
            }
            if (closest > farthest)
            {
                farthest = closest;
                best     = candidate;
            }
        }
        at[site] = static_cast<int>(molecules.size());
        molecules.push_back(best);
    }
    return molecules;
}

double single(double value)
{
    return static_cast<double>(static_cast<float>(value));
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

void setCube(double edge, System* system)
{
    for (int k = 0; k < 3; k++)
    {
        system->box[k][k] = edge;
    }
    system->offsets.assign(1, 0);
}

template<class T>
void take(std::ifstream* file, T* to, size_t count)
{
    file->read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof(T)));
    if (!*file)
    {
        throw std::runtime_error("The reference file ends early.");
    }
}

} // namespace

double rms(const std::vector<double>& vectors, int particles)
{
    return std::sqrt(std::inner_product(vectors.begin(), vectors.end(), vectors.begin(), 0.0)
                     / std::max(particles, 1));
}

namespace
{

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
    setCube(std::cbrt(molecules / c_waterDensity), &system);
    system.name = name;
    std::vector<int> chosen(static_cast<size_t>(sites) * sites * sites);
    std::iota(chosen.begin(), chosen.end(), 0);
    // vacancies at random; neighbours in the list stay neighbours in space
    random.draw(&chosen, molecules);
    chosen.resize(molecules);
    std::sort(chosen.begin(), chosen.end());
    std::vector<Molecule> placed =
            placeOnLattice(sites, system.box[0][0] / sites, chosen, true, &random);
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
        const auto distance = [&](int site)
        {
            const int c[3] = { site % sites, site / sites % sites, site / sites / sites };
            double r2      = 0;
            for (int k = 0; k < 3; k++)
            {
                r2 += std::pow((c[k] + 0.5) * spacing - centre[k], 2);
            }
            return r2;
        };
        std::vector<int> chosen(static_cast<size_t>(sites) * sites * sites);
        std::iota(chosen.begin(), chosen.end(), 0);
        std::nth_element(chosen.begin(),
                         chosen.begin() + c_dropletMolecules,
                         chosen.end(),
                         [&](int a, int b) { return distance(a) < distance(b); });
        chosen.resize(c_dropletMolecules);
        std::sort(chosen.begin(), chosen.end());
        append(placeOnLattice(sites, spacing, chosen, false, &random),
               shift,
               c_threeSites,
               &random,
               &system);
    }
    return system;
}

System randomCharges(int n, unsigned seed)
{
    return randomCharges(n, std::cbrt(n / 100.0), seed);
}

System randomCharges(int n, double edge, unsigned seed)
{
    Random random(seed);
    System system;
    setCube(edge, &system);
    system.name = "random";
    for (int i = 0; i < n; i++)
    {
        for (int k = 0; k < 3; k++)
        {
            system.x.push_back(single(random.uniform(0, edge)));
        }
        system.q.push_back(i % 2 == 0 ? 0.5 : -0.5);
    }
    system.offsets.assign(n + 1, 0);
    return system;
}

Reference readReference(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
    {
        throw std::runtime_error("The reference file " + path + " cannot be opened.");
    }
    Reference r;
    std::int32_t n = 0;
    take(&file, &n, 1);
    if (n < 1)
    {
        throw std::runtime_error("The reference file " + path + " holds no particles.");
    }
    const size_t count = static_cast<size_t>(n);
    take(&file, &r.system.box[0][0], 9);
    r.system.x.resize(3 * count);
    take(&file, r.system.x.data(), 3 * count);
    r.system.q.resize(count);
    take(&file, r.system.q.data(), count);
    std::vector<double> total(3 * count);
    take(&file, total.data(), 3 * count);
    r.forces.resize(3 * count);
    take(&file, r.forces.data(), 3 * count);
    take(&file, &r.energy, 1);
    take(&file, &r.virial[0][0], 9);
    r.system.offsets.resize(count + 1);
    take(&file, r.system.offsets.data(), count + 1);
    if (r.system.offsets.back() < 0)
    {
        throw std::runtime_error("The reference file " + path + " has no valid exclusions.");
    }
    r.system.partners.resize(r.system.offsets.back());
    take(&file, r.system.partners.data(), r.system.partners.size());
    r.rmsTotalForce  = rms(total, n);
    const size_t cut = path.find_last_of('/') + 1; // npos + 1 is 0
    r.system.name    = path.substr(cut, path.find_last_of('.') - cut);
    return r;
}

Occupation occupation(const System& system,
                      const std::array<std::array<int, 3>, 3>& H,
                      int directRange)
{
    // Rows of G with H G = box by forward substitution; positions in units of G backwards.
    double G[3][3] = {};
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            G[i][j] = system.box[i][j];
            for (int k = 0; k < i; k++)
            {
                G[i][j] -= H[i][k] * G[k][j];
            }
            G[i][j] /= H[i][i];
        }
    }
    const auto index = [&](int* c)
    {
        for (int k = 2; k >= 0; k--)
        {
            const int q = static_cast<int>(std::floor(static_cast<double>(c[k]) / H[k][k]));
            for (int j = 0; j <= k; j++)
            {
                c[j] -= q * H[k][j];
            }
        }
        return (static_cast<size_t>(c[2]) * H[1][1] + c[1]) * H[0][0] + c[0];
    };
    std::vector<long long> count(static_cast<size_t>(H[0][0]) * H[1][1] * H[2][2], 0);
    for (int i = 0; i < system.size(); i++)
    {
        const double* r = system.x.data() + 3 * static_cast<size_t>(i);
        double u[3];
        int c[3];
        for (int k = 2; k >= 0; k--)
        {
            u[k] = r[k];
            for (int j = k + 1; j < 3; j++)
            {
                u[k] -= u[j] * G[j][k];
            }
            u[k] /= G[k][k];
            c[k] = static_cast<int>(std::floor(u[k]));
        }
        count[index(c)]++;
    }
    Occupation result;
    result.nearPairs = -system.size();
    const int width  = 2 * directRange + 1;
    for (size_t cell = 0; cell < count.size(); cell++)
    {
        const int x = static_cast<int>(cell % H[0][0]);
        const int y = static_cast<int>(cell / H[0][0] % H[1][1]);
        const int z = static_cast<int>(cell / H[0][0] / H[1][1]);
        for (int d = 0; d < width * width * width && count[cell] > 0; d++)
        {
            int c[3] = { x + d % width - directRange,
                         y + d / width % width - directRange,
                         z + d / width / width - directRange };
            result.nearPairs += count[cell] * count[index(c)];
        }
        result.cells += count[cell] > 0;
    }
    return result;
}

} // namespace bench
} // namespace farfield
