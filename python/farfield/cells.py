# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cells of any orientation, and the lower triangular boxes that the library takes."""

import contextlib
import functools
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from .device_arrays import Place


def lower_triangular(vectors: NDArray) -> tuple[NDArray, NDArray]:
    """A box, lower triangular with a positive diagonal, and a rotation or reflection: vectors = box @ turned.

    Args:
        vectors: rows; of a slab two, whose box has a vector across as the third.

    Raises:
        ValueError: they have no volume, or of a slab no area.
    """
    vectors = np.asarray(vectors, dtype=float)
    return _lower_triangular(vectors.tobytes(), len(vectors))


@functools.lru_cache(maxsize=16)
def _lower_triangular(numbers, count):
    """Of so many vectors; what it returns cannot be written to."""
    vectors = np.frombuffer(numbers).reshape(count, 3)
    cell = vectors if len(vectors) == 3 else np.vstack((vectors, np.cross(*vectors)))
    # Rounding of vectors in a plane leaves some units in the last place of their lengths
    lengths = np.linalg.norm(cell, axis=1)
    if not np.isfinite(cell).all() or abs(np.linalg.det(cell)) <= 1e-12 * np.prod(lengths):
        rows = ", ".join(str(row.tolist()) for row in vectors)
        raise ValueError(
            f"The cell vectors {rows} have no {'volume' if len(vectors) == 3 else 'area'}: those of directions "
            "with images must be finite and independent."
        )
    turned = orientation(cell)
    results = np.tril(cell @ turned.T), turned
    for array in results:
        array.flags.writeable = False
    return results


def orientation(cell: Any, package: Any = np) -> Any:
    """The rotation or reflection of a cell: what lower_triangular() calls turned.

    Args:
        cell: vectors as rows, [3, 3], or [2, 3], double precision.
        package: numpy, or another one that has its functions, whose array the cell is.
    """
    normal = package.cross(cell[0], cell[1])
    first, third = cell[0] / package.linalg.norm(cell[0]), normal / package.linalg.norm(normal)
    second = package.cross(third, first)
    if len(cell) == 3:
        third = package.where((cell[2] * normal).sum() < 0, -third, third)
    return package.stack((first, second, third))


def boundary_of(cells: Any) -> str:
    """The boundary of cells, [..., 3, 3], of slabs with two vectors, [..., 2, 3], or of None, which have no images."""
    return "open" if cells is None else "periodic" if cells.shape[-2] == 3 else "slab"


#: Options of a solver that a batch has, too.
_SHARED = ("accuracy", "device", "threads", "coulomb_constant")


def options_of_sums(options: dict) -> dict:
    """Those of a batch whose sums have the second derivatives by cells of what has some options of a solver."""
    return {name: options[name] for name in _SHARED if name in options}


class SystemInCell:
    """Particles in a cell of any orientation, of a solver, and their excluded pairs.

    A solver has no second derivatives by cells: those of direct Ewald sums, which have the same accuracy, are taken.
    """

    def __init__(self, solver: Any, exclusions: Any):
        self.solver, self.exclusions = solver, exclusions

    def check_sums(self) -> None:
        """Raises NotImplementedError if pairs are excluded, which sums do not have."""
        if len(self.exclusions):
            raise NotImplementedError(
                "With exclusions there are no second derivatives by the cell: pass a cell that needs no gradient where "
                "forces are differentiated, or leave the exclusions out."
            )

    def error_of_sums(self, forces: Any) -> Any:
        """The error of forces, [n, 3], of sums that are as accurate as the solver, kJ/mol/nm."""
        return self.solver.accuracy * ((forces * forces).sum() / max(len(forces), 1)) ** 0.5

    @staticmethod
    def box_of(cell: Optional[NDArray]) -> tuple[Optional[NDArray], NDArray]:
        """As lower_triangular(); without a cell there is no box, and nothing turns."""
        return (None, np.eye(3)) if cell is None else lower_triangular(cell)

    @contextlib.contextmanager
    def with_charges(self, charges: Any, place: Optional[Place] = None):
        """The solver, for this system alone, with charges as set_charges() takes them, or in a place."""
        with self.solver.alone():
            if place is None:
                self.solver.set_charges(charges)
            else:
                self.solver.set_charges_in(place, charges)
            self.solver.set_exclusions(self.exclusions)
            yield self.solver
