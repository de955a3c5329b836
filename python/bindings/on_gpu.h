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

#include <cstdint>
#include <optional>

#include <cuda_runtime_api.h>

#include "farfield/farfield_cuda.h"

#include "python_solver.h"

namespace farfield
{

template<class Real>
using PositionsOnGpu = nb::ndarray<const Real, nb::shape<-1, 3>, nb::c_contig, nb::device::cuda>;
template<class Real>
using ChargesOnGpu = nb::ndarray<const Real, nb::shape<-1>, nb::c_contig, nb::device::cuda>;
//! Arrays that are filled.
template<class Real>
using VectorsOnGpu = nb::ndarray<Real, nb::shape<-1, 3>, nb::c_contig, nb::device::cuda>;
template<class Real>
using ValuesOnGpu = nb::ndarray<Real, nb::ndim<1>, nb::c_contig, nb::device::cuda>;
template<class Real>
using HessiansOnGpu = nb::ndarray<Real, nb::shape<-1, 6>, nb::c_contig, nb::device::cuda>;
using Address       = std::optional<std::uintptr_t>;

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

/*! \brief The stream that a call works in, after what was given to the arrays before.
 *
 *  \param[in] address  None: it is the default one, after all work of the current GPU */
inline cudaStream_t streamAt(const Address& address)
{
    if (!address)
    {
        const nb::gil_scoped_release release;
        checkCuda(cudaDeviceSynchronize(), "waiting for the arrays");
    }
    return reinterpret_cast<cudaStream_t>(address.value_or(0));
}

/*! \brief Floating-point numbers in the memory of a GPU, for any package that speaks DLPack.
 *  \param[in] bytes    of each number
 *  \param[in] address  of memory that outlives what is returned; None: it has memory of its own */
inline nb::ndarray<nb::array_api, nb::device::cuda>
arrayOnGpu(const std::vector<size_t>& shape, int bytes, int device, const Address& address)
{
    void* memory = reinterpret_cast<void*>(address.value_or(0));
    nb::object owner;
    if (!address)
    {
        const CurrentGpu current(device);
        size_t size = bytes;
        for (const size_t extent : shape)
        {
            size *= extent;
        }
        checkCuda(cudaMalloc(&memory, std::max<size_t>(size, 1)), "allocating memory");
        // Unlike cudaFreeAsync() this waits for whoever still reads it, in any stream
        owner = nb::capsule(memory, [](void* p) noexcept { (void)cudaFree(p); });
    }
    const nb::dlpack::dtype type = { static_cast<uint8_t>(nb::dlpack::dtype_code::Float),
                                     static_cast<uint8_t>(8 * bytes),
                                     1 };
    return { memory, shape.size(), shape.data(), owner, nullptr, type, nb::device::cuda::value,
             device };
}

//! The GPU whose memory an address is in.
inline int gpuOf(std::uintptr_t address)
{
    cudaPointerAttributes attributes = {};
    checkCuda(cudaPointerGetAttributes(&attributes, reinterpret_cast<const void*>(address)),
              "looking for the GPU of an array");
    return attributes.device;
}

//! Copies numbers between the host and a GPU, in order with a stream, and waits until they are there.
inline void copyNumbers(const nb::ndarray<nb::c_contig>& to,
                        const nb::ndarray<nb::ro, nb::c_contig>& from,
                        const Address& address)
{
    const bool isFromGpu = from.device_type() == nb::device::cuda::value;
    const CurrentGpu current(isFromGpu ? from.device_id() : to.device_id());
    const cudaStream_t stream = streamAt(address);
    const nb::gil_scoped_release release;
    checkCuda(cudaMemcpyAsync(to.data(), from.data(), from.nbytes(), cudaMemcpyDefault, stream),
              "copying an array");
    checkCuda(cudaStreamSynchronize(stream), "copying an array");
}

/*! \brief As PythonSolver::setCharges().
 *  \param[out] copy  of the charges
 *  \returns the mean square of those that are not zero, e^2 */
template<class Real>
double setChargesOnGpu(PythonSolver<Real>& python,
                       const ChargesOnGpu<Real>& q,
                       const ValuesOnGpu<Real>& copy,
                       const Address& address)
{
    checkGpu(python, q, "charges");
    const CurrentGpu current(q.device_id());
    const cudaStream_t stream = streamAt(address);
    ChargeTotals totals       = {};
    {
        const nb::gil_scoped_release release;
        totals = setCharges(python.solver(), q.data(), sizeOf(q.size()), stream);
        checkCuda(cudaMemcpyAsync(
                          copy.data(), q.data(), q.nbytes(), cudaMemcpyDeviceToDevice, stream),
                  "copying charges");
        checkCuda(cudaStreamSynchronize(stream), "copying charges");
    }
    python.setCount(q.size());
    return totals.squared / static_cast<double>(std::max(totals.charged, 1LL));
}

//! As PythonSolver::evaluate(). \returns energy, virial and dV/dlambda
template<class Real>
std::tuple<double, Matrix, double> evaluateOnGpu(PythonSolver<Real>& python,
                                                 const PositionsOnGpu<Real>& x,
                                                 const Box& box,
                                                 const VectorsOnGpu<Real>& forces,
                                                 const std::optional<ValuesOnGpu<Real>>& potentials,
                                                 const std::optional<VectorsOnGpu<Real>>& gradients,
                                                 const std::optional<HessiansOnGpu<Real>>& hessians,
                                                 const std::optional<VectorsOnGpu<Real>>& torques,
                                                 bool virial,
                                                 const std::array<double, 3>& gridOffset,
                                                 double lambda,
                                                 bool slope,
                                                 const Address& address)
{
    checkSize(x.shape(0), python.count(), "positions");
    Request request       = requestOf(virial, gridOffset, lambda, slope);
    request.mayHaveJumped = true;
    checkGpu(python, x, "positions");
    const CurrentGpu current(x.device_id());
    const cudaStream_t stream = streamAt(address);
    Outputs<Real> outputs;
    outputs.potentials = potentials ? potentials->data() : nullptr;
    outputs.gradients  = gradients ? gradients->data() : nullptr;
    outputs.hessians   = hessians ? hessians->data() : nullptr;
    outputs.torques    = torques ? torques->data() : nullptr;
    Totals totals;
    {
        const nb::gil_scoped_release release;
        enqueue(python.solver(), x.data(), rows(box), forces.data(), request, stream, outputs);
        totals = wait(python.solver());
    }
    return { totals.energy, virialOf(totals), totals.dEnergyDLambda };
}

//! As PythonSolver::evaluateAt().
template<class Real>
void evaluateAtOnGpu(PythonSolver<Real>& python,
                     const PositionsOnGpu<Real>& x,
                     const Box& box,
                     const PositionsOnGpu<Real>& at,
                     const ValuesOnGpu<Real>& potentials,
                     const VectorsOnGpu<Real>& fields,
                     const std::array<double, 3>& gridOffset,
                     const Address& address)
{
    checkSize(x.shape(0), python.count(), "positions");
    Request request;
    request.gridOffset = gridOffset;
    checkGpu(python, x, "positions");
    checkGpu(python, at, "points");
    const CurrentGpu current(x.device_id());
    const cudaStream_t stream = streamAt(address);
    const nb::gil_scoped_release release;
    evaluateAt(python.solver(),
               x.data(),
               rows(box),
               at.data(),
               sizeOf(at.shape(0)),
               potentials.data(),
               fields.data(),
               request,
               stream);
}

/*! \brief As PythonSolver::evaluateTangent().
 *  \param[in] dx, dq  None where nothing changes */
template<class Real>
void evaluateTangentOnGpu(PythonSolver<Real>& python,
                          const PositionsOnGpu<Real>& x,
                          const Box& box,
                          const std::optional<PositionsOnGpu<Real>>& dx,
                          const std::optional<ChargesOnGpu<Real>>& dq,
                          const VectorsOnGpu<Real>& forces,
                          const ValuesOnGpu<Real>& potentials,
                          const std::array<double, 3>& gridOffset,
                          const Address& address)
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
    const cudaStream_t stream = streamAt(address);
    const nb::gil_scoped_release release;
    const Tangent<Real> tangent = { forces.data(), potentials.data() };
    evaluateTangent(python.solver(), x.data(), rows(box), direction, tangent, request, stream);
}

