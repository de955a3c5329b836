/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Batches of arrays in the memory of a GPU, without copies.
 */
#ifndef FARFIELD_PYTHON_BINDINGS_BATCH_ON_GPU_H
#define FARFIELD_PYTHON_BINDINGS_BATCH_ON_GPU_H

#include <cstdint>

#include "on_gpu.h"
#include "python_batch.h"

namespace farfield
{

template<class Real>
using TableOnGpu = nb::ndarray<const Real, nb::ndim<2>, nb::c_contig, nb::device::cuda>;
template<class Real>
using FilledTableOnGpu = nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cuda>;
using BoxesOnGpu   = nb::ndarray<const double, nb::shape<-1, 3, 3>, nb::c_contig, nb::device::cuda>;
using TensorsOnGpu = nb::ndarray<double, nb::shape<-1, 3, 3>, nb::c_contig, nb::device::cuda>;
using ErrorsOnGpu  = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cuda>;

using IndicesAnywhere = nb::ndarray<const int, nb::ndim<1>, nb::c_contig>;

/*! \brief As PythonBatch::evaluate(), in order with a stream.
 *
 *  Offsets are on the host or on the GPU. */
template<class Real>
void evaluateBatchOnGpu(PythonBatch<Real>& python,
                        const PositionsOnGpu<Real>& x,
                        const TableOnGpu<Real>& q,
                        const IndicesAnywhere& offsets,
                        const BoxesOnGpu& boxes,
                        const ValuesOnGpu<double>& energies,
                        const FilledTableOnGpu<Real>& forces,
                        const std::optional<FilledTableOnGpu<Real>>& potentials,
                        const std::optional<TensorsOnGpu>& virials,
                        const ValuesOnGpu<double>& errors,
                        std::uintptr_t stream)
{
    const nb::gil_scoped_release release;
    python.batch().evaluate(inputOf<Real>(x, q, offsets, boxes),
                            { energies.data(),
                              forces.data(),
                              potentials ? potentials->data() : nullptr,
                              virials ? virials->data() : nullptr,
                              errors.data() },
                            streamAt(stream));
}

//! As PythonBatch::evaluateTangent(), in order with a stream.
template<class Real>
void evaluateBatchTangentOnGpu(PythonBatch<Real>& python,
                               const PositionsOnGpu<Real>& x,
                               const TableOnGpu<Real>& q,
                               const IndicesAnywhere& offsets,
                               const BoxesOnGpu& boxes,
                               const std::optional<PositionsOnGpu<Real>>& dx,
                               const std::optional<TableOnGpu<Real>>& dq,
                               const std::optional<BoxesOnGpu>& dBoxes,
                               const std::optional<ErrorsOnGpu>& errors,
                               const FilledTableOnGpu<Real>& forces,
                               const FilledTableOnGpu<Real>& potentials,
                               const std::optional<TensorsOnGpu>& virials,
                               std::uintptr_t stream)
{
    const nb::gil_scoped_release release;
    python.batch().evaluateTangent(
            inputOf<Real>(x, q, offsets, boxes),
            { dx ? dx->data() : nullptr,
              dq ? dq->data() : nullptr,
              dBoxes ? dBoxes->data() : nullptr },
            errors ? errors->data() : nullptr,
            { forces.data(), potentials.data(), virials ? virials->data() : nullptr },
            streamAt(stream));
}

template<class Real>
void bindBatchOnGpu(nb::class_<PythonBatch<Real>>* batch)
{
    using namespace nb::literals;
    batch->def("evaluate_on_gpu",
               &evaluateBatchOnGpu<Real>,
               "x"_a,
               "charges"_a,
               "offsets"_a,
               "boxes"_a,
               "energies"_a.noconvert(),
               "forces"_a.noconvert(),
               "potentials"_a.none().noconvert(),
               "virials"_a.none().noconvert(),
               "errors"_a.noconvert(),
               "stream"_a);
    batch->def("evaluate_tangent_on_gpu",
               &evaluateBatchTangentOnGpu<Real>,
               "x"_a,
               "charges"_a,
               "offsets"_a,
               "boxes"_a,
               "dx"_a.none(),
               "dq"_a.none(),
               "dboxes"_a.none(),
               "errors"_a.none(),
               "forces"_a.noconvert(),
               "potentials"_a.noconvert(),
               "virials"_a.none().noconvert(),
               "stream"_a);
}

} // namespace farfield

#endif
