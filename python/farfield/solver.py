# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The solver, with NumPy arrays, or arrays in the memory of a GPU."""

import sys
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._library import _core


@dataclass
class Result:
    """What an evaluation gives; forces and potentials are where the positions are."""

    energy: float  # kJ/mol
    forces: Any  # kJ/mol/nm, [n, 3]
    virial: Optional[NDArray] = None  # -1/2 sum of x f, kJ/mol, [3, 3]
    potentials: Optional[Any] = None  # dE/dq of every particle, kJ/mol/e, [n]
    slope: Optional[float] = None  # dV/dlambda, kJ/mol


class Solver:
    """Point charges in a periodic box, with conducting surroundings, in a slab or without images.

    A net charge in a periodic box is neutralised by a uniform background. One solver is used by one
    thread at a time.

    evaluate() and evaluate_at() take arrays in the memory of a GPU, too, if they speak DLPack, as those
    of PyTorch, CuPy and JAX, have the solver's dtype, and the solver has that GPU: they are read there,
    and what is returned is of the same package and stays there. All that was asked of the GPU before
    is complete first. Everything else is of the host.

    Args:
        accuracy: wanted error of the forces: their RMS error over all particles is at most this
            times their RMS Coulomb force. It decides on what is left open below.
        dtype: numpy.float64, or numpy.float32, which is faster and reaches an accuracy of 2e-6.
        order: multipole order, 0 to 20; None: the accuracy decides.
        direct_range: layers of neighbour cells that interact directly, 1 or 2; None: the cost decides.
        cell_size: wanted edge of a leaf cell, nm; None: the cost decides.
        m2l: "auto", "hierarchy" or "fft", and further engines on a GPU.
        boundary: "periodic"; "open": no images, no box; "slab": images along the first two box
            vectors and none along z. The energy of a slab with a net charge begins where
            a charged plane has the potential zero at the plane; forces do not depend on it.
        device: "auto", "cpu" or "gpu".
        device_id: CUDA device; None: the current one.
        threads: OpenMP threads; None: all that the runtime offers.
        reproducible: bitwise equal results on a GPU, too.
        tune: on a GPU, time the settings that meet the accuracy and take the fastest.
        coulomb_constant: kJ/mol nm/e^2; None: that of GROMACS.

    Raises:
        ValueError: an option is out of range.
        RuntimeError: the device is not there.
    """

    def __init__(
        self,
        accuracy: float = 3e-4,
        dtype: DTypeLike = np.float64,
        *,
        order: Optional[int] = None,
        direct_range: Optional[int] = None,
        cell_size: Optional[float] = None,
        m2l: str = "auto",
        boundary: str = "periodic",
        device: str = "auto",
        device_id: Optional[int] = None,
        threads: Optional[int] = None,
        reproducible: bool = False,
        tune: bool = False,
        coulomb_constant: Optional[float] = None,
    ):
        self.dtype = np.dtype(dtype)
        kinds = {np.dtype(np.float32): _core.SingleSolver, np.dtype(np.float64): _core.DoubleSolver}
        if self.dtype not in kinds:
            raise ValueError(f"dtype is {self.dtype}, but must be float32 or float64.")
        optional = {
            "order": order,
            "directRange": direct_range,
            "cellSize": cell_size,
            "deviceId": device_id,
            "threads": threads,
            "coulombConstant": coulomb_constant,
        }
        options = {name: value for name, value in optional.items() if value is not None}
        options |= {"accuracy": accuracy, "m2l": m2l, "device": device, "tune": tune}
        options |= {"boundary": boundary, "reproducible": reproducible}
        self._core = kinds[self.dtype](options)
        self._count = 0

    def set_charges(self, charges: ArrayLike) -> None:
        """Sets the number of particles and their charges, e, [n].

        Clears the exclusions if the number changes. Particles without charge take no part.
        """
        charges = self._reals(charges)
        self._core.set_charges(charges)
        self._count = len(charges)

    def set_perturbed_charges(self, charges_a: ArrayLike, charges_b: ArrayLike) -> None:
        """Sets charges of two states, e, [n] each, in place of set_charges().

        Energies are mixed: V = (1 - lambda) E(A) + lambda E(B).
        """
        charges_a, charges_b = self._reals(charges_a), self._reals(charges_b)
        self._core.set_perturbed_charges(charges_a, charges_b)
        self._count = len(charges_a)

    def set_exclusions(self, pairs: ArrayLike) -> None:
        """Sets the pairs whose minimum-image interaction is left out, after the charges.

        Args:
            pairs: indices, [m, 2]; each pair in one direction or in both.

        Raises:
            ValueError: an index is out of range.
        """
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= self._count):
            raise ValueError(f"An index of pairs is outside the range 0 to {self._count - 1}.")
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        offsets = np.searchsorted(pairs[:, 0], np.arange(self._count + 1)).astype(np.int32)
        self._core.set_exclusions(offsets, np.ascontiguousarray(pairs[:, 1], dtype=np.int32))

    def prepare(self, x: ArrayLike, box: Optional[ArrayLike] = None) -> None:
        """Chooses order and cells and builds the operators, which the first evaluation does else."""
        self._core.prepare(self._reals(x), _box(box))

    def evaluate(
        self,
        x: ArrayLike,
        box: Optional[ArrayLike] = None,
        *,
        virial: bool = False,
        potentials: bool = False,
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
        lambda_: float = 0.0,
        slope: bool = False,
    ) -> Result:
        """Computes energy and forces, and what is asked for besides.

        Args:
            x: positions, nm, [n, 3], any periodic image.
            box: edges of a rectangular box, nm, [3], or box vectors as rows, lower triangular, [3, 3];
                None where the boundary is open; the third is not read where it is a slab.
            virial, potentials: whether to compute them.
            grid_offset: position of the grid of cells, in cells; the result is the same within the
                error. Integrate motion with another one at each step.
            lambda_: coupling parameter of set_perturbed_charges().
            slope: whether to compute dV/dlambda.

        Raises:
            ValueError: a position or the box is not valid, or the accuracy cannot be met.
            MemoryError: memory is exhausted.
        """
        offset = tuple(map(float, grid_offset))
        if _is_on_gpu(x):
            take, function = _importer(x), self._on_gpu("evaluate_on_gpu", x)
            energy, matrix, derivative, forces, values = function(
                x, _box(box), bool(potentials), bool(virial), offset, lambda_, bool(slope)
            )
            forces, values = take(forces), take(values) if potentials else None
        else:
            x = self._reals(x)
            forces = np.empty_like(x)
            values = np.empty(len(x), self.dtype) if potentials else None
            energy, matrix, derivative = self._core.evaluate(
                x, _box(box), forces, values, bool(virial), offset, lambda_, bool(slope)
            )
        return Result(
            energy,
            forces,
            np.array(matrix) if virial else None,
            values,
            derivative if slope else None,
        )

    def evaluate_at(
        self,
        x: ArrayLike,
        box: Optional[ArrayLike],
        points: ArrayLike,
        *,
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> tuple[Any, Any]:
        """Potentials, kJ/mol/e, [m], and fields, kJ/mol/nm/e, [m, 3], at points that are no particles.

        With all images and the background of a periodic box; excluded pairs do not count. Costs an
        evaluation of the particles with the points among them.

        Args:
            x, box, grid_offset: as for evaluate().
            points: nm, [m, 3], any periodic image.
        """
        offset = tuple(map(float, grid_offset))
        if _is_on_gpu(x) != _is_on_gpu(points):
            raise ValueError("Positions and points must both be on a GPU, or both on the host.")
        if _is_on_gpu(x):
            take, function = _importer(points), self._on_gpu("evaluate_at_on_gpu", x, points)
            potentials, fields = map(take, function(x, _box(box), points, offset))
            return potentials, fields
        points = self._reals(points)
        potentials, fields = np.empty(len(points), self.dtype), np.empty_like(points)
        self._core.evaluate_at(self._reals(x), _box(box), points, potentials, fields, offset)
        return potentials, fields

    def group_energies(
        self, x: ArrayLike, box: Optional[ArrayLike], group: ArrayLike, lambda_: float = 0.0
    ) -> NDArray:
        """Coulomb energies within and between groups, kJ/mol, [groups, groups], upper triangle.

        With all periodic images and without excluded pairs; they add up to the energy.

        Args:
            x, box, lambda_: as for evaluate().
            group: group of each particle, from 0, [n].
        """
        group = np.ascontiguousarray(group, dtype=np.int32)
        groups = int(group.max(initial=0)) + 1
        energies = self._core.group_energies(self._reals(x), _box(box), group, groups, lambda_)
        return np.array(energies).reshape(groups, groups)

    @property
    def setup(self) -> dict:
        """Order, cells, device and estimated error in use; meaningful after an evaluation."""
        return self._core.setup()

    @property
    def timings(self) -> dict:
        """Seconds per stage so far, in the order of the pipeline."""
        return dict(self._core.timings())

    def _on_gpu(self, name: str, *arrays: Any) -> Callable:
        """A function of the core, if it can read the arrays."""
        if not hasattr(self._core, name):
            raise RuntimeError("This farfield was built without CUDA: pass arrays of the host.")
        for array in arrays:
            dtype, shape = str(array.dtype).rpartition(".")[2], tuple(array.shape)
            if dtype != self.dtype.name or shape[1:] != (3,):
                raise ValueError(
                    f"An array on the GPU has the type {dtype} and the shape {shape}, but must have "
                    f"{self.dtype.name} and (n, 3)."
                )
        return getattr(self._core, name)

    def _reals(self, values: ArrayLike) -> NDArray:
        return np.ascontiguousarray(values, dtype=self.dtype)


def _is_on_gpu(x: Any) -> bool:
    cuda = 2  # in DLPack
    return hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == cuda


def _importer(like: Any) -> Callable:
    """The function of the package of an array that takes arrays of others."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack
    packages = (sys.modules[kind.__module__.partition(".")[0]] for kind in type(like).__mro__)
    return next(package.from_dlpack for package in packages if hasattr(package, "from_dlpack"))


def _box(box: Optional[ArrayLike]) -> NDArray:
    matrix = np.zeros((3, 3)) if box is None else np.asarray(box, dtype=np.float64)
    return np.ascontiguousarray(np.diag(matrix) if matrix.shape == (3,) else matrix)
