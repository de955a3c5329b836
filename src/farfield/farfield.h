/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The public interface of farfield.
 *
 *  The options of a Solver stand in options.h, what it computes besides forces in derivatives.h, what it tells of
 *  itself in setup.h, errors in error.h, and evaluations on arrays in device memory in farfield_cuda.h.
 *
 *  Units are those of GROMACS: nm, e, kJ/mol, kJ/mol/nm. Unless Options::boundary says otherwise
 *  the boundary is periodic in three dimensions with conducting ("tin-foil") surroundings, as in
 *  PME, and a net charge is neutralised by a uniform background that enters energy, forces and
 *  virial. Without images along an axis there is neither. The forces of a slab with a net charge
 *  are those of the charged film. Its energy takes the potential of a charged plane as -2 pi |z|
 *  times the density of its charge, which is zero in the plane.
 */
#ifndef FARFIELD_FARFIELD_H
#define FARFIELD_FARFIELD_H

#include <array>
#include <memory>
#include <vector>

#include "farfield/derivatives.h"
#include "farfield/error.h"
#include "farfield/options.h"
#include "farfield/setup.h"

namespace farfield
{

//! Version of the library, "major.minor.patch".
FARFIELD_EXPORT const char* version();

/*! \brief As many threads as can work at once in this process.
 *
 *  No more than the processors that it may run on, and than the quotas of its control groups allow,
 *  as those of containers.
 *  \param[in] threads  wanted; 0: what the OpenMP runtime offers
 *  \returns at least 1 */
FARFIELD_EXPORT int usableThreads(int threads = 0);

//! What an evaluation returns besides the forces.
struct Totals
{
    //! Coulomb energy, kJ/mol.
    double energy = 0;
    //! Virial Xi = -1/2 sum r (x) f, kJ/mol; symmetric, tr Xi = -energy/2 of charges. Zero if not asked for.
    double virial[3][3] = { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } };
    //! dV/dlambda, kJ/mol, see Solver::setPerturbedCharges(). Zero if not asked for.
    double dEnergyDLambda = 0;
};

//! What evaluate() has to compute besides the forces.
struct Request
{
    bool energy = true; //!< the energy; when false, Totals::energy is 0
    bool virial = true; //!< the virial; implies the energy
    /*! \brief Position of the grid of cells relative to the origin of the box, in cells, 0 to 1
     *         each.
     *
     *  Any value gives the same result within the error, which is noise of the position of the
     *  grid. A caller that integrates motion takes another one each step: the error then has no
     *  memory from step to step, and the energy of a microcanonical run does not drift. */
    std::array<double, 3> gridOffset = { 0, 0, 0 };
    /*! \brief If not negative, the number of a step that decides on gridOffset.
     *
     *  Consecutive steps get positions far apart that cover the cell evenly (a Kronecker sequence).
     *  When an evaluation is captured into a CUDA graph, each replay counts one step on. */
    long long step     = -1;
    bool replaceForces = false; //!< write the forces instead of adding them
    /*! \brief Positions may be anywhere, whatever those of the last evaluation were.
     *
     *  Only for evaluations on arrays in device memory whose steps follow one another: these go on
     *  without a look at the particles where they could not have moved by a tenth of a cell. Others
     *  look, and wait for the device. */
    bool mayHaveJumped = false;
    /*! \brief Coupling parameter of Solver::setPerturbedCharges(), any finite number; another one at every
     *         call costs as much as setCharges().
     *
     *  Beyond 0 to 1, as GROMACS allows without a soft core, energies of the two states are extrapolated,
     *  and the errors of their forces are, too. */
    double lambda       = 0;
    bool dEnergyDLambda = false; //!< dV/dlambda; implies the energy
};

//! A function f(r) of the distance of two particles, with a width b of the pair, x = r/b.
enum class PairFunction
{
    //! 1/r
    Coulomb,
    //! erf(x)/r, of two Gaussian charges: Kiss, Sega and Baranyai, J. Chem. Theory Comput. 10, 5513
    //! (2014), doi:10.1021/ct5009069
    Gaussian,
    //! (1 - (1 + x/2) exp(-x))/r, damping: Thole, Chem. Phys. 59, 341 (1981),
    //! doi:10.1016/0301-0104(81)85176-2
    Thole,
    //! (b^6 + r^6)^(-1/6): Beutler et al., Chem. Phys. Lett. 222, 529 (1994),
    //! doi:10.1016/0009-2614(94)00397-1
    SoftCore
};