template<class Real>
void bindOnGpu(nb::class_<PythonSolver<Real>>* solver)
{
    using namespace nb::literals;
    solver->def("set_charges_on_gpu",
                &setChargesOnGpu<Real>,
                "q"_a,
                "copy"_a.noconvert(),
                "stream"_a.none());
    solver->def("evaluate_on_gpu",
                &evaluateOnGpu<Real>,
                "x"_a,
                "box"_a,
                "forces"_a.noconvert(),
                "potentials"_a.none().noconvert(),
                "gradients"_a.none().noconvert(),
                "hessians"_a.none().noconvert(),
                "torques"_a.none().noconvert(),
                "virial"_a,
                "grid_offset"_a,
                "lambda_"_a,
                "slope"_a,
                "stream"_a.none());
    solver->def("evaluate_at_on_gpu",
                &evaluateAtOnGpu<Real>,
                "x"_a,
                "box"_a,
                "at"_a,
                "potentials"_a.noconvert(),
                "fields"_a.noconvert(),
                "grid_offset"_a,
                "stream"_a.none());
    solver->def("evaluate_tangent_on_gpu",
                &evaluateTangentOnGpu<Real>,
                "x"_a,
                "box"_a,
                "dx"_a.none(),
                "dq"_a.none(),
                "forces"_a.noconvert(),
                "potentials"_a.noconvert(),
                "grid_offset"_a,
                "stream"_a.none());
}

inline void bindArraysOnGpu(nb::module_& module)
{
    using namespace nb::literals;
    module.def("array_on_gpu",
               &arrayOnGpu,
               "shape"_a,
               "bytes"_a,
               "device"_a,
               "address"_a.none(),
               nb::rv_policy::reference);
    module.def("gpu_of", &gpuOf, "address"_a);
    module.def("copy_numbers", &copyNumbers, "to"_a.noconvert(), "from_"_a, "stream"_a.none());
}

} // namespace farfield

#endif
