/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Many small systems in one call, each with a box of its own.
 *
 *  Units and conventions are those of farfield.h. A Solver builds operators for a box, which pays
 *  where the box stays. A Batch builds nothing: direct Ewald sums suit up to some thousand particles.
 */
#ifndef FARFIELD_FARFIELD_BATCH_H
#define FARFIELD_FARFIELD_BATCH_H

#include <memory>

#include "farfield/farfield.h"

namespace farfield
{

//! Settings of a Batch. All are checked by its constructor.
struct BatchOptions
{
    //! Coulomb constant 1/(4 pi eps0 eps_r), kJ mol^-1 nm e^-2; > 0.
    double coulombConstant = 138.935458;
    /*! \brief Wanted error of the forces of each system, relative to what Options::accuracy says.
     *
     *  Without images forces are sums over all pairs, and rounding is the only error. */
    double accuracy = 3e-4;
    //! Of all systems.
    Boundary boundary = Boundary::Periodic;
    //! Auto: the CPU. A GPU has all systems at once, and pays from some ten thousand particles a call on.
    Device device = Device::Auto;
    //! CUDA device to work on, from 0; -1: the one that is current where the batch is made.
    int deviceId = -1;
    //! OpenMP threads. On the CPU each takes a system at a time. On a GPU they are not used.
    //! 0: usableThreads().
    int threads = 0;
    /*! \brief Sets of charges at the same places, from 1 to c_mostChannels.
     *
     *  They do not interact with each other. Energies, forces and virials are sums over all sets. */
    int channels = 1;
    /*! \brief Width s of Gaussian charges, nm; 0: point charges.
     *
     *  Pairs have erf(r / (2^(1/2) s)) / r, and the wave k = 0 is left out, as with latent charges:
     *  B. Cheng, arXiv:2408.15165 (2024), doi:10.48550/arXiv.2408.15165. Refused unless Periodic. */
    double smearing = 0;
    /*! \brief Longest wave vectors of Gaussian charges, 1/nm; 0: the accuracy decides.
     *
     *  With a value the energy is the sum over these waves, and no error is measured. */
    double waveCutoff = 0;
    //! Whether Gaussian charges have the energy of each with itself; point charges never have.
    bool selfEnergy = false;
    /*! \brief Whether calls on a GPU return without a wait for it.
     *
     *  They wait where results, or offsets without BatchInput::particles, are not in the memory of the
     *  GPU, and where there are more particles or systems than in any call that has waited. If a call that
     *  has not waited turns out to be refused, its results are not a number, and a later call throws, or
     *  finish(). Not used on the CPU. */
    bool asynchronous = false;
};

namespace detail
{

/*! \brief Calls visit(a, b) for each setting that a Solver and a Batch both have.
 *  \param[in] solver  Options; a is a member of it
 *  \param[in] batch   BatchOptions; b is a member of it
 *  \param[in] visit   a function of two members, which may change them */
template<class OfSolver, class OfBatch, class Visit>
constexpr void forSharedOptions(OfSolver& solver, OfBatch& batch, const Visit& visit)
{
    // All members: a new one does not compile before it stands here, and below if it is shared
    auto& [coulombConstant,
           accuracy,
           boundary,
           device,
           deviceId,
           threads,
           channels,
           smearing,
           waveCutoff,
           selfEnergy,
           asynchronous] = batch;
    visit(solver.coulombConstant, coulombConstant);
    visit(solver.accuracy, accuracy);
    visit(solver.boundary, boundary);
    visit(solver.device, device);
    visit(solver.deviceId, deviceId);
    visit(solver.threads, threads);
}

} // namespace detail

//! The settings of a Solver that a Batch has, too; all others have their defaults.
constexpr BatchOptions batchOptions(const Options& options)
{
    BatchOptions result;
    detail::forSharedOptions(options, result, [](const auto& from, auto& to) { to = from; });
    return result;
}

//! The largest BatchOptions::channels.
constexpr int c_mostChannels = 64;

//! The systems of a call; particles of a system stand together.
template<class Real>
struct BatchInput
{
    const Real* x      = nullptr; //!< positions, nm, [n][3], any periodic image
    const Real* q      = nullptr; //!< charges, e, [n][channels]
    const int* offsets = nullptr; //!< [systems + 1] first particle of each system, ascending from 0
    //! Box vectors as rows, nm, [systems][3][3]; any three that span a volume, left-handed ones too.
    //! Of a slab the first two, in any plane; the third is not read. Not read without images.
    const double* boxes = nullptr;
    int systems         = 0; //!< >= 0; a system may have no particles
    //! offsets[systems], or -1: it is read, for which the host waits where offsets are on a GPU.
    int particles = -1;
};

//! What is computed; each array may be null. All are written to after success only.
template<class Real>
struct BatchOutput
{
    double* energies = nullptr; //!< kJ/mol, [systems]
    Real* forces     = nullptr; //!< kJ/mol/nm, [n][3]
    Real* potentials = nullptr; //!< dE/dq, kJ/mol/e, [n][channels]
    double* virials  = nullptr; //!< -1/2 sum r (x) f, kJ/mol, [systems][3][3], symmetric
    //! RMS error of the forces that the sums were cut for, kJ/mol/nm, [systems]: evaluateTangent()
    //! takes it. 0 without images.
    double* errors = nullptr;
};

//! How systems change along a direction; an array is null where nothing changes.
template<class Real>
struct BatchDirection
{
    const Real* x = nullptr; //!< derivatives of the positions, nm, [n][3]
    const Real* q = nullptr; //!< of the charges, e, [n][channels]
    const double* boxes =
            nullptr; //!< of the box vectors, nm, [systems][3][3]; read as BatchInput's
};

//! Derivatives along a direction; each array may be null. All are written to after success only.
template<class Real>
struct BatchTangent
{
    Real* forces     = nullptr; //!< kJ/mol/nm, [n][3]
    Real* potentials = nullptr; //!< kJ/mol/e, [n][channels]
    double* virials  = nullptr; //!< kJ/mol, [systems][3][3], symmetric
};

//! What was measured, for logs and tests.
struct BatchSetup
{
    Device device = Device::Cpu; //!< in use, never Auto
    int deviceId  = -1;          //!< CUDA device; -1 on the CPU
    int threads   = 0;           //!< OpenMP threads
    /*! \brief Largest error of the forces of a system that was measured, relative to what
     *         Options::accuracy says; 0 before. */
    double measuredError = 0;
    /*! \brief By what factor sums are more accurate than the model asks for: 1 unless a measured error
     *         was too large. */
    double tightening = 1;
};

/*! \brief Coulomb energies, forces, potentials and virials of many systems, by direct Ewald sums.
 *
 *  P. P. Ewald, Ann. Phys. 369, 253 (1921), doi:10.1002/andp.19213690304. The splitting and both
 *  cut-offs of each system follow from a model of the error: J. Kolafa and J. W. Perram, Mol. Simul. 9,
 *  351 (1992), doi:10.1080/08927029208049126. A system whose forces are weaker than the model takes
 *  them for is computed again. The first system, and one in 64 from then on, is computed with another
 *  splitting, too: the difference of the forces is the error. If it is too large, all sums become more
 *  accurate.
 *
 *  A slab is a layer in a periodic box, with vacuum that follows from the accuracy, and a correction for
 *  the layers beside it: V. Ballenegger, A. Arnold and J. J. Cerda, J. Chem. Phys. 131, 094107 (2009),
 *  doi:10.1063/1.3216473. One that is more than a hundred times as high as its longer vector is refused.
 *
 *  The results of a system are bitwise the same whatever other systems are in the batch, and for any
 *  number of threads, as long as BatchSetup::tightening and the device are the same.
 *
 *  A system of n particles takes a time of the order of n^(3/2), and n^2 without images.
 *
 *  On a GPU each array may be in the memory of the host or in that of the GPU. CPU and GPU have the same
 *  errors and the same checks. Their splittings differ, and so do their results, within the errors.
 *
 *  A Batch may be used from one thread at a time; different ones may be used at once.
 *  \tparam Real  float: sums over pairs and waves in single precision, energies summed in double;
 *                double: double precision throughout */
template<class Real>
class FARFIELD_EXPORT Batch
{
public:
    /*! \brief Checks the options.
     *  \throws Error  InvalidArgument: an option is out of range; Unsupported: charges that are not
     *                 periodic are Gaussian; NotCompiled: the device is a GPU, and the library was built
     *                 without CUDA; DeviceFailure: there is no usable GPU */
    explicit Batch(const BatchOptions& options);
    ~Batch();
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) noexcept;