//! The width b of a pair, of the widths v and w of its particles.
enum class WidthRule
{
    RootSumSquare, //!< sqrt(v^2 + w^2): of two charges with densities like exp(-r^2/w^2)
    GeometricMean, //!< sqrt(v w)
    Larger         //!< max(v, w)
};

//! What pairs have in place of 1/r at short distance, see Solver::setNearFunction().
struct NearFunction
{
    PairFunction function = PairFunction::Coulomb;
    WidthRule rule        = WidthRule::RootSumSquare;
};

//! Access for farfield_cuda.h.
template<class Real>
struct SolverAccess;

/*! \brief What evaluates the forces of particles: a Solver, or one rank of a DistributedSolver.
 *
 *  Both set their particles by functions of their own. A caller who may have either evaluates them
 *  through this class.
 *  \tparam Real  as of Solver */
template<class Real>
class FARFIELD_EXPORT CoulombSolver
{
public:
    /*! \brief Computes the forces, and what is requested besides.
     *
     *  On the first call, and whenever the box has changed too much for the operators in use, the
     *  operators are built (set-up, double precision). Isotropic scaling of the box never needs
     *  that; small anisotropic changes are followed to first order.
     *
     *  Order and cells are chosen on the first call. They are chosen anew
     *  - when the box has changed much, or the error, which is measured for the new shape, does not
     *    suffice;
     *  - when the number of particles, of those with a charge, of those with excluded partners, or of
     *    those with a width (see Solver::setNearFunction()) has grown or shrunk by more than a factor
     *    of 1.5, or the range of near functions has;
     *  - when the charges of one sign that none of the other sign balances have become more or fewer by
     *    half of all charges;
     *  - when forces have become so weak that the error may be 5 % above the accuracy, or differ by
     *    more than a factor of 1.15 + 10/sqrt(N), of N charges (1.5 at least if stronger), and the
     *    error, which is measured again then, does not suffice or is far below the accuracy;
     *  - without images: when particles are farther apart by a tenth, or a quarter as far.
     *
     *  This follows from the positions at hand and from state() alone, so that a run can be continued
     *  exactly. A run that begins as a vapour and ends as a droplet may gain from a new Solver.
     *
     *  Charges at one place that are no excluded pair and have 1/r are no error, as nobody looks for
     *  them: they exert no force on each other, and all other forces are right. Energy, virial and
     *  potentials are finite then, and have no meaning.
     *
     *  After an error the solver is as before the call: the next valid one gives right results.
     *  (What was being built when memory ran out has replaced the operators before it, as both
     *  together may not fit; they are built again when they are needed.)
     *
     *  \param[in]     x        positions, nm, [n][3], any periodic image up to a billion cells away
     *  \param[in]     box      box vectors as rows, nm, lower triangular; entries of 1e-6 to
     *                 1e8 nm on the diagonal, at most 1e8 nm beside it. Vectors along axes without
     *                 images, see Options::boundary, are not read; positions along these are those
     *                 of the particles themselves, at most 1e8 nm apart
     *  \param[in,out] forces   kJ/mol/nm, [n][3]; the Coulomb forces are added (but see
     *                 Request::replaceForces). Untouched on error, but where it comes of choosing
     *                 cells anew because forces have changed
     *  \param[in]     request  energy and virial only where needed: they cost extra
     *  \returns the totals
     *  \throws Error  InvalidArgument: the position of a charge is not finite or too far away (the
     *                 index is named), the box is not lower triangular with a positive volume, the
     *                 cell size exceeds the box, the accuracy cannot be met, or what the options
     *                 ask for takes more than five minutes of one core to set up; OutOfMemory:
     *                 memory is exhausted, or operators would take more than half of the host's on
     *                 the CPU */
    Totals
    evaluate(const Real* x, const double box[3][3], Real* forces, const Request& request = {});

