/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Arrays in the memory of a GPU, of whatever package speaks DLPack, without copies.
 */
#ifndef FARFIELD_PYTHON_BINDINGS_ON_GPU_H
#define FARFIELD_PYTHON_BINDINGS_ON_GPU_H

#include <cuda_runtime_api.h>

#include "farfield/farfield_cuda.h"

#include "python_solver.h"

namespace farfield
{

template<class Real>
using PositionsOnGpu = nb::ndarray<const Real, nb::shape<-1, 3>, nb::c_contig, nb::device::cuda>;
template<class Real>
using ChargesOnGpu = nb::ndarray<const Real, nb::shape<-1>, nb::c_contig, nb::device::cuda>;
//! What is returned: an object that any package takes by from_dlpack().
template<class Real, int dimensions>
using OnGpu = nb::ndarray<nb::array_api, Real, nb::ndim<dimensions>, nb::device::cuda>;

inline void checkCuda(cudaError_t status, const char* what)
{
    if (status != cudaSuccess)
    {
        (void)cudaGetLastError();
        throw Error(status == cudaErrorMemoryAllocation ? ErrorCode::OutOfMemory
                                                        : ErrorCode::DeviceFailure,
                    std::string("CUDA reports '") + cudaGetErrorString(status) + "' while " + what
                            + ".");
    }
}

//! Memory of the GPU of an array, which Python owns from here on.
template<class Real, int dimensions>
OnGpu<Real, dimensions> makeOnGpu(const std::array<size_t, dimensions>& shape, int device)
{
    size_t size = sizeof(Real);
    for (const size_t extent : shape)
    {
        size *= extent;
    }
    void* memory = nullptr;
    checkCuda(cudaMalloc(&memory, std::max<size_t>(size, 1)), "allocating memory");
    // Unlike cudaFreeAsync() this waits for whoever still reads it, in any stream
    const nb::capsule owner(memory, [](void* p) noexcept { (void)cudaFree(p); });
    return OnGpu<Real, dimensions>(memory,
                                   dimensions,
                                   shape.data(),
                                   owner,
                                   nullptr,
                                   nb::dtype<Real>(),
                                   nb::device::cuda::value,
                                   device);
}

//! While it lives, a GPU is the current one of this thread.
class CurrentGpu
{
public:
    explicit CurrentGpu(int device)
    {
        checkCuda(cudaGetDevice(&before_), "looking for the GPU in use");
        checkCuda(cudaSetDevice(device), "choosing a GPU");
    }
    ~CurrentGpu() { (void)cudaSetDevice(before_); }
    CurrentGpu(const CurrentGpu&)            = delete;
    CurrentGpu& operator=(const CurrentGpu&) = delete;

private:
    int before_ = 0;
};

//! That an array is where a solver reads it. \param[in] what  is in the array
template<class Real, class Array>
void checkGpu(PythonSolver<Real>& python, const Array& array, const char* what)
{
    const int device = python.solver().setup().deviceId;
    if (device >= 0 && device != array.device_id())
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::string("The ") + what + " are on the GPU "
                            + std::to_string(array.device_id()) + ", but the solver has the GPU "
                            + std::to_string(device) + ".");
    }
}

//! Waits for what any stream of the GPU does with the arrays.
inline void waitForArrays()
{
    const nb::gil_scoped_release release;
    checkCuda(cudaDeviceSynchronize(), "waiting for the arrays");
}

/*! \brief As PythonSolver::setCharges().
 *  \returns a copy of the charges, and the mean square of those that are not zero, e^2 */
template<class Real>
std::pair<OnGpu<Real, 1>, double> setChargesOnGpu(PythonSolver<Real>& python,
                                                  const ChargesOnGpu<Real>& q)
{
    checkGpu(python, q, "charges");
    const CurrentGpu current(q.device_id());
    waitForArrays();
    OnGpu<Real, 1> copy = makeOnGpu<Real, 1>({ q.shape(0) }, q.device_id());
    checkCuda(cudaMemcpy(copy.data(), q.data(), q.nbytes(), cudaMemcpyDeviceToDevice),
              "copying charges");
    ChargeTotals totals = {};
    {
        const nb::gil_scoped_release release;
        totals = setCharges(python.solver(), q.data(), sizeOf(q.size()), nullptr);
    }
    python.setCount(q.size());
    return { copy, totals.squared / static_cast<double>(std::max(totals.charged, 1LL)) };
}

//! What is computed at particles, by the names of Outputs; None where it is not wanted.
template<class Real>
struct OutputsOnGpu
{
    template<int Dimensions>
    using Array = std::optional<OnGpu<Real, Dimensions>>;
    Array<1> potentials;
    Array<2> gradients, hessians, torques;
};

/*! \brief As PythonSolver::evaluate().
 *  \param[in] wanted  potentials, gradients, second derivatives, torques
 *  \returns energy, virial, dV/dlambda, forces, and what is wanted */
