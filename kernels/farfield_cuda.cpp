/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_cuda.h"

#include "evaluation/memory_errors.h"
#include "solver/solver_access.h"

namespace farfield
{
namespace
{

//! What a solver is made of. \param[in] solver  Solver or DistributedSolver
template<class Real, template<class> class S>
auto& implOf(const S<Real>& solver)
{
    return SolverAccess<Real>::of(solver);
}

} // namespace

template<class Real>
void enqueue(Solver<Real>& solver,
             const Real* x,
             const double box[3][3],
             Real* forces,
             const Request& request,
             cudaStream_t stream,
             Real* potentials)
{
    withMemoryErrors(
            [&] {
                implOf(solver).enqueue({ x, box, forces, potentials, request, stream });
            });
}

template<class Real>
Totals wait(Solver<Real>& solver)
{
    return withMemoryErrors([&] { return implOf(solver).wait(); });
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
    const Task<Real> task  = { x, box, nullptr, nullptr, request, stream };
    const Points<Real> all = { at, points, potentials, fields };
    withMemoryErrors([&] { implOf(solver).evaluateAtOnDevice(task, all); });
}

template<class Real>
bool mustRecordAgain(const Solver<Real>& solver)
{
    return withMemoryErrors([&] { return implOf(solver).mustRecordAgain(); });
}

template<class Real>
bool mayUpdateGraphs(const Solver<Real>& solver)
{
    return withMemoryErrors([&] { return implOf(solver).mayUpdateGraphs(); });
}

template<class Real>
std::vector<StageTime> measureStages(Solver<Real>& solver,
                                     const Real* x,
                                     const double box[3][3],
                                     Real* forces,
                                     const Request& request,
                                     int repeats)
{
    const Task<Real> task = { x, box, forces, nullptr, request };
    return withMemoryErrors([&] { return implOf(solver).measureStages(task, repeats); });
}

template<class Real>
void enqueue(DistributedSolver<Real>& solver,
             const Real* x,
             const double box[3][3],
             Real* forces,
             const Request& request,
             cudaStream_t stream)
{
    withMemoryErrors([&] { implOf(solver).enqueue({ x, box, forces, nullptr, request, stream }); });
}

template<class Real>
Totals wait(DistributedSolver<Real>& solver)
{
    return withMemoryErrors([&] { return implOf(solver).wait(); });
}

template<class Real>
bool mustRecordAgain(const DistributedSolver<Real>& solver)
{
    return withMemoryErrors([&] { return implOf(solver).mustRecordAgain(); });
}

template<class Real>
bool mayUpdateGraphs(const DistributedSolver<Real>& solver)
{
    return withMemoryErrors([&] { return implOf(solver).mayUpdateGraphs(); });
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
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

// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