    /*! \brief Chooses the discretisation for a configuration and builds the operators.
     *
     *  Lets a caller report Setup, and fail, before the first step: on a GPU everything that an
     *  evaluation needs is there afterwards, and enqueue() can be captured into a CUDA graph.
     *  The particles must have been set. An evaluation elsewhere is compared with what was measured here;
     *  so is one at a lambda whose mixed charges have other fields than the state with the larger charges.
     *
     *  \param[in] x    positions, nm, [n][3]: their density enters the choice
     *  \param[in] box  as for evaluate()
     *  \throws Error   as evaluate() */
    void prepare(const Real* x, const double box[3][3]);

    //! The discretisation in use; meaningful after prepare() or evaluate().
    Setup setup() const;

    /*! \brief Everything that was chosen at run time (grid, order, reference box), for a
     *         checkpoint.
     *
     *  A Solver that restores it continues exactly. Empty before prepare(). The numbers have no
     *  meaning outside this version of the library, and have to be kept to the last bit. */
    std::vector<double> state() const;

    /*! \brief Takes over a discretisation saved by state().
     *
     *  Options that decide on results have to be those of the solver that saved it: accuracy,
     *  order, directRange, cellSize, m2l, leastSquares. The device may be another one, see
     *  Setup::chosenFor. If the state is refused the solver is as before: a caller that goes on
     *  without it gets a new choice, and should say that its run is not continued exactly.
     *  \throws Error  InvalidArgument: the state is damaged, of another version of the library or
     *                 of another precision, was saved with other options (Error::parameter() is the
     *                 first that differs), or is none that the library chooses on this machine;
     *                 OutOfMemory */
    void restore(const std::vector<double>& state);

    //! Times per stage, in pipeline order.
    std::vector<StageTime> timings() const;
    //! Sets all times to zero.
    void resetTimings();

protected:
    class Impl;
    explicit CoulombSolver(std::unique_ptr<Impl> impl);
    ~CoulombSolver();
    CoulombSolver(CoulombSolver&&) noexcept;
    CoulombSolver& operator=(CoulombSolver&&) noexcept;

private:
    friend struct SolverAccess<Real>;
    std::unique_ptr<Impl> impl_;
};

extern template class CoulombSolver<float>;
extern template class CoulombSolver<double>;

/*! \brief Coulomb energy, forces and virial of point charges, periodic or not, by a fast multipole
 *         method.
 *
 *  Greengard and Rokhlin, J. Comput. Phys. 73, 325 (1987), doi:10.1016/0021-9991(87)90140-9;
 *  Kohnke, Kutzner and Grubmueller, J. Chem. Theory Comput. 16, 6938 (2020),
 *  doi:10.1021/acs.jctc.0c00744.
 *
 *  \tparam Real  float: single-precision particles and expansions, double-precision set-up and
 *                energy sums; double: double precision throughout.
 *
 *  A Solver may be used from one thread at a time; different solvers may be used at once. After
 *  fork() the child may use only solvers with Options::threads = 1, if the parent has used several
 *  threads: the runtime of OpenMP waits for those of the parent for ever. The
 *  planner of FFTW is not thread-safe: the library lets one thread in at a time, but a program that
 *  itself plans transforms with FFTW while a solver in another thread sets up or is destroyed has
 *  to call fftw_make_planner_thread_safe() and fftwf_make_planner_thread_safe() first. On the CPU
 *  results are bitwise reproducible for the same input, the same number of threads and the same
 *  instruction set; on the GPU with Options::reproducible.
 */
template<class Real>
class FARFIELD_EXPORT Solver : public CoulombSolver<Real>
{
public:
    /*! \brief Checks the options.
     *  \throws Error  InvalidArgument: an option is out of range; NotCompiled, DeviceFailure: the
     *                 asked device is not available */
    explicit Solver(const Options& options);

    /*! \brief Sets the number of particles and their charges; clears exclusions and near functions if
     *         the number changes. Particles whose charge is zero get no force. On the CPU they cost nothing
     *         until evaluate() is asked for potentials.
     *  \param[in] q  charges, e, [n]
     *  \param[in] n  number of particles, 0 to 2^30
     *  \throws Error InvalidArgument: n is out of range, or a charge is not finite or above 1e12 (the
     *         index is named); OutOfMemory. The old charges hold then */
    void setCharges(const Real* q, int n);

