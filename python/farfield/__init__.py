# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies, forces and virials of point charges by a fast multipole method, and sums of other kernels.

    solver = farfield.Solver(accuracy=1e-5)
    solver.set_charges(q)
    result = solver.evaluate(x, box)

Units are those of GROMACS: nm, e, kJ/mol.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .batch import Batch, BatchResult, BatchTangent
    from .kernels import Kernel, KernelResult, KernelSum
    from .solver import InducedDipoles, Result, Solver, Tangent

_MODULES = {
    "Batch": "batch",
    "BatchResult": "batch",
    "BatchTangent": "batch",
    "InducedDipoles": "solver",
    "Kernel": "kernels",
    "KernelResult": "kernels",
    "KernelSum": "kernels",
    "Result": "solver",
    "Solver": "solver",
    "Tangent": "solver",
}
__all__ = [  # the same names: type checkers do not run this
    "Batch",
    "BatchResult",
    "BatchTangent",
    "InducedDipoles",
    "Kernel",
    "KernelResult",
    "KernelSum",
    "Result",
    "Solver",
    "Tangent",
    "__version__",
]


def __getattr__(name):
    # What runs gmx does without the compiled library
    if name == "__version__":
        from ._library import _core

        return _core.version()
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
