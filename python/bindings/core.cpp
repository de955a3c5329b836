/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The extension module, which the package wraps.
 */
#include "python_batch.h"
#include "python_kernels.h"
#include "python_solver.h"

#ifdef FARFIELD_PYTHON_ON_GPU
#include "batch_on_gpu.h"
#include "on_gpu.h"
#endif

using namespace nb::literals;

namespace farfield
{
namespace
{

template<class Real>
void bind(nb::module_& module, const char* name)
{
    using Class = PythonSolver<Real>;
    nb::class_<Class> solver(module, name);
    solver.def(nb::init<const nb::dict&, int>())
            .def("set_charges", &Class::setCharges)
            .def("set_perturbed_charges", &Class::setPerturbedCharges)
            .def("set_exclusions", &Class::setExclusions)
            .def("set_dipoles", &Class::setDipoles, "dipoles"_a.none())
            .def("set_quadrupoles", &Class::setQuadrupoles, "quadrupoles"_a.none())
            .def("set_near_function", &Class::setNearFunction)
            .def("prepare", &Class::prepare)
            .def("evaluate",
                 &Class::evaluate,
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
                 "slope"_a)
            .def("evaluate_tangent",
                 &Class::evaluateTangent,
                 "x"_a,
                 "box"_a,
                 "dx"_a.none(),
                 "dq"_a.none(),
                 "forces"_a.noconvert(),
                 "potentials"_a.noconvert(),
                 "grid_offset"_a)
            .def("induce_dipoles",
                 &Class::induceDipoles,
                 "x"_a,
                 "box"_a,
                 "polarisabilities"_a,
                 "dipoles"_a.noconvert(),
                 "tolerance"_a,
                 "grid_offset"_a)
            .def("evaluate_at",
                 &Class::evaluateAt,
                 "x"_a,
                 "box"_a,
                 "at"_a,
                 "potentials"_a.noconvert(),
                 "fields"_a.noconvert(),
                 "grid_offset"_a)
            .def("group_energies", &Class::groupEnergies)
            .def("setup", &Class::setup)
            .def("coulomb_constant", &Class::coulombConstant)
            .def("is_best_effort", &Class::isBestEffort)
            .def("state", &Class::state)
            .def("restore", &Class::restore)
            .def("timings", &Class::timings);
#ifdef FARFIELD_PYTHON_ON_GPU
    bindOnGpu(&solver);
#endif
}

template<class Real>
void bindBatch(nb::module_& module, const char* name)
{
    using Class = PythonBatch<Real>;
    nb::class_<Class> batch(module, name);
    batch.def(nb::init<const nb::dict&, int, double, double, bool, bool, int>())
            .def("evaluate",
                 &Class::evaluate,
                 "x"_a,
                 "charges"_a,
                 "offsets"_a,
                 "boxes"_a,
                 "energies"_a.noconvert(),
                 "forces"_a.noconvert(),
                 "potentials"_a.none().noconvert(),
                 "virials"_a.none().noconvert(),
                 "errors"_a.noconvert())
            .def("finish", &Class::finish)
            .def("evaluate_tangent",
                 &Class::evaluateTangent,
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
                 "virials"_a.none().noconvert())
            .def("setup", &Class::setup);
#ifdef FARFIELD_PYTHON_ON_GPU
    bindBatchOnGpu(&batch);
#endif
}

} // namespace
} // namespace farfield

NB_MODULE(_core, module)
{
    using namespace farfield;
    // graphs of PyTorch that a script holds at its end have objects of this module
    nb::set_leak_warnings(false);
    nb::register_exception_translator(
            [](const std::exception_ptr& pointer, void*)
            {
                try
                {
                    std::rethrow_exception(pointer);
                }
                catch (const Error& error)
                {
                    PyObject* const kind =
                            error.code() == ErrorCode::InvalidArgument ? PyExc_ValueError
                            : error.code() == ErrorCode::OutOfMemory   ? PyExc_MemoryError
                                                                       : PyExc_RuntimeError;
                    PyErr_SetString(kind, error.what());
                }
            });
    bind<float>(module, "SingleSolver");
    bind<double>(module, "DoubleSolver");
    bindBatch<float>(module, "SingleBatch");
    bindBatch<double>(module, "DoubleBatch");
    bindKernels(module);
#ifdef FARFIELD_PYTHON_ON_GPU
    bindArraysOnGpu(module);
#endif
    module.def("version", &version);
}