    /*! \brief Sets charges of two states, for free-energy calculations, in place of setCharges().
     *
     *  With E the energy of the states and l = Request::lambda, evaluate() computes
     *
     *      V = (1 - l) E(qA) + l E(qB),    dV/dl = E(qB) - E(qA),
     *
     *  V being linear in l, and forces and virial of V. It costs one evaluation with mixed charges
     *  and one of those particles alone whose charges differ; dV/dl costs the potentials.
     *  Potentials that are asked for are those of the mixed charges. Order and cells are chosen
     *  for both states, whatever lambda: first for the one with the larger charges. If the accuracy
     *  cannot be met for the other one, the best is taken, see Setup::isBestEffort. A state in which
     *  at most a tenth as many charges act is not measured.
     *  \param[in] qA, qB  charges, e, [n]
     *  \param[in] n       number of particles, 0 to 2^30
     *  \throws Error  as setCharges() */
    void setPerturbedCharges(const Real* qA, const Real* qB, int n);

    /*! \brief Sets the pairs whose minimum-image interaction is left out, as compressed rows.
     *
     *  Each pair may be listed in one direction or both; i-i entries are ignored. Pairs of which one
     *  charge is zero cost nothing. Rounding decides between images that are equally near.
     *  \param[in] offsets   [n+1], ascending from 0
     *  \param[in] partners  [offsets[n]], 0 <= partner < n
     *  \param[in] n         number of particles, as in setCharges()
     *  \throws Error  InvalidArgument: n differs, offsets descend, or a partner is out of range;
     *                 OutOfMemory. The old exclusions hold then */
    void setExclusions(const int* offsets, const int* partners, int n);

    /*! \brief Sets the function f(r) that pairs have in place of 1/r at short distance, and the widths
     *         of particles.
     *
     *  A pair of width b has the energy k q_i q_j f(r), see PairFunction and WidthRule. Far cells, and
     *  pairs beyond a range, have 1/r:
     *  - Gaussian and Thole decay. At the range the forces of f and of 1/r differ by a thousandth of
     *    Options::accuracy: 4.1 b and 20 b at an accuracy of 3e-4. They are equal to rounding at 4.3 b and
     *    22 b in single, 6.2 b and 44 b in double precision: the range is not larger.
     *  - SoftCore comes near 1/r as b^6/(6 r^7). Its range ends where its force differs from that of 1/r
     *    by a thirtieth of Options::accuracy: 7 b at an accuracy of 3e-4.
     *
     *  The range of all pairs is that of the largest width that the rule gives for two particles of the
     *  largest width. A pair of width 0 has 1/r. An excluded pair has no energy. A point of evaluateAt()
     *  has the width 0.
     *
     *  Pairs may be at one place, where 1/r has no value. The energy of a particle with itself is not
     *  included: of Gaussian charges with WidthRule::RootSumSquare it is k q_i^2/(sqrt(2 pi) w_i). The
     *  trace of the virial is not -energy/2.
     *
     *  A DistributedSolver has no near functions. Every pair within the range costs time. On the CPU
     *  it is the stage "Near function" of timings(). On a GPU it is part of "P2P", and that stage has
     *  pairs beyond the near cells.
     *
     *  The function is kept until another one is set or the number of particles changes.
     *  \param[in] function  what pairs have; with PairFunction::Coulomb the widths may be null
     *  \param[in] widths    nm, [n], >= 0
     *  \param[in] n         number of particles, as in setCharges()
     *  \throws Error  InvalidArgument: n differs, or a width is negative or not finite (the index is
     *                 named); OutOfMemory. The old function holds then.
     *                 evaluate() throws InvalidArgument where the range is more than half of the
     *                 smallest distance of opposite faces of the box, along axes with images */
    void setNearFunction(const NearFunction& function, const Real* widths, int n);

    /*! \brief Sets point dipoles of the particles, beside their charges.
     *
     *  A particle is the source (q + mu.grad') 1/|r - r'|, and its energy is 1/2 (q phi + mu.grad phi), with the
     *  potential phi of all others. Its force is -(q grad phi + mu.grad grad phi), and its torque
     *  -mu x grad phi, see Outputs: A. J. Stone, The Theory of Intermolecular Forces, Oxford University
     *  Press (2013), chapter 3. A periodic box has conducting surroundings for dipoles as for charges.
     *  Excluded pairs have no part of their dipoles, either. Options::accuracy is that of the forces of
     *  charges and dipoles together.
     *
     *  The virial is that of strains that leave the dipoles as they are, its symmetric part; its trace is
     *  -1/2 (energy + sum mu.grad phi).
     *
     *  Near functions hold for dipoles as for charges, as derivatives of f: Gaussian and Thole, without the virial.
     *  Not with charges of two states, at points and in groups. The dipoles are kept until
     *  others are set or the number of particles changes. Positions of particles with a dipole have to be
     *  finite, with a charge or without.
     *  \param[in] dipoles  e nm, [n][3]; null: there are none any more
     *  \param[in] n        number of particles, as in setCharges()
     *  \throws Error  InvalidArgument: n differs, or a component is not finite or above 1e12 (the index is
     *                 named); OutOfMemory. The old dipoles hold then */
    void setDipoles(const Real* dipoles, int n);