    /*! \brief Computes what output has arrays for.
     *
     *  Returns when it is there, or, if all of it is in the memory of a GPU, when it will be there in
     *  order with the stream. The host waits for the GPU once in most calls, unless
     *  BatchOptions::asynchronous is set.
     *  \param[in]  input   the systems
     *  \param[out] output  what is computed
     *  \param[in]  stream  cudaStream_t of the GPU, or null for its default stream: the call is in order
     *                      with the work of the stream, which must not be captured. Not used on the CPU
     *  \throws Error  InvalidArgument: a position, a charge or a box is not finite, a charge is above 1e12,
     *                 a box has no volume, offsets do not ascend, or two charges of a system are at one place (all
     *                 name the system); OutOfMemory; DeviceFailure. Errors of an earlier call that has not
     *                 waited: the systems of this one are not computed then. OutOfMemory there: its sums had
     *                 no room, and the next call waits to make it */
    void evaluate(const BatchInput<Real>& input,
                  const BatchOutput<Real>& output,
                  void* stream = nullptr);

    /*! \brief Derivatives of forces, potentials and virials along a direction.
     *
     *  They are those of the sums of evaluate() with the same input, splitting and cut-offs held:
     *  products of a symmetric matrix of second derivatives with a vector. A tangent takes about
     *  twice as long as an evaluation.
     *  \param[in] input      as evaluate()
     *  \param[in] direction  the changes of what input has
     *  \param[in] errors     BatchOutput::errors of evaluate() with this input, [systems]; null: sums
     *                        are as long as the precision has use for
     *  \param[out] tangent   the derivatives along the direction
     *  \param[in] stream     as evaluate()
     *  \throws Error  as evaluate(). A direction that is not finite has a result that is not */
    void evaluateTangent(const BatchInput<Real>& input,
                         const BatchDirection<Real>& direction,
                         const double* errors,
                         const BatchTangent<Real>& tangent,
                         void* stream = nullptr);

    //! Waits for all calls. \throws Error  as evaluate(), of those that have not waited
    void finish();

    //! What was measured so far.
    BatchSetup setup() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

extern template class Batch<float>;
extern template class Batch<double>;

} // namespace farfield

#endif
