/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Evaluations on arrays in device memory, for callers that use CUDA themselves.
 *
 *  The solver must have the device Gpu. Exclusions and the choice of cells go through farfield.h as
 *  for host arrays.
 */
#ifndef FARFIELD_FARFIELD_CUDA_H
#define FARFIELD_FARFIELD_CUDA_H

#include <memory>

#include <cuda_runtime_api.h>

#include "farfield/farfield.h"
#include "farfield/farfield_kernels.h"
#include "farfield/farfield_parallel.h"

namespace farfield
{

/*! \brief Puts an evaluation into a stream and returns without waiting for it.
 *
 *  It starts after the work that is in the stream already; work that is put into the stream later
 *  sees the forces. Evaluations and replays of one solver must be in order with each other. The
 *  first evaluation, if it is not after Solver::prepare(), one that rebuilds the operators, and one
 *  in a tree of cells whose Request::step does not follow that of the evaluation before, waits for
 *  the device; all others may be captured into a CUDA graph, see mustRecordAgain().
 *  Instantiate that with cudaGraphInstantiateFlagUseNodePriority: the far field comes first where
 *  the near field leaves no room.
 *
 *  An evaluation with forces alone that differs from the one before in its step only is launched as
 *  a graph, which the solver records the first time, unless the caller records evaluations himself.
 *
 *  With the boundaries Open and Slab every evaluation waits for the work of the stream, as the
 *  extent of the particles is looked at; it cannot be captured. With Open one with a virial waits
 *  for the forces, too, which must replace those before.
 *
 *  With charges of two states another Request::lambda than that of the evaluation before waits for
 *  the device, too, and a graph keeps the one that it was recorded with.
 *
 *  All ranks of a DistributedSolver call this together, with the same box, request and kind of stream.
 *  The first evaluation after setLocal(), if it is not after prepare(), plans what is exchanged, and
 *  waits. Later ones do not as long as DeviceCommunicator::mayBeCaptured(), but that the host is at
 *  most three evaluations ahead: it looks how far particles have moved, and plans anew where that is
 *  more than 0.8 of a cell. Where particles of one rank move by most of a cell within three
 *  evaluations all ranks get forces that are not numbers, and wait() or a later call throws on all of
 *  them. Evaluations that are captured into graphs hold on to the plan of the last one that was not,
 *  and nobody looks how far particles have moved when they are replayed: setLocal() and an evaluation
 *  come before that is most of a cell. Of ranks that are threads all may be captured into one graph.
 *  Evaluations that are enqueued do not compare what ranks are given, but those that plan. An error in
 *  the first evaluation of a plan, as of memory, is one of all ranks, and so are all where messages pass
 *  through the hosts, and those of memory for operators that another box makes all build. Others in later
 *  ones are those of that rank alone, which sends the messages that the others wait for. The others get
 *  forces that are not numbers, and wait() throws on them if they call it before they enqueue another
 *  evaluation: call setLocal() on all ranks then, also where an argument was wrong on all of them. The
 *  others may wait for ever, and have to be ended, if they have enqueued more evaluations; if the box of
 *  the rank is not theirs, and one of them needs other operators for it; if the rank fails as the work
 *  before its first message is put into streams or a graph is recorded, or after its last message; or if
 *  its GPU works no more.
 *
 *  \param[in]     solver   with the device Gpu
 *  \param[in]     x        positions, nm, [n][3], any periodic image, device memory
 *  \param[in]     box      box vectors as rows, nm, lower triangular, host memory
 *  \param[in,out] forces   kJ/mol/nm, [n][3], device memory; the Coulomb forces are added
 *  \param[in]     request  energy and virial only where needed
 *  \param[in]     stream   any stream of the current device
 *  \throws Error  as Solver::evaluate(); what is found on the device (a position that is not
 *                 finite) is thrown by wait() or by a later call. Unsupported: the device is Cpu;
 *                 open boundaries with a virial of forces that are added; open or slab boundaries
 *                 while the stream is captured */
template<class Real>
FARFIELD_EXPORT void enqueue(CoulombSolver<Real>& solver,
                             const Real* x,
                             const double box[3][3],
                             Real* forces,
                             const Request& request,
                             cudaStream_t stream);

/*! \brief As enqueue() above, with potentials, their derivatives and torques at the particles.
 *
 *  The first evaluation with any of them, where some particles have a charge and some none, waits for
 *  the device: make it before evaluations are captured. Particles without a charge then get forces
 *  below 1e-10 kJ/mol/nm, those on a charge of 1e-16 e at most.
 *  \param[in]     solver   as above
 *  \param[in]     x        as above
 *  \param[in]     box      as above
 *  \param[in,out] forces   as above
 *  \param[in]     request  as above
 *  \param[in]     stream   as above
 *  \param[out]    outputs  as for Solver::evaluate(), in device memory */
template<class Real>
FARFIELD_EXPORT void enqueue(Solver<Real>& solver,
                             const Real* x,
                             const double box[3][3],
                             Real* forces,
                             const Request& request,
                             cudaStream_t stream,
                             const Outputs<Real>& outputs);

//! Sums over charges.
struct ChargeTotals
{
    long long charged; //!< those that are not zero
    double net;        //!< e
    double squared;    //!< e^2
};

/*! \brief Solver::setCharges() with charges in device memory, in order with a stream.
 *
 *  Returns when they are set. They do not cross the host where as many charges were set before, and neither those nor
 *  these have a zero, and without dipoles, quadrupoles and charges of two states.
 *  \param[in] solver  with the device Gpu
 *  \param[in] q       charges, e, [n], device memory
 *  \param[in] n       number of particles, 0 to 2^30
 *  \param[in] stream  any stream of the current device that is not captured
 *  \returns their sums, without dipoles and quadrupoles that the solver has
 *  \throws Error  as Solver::setCharges(); Unsupported: the device is Cpu */
template<class Real>
FARFIELD_EXPORT ChargeTotals
setCharges(Solver<Real>& solver, const Real* q, int n, cudaStream_t stream);

/*! \brief Solver::evaluateTangent() with arrays in device memory, in order with a stream.
 *
 *  Returns when the tangent is there.
 *  \param[in]  solver     with the device Gpu
 *  \param[in]  x          positions, nm, [n][3], device memory
 *  \param[in]  box        as for enqueue(), host memory
 *  \param[in]  direction  as for Solver::evaluateTangent(), device memory
 *  \param[out] tangent    the same
 *  \param[in]  request    position of the grid
 *  \param[in]  stream     any stream of the current device that is not captured
 *  \throws Error  as Solver::evaluateTangent(), and enqueue(); Unsupported: the device is Cpu */
template<class Real>
FARFIELD_EXPORT void evaluateTangent(Solver<Real>& solver,
                                     const Real* x,
                                     const double box[3][3],
                                     const Direction<Real>& direction,
                                     const Tangent<Real>& tangent,
                                     const Request& request,
                                     cudaStream_t stream);

/*! \brief Solver::evaluateAt() with arrays in device memory, in order with a stream.
 *
 *  Returns when potentials and fields are there.
 *  \param[in]  solver      with the device Gpu
 *  \param[in]  x           positions of the particles, nm, [n][3], device memory
 *  \param[in]  box         as for enqueue(), host memory
 *  \param[in]  at          points, nm, [points][3], any periodic image, device memory
 *  \param[in]  points      how many they are
 *  \param[out] potentials  kJ/mol/e, [points], device memory, or null
 *  \param[out] fields      kJ/mol/nm/e, [points][3], device memory, or null
 *  \param[in]  request     position of the grid; points get nothing else
 *  \param[in]  stream      any stream of the current device that is not captured
 *  \throws Error  as Solver::evaluateAt(); Unsupported: the device is Cpu */
template<class Real>
FARFIELD_EXPORT void evaluateAt(Solver<Real>& solver,
                                const Real* x,
                                const double box[3][3],
                                const Real* at,
                                int points,
                                Real* potentials,
                                Real* fields,
                                const Request& request,
                                cudaStream_t stream);

/*! \brief Whether graphs that hold evaluations must be recorded again before the next launch.
 *
 *  So it is after setExclusions(), setPerturbedCharges() and evaluateTangent(), after setCharges() where the
 *  number of charged particles or the net charge is another, and after setDipoles() where there were none or
 *  are none any more; other charges and dipoles are those of the next launch.
 *  With several ranks the answer is the same on all, and yes after setLocal() until the next evaluation.
 *
 *  Lists whose lengths follow the motion of particles may need more room, which recorded work
 *  cannot ask for; there is a reserve, so that a look every few steps of a simulation is enough,
 *  and what is recorded stays valid until two such requests later. Evaluate once with enqueue()
 *  then, as recorded evaluations do, and record all graphs again. Does not wait for the device. */
template<class Real>
FARFIELD_EXPORT bool mustRecordAgain(const CoulombSolver<Real>& solver);

/*! \brief Whether a graph that holds evaluations may be changed by cudaGraphExecUpdate() to one that
 *         was recorded later, both with the cells in use.
 *
 *  Not in a tree of cells, where matrix products come from cuBLAS, which chooses kernels by their
 *  shape: an update (of CUDA 13.0) keeps the sizes of clusters that the kernels before had, and
 *  kernels that wait for others in their cluster then never end. Instantiate such a graph anew. */
template<class Real>
FARFIELD_EXPORT bool mayUpdateGraphs(const CoulombSolver<Real>& solver);

/*! \brief Waits for the last evaluation that was enqueued or replayed and returns its totals.
 *  \throws Error  InvalidArgument: a position was not finite, or particles have moved so far that
 *                 forces are not numbers; DeviceFailure */
template<class Real>
FARFIELD_EXPORT Totals wait(CoulombSolver<Real>& solver);

/*! \brief Device time of every stage, one after the other.
 *
 *  Evaluates repeats times as a CUDA graph without overlap of near and far field.
 *  \returns medians, s per evaluation, in the order of the pipeline */
template<class Real>
FARFIELD_EXPORT std::vector<StageTime> measureStages(Solver<Real>& solver,
                                                     const Real* x,
                                                     const double box[3][3],
                                                     Real* forces,
                                                     const Request& request,
                                                     int repeats);

/*! \brief Sets charges of a sum that are atoms among others, for enqueue() and addForces() below.
 *  \param[in] sum    on a GPU; its exclusions are those of these charges
 *  \param[in] sites  host memory
 *  \throws Error  InvalidArgument: numbers make no sense; Unsupported: the device is Cpu; OutOfMemory */
template<class Real>
FARFIELD_EXPORT void setSites(KernelSum<Real>& sum, const KernelSites<Real>& sites);

/*! \brief Puts an evaluation of a KernelSum with its sites beside a stream.
 *
 *  It comes after what is in the stream, in streams of its own. Nobody waits in a periodic box, if only forces are
 *  wanted and no error is measured, but in the first call, where other operators or cells are needed, or where there
 *  are many cells: more than 32768, or than four a charge with one level of cells, or than one to four charges with
 *  more levels. Then no position is refused: forces of all charges are NaN where one is not finite. Evaluations that do
 *  not wait can be captured into a graph, which keeps the box that it was recorded with.
 *  \param[in] sum      as setSites()
 *  \param[in] x        positions of all atoms, [atoms][3], any periodic image, device memory
 *  \param[in] box      as KernelInput::box, host memory
 *  \param[in] request  energy and virial only where needed
 *  \param[in] stream   any stream of the current device
 *  \returns what is requested
 *  \throws Error  as KernelSum::evaluate(); InvalidArgument: setSites() was not called; Unsupported: the
 *                 stream is captured, and the evaluation has to wait */
template<class Real>
FARFIELD_EXPORT Totals enqueue(KernelSum<Real>& sum,
                               const Real* x,
                               const double (*box)[3],
                               const KernelRequest& request,
                               cudaStream_t stream);

/*! \brief Adds the forces of the last enqueue() to those of atoms, in order with a stream.
 *
 *  Of each set they are its factor times charge times field.
 *  \param[in]     sum     as enqueue()
 *  \param[in,out] forces  of all atoms, [atoms][3], device memory
 *  \param[in]     stream  that of enqueue() */
template<class Real>
FARFIELD_EXPORT void addForces(KernelSum<Real>& sum, Real* forces, cudaStream_t stream);

//! Whether graphs that hold such evaluations must be recorded again before the next launch, after one that is not
//! captured. So it is after setSites(), and where an error was measured and cells or operators are others since.
template<class Real>
FARFIELD_EXPORT bool mustRecordAgain(const KernelSum<Real>& sum);

/*! \brief Connects the GPUs of ranks that are threads of one process and reach each other's memory.
 *
 *  Kernels write messages into the memory of the other GPUs; no host waits for another. All ranks
 *  call it together, each with its device current.
 *  \param[in] host  outlives what is returned
 *  \returns null on all ranks if there are several processes, or GPUs are shared or do not reach each
 *           other */
FARFIELD_EXPORT std::unique_ptr<DeviceCommunicator> makePeerCommunicator(Communicator* host);

} // namespace farfield

#endif