    /*! \brief Sets point quadrupoles of the particles, beside their charges and dipoles.
     *
     *  In the convention of Buckingham, Theta = sum q (3 r r - r^2 1)/2 without a trace, a particle is the source
     *  (q + mu.grad' + 1/3 Theta:grad' grad') 1/|r - r'|. Its quadrupole has the energy 1/6 Theta:grad grad phi, the
     *  force -1/3 grad (Theta:grad grad phi), and the torque -2/3 eps(Theta grad grad phi), see Outputs::torques:
     *  A. D. Buckingham, Q. Rev. Chem. Soc. 13, 183 (1959), doi:10.1039/QR9591300183. Some programs store Theta/3.
     *
     *  All that is said of setDipoles() holds, but that there are no near functions with quadrupoles. The trace of
     *  the virial is -1/4 sum (q phi + 3 mu.grad phi + 5/3 Theta:grad grad phi).
     *  \param[in] quadrupoles  e nm^2, [n][6]: xx yy zz xy xz yz; null: there are none any more
     *  \param[in] n            number of particles, as in setCharges()
     *  \throws Error  InvalidArgument: n differs, or a component is not finite or above 1e12, or a trace is more than
     *                 rounding (the index is named); OutOfMemory. The old
     *                 quadrupoles hold then */
    void setQuadrupoles(const Real* quadrupoles, int n);

    using CoulombSolver<Real>::evaluate;
    /*! \brief As evaluate() above, with potentials and their derivatives at the particles.
     *
     *  Derivatives are those of charges and multipoles, see setDipoles(). The errors of gradients and of second
     *  derivatives, relative to their RMS, are about those of the forces: docs/dipoles.md has figures. As with
     *  potentials, particles without a charge cost as much as others from the first call on.
     *  \param[in]     x, box, request  as above
     *  \param[in,out] forces  as above
     *  \param[out]    outputs  what is computed besides
     *  \throws Error  as above; Unsupported: derivatives go with nothing of what setDipoles() names */
    Totals evaluate(const Real* x,
                    const double box[3][3],
                    Real* forces,
                    const Request& request,
                    const Outputs<Real>& outputs);

    /*! \brief Derivatives of forces and potentials along a direction of positions and charges.
     *
     *  Products of the matrix of second derivatives of the energy with a vector: those of what evaluate()
     *  computes with the same request, to rounding, as long as no particle changes its cell. Two
     *  evaluations, of the charges, and of charges dq with dipoles q dx; the latter by the operators that are
     *  chosen for the former: docs/dipoles.md has errors.
     *
     *  Not with dipoles, nor with what setDipoles() names.
     *  \param[in]  x, box     as for evaluate()
     *  \param[in]  direction  the changes
     *  \param[out] tangent    the derivatives along it
     *  \param[in]  request    gridOffset or step; the rest has no meaning here
     *  \throws Error  as evaluate(). A direction that is not finite has a result that is not */
    void evaluateTangent(const Real* x,
                         const double box[3][3],
                         const Direction<Real>& direction,
                         const Tangent<Real>& tangent,
                         const Request& request = {});

