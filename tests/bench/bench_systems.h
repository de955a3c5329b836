/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Configurations for benchmarks, made from a seed or read from a reference file.
 */
#ifndef FARFIELD_BENCH_SYSTEMS_H
#define FARFIELD_BENCH_SYSTEMS_H

#include <array>
#include <string>
#include <vector>

#include "farfield/farfield.h"

namespace farfield
{
namespace bench
{

//! A periodic system. Positions and charges are numbers that single precision holds exactly.
struct System
{
    std::string name;
    double box[3][3] = {};
    std::vector<double> x; //!< [n][3] nm
    std::vector<double> q; //!< [n] e
    //! Excluded pairs as compressed rows, both directions.
    std::vector<int> offsets, partners;

    int size() const { return static_cast<int>(q.size()); }
    double volume() const { return box[0][0] * box[1][1] * box[2][2]; }
};

//! The same numbers in the precision of a solver.
template<class Real>
std::vector<Real> converted(const std::vector<double>& values)
{
    return std::vector<Real>(values.begin(), values.end());
}

//! Gives the solver the charges and exclusions of \p system.
template<class Real>
void load(Solver<Real>& solver, const System& system)
{
    solver.setCharges(converted<Real>(system.q).data(), system.size());
    solver.setExclusions(system.offsets.data(), system.partners.data(), system.size());
}

//! Root of the mean square over \p particles of vectors [particles][3].
double rms(const std::vector<double>& vectors, int particles);

//! What is known about a system from elsewhere, converged.
struct Reference
{
    System system;
    std::vector<double> forces; //!< [n][3] Coulomb forces, kJ/mol/nm
    double rmsTotalForce = 0;   //!< RMS over the particles of the force with all interactions
    double energy        = 0;   //!< kJ/mol
    double virial[3][3]  = {};  //!< kJ/mol
};

/*! \brief Rigid water in a cube at 33.4 molecules/nm^3.
 *
 *  TIP3P (0.09572 nm, 104.52 degrees, -0.834/0.417 e), its oxygens a fluid of hard spheres of
 *  0.25 nm, in orientations that are random as far as atoms of different molecules allow.
 *  \param[in] atoms  rounded to whole molecules */
System waterBox(int atoms, unsigned seed);

//! The same with its molecules in random order, as diffusion makes it.
System shuffledWater(int atoms, unsigned seed);

//! Water with an oxygen without charge, 0.015 nm from the site that has it (TIP4P).
System fourSiteWater(int atoms, unsigned seed);

//! Water with a charge on a spring, 0.01 nm from the oxygen, and a fourth site (SWM4-NDP).
System drudeWater(int atoms, unsigned seed);

//! 27 spheres of such water, 300 510 atoms in all, in a cube of the given edge (nm).
System waterDroplets(double edge, unsigned seed);

/*! \brief One connected molecule amid water.
 *
 *  Water whose innermost molecules are joined into a chain, oxygen to oxygen, along a path through
 *  space: charges and density of water, and the excluded pairs of a protein, 1-2, 1-3 and 1-4.
 *  \param[in] atoms     of all, rounded to whole molecules of water
 *  \param[in] fraction  of them in the chain */
System proteinInWater(int atoms, double fraction, unsigned seed);

//! Charges of random sign at random places, 100 per nm^3, without exclusions.
System randomCharges(int n, unsigned seed);

//! As randomCharges(), in a cube of a given edge (nm).
System randomCharges(int n, double edge, unsigned seed);

/*! \brief Reads a system with converged forces.
 *
 *  Little endian: int32 n; float64 box[9] (rows), x[n][3], q[n], total forces[n][3], Coulomb
 *  forces[n][3], Coulomb energy, its virial[9]; int32 offsets[n + 1], partners[offsets[n]].
 *  \throws std::runtime_error  the file cannot be read or is too short */
Reference readReference(const std::string& path);

//! What the particles fill.
struct Occupation
{
    long long cells = 0; //!< cells that hold particles
    //! Ordered pairs of different particles in near cells: what the near field has to compute.
    long long nearPairs = 0;
};

/*! \brief Counts occupied cells and near pairs.
 *  \param[in] cells  H, lower triangular: the box is H times the cell vectors */
Occupation occupation(const System& system,
                      const std::array<std::array<int, 3>, 3>& cells,
                      int directRange);

} // namespace bench
} // namespace farfield

#endif
