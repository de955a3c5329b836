# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many small systems in one call, each with a box of its own."""

import warnings
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import arguments, processes
from ._library import _core

_KINDS = {np.dtype(np.float32): _core.SingleBatch, np.dtype(np.float64): _core.DoubleBatch}


@dataclass
class BatchResult:
    """What a call gives; particles are in the order of the positions."""

    energies: NDArray  # kJ/mol, [systems]
    forces: NDArray  # kJ/mol/nm, [n, 3]
    potentials: Optional[NDArray] = None  # dE/dq, kJ/mol/e, as the charges
    virials: Optional[NDArray] = None  # -1/2 sum of x f, kJ/mol, [systems, 3, 3]
    #: RMS error of the forces that the sums were cut for, kJ/mol/nm, [systems]; 0 without images
    errors: Optional[NDArray] = None


@dataclass
class BatchTangent:
    """Derivatives along a direction; particles are in the order of the positions."""

    forces: NDArray  # kJ/mol/nm, [n, 3]
    potentials: NDArray  # kJ/mol/e, as the charges
    virials: Optional[NDArray] = None  # kJ/mol, [systems, 3, 3]


class Batch(processes.CoreOfOptions):
    """Point charges of many systems, each in a periodic box with conducting surroundings, a slab, or without images.

    Direct Ewald sums: nothing is built for a box. A net charge is neutralised by a uniform background. The results of a
    system do not depend on the other systems of a call. Threads of a program that use one batch wait for each other. A
    batch can be copied and pickled. After fork() it works on in the child; one that is on a GPU does not.

    P. P. Ewald, Ann. Phys. 369, 253 (1921), doi:10.1002/andp.19213690304; errors by J. Kolafa and J. W. Perram, Mol.
    Simul. 9, 351 (1992), doi:10.1080/08927029208049126; smeared charges as B. Cheng, arXiv:2408.15165 (2024),
    doi:10.48550/arXiv.2408.15165; slabs as V. Ballenegger, A. Arnold and J. J. Cerda, J. Chem. Phys. 131, 094107
    (2009), doi:10.1063/1.3216473.

    Args:
        accuracy: wanted error of the forces of each system: their RMS error over its particles is at most this times
            their RMS Coulomb force. One system in 64 is measured.
        dtype: numpy.float64, or numpy.float32, which is faster and reaches an accuracy of 2e-6.
        boundary: "periodic"; "slab": images along the two vectors of each box and none across; "open": no images, no
            boxes.
        channels: sets of charges at the same places, 1 to 64, which do not act on each other. Energies, forces and
            virials are sums over all sets.
        smearing: width s of Gaussian charges, nm: pairs have erf(r / (sqrt(2) s)) / r. 0: point charges.
        wave_cutoff: longest wave vectors of Gaussian charges, 1/nm; 0: the accuracy decides. With a value the energy is
            the sum over these waves, and no error is measured.
        self_energy: whether Gaussian charges have the energy of each with itself.
        asynchronous: whether calls with arrays on a GPU, of CoulombBatch, return before it is done. They wait where
            there are more particles or systems than in any call that has waited. If a call that has not waited turns
            out to be refused, its results are not a number, and a later call, or finish(), raises the error.
        device: "auto", "cpu" or "gpu". "auto" is the CPU: a GPU is faster for systems of thousands of particles only.
        device_id: CUDA device; None: the current one.
        threads: OpenMP threads at most; on the CPU each takes a system at a time. None: what the runtime offers, see
            OMP_NUM_THREADS.
        coulomb_constant: kJ/mol nm/e^2; None: that of GROMACS.

    Raises:
        TypeError: an option is of the wrong type.
        ValueError: an option is out of range.
        RuntimeError: the device is not there, or Gaussian charges are not periodic.
    """

    _names = ("batch", "batches")

    def __init__(
        self,
        accuracy: float = 3e-4,
        dtype: DTypeLike = np.float64,
        *,
        boundary: str = "periodic",
        channels: int = 1,
        smearing: float = 0.0,
        wave_cutoff: float = 0.0,
        self_energy: bool = False,
        asynchronous: bool = False,
        device: str = "auto",
        device_id: Optional[int] = None,
        threads: Optional[int] = None,
        coulomb_constant: Optional[float] = None,
    ):
        self.dtype = arguments.precision(dtype)
        shared: dict[str, Any] = {
            "accuracy": arguments.number("accuracy", accuracy),
            "boundary": arguments.text("boundary", boundary),
            "device": arguments.text("device", device),
        }
        if device_id is not None:
            shared["deviceId"] = arguments.integer("device_id", device_id)
        if threads is not None:
            shared["threads"] = arguments.integer("threads", threads)
        if coulomb_constant is not None:
            shared["coulombConstant"] = arguments.number("coulomb_constant", coulomb_constant)
        self.channels = arguments.integer("channels", channels)
        self._options = (
            shared,
            self.channels,
            arguments.number("smearing", smearing),
            arguments.number("wave_cutoff", wave_cutoff),
            arguments.flag("self_energy", self_energy),
            arguments.flag("asynchronous", asynchronous),
        )
        self._start_with(self._made())

    def __call__(
        self,
        x: ArrayLike,
        charges: ArrayLike,
        offsets: Optional[ArrayLike] = None,
        boxes: Optional[ArrayLike] = None,
        *,
        index: Optional[ArrayLike] = None,
        potentials: bool = False,
        virials: bool = False,
    ) -> BatchResult:
        """Energies and forces, and what is asked for besides.

        Args:
            x: positions of all systems one after the other, nm, [n, 3], any periodic image.
            charges: e, [n], or [n, channels].
            offsets: first particle of each system, from 0, and the number of all particles, [systems + 1].
            boxes: edges of rectangular boxes, nm, [systems, 3], or box vectors as rows, any that span a volume,
                [systems, 3, 3]. Of slabs edges along x and y, [systems, 2], or two vectors that span a plane,
                [systems, 2, 3]. None where the boundary is open.
            index: the system of each particle, ascending from 0, [n], in place of offsets. There are as many systems
                as boxes, and without boxes as the last index says.
            potentials, virials: whether to compute them.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: an array has the wrong shape or values; a box has no volume; two charges of a system are at one
                place. The system is named.
            MemoryError: memory is exhausted.

        Warns:
            RuntimeWarning: an error that was measured is above the accuracy, and longer sums do not help: charges
                nearly coincide, or a box is large for this precision.
        """
        x, q, starts, rows = self._input(x, charges, offsets, boxes, index)
        energies, errors = np.empty((2, len(rows)))
        forces, values = np.empty_like(x), np.empty_like(q) if potentials else None
        tensors = np.empty_like(rows) if virials else None
        self.run_measured("evaluate", x, q, starts, rows, energies, forces, values, tensors, errors)
        shape = np.shape(charges)
        return BatchResult(energies, forces, None if values is None else values.reshape(shape), tensors, errors)

    def tangent(
        self,
        x: ArrayLike,
        charges: ArrayLike,
        offsets: Optional[ArrayLike] = None,
        boxes: Optional[ArrayLike] = None,
        *,
        index: Optional[ArrayLike] = None,
        dx: Optional[ArrayLike] = None,
        dcharges: Optional[ArrayLike] = None,
        dboxes: Optional[ArrayLike] = None,
        errors: Optional[ArrayLike] = None,
        virials: bool = False,
    ) -> BatchTangent:
        """Derivatives of forces, potentials and virials along a direction: Hessian-vector products.

        They are those of the sums of a call with the same systems, with splitting and cut-offs held.

        Args:
            x, charges, offsets, boxes, index: systems as in a call.
            dx: derivatives of the positions, nm, [n, 3]; None, as below: nothing changes.
            dcharges: those of the charges, e, [n], or [n, channels].
            dboxes: those of the boxes, nm, as the boxes. Positions do not follow a box.
            errors: those of the call's result, [systems]. None: sums are as long as the precision has use for.
            virials: whether to compute their derivatives.

        Raises:
            TypeError, ValueError, MemoryError: as a call.
        """
        systems = at, q, _, rows = self._input(x, charges, offsets, boxes, index)
        aims = None if errors is None else arguments.reals("errors", errors, (len(rows),))
        moves = None if dx is None else arguments.reals("dx", dx, at.shape, dtype=self.dtype)
        changes = None if dcharges is None else self._charges("dcharges", dcharges, len(at))
        strains = None if dboxes is None else self.rows_of("dboxes", dboxes, len(rows))
        forces, values = np.empty_like(at), np.empty_like(q)
        tensors = np.empty_like(rows) if virials else None
        self.run("evaluate_tangent", *systems, moves, changes, strains, aims, forces, values, tensors)
        return BatchTangent(forces, values.reshape(np.shape(charges)), tensors)

    def finish(self) -> None:
        """Waits for all calls.

        Raises:
            ValueError: a call that has not waited is refused.
            MemoryError: such a call had no room.
        """
        self.run("finish")

    @property
    def setup(self) -> dict:
        """What was measured.

        ``measured_error`` is the largest error of the forces of a system that was measured, relative to what the
        accuracy is. ``tightening`` is 1 unless a measured error was too large: all sums are then more accurate than
        the model asks for. ``threads`` is their number. ``device`` is "cpu" or "gpu", and ``device_id`` the CUDA
        device, or -1.
        """
        with self._lock:
            return self._own_core().setup()

    def __getstate__(self) -> dict:
        return {"dtype": self.dtype, "options": self._options}

    def __setstate__(self, state: dict) -> None:
        self.dtype, self._options = state["dtype"], state["options"]
        self.channels = self._options[1]
        self._start_with(self._made())

    def _made(self):
        return _KINDS[self.dtype](*self._options, processes.most_threads())

    def run_measured(self, name, *arrays):
        """Calls a function of the library that measures errors."""
        with self._lock:
            self.run(name, *arrays)
            error, accuracy = self._own_core().setup()["measured_error"], self._options[0]["accuracy"]
        if error > accuracy:
            warnings.warn(
                f"The accuracy {accuracy:g} is not met: a system that was measured has an error of {error:.1e}.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _input(self, x, charges, offsets, boxes, index):
        """The systems as the library takes them."""
        x = arguments.reals("x", x, ("n", 3), dtype=self.dtype)
        q = self._charges("charges", charges, len(x))
        rows = None if boxes is None else self.rows_of("boxes", boxes, "systems")
        starts = offsets_of(len(x), offsets, index, None if rows is None else len(rows))
        systems = len(starts) - 1
        if rows is None:
            if self._options[0]["boundary"] != "open":
                raise ValueError("boxes are missing: only an open boundary needs none.")
            rows = np.zeros((systems, 3, 3))
        check_boxes(rows, systems)
        return x, q, starts, rows

    def rows_of(self, name, boxes, systems):
        """Box vectors as rows, [systems, 3, 3]; of slabs the third ones are zero."""
        vectors = 2 if self._options[0]["boundary"] == "slab" else 3
        array = arguments.reals(name, boxes, (systems, vectors), (systems, vectors, 3))
        rows = np.zeros((len(array), 3, 3))
        rows[:, :vectors] = array if array.ndim == 3 else array[:, :, None] * np.eye(3)[:vectors]
        return rows

    def _charges(self, name, values, n):
        shapes = [(n, self.channels)] + ([(n,)] if self.channels == 1 else [])
        return arguments.reals(name, values, *shapes, dtype=self.dtype).reshape(n, self.channels)


def offsets_of(n: int, offsets: Optional[ArrayLike], index: Optional[ArrayLike], systems: Optional[int]) -> NDArray:
    """Offsets of n particles, [systems + 1], from either of the two; without a number the last index is a system."""
    if (offsets is None) == (index is None):
        raise ValueError("Either offsets or index must be given.")
    if offsets is not None:
        starts = arguments.indices("offsets", offsets, ("systems + 1",))
        if not len(starts) or starts[-1] != n:
            raise ValueError(f"offsets must begin with 0 and end with the number of particles, {n}.")
        return starts
    of_particles = arguments.indices("index", np.asarray(index), (n,))
    systems = int(of_particles.max(initial=-1)) + 1 if systems is None else systems
    ascends = not np.any(of_particles[1:] < of_particles[:-1])
    if not ascends or (n and not 0 <= of_particles[0] <= of_particles[-1] < systems):
        raise ValueError(f"index must ascend, and be between 0 and {systems - 1}.")
    return np.searchsorted(of_particles, np.arange(systems + 1)).astype(np.int32)


def check_boxes(boxes: NDArray, systems: int) -> None:
    """That each system has a box."""
    if len(boxes) != systems:
        raise ValueError(f"There are {systems} systems, but {len(boxes)} boxes.")
