# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies, forces and virials of periodic point charges by a fast multipole method.

    solver = farfield.Solver(accuracy=1e-5)
    solver.set_charges(q)
    result = solver.evaluate(x, box)

Units are those of GROMACS: nm, e, kJ/mol.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .batch import Batch, BatchResult, BatchTangent
    from .solver import InducedDipoles, Result, Solver, Tangent

__all__ = ["Batch", "BatchResult", "BatchTangent", "InducedDipoles", "Result", "Solver", "Tangent", "__version__"]


def __getattr__(name):
    # What runs gmx does without the compiled library
    if name == "__version__":
        from ._library import _core

        return _core.version()
    if name in __all__:
        from . import batch, solver

        return getattr(batch if name.startswith("Batch") else solver, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
