# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies, forces and virials of periodic point charges by a fast multipole method.

    solver = farfield.Solver(accuracy=1e-5)
    solver.set_charges(q)
    result = solver.evaluate(x, box)

Units are those of GROMACS: nm, e, kJ/mol.
"""

from ._core import version as _version
from .solver import Result, Solver

__all__ = ["Result", "Solver"]
__version__ = _version()
