/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the tests compare with: an Ewald sum in double precision, model systems, and a
 *         prediction of the truncation error of a multipole expansion.
 *
 *  Nothing here shares code with the library. Units: nm, e, kJ/mol, kJ/mol/nm.
 */
#ifndef FARFIELD_TESTS_REFERENCE_H
#define FARFIELD_TESTS_REFERENCE_H

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace farfield
{
namespace test
{

using Vector = std::array<double, 3>;
//! Three row vectors.
using Matrix = std::array<Vector, 3>;

//! Coulomb constant of GROMACS, kJ mol^-1 nm e^-2; the default of farfield::Options.
constexpr double c_coulomb = 138.935458;

//! Periodic point charges and the pairs that do not interact.
struct System
{
    std::string name;
    Matrix box = {};                             //!< box vectors as rows, nm
    std::vector<Vector> positions;               //!< nm, any image
    std::vector<double> charges;                 //!< e
    std::vector<std::pair<int, int>> exclusions; //!< each pair once, in either order

    int size() const { return static_cast<int>(charges.size()); }
    double volume() const;
    double netCharge() const;
    //! Mean of the squared charges; 0 without particles.
    double meanSquareCharge() const;
};

//! Energy, forces and virial Xi = -1/2 sum r (x) f.
struct Evaluation
{
    double energy = 0;
    std::vector<Vector> forces;
    Matrix virial = {};
};

//! Madelung constants referred to the shortest ion distance (OEIS A085469, A181152).
constexpr double c_madelungRockSalt        = 1.74756459463318219;
constexpr double c_madelungCaesiumChloride = 1.76267477307098839;

/*! \brief The Ewald sum with conducting surroundings and a neutralising background.
 *
 *  Real space, reciprocal space, self term, background term; of each excluded pair the
 *  interaction at the closest image is left out, which is finite for coinciding sites too.
 *  Both sums are carried to exp(-s^2), s = 6, so the relative error is rounding alone, 1e-13
 *  to 1e-14. Cost: N^2 pairs plus N times the wave vectors.
 *
 *  \param[in] splitting  Ewald parameter, 1/nm; 0 balances the two sums. The result does not
 *                        depend on it.
 */
Evaluation ewald(const System& system, double splitting = 0);

//! sqrt(sum |f - g|^2 / sum |g|^2); 0 when both vanish.
double relativeError(const std::vector<Vector>& f, const std::vector<Vector>& g);
//! sqrt(mean |f|^2); 0 without particles.
double rootMeanSquare(const std::vector<Vector>& f);
//! Largest |a_ij - b_ij|.
double largestDifference(const Matrix& a, const Matrix& b);

//! The 3x3 unit matrix plus the given entry, for strains.
Matrix unitMatrix();
//! Rows of \p a times \p b.
Matrix multiply(const Matrix& a, const Matrix& b);
//! Box rows and positions times \p deformation: x' = x F, fractional coordinates kept.
System deformed(const System& system, const Matrix& deformation);
//! Everything shifted by \p shift.
System shifted(const System& system, const Vector& shift);
//! Positions and charges rounded to what \p Real holds, so that both sides see the same input.
template<class Real>
System rounded(System system)
{
    // volatile: GCC 12 at -O3 makes vectors of these conversions and forgets some of them
    volatile Real narrow;
    for (auto& x : system.positions)
    {
        for (double& component : x)
        {
            narrow    = static_cast<Real>(component);
            component = static_cast<double>(narrow);
        }
    }
    for (double& q : system.charges)
    {
        narrow = static_cast<Real>(q);
        q      = static_cast<double>(narrow);
    }
    return system;
}

//! A box and what it is called.
struct NamedBox
{
    std::string name;
    Matrix box;
};

/*! \brief Every kind of box that GROMACS knows, each of the given volume, nm^3.
 *
 *  Cube; rectangular 1:1.3:0.8; rhombic dodecahedron on a square and on a hexagon; truncated
 *  octahedron; general triclinic; flat; long. */
std::vector<NamedBox> allBoxes(double volume);
//! The box of that name out of allBoxes().
Matrix namedBox(const std::string& name, double volume);

/*! \brief Charges at random places, uncorrelated, neutral unless \p netCharge is given.
 *
 *  Charges are uniform in [-1, 1] plus a constant for the net charge.
 *  \param[in] closest  no pair is closer than this, nm */
System
randomCharges(const Matrix& box, int n, unsigned seed, double netCharge = 0, double closest = 0.1);

/*! \brief Rigid three-site water (TIP3P: -0.834/0.417 e, 0.09572 nm, 104.52 degrees) in random
 *         orientation on a jittered grid at liquid density, intramolecular pairs excluded.
 *
 *  Molecules are whole and may stick out of the box. Atoms of different molecules are at least
 *  0.15 nm apart where an orientation for that could be found. */
System pseudoWater(const Matrix& box, unsigned seed);

//! Rock salt: \p n ^3 conventional cells with ion distance \p distance; charges +-1.
System rockSalt(int n, double distance);
//! Caesium chloride: \p n ^3 conventional cells with the given shortest ion distance; charges +-1.
System caesiumChloride(int n, double distance);

//! Mean square truncation error of a far field, per source and unit charges; see
//! predictTruncation().
struct Truncation
{
    //! RMS force error per unit charge on a particle, e/nm^2, when the charges have mean square 1.
    std::vector<double> force;
    //! RMS potential error of a particle, e/nm, when the charges have mean square 1.
    std::vector<double> potential;
    //! Mean potential error, e/nm, when all charges are 1: what a net charge adds.
    std::vector<double> meanPotential;
};

/*! \brief What truncation at orders 0 to \p maxOrder costs, for uncorrelated charges.
 *
 *  The bipolar expansion of 1/|D + b - a| (source at a and target at b relative to their cells'
 *  centres, D between the centres; Carlson and Rushbrooke, Proc. Camb. Phil. Soc. 46, 626 (1950),
 *  doi:10.1017/S0305004100026190), cut at l <= p and l' <= p, is compared with 1/|D + b - a| for
 *  random a and b in every far cell D up to ws + 3. Errors of different sources add in squares,
 *  those of images of one source as they are.
 *
 *  \param[in] cells        H: the box is H times the cell vectors
 *  \param[in] box          box vectors, nm
 *  \param[in] directRange  ws
 *  \param[in] perCell      mean number of particles in a cell
 */
Truncation predictTruncation(const std::array<std::array<int, 3>, 3>& cells,
                             const Matrix& box,
                             int directRange,
                             double perCell,
                             int maxOrder);

/*! \brief What truncation at an order does to this very system: energy and forces with every far
 *         pair of cells coupled by the truncated bipolar expansion, minus the exact ones.
 *
 *  Cells are counted from the origin. Pairs of cells up to ws + 4 apart are summed; the neglected
 *  rest falls like D^-(order + 1). The virial is not computed.
 */
Evaluation truncationError(const System& system,
                           const std::array<std::array<int, 3>, 3>& cells,
                           int directRange,
                           int order);

/*! \brief 1/|d + b - a| by the bipolar expansion cut at l, l' <= order, and its gradient in b.
 *  Exposed so that it can be tested itself. */
double bipolar(const Vector& d, const Vector& a, const Vector& b, int order, Vector* gradient);

} // namespace test
} // namespace farfield

#endif
