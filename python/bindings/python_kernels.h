/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums of a kernel as Python sees them: arrays in, arrays of the caller filled.
 */
#ifndef FARFIELD_PYTHON_BINDINGS_PYTHON_KERNELS_H
#define FARFIELD_PYTHON_BINDINGS_PYTHON_KERNELS_H

#include <optional>

#include "farfield/farfield_kernels.h"

#include "python_batch.h"

namespace farfield
{

using Places = nb::ndarray<const double, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
//! [points][sets][3]
template<class Real>
using FilledFields = nb::ndarray<Real, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;

//! Sums of one kernel; the sizes of arrays are those that the package has checked.
template<class Real>
class PythonKernelSum
{
public:
    //! \param[in] mostThreads  no more threads than these, whatever the options say
    PythonKernelSum(const Kernel& kernel, const nb::dict& given, bool ofForces, int mostThreads) :
        sum_(kernel, optionsOf(given, ofForces, mostThreads))
    {
    }

    void evaluate(const Places& x,
                  const Table<Real>& q,
                  const std::optional<Box>& box,
                  const std::optional<Places>& at,
                  const std::optional<Indices>& offsets,
                  const std::optional<Indices>& partners,
                  const FilledTable<Real>& potentials,
                  const FilledFields<Real>& fields,
                  const std::optional<Tensors>& virials)
    {
        KernelInput<Real> input;
        input.x      = x.data();
        input.q      = q.data();
        input.n      = sizeOf(x.shape(0));
        input.sets   = sizeOf(q.shape(1));
        input.box    = box ? rows(*box) : nullptr;
        input.at     = at ? at->data() : nullptr;
        input.points = at ? sizeOf(at->shape(0)) : -1;
        KernelOutput<Real> output{ potentials.data(), fields.data() };
        output.virials = virials ? reinterpret_cast<double(*)[3][3]>(virials->data()) : nullptr;
        const nb::gil_scoped_release release;
        sum_.setExclusions(offsets ? offsets->data() : nullptr,
                           partners ? partners->data() : nullptr,
                           offsets ? sizeOf(offsets->size() - 1) : 0);
        sum_.evaluate(input, output);
    }

    nb::dict setup() const
    {
        const KernelSetup s = sum_.setup();
        nb::dict result;
        result["device"]         = nameOf(s.device);
        result["threads"]        = s.threads;
        result["degree"]         = s.degree;
        result["coefficients"]   = s.coefficients;
        result["direct_range"]   = s.directRange;
        result["levels"]         = s.levels;
        result["cell"]           = s.cell;
        result["measured_error"] = s.measuredError;
        return result;
    }

private:
    static KernelOptions optionsOf(const nb::dict& given, bool ofForces, int mostThreads)
    {
        const Options shared = pythonOptions<Real>(given, mostThreads);
        KernelOptions options;
        options.accuracy = shared.accuracy;
        options.ofForces = ofForces;
        options.boundary = shared.boundary;
        options.device   = shared.device;
        options.deviceId = shared.deviceId;
        options.threads  = shared.threads;
        return options;
    }

    KernelSum<Real> sum_;
};

template<class Real>
void bindKernelSum(nb::module_& module, const char* name)
{
    using namespace nb::literals;
    using Class = PythonKernelSum<Real>;
    nb::class_<Class>(module, name)
            .def(nb::init<const Kernel&, const nb::dict&, bool, int>())
            .def("evaluate",
                 &Class::evaluate,
                 "x"_a,
                 "charges"_a,
                 "box"_a.none(),
                 "at"_a.none(),
                 "offsets"_a.none(),
                 "partners"_a.none(),
                 "potentials"_a.noconvert(),
                 "fields"_a.noconvert(),
                 "virials"_a.none().noconvert())
            .def("setup", &Class::setup);
}

inline void bindKernels(nb::module_& module)
{
    nb::class_<Kernel>(module, "Kernel")
            .def_static("yukawa", &Kernel::yukawa)
            .def_static("inverse_power", &Kernel::inversePower)
            .def_static("table", &Kernel::table)
            .def("value", &Kernel::value)
            .def("slope", &Kernel::slope)
            .def("name", &Kernel::name);
    bindKernelSum<float>(module, "SingleKernelSum");
    bindKernelSum<double>(module, "DoubleKernelSum");
}

} // namespace farfield

#endif