template<class Real>
auto evaluateOnGpu(PythonSolver<Real>& python,
                   const PositionsOnGpu<Real>& x,
                   const Box& box,
                   const std::array<bool, 4>& wanted,
                   bool virial,
                   const std::array<double, 3>& gridOffset,
                   double lambda,
                   bool slope)
{
    checkSize(x.shape(0), python.count(), "positions");
    Request request       = requestOf(virial, gridOffset, lambda, slope);
    request.mayHaveJumped = true;
    checkGpu(python, x, "positions");
    const CurrentGpu current(x.device_id());
    waitForArrays();
    OnGpu<Real, 2> forces = makeOnGpu<Real, 2>({ x.shape(0), 3 }, x.device_id());
    OutputsOnGpu<Real> own;
    if (wanted[0])
    {
        own.potentials = makeOnGpu<Real, 1>({ x.shape(0) }, x.device_id());
    }
    const auto make = [&](int which, size_t each, std::optional<OnGpu<Real, 2>>* array)
    {
        if (wanted[which])
        {
            *array = makeOnGpu<Real, 2>({ x.shape(0), each }, x.device_id());
        }
        return wanted[which] ? (*array)->data() : nullptr;
    };
    Outputs<Real> outputs;
    outputs.potentials = own.potentials ? own.potentials->data() : nullptr;
    outputs.gradients  = make(1, 3, &own.gradients);
    outputs.hessians   = make(2, 6, &own.hessians);
    outputs.torques    = make(3, 3, &own.torques);
    Totals totals;
    {
        const nb::gil_scoped_release release;
        enqueue(python.solver(), x.data(), rows(box), forces.data(), request, nullptr, outputs);
        totals = wait(python.solver());
    }
    return std::make_tuple(totals.energy,
                           virialOf(totals),
                           totals.dEnergyDLambda,
                           forces,
                           own.potentials,
                           own.gradients,
                           own.hessians,
                           own.torques);
}

//! As PythonSolver::evaluateAt(). \returns potentials and fields
template<class Real>
std::pair<OnGpu<Real, 1>, OnGpu<Real, 2>> evaluateAtOnGpu(PythonSolver<Real>& python,
                                                          const PositionsOnGpu<Real>& x,
                                                          const Box& box,
                                                          const PositionsOnGpu<Real>& at,
                                                          const std::array<double, 3>& gridOffset)
{
    checkSize(x.shape(0), python.count(), "positions");
    Request request;
    request.gridOffset = gridOffset;
    checkGpu(python, x, "positions");
    checkGpu(python, at, "points");
    const CurrentGpu current(x.device_id());
    waitForArrays();
    OnGpu<Real, 1> potentials = makeOnGpu<Real, 1>({ at.shape(0) }, x.device_id());
    OnGpu<Real, 2> fields     = makeOnGpu<Real, 2>({ at.shape(0), 3 }, x.device_id());
    {
        const nb::gil_scoped_release release;
        evaluateAt(python.solver(),
                   x.data(),
                   rows(box),
                   at.data(),
                   sizeOf(at.shape(0)),
                   potentials.data(),
                   fields.data(),
                   request,
                   nullptr);
    }
    return { potentials, fields };
}

/*! \brief As PythonSolver::evaluateTangent().
 *  \param[in] dx, dq  None where nothing changes
 *  \returns forces and potentials */
template<class Real>
std::pair<OnGpu<Real, 2>, OnGpu<Real, 1>>
evaluateTangentOnGpu(PythonSolver<Real>& python,
                     const PositionsOnGpu<Real>& x,
                     const std::optional<PositionsOnGpu<Real>>& dx,
                     const std::optional<ChargesOnGpu<Real>>& dq,
                     const Box& box,
                     const std::array<double, 3>& gridOffset)
{
    checkSize(x.shape(0), python.count(), "positions");
    checkGpu(python, x, "positions");
    Direction<Real> direction;
    if (dx)
    {
        checkSize(dx->shape(0), python.count(), "changes of positions");
        checkGpu(python, *dx, "changes of positions");
        direction.x = dx->data();
    }
    if (dq)
    {
        checkSize(dq->shape(0), python.count(), "changes of charges");
        checkGpu(python, *dq, "changes of charges");
        direction.q = dq->data();
    }
    Request request;
    request.gridOffset    = gridOffset;
    request.mayHaveJumped = true;
    const CurrentGpu current(x.device_id());
    waitForArrays();
    OnGpu<Real, 2> forces     = makeOnGpu<Real, 2>({ x.shape(0), 3 }, x.device_id());
    OnGpu<Real, 1> potentials = makeOnGpu<Real, 1>({ x.shape(0) }, x.device_id());
    {
        const nb::gil_scoped_release release;
        const Tangent<Real> tangent = { forces.data(), potentials.data() };
        evaluateTangent(python.solver(), x.data(), rows(box), direction, tangent, request, nullptr);
    }
    return { forces, potentials };
}

template<class Real>
void bindOnGpu(nb::class_<PythonSolver<Real>>* solver)
{
    solver->def("set_charges_on_gpu", &setChargesOnGpu<Real>);
    solver->def("evaluate_on_gpu", &evaluateOnGpu<Real>);
    solver->def("evaluate_at_on_gpu", &evaluateAtOnGpu<Real>);
    solver->def("evaluate_tangent_on_gpu", &evaluateTangentOnGpu<Real>);
}

} // namespace farfield

#endif
