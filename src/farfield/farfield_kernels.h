/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over points of other functions of the distance than 1/r: Yukawa, inverse powers, a table.
 *
 *  Lengths have any one unit, and so have charges. Potentials are charges times the function.
 *
 *  Far cells act on each other through polynomials of a total degree, projected on each of two cells
 *  (Z. Gimbutas and V. Rokhlin, SIAM J. Sci. Comput. 24, 796 (2003), doi:10.1137/S1064827500381148, have such a
 *  method for any kernel); the tree is that of L. Greengard and V. Rokhlin, J. Comput. Phys. 73, 325 (1987),
 *  doi:10.1016/0021-9991(87)90140-9. It is as deep as the points need.
 */
#ifndef FARFIELD_FARFIELD_KERNELS_H
#define FARFIELD_FARFIELD_KERNELS_H

#include <memory>
#include <string>
#include <vector>

#include "farfield/farfield.h"

namespace farfield
{

class PairKernel;
template<class Real>
struct KernelSumAccess;

//! What a unit charge makes at a distance r.
class FARFIELD_EXPORT Kernel
{
public:
    /*! \brief exp(-kappa r) / r: screened charges.
     *  \param[in] kappa  1/length, > 0
     *  \throws Error  InvalidArgument: it is not finite, or not above 0 */
    static Kernel yukawa(double kappa);
    /*! \brief r^-n: 6 is dispersion.
     *  \param[in] n  1 to 12; in a periodic box 4, 6, 8, 10 or 12
     *  \throws Error  InvalidArgument: it is another number */
    static Kernel inversePower(int n);
    /*! \brief A function by its values and slopes at distances that are even steps apart, a cubic polynomial in
     *         between.
     *
     *  Nearer than the first distance and farther than the last one there is no function: points that are
     *  have an error. If the last value and the last slope are 0, the function is 0 from there on.
     *  \param[in] first, last     distances, 0 <= first < last
     *  \param[in] values, slopes  at least 3 each, as many of both
     *  \throws Error  InvalidArgument: a number is not finite, or there are too few of them */
    static Kernel
    table(double first, double last, std::vector<double> values, std::vector<double> slopes);

    //! The function, and its derivative. \param[in] r  > 0
    double value(double r) const;
    double slope(double r) const;
    //! For messages.
    std::string name() const;

    //! \cond  not for callers
    //! What sums are made of.
    const PairKernel& pairKernel() const { return *kernel_; }
    //! \endcond

private:
    explicit Kernel(std::shared_ptr<const PairKernel> kernel) : kernel_(std::move(kernel)) {}

