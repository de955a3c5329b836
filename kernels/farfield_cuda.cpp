/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_cuda.h"

#include "backend/device_entry.h"
#include "backend/distributed_device_entry.h"

namespace farfield
{

template<class Real>
void enqueue(Solver<Real>& solver,
             const Real* x,
             const double box[3][3],
             Real* forces,
             const Request& request,
             cudaStream_t stream,
             Real* potentials)
{
    DeviceEntry<Real>::enqueue(solver, x, box, forces, request, stream, potentials);
}

template<class Real>
Totals wait(Solver<Real>& solver)
{
    return DeviceEntry<Real>::wait(solver);
}

template<class Real>
void evaluateAt(Solver<Real>& solver,
                const Real* x,
                const double box[3][3],
                const Real* at,
                int points,
                Real* potentials,
                Real* fields,
                const Request& request,
                cudaStream_t stream)
{
    DeviceEntry<Real>::evaluateAt(solver, x, box, at, points, potentials, fields, request, stream);
}

template<class Real>
bool mustRecordAgain(const Solver<Real>& solver)
{
    return DeviceEntry<Real>::mustRecordAgain(solver);
}

template<class Real>
bool mayUpdateGraphs(const Solver<Real>& solver)
{
    return DeviceEntry<Real>::mayUpdateGraphs(solver);
}

template<class Real>
std::vector<StageTime> measureStages(Solver<Real>& solver,
                                     const Real* x,
                                     const double box[3][3],
                                     Real* forces,
                                     const Request& request,
                                     int repeats)
{
    return DeviceEntry<Real>::measureStages(solver, x, box, forces, request, repeats);
}

template<class Real>
void enqueue(DistributedSolver<Real>& solver,
             const Real* x,
             const double box[3][3],
             Real* forces,
             const Request& request,
             cudaStream_t stream)
{
    DistributedDeviceEntry<Real>::enqueue(solver, x, box, forces, request, stream);
}

template<class Real>
Totals wait(DistributedSolver<Real>& solver)
{
    return DistributedDeviceEntry<Real>::wait(solver);
}

template<class Real>
bool mustRecordAgain(const DistributedSolver<Real>& solver)
{
    return DistributedDeviceEntry<Real>::mustRecordAgain(solver);
}

template<class Real>
bool mayUpdateGraphs(const DistributedSolver<Real>& solver)
{
    return DistributedDeviceEntry<Real>::mayUpdateGraphs(solver);
}

#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template FARFIELD_EXPORT void enqueue<Real>(Solver<Real>&,                                     \
                                                const Real*,                                       \
                                                const double[3][3],                                \
                                                Real*,                                             \
                                                const Request&,                                    \
                                                cudaStream_t,                                      \
                                                Real*);                                            \
    template FARFIELD_EXPORT Totals wait<Real>(Solver<Real>&);                                     \
    template FARFIELD_EXPORT void evaluateAt<Real>(Solver<Real>&,                                  \
                                                   const Real*,                                    \
                                                   const double[3][3],                             \
                                                   const Real*,                                    \
                                                   int,                                            \
                                                   Real*,                                          \
                                                   Real*,                                          \
                                                   const Request&,                                 \
                                                   cudaStream_t);                                  \
    template FARFIELD_EXPORT bool mustRecordAgain<Real>(const Solver<Real>&);                      \
    template FARFIELD_EXPORT bool mayUpdateGraphs<Real>(const Solver<Real>&);                      \
    template FARFIELD_EXPORT std::vector<StageTime> measureStages<Real>(                           \
            Solver<Real>&, const Real*, const double[3][3], Real*, const Request&, int);           \
    template FARFIELD_EXPORT void enqueue<Real>(DistributedSolver<Real>&,                          \
                                                const Real*,                                       \
                                                const double[3][3],                                \
                                                Real*,                                             \
                                                const Request&,                                    \
                                                cudaStream_t);                                     \
    template FARFIELD_EXPORT Totals wait<Real>(DistributedSolver<Real>&);                          \
    template FARFIELD_EXPORT bool mustRecordAgain<Real>(const DistributedSolver<Real>&);           \
    template FARFIELD_EXPORT bool mayUpdateGraphs<Real>(const DistributedSolver<Real>&);

FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
