/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Batches as Python sees them: arrays in, arrays of the caller filled.
 */
#ifndef FARFIELD_PYTHON_BINDINGS_PYTHON_BATCH_H
#define FARFIELD_PYTHON_BINDINGS_PYTHON_BATCH_H

#include <optional>

#include "farfield/farfield_batch.h"

#include "python_solver.h"

namespace farfield
{

template<class Real>
using Table = nb::ndarray<const Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template<class Real>
using FilledTable = nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Boxes       = nb::ndarray<const double, nb::shape<-1, 3, 3>, nb::c_contig, nb::device::cpu>;
using Tensors     = nb::ndarray<double, nb::shape<-1, 3, 3>, nb::c_contig, nb::device::cpu>;

//! The systems of arrays that are all on the host or all on a GPU; offsets may be on either.
template<class Real, class X, class Charges, class Offsets, class Rows>
BatchInput<Real> inputOf(const X& x, const Charges& q, const Offsets& offsets, const Rows& boxes)
{
    const int systems = sizeOf(boxes.shape(0)), particles = sizeOf(x.shape(0));
    return { x.data(), q.data(), offsets.data(), boxes.data(), systems, particles };
}

//! A batch; the sizes of arrays are those that the package has checked.
template<class Real>
class PythonBatch
{
public:
    //! \param[in] mostThreads  no more threads than these, whatever the options say
    PythonBatch(const nb::dict& given,
                int channels,
                double smearing,
                double waveCutoff,
                bool selfEnergy,
                bool asynchronous,
                int mostThreads) :
        batch_(optionsOf(given,
                         channels,
                         smearing,
                         waveCutoff,
                         selfEnergy,
                         asynchronous,
                         mostThreads))
    {
    }

    void evaluate(const Positions<Real>& x,
                  const Table<Real>& q,
                  const Indices& offsets,
                  const Boxes& boxes,
                  const Values<double>& energies,
                  const Vectors<Real>& forces,
                  const std::optional<FilledTable<Real>>& potentials,
                  const std::optional<Tensors>& virials,
                  const Values<double>& errors)
    {
        const nb::gil_scoped_release release;
        batch_.evaluate(inputOf<Real>(x, q, offsets, boxes),
                        { energies.data(),
                          forces.data(),
                          potentials ? potentials->data() : nullptr,
                          virials ? virials->data() : nullptr,
                          errors.data() });
    }

    void evaluateTangent(const Positions<Real>& x,
                         const Table<Real>& q,
                         const Indices& offsets,
                         const Boxes& boxes,
                         const std::optional<Positions<Real>>& dx,
                         const std::optional<Table<Real>>& dq,
                         const std::optional<Boxes>& dBoxes,
                         const std::optional<Vector<double>>& errors,
                         const Vectors<Real>& forces,
                         const FilledTable<Real>& potentials,
                         const std::optional<Tensors>& virials)
    {
        const nb::gil_scoped_release release;
        batch_.evaluateTangent(
                inputOf<Real>(x, q, offsets, boxes),
                { dx ? dx->data() : nullptr,
                  dq ? dq->data() : nullptr,
                  dBoxes ? dBoxes->data() : nullptr },
                errors ? errors->data() : nullptr,
                { forces.data(), potentials.data(), virials ? virials->data() : nullptr });
    }

    void finish()
    {
        const nb::gil_scoped_release release;
        batch_.finish();
    }

    nb::dict setup() const
    {
        const BatchSetup s = batch_.setup();
        nb::dict result;
        result["device"]         = nameOf(s.device);
        result["device_id"]      = s.deviceId;
        result["threads"]        = s.threads;
        result["measured_error"] = s.measuredError;
        result["tightening"]     = s.tightening;
        return result;
    }

    Batch<Real>& batch() { return batch_; }

private:
    static BatchOptions optionsOf(const nb::dict& given,
                                  int channels,
                                  double smearing,
                                  double waveCutoff,
                                  bool selfEnergy,
                                  bool asynchronous,
                                  int mostThreads)
    {
        BatchOptions options = batchOptions(pythonOptions<Real>(given, mostThreads));
        options.channels     = channels;
        options.smearing     = smearing;
        options.waveCutoff   = waveCutoff;
        options.selfEnergy   = selfEnergy;
        options.asynchronous = asynchronous;
        return options;
    }

    Batch<Real> batch_;
};

} // namespace farfield

#endif