    std::shared_ptr<const PairKernel> kernel_;
};

//! Settings of a KernelSum. All are checked by its constructor.
struct KernelOptions
{
    /*! \brief Wanted RMS error of the fields, relative to their RMS value.
     *
     *  Fields above ten times the median count as that: a pair in contact hides no error of the others. */
    double accuracy = 1e-4;
    /*! \brief Whether accuracy is that of forces, charges times fields, where results are wanted at the charges.
     *
     *  Fields are large next to large charges. If small charges are there, errors of their forces may be a larger part
     *  of all. Forces of all sets of charges count together: of a set that makes little they may be a larger part. */
    bool ofForces = false;
    //! Whether calls after the first go on with the best, see KernelSetup::measuredError, where points have become such
    //! that the accuracy cannot be reached any more.
    bool bestEffort = false;
    //! Open or Periodic. In a periodic box the sum over all images, that of the wave vector 0 included.
    Boundary boundary = Boundary::Open;
    //! Auto: the CPU. A GPU pays from some ten thousand points on.
    Device device = Device::Auto;
    //! CUDA device to work on, from 0; -1: the one that is current where the sum is made.
    int deviceId = -1;
    //! OpenMP threads; 0: usableThreads(). For a GPU they make operators.
    int threads = 0;
};

/*! \brief Points, and what acts on them.
 *
 *  On a GPU, positions, charges, potentials and fields may be in host memory or in memory of that device. What writes to
 *  them there must be complete before a call; results are complete after it. */
template<class Real>
struct KernelInput
{
    const double* x = nullptr; //!< positions of the charges, [n][3]; any image
    const Real* q   = nullptr; //!< charges, [n][sets]
    int n           = 0;
    int sets        = 1; //!< of charges at the same places, which do not act on each other
    //! Vectors of the periodic box as rows; any three that span a volume.
    const double (*box)[3] = nullptr;
    const double* at       = nullptr; //!< points where results are wanted, [points][3]
    int points             = -1;      //!< -1: results are wanted at the charges
};

//! What is computed at each point; each array may be null. All are written to after success only.
template<class Real>
struct KernelOutput
{
    Real* potentials = nullptr; //!< [points][sets]; of a charge without what it makes itself
    Real* fields     = nullptr; //!< minus their gradients, [points][sets][3]
    /*! \brief Virials of the charges of each set, [sets]; results must be wanted at the charges.
     *
     *  -1/2 sum r (x) f over pairs, in units of an energy: half the derivative of the energy
     *  1/2 sum q potential by a strain of positions and box. */
    double (*virials)[3][3] = nullptr;
};

//! Charges that are atoms among others, whose forces a GPU adds to theirs; host memory.
template<class Real>
struct KernelSites
{
    const int* atoms      = nullptr; //!< [n] which atom each charge is, no atom twice
    const Real* q         = nullptr; //!< charges, [n][sets]
    const double* factors = nullptr; //!< of energies, forces and virials of each set, [sets]
    int n                 = 0;
    int sets              = 1;
};

//! What is computed besides forces of KernelSites.
struct KernelRequest
{
    bool energy = false; //!< 1/2 the sum of factors times charges times potentials
    bool virial = false; //!< see KernelOutput::virials, times factors
    /*! \brief Evaluations since the last call, this one and replays of graphs included.
     *
     *  So it is known when the error is to be measured again. */
    int evaluations = 1;
};

//! What was chosen and measured.
struct KernelSetup
{
    int degree           = 0;           //!< of the polynomials
    int coefficients     = 0;           //!< of a cell
    int directRange      = 0;           //!< cells up to this displacement interact by pairs
    int levels           = 0;           //!< of the tree
    double cell          = 0;           //!< cube root of the volume of a leaf
    int threads          = 0;           //!< OpenMP threads
    Device device        = Device::Cpu; //!< in use, never Auto
    double measuredError = 0;           //!< of the fields, see KernelOptions::accuracy
};

/*! \brief Potentials and fields of points, for one kernel.
 *
 *  The first call chooses degree and cells. It takes some evaluations more: the error is that of some fields
 *  beside sums over all pairs, in a periodic box Ewald sums. It is measured again where the number of points or the
 *  extent of what they fill has changed by a tenth, after 64 calls, and after twice as many each time, 1024 at
 *  most, on a GPU 16384. If it is too large, there is another choice.
 *
 *  Results depend on the number of threads by nothing, but on earlier calls, through the choice.
 *
 *  A KernelSum may be used from one thread at a time; different ones may be used at once.
 *  \tparam Real  float: pairs and expansions in single precision, relative to cells; double */
template<class Real>
class FARFIELD_EXPORT KernelSum
{
public:
    /*! \throws Error  InvalidArgument: an option is out of range; Unsupported: a slab, or a kernel that has no
     *                 sum over periodic images; NotCompiled, DeviceFailure: the device cannot be used */
    KernelSum(const Kernel& kernel, const KernelOptions& options);
    ~KernelSum();
    KernelSum(KernelSum&&) noexcept;
    KernelSum& operator=(KernelSum&&) noexcept;

    /*! \brief Computes what output has arrays for.
     *  \throws Error  InvalidArgument: a position, a charge or the box is not finite, the box has no volume or is
     *                 more than 1000 times as long as high, or is given without images; a charge is at a point or at
     *                 another charge, a distance is not in the table, or results are beyond the precision;
     *                 exclusions are of another number of charges; virials are wanted with other points;
     *                 Unsupported: the accuracy cannot be reached, with the best that can; OutOfMemory */
    void evaluate(const KernelInput<Real>& input, const KernelOutput<Real>& output);

    /*! \brief Sets pairs of charges that do not act on each other, in their shortest image, as compressed rows.
     *
     *  Each pair may be listed in one direction or both. Later calls must have n charges. They may be at one place.
     *  \param[in] offsets   [n+1], ascending from 0; null: there are no such pairs, of any number of charges
     *  \param[in] partners  [offsets[n]], 0 <= partner < n
     *  \param[in] n         number of charges
     *  \throws Error  InvalidArgument: offsets descend, or a partner is out of range; OutOfMemory */
    void setExclusions(const int* offsets, const int* partners, int n);

    //! What is in use.
    KernelSetup setup() const;

    /*! \brief What was chosen, and for what, for resume(). Empty before the first call. */
    std::vector<double> state() const;
    /*! \brief Goes on with the choice of another KernelSum of the same kernel and options: results continue as if it
     *         were that one. A choice that was not as accurate as is asked for here is not taken.
     *  \throws Error  InvalidArgument: it is no such state */
    void resume(const std::vector<double>& state);

private:
    friend struct KernelSumAccess<Real>;
    class Impl;
    std::unique_ptr<Impl> impl_;
};

extern template class KernelSum<float>;
extern template class KernelSum<double>;

} // namespace farfield

#endif