    /*! \brief Dipoles that charges and dipoles induce, and that induce each other.
     *
     *  With the field E at a particle, of all that is set and of all induced dipoles, its dipole is alpha E/k, k being
     *  Options::coulombConstant. Excluded pairs do not induce. Conjugate gradients, of W. Wang and R. D. Skeel,
     *  J. Chem. Phys. 123, 164107 (2005), doi:10.1063/1.2056544: two evaluations, and one for each iteration,
     *  all but the first with dipoles. No dipoles are set. Particles without a charge cost as with potentials
     *  from then on. With the dipoles given to setDipoles(), added to those that were set before, evaluate()
     *  has the forces, and the energy less Induction::selfEnergy.
     *
     *  Not with what setDipoles() names.
     *  \param[in]     x, box           as for evaluate()
     *  \param[in]     polarisabilities  alpha, nm^3, [n], not negative; 0: none
     *  \param[in,out] dipoles    e nm, [n][3]: where to begin, those of the last step say, or zero; the result.
     *                 Untouched on error
     *  \param[in]     tolerance  the RMS of what is left in the dipoles, over their RMS: at least 1e-13, in single
     *                 precision 1e-6
     *  \param[in]     request    gridOffset or step; the rest has no meaning here
     *  \throws Error  as evaluate(); InvalidArgument: dipoles of near particles raise each other without end */
    Induction induceDipoles(const Real* x,
                            const double box[3][3],
                            const Real* polarisabilities,
                            Real* dipoles,
                            double tolerance       = 1e-5,
                            const Request& request = {});

    /*! \brief As evaluate() above, with the potentials of the particles.
     *  \param[in]     x        as above
     *  \param[in]     box      as above
     *  \param[in,out] forces   as above
     *  \param[in]     request  as above
     *  \param[out]    potentials  if not null, dE/dq of every particle, kJ/mol/e, [n]: with all
     *                 periodic images, its own among them, and the background, without excluded
     *                 pairs; sum q dE/dq = 2 E. Implies the energy. Untouched on error. From the
     *                 first call that asks for them on, particles without a charge cost as much as
     *                 others, and their positions have to be finite; if some have a charge and
     *                 some none, that call may choose the cells anew */
    Totals evaluate(const Real* x,
                    const double box[3][3],
                    Real* forces,
                    const Request& request,
                    Real* potentials);

    /*! \brief Potentials and fields of the charges at points that are no particles.
     *
     *  With all images and the background of periodic boundaries. Excluded pairs do not count: they
     *  are pairs of particles. Costs an evaluation of the particles with the points among them, by
     *  operators of its own, which stay in memory; they are used again as long as charges,
     *  exclusions, near functions and the number of points are the same. A point has the width 0.
     *
     *  Fields are off by about Options::accuracy times the RMS Coulomb force over the RMS charge.
     *
     *  \param[in]  x, box      as for evaluate()
     *  \param[in]  at          points, nm, [points][3], as x. Points may coincide; at
     *                          a particle the field is without it, and the potential is not of use
     *  \param[in]  points      their number, >= 0
     *  \param[out] potentials  kJ/mol/e, [points], or null. Untouched on error
     *  \param[out] fields      minus the gradient, kJ/mol/nm/e, [points][3], or null. Untouched on error
     *  \param[in]  request     gridOffset or step; the rest has no meaning here
     *  \throws Error  as evaluate(); InvalidArgument: a point is not finite (its index is named);
     *                 Unsupported: charges of two states */
    void evaluateAt(const Real* x,
                    const double box[3][3],
                    const Real* at,
                    int points,
                    Real* potentials,
                    Real* fields,
                    const Request& request = {});

    /*! \brief Coulomb energies within groups of particles and between two.
     *
     *  With all images and the background of periodic boundaries, without excluded pairs: that
     *  between groups g and h is E(g and h) - E(g) - E(h), where E(s) is the energy with the charges
     *  of s alone. They add up to the energy of all. Costs an evaluation with potentials per group,
     *  and twice that with charges of two states, which are mixed as their energies are.
     *  \param[in] x, box    as for evaluate()
     *  \param[in] group     of each particle, [n], from 0 to groups - 1
     *  \param[in] groups    number of groups, >= 1
     *  \param[in] request   gridOffset or step, and lambda; the rest has no meaning here
     *  \returns kJ/mol, [groups][groups]: that of groups g <= h is in row g, others are 0
     *  \throws Error  as evaluate(); InvalidArgument: a group is out of range (the index of the
     *                 particle is named) */
    std::vector<double> groupEnergies(const Real* x,
                                      const double box[3][3],
                                      const int* group,
                                      int groups,
                                      const Request& request = {});

private:
    friend struct SolverAccess<Real>;
    class Impl;
    Impl& impl() const;
};

extern template class Solver<float>;
extern template class Solver<double>;

} // namespace farfield

#endif
