/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_cuda.h"

#include "solver/solver_impl.h"

namespace farfield
{

template<class Real>
void enqueue(CoulombSolver<Real>& solver,
             const Real* x,
             const double box[3][3],
             Real* forces,
             const Request& request,
             cudaStream_t stream)
{
    const Task<Real> task = { x, box, forces, nullptr, request, stream };
    auto& own             = SolverAccess<Real>::of(solver);
    own.enter([&] { own.enqueue(task); });
}

template<class Real>
void enqueue(Solver<Real>& solver,
             const Real* x,
             const double box[3][3],
             Real* forces,
             const Request& request,
             cudaStream_t stream,
             const Outputs<Real>& outputs)
{
    const Task<Real> task = taskOf<Real>({ x, box, forces, nullptr, request, stream }, outputs);
    auto& own             = SolverAccess<Real>::of(solver);
    own.enter([&] { own.enqueue(task); });
}

template<class Real>
ChargeTotals setCharges(Solver<Real>& solver, const Real* q, int n, cudaStream_t stream)
{
    auto& own             = SolverAccess<Real>::of(solver);
    const ChargeSums sums = own.enter([&] { return own.setChargesOnDevice(q, n, stream); });
    return { sums.charged, sums.net, sums.squared };
}

template<class Real>
Totals wait(CoulombSolver<Real>& solver)
{
    auto& own = SolverAccess<Real>::of(solver);
    return own.enter([&] { return own.wait(); });
}

template<class Real>
void evaluateTangent(Solver<Real>& solver,
                     const Real* x,
                     const double box[3][3],
                     const Direction<Real>& direction,
                     const Tangent<Real>& tangent,
                     const Request& request,
                     cudaStream_t stream)
{
    const Task<Real> task = { x, box, nullptr, nullptr, request, stream };
    auto& own             = SolverAccess<Real>::of(solver);
    own.enter([&] { own.evaluateTangentOnDevice(task, direction, tangent); });
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
    auto& own              = SolverAccess<Real>::of(solver);
    own.enter([&] { own.evaluateAtOnDevice(task, all); });
}

template<class Real>
bool mustRecordAgain(const CoulombSolver<Real>& solver)
{
    return withMemoryErrors([&] { return SolverAccess<Real>::of(solver).mustRecordAgain(); });
}

template<class Real>
bool mayUpdateGraphs(const CoulombSolver<Real>& solver)
{
    return withMemoryErrors([&] { return SolverAccess<Real>::of(solver).mayUpdateGraphs(); });
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
    auto& own             = SolverAccess<Real>::of(solver);
    return own.enter([&] { return own.measureStages(task, repeats); });
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template FARFIELD_EXPORT void enqueue<Real>(CoulombSolver<Real>&,                              \
                                                const Real*,                                       \
                                                const double[3][3],                                \
                                                Real*,                                             \
                                                const Request&,                                    \
                                                cudaStream_t);                                     \
    template FARFIELD_EXPORT void enqueue<Real>(Solver<Real>&,                                     \
                                                const Real*,                                       \
                                                const double[3][3],                                \
                                                Real*,                                             \
                                                const Request&,                                    \
                                                cudaStream_t,                                      \
                                                const Outputs<Real>&);                             \
    template FARFIELD_EXPORT decltype(wait<Real>) wait<Real>;                                      \
    template FARFIELD_EXPORT decltype(setCharges<Real>) setCharges<Real>;                          \
    template FARFIELD_EXPORT bool mustRecordAgain(const CoulombSolver<Real>&);                     \
    template FARFIELD_EXPORT decltype(mayUpdateGraphs<Real>) mayUpdateGraphs<Real>;                \
    template FARFIELD_EXPORT decltype(evaluateTangent<Real>) evaluateTangent<Real>;                \
    template FARFIELD_EXPORT decltype(evaluateAt<Real>) evaluateAt<Real>;                          \
    template FARFIELD_EXPORT decltype(measureStages<Real>) measureStages<Real>;

// NOLINTEND(bugprone-macro-parentheses)
FARFIELD_INSTANTIATE(float)
FARFIELD_INSTANTIATE(double)

} // namespace farfield
