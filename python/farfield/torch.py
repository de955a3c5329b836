# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies in PyTorch, with gradients for positions, charges and cell."""

import functools
from typing import Any, Optional

import numpy as np
import torch
from numpy.typing import ArrayLike

from . import arguments
from .batch import Batch
from .cells import SystemInCell, boundary_of, options_of_sums
from .solver import Solver
from .torch_graphs import InGraphs
from .torch_systems import Starts, SystemOfSolver, SystemsOfBatch, SystemsOnGpu

_DTYPES = {torch.float32: np.float32, torch.float64: np.float64}


class Coulomb(InGraphs):
    """The Coulomb energy of point charges, kJ/mol, as a function that can be differentiated twice.

    Losses on forces and stresses can be trained, with charges from a network. Positions and charges are float32, whose
    accuracy ends at 2e-6, or float64. Tensors on the GPU of the solver stay there, but for the cell. Energy and
    gradients are within the error that is asked for of each other. Second derivatives are those of the gradients to
    rounding, as long as no particle changes its cell. Where one of two is by the cell, or the cell needs a gradient,
    they are those of direct Ewald sums with the same accuracy, without exclusions. These take as long as CoulombBatch,
    which grows with the particles to the power 3/2. Second derivatives are there for torch.autograd and torch.func,
    whose vmap takes its elements in turn.
    Calls are operators of the graphs of torch.compile, which leaves those within torch.func out.

    Args:
        exclusions: pairs of particles whose minimum-image interaction is left out, [m, 2].
        options: those of farfield.Solver, but for dtype and boundary.
    """

    def __init__(self, exclusions: ArrayLike = (), **options):
        super().__init__()
        self._options = _checked_options(options)
        self._exclusions = arguments.pairs("exclusions", exclusions)
        self._sums = CoulombBatch(**options_of_sums(options))
        self._solvers: dict[Any, Any] = {}

    def __getstate__(self):
        # Solvers are made anew
        return {**super().__getstate__(), "_solvers": {}}

    def forward(
        self,
        positions: torch.Tensor,
        charges: torch.Tensor,
        cell: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """Energy, a scalar of the type of the positions.

        Args:
            positions: nm, [n, 3], any periodic image.
            charges: e, [n].
            cell: vectors of the box as rows, nm, [3, 3], of any orientation; two of them, [2, 3]: a slab, with images
                along both and none across; None: no images.

        Raises:
            TypeError, ValueError: as Solver.evaluate().
        """
        return self._energies(positions, charges, cell)[0]

    def _given(self, positions, charges, cell, *_):
        given: list[Any] = [("positions", positions, ("n", 3)), ("charges", charges, ("n",))]
        given += [("cell", cell, (3, 3), (2, 3))]
        dtype = _checked_type(given[: 2 if cell is None else 3])
        own = SystemInCell(self._solver(dtype, cell), self._exclusions)
        system = SystemOfSolver(own, functools.partial(self._sums._systems, dtype, boundary_of(cell)))
        boxes = None if cell is None else cell[None].to("cpu", torch.float64)
        return positions, charges.to(positions), boxes, system

    def _solver(self, dtype, cell):
        key = dtype, boundary_of(cell)
        if key not in self._solvers:
            self._solvers[key] = Solver(dtype=dtype, boundary=key[1], **self._options)
        return self._solvers[key]


class CoulombBatch(InGraphs):
    """Coulomb energies of many systems, kJ/mol, as a function that can be differentiated twice.

    Losses on forces, on potentials and on stresses can be trained, with charges from a network. Tensors are float32,
    whose accuracy ends at 2e-6, or float64. Those on a GPU stay there, in order with the current stream. The host waits
    for the results. Derivatives are those of the sums that are computed, with splitting and cut-offs held. They are
    there for torch.autograd and torch.func, whose vmap takes its elements in turn. Calls are operators of the graphs
    of torch.compile, which leaves those within torch.func out. The method is that of farfield.Batch.

    Args:
        options: those of farfield.Batch, but for dtype, boundary and device_id. The device is that of the tensors.
            Tensors on the CPU are copied to a GPU if the option device is "gpu". With asynchronous=True calls with
            tensors on a GPU return before it is done.
    """

    def __init__(self, **options):
        super().__init__()
        self._options = _checked_options(options, "device_id")
        self._batches: dict[Any, Any] = {}

    def __getstate__(self):
        # batches are made anew
        return {**super().__getstate__(), "_batches": {}}

    def forward(
        self,
        positions: torch.Tensor,
        charges: torch.Tensor,
        cells: Optional[torch.Tensor] = None,
        *,
        batch: Optional[torch.Tensor] = None,
        ptr: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """Energies, [systems], of the type of the positions.

        Args:
            positions: nm, [n, 3], any periodic image.
            charges: e, [n], or [n, channels].
            cells: vectors of the boxes as rows, nm, [systems, 3, 3], of any orientation; two of each, [systems, 2, 3]:
                slabs, with images along both and none across; None: no images.
            batch: the system of each particle, ascending from 0, [n], as in PyTorch Geometric.
            ptr: first particle of each system, and the number of all, [systems + 1], in place of batch. Without both
                there is one system.

        Raises:
            TypeError, ValueError, RuntimeError: as farfield.Batch, or tensors are on different devices, or on another
                one than the options say.
        """
        return self._energies(positions, charges, cells, batch, ptr)

    def finish(self) -> None:
        """Waits for all calls.

        Raises:
            ValueError, MemoryError: as farfield.Batch, of calls that have not waited.
        """
        for batch in self._batches.values():
            batch.finish()

    def _given(self, positions, charges, cells, batch, ptr):
        given: list[Any] = [("positions", positions, ("n", 3)), ("charges", charges, ("n",), ("n", "channels"))]
        given += [("cells", cells, ("systems", 3, 3), ("systems", 2, 3))][: cells is not None]
        given += [("batch", batch, ("n",))][: batch is not None]
        given += [("ptr", ptr, ("systems + 1",))][: ptr is not None]
        dtype = _checked_type(given)
        self._check_devices([(name, tensor.device) for name, tensor, *_ in given if name not in ("batch", "ptr")])
        starts = Starts(len(positions), batch, ptr, None if cells is None else len(cells))
        systems = self._systems(dtype, boundary_of(cells), positions.device, starts)
        boxes = None if cells is None else cells.double()
        return positions, charges.to(positions.dtype), boxes, systems

    def _systems(self, dtype: type, boundary: str, device: torch.device, starts: Starts) -> "SystemsOfBatch":
        """Systems whose tensors are on a device."""
        kind = SystemsOnGpu if device.type == "cuda" else SystemsOfBatch
        return kind(self._batch(dtype, boundary, device), starts, device)

    def _check_devices(self, given):
        (first, device), *others = given
        if device.type not in ("cpu", "cuda"):
            raise ValueError(f"{first} must be on the CPU or on a GPU, but are on {device}.")
        if device.type == "cuda" and self._options.get("device") == "cpu":
            raise ValueError(f"{first} are on {device}, but the option device is 'cpu': leave it out.")
        for name, other in others:
            if other != device:
                raise ValueError(f"{name} must be on {device}, as the positions, but are on {other}.")

    def _batch(self, dtype, boundary, device):
        key = dtype, boundary, device
        if key not in self._batches:
            place = {"device": "gpu", "device_id": device.index} if device.type == "cuda" else {}
            self._batches[key] = Batch(dtype=dtype, boundary=boundary, **{**self._options, **place})
        return self._batches[key]


def _checked_options(options, *others):
    if given := {"dtype", "boundary", *others} & options.keys():
        raise ValueError(f"{given.pop()} follows from the tensors, leave it out.")
    return options


def _checked_type(given):
    """The NumPy type of the first, which are positions, of names, tensors and shapes."""
    for name, tensor, *shapes in given:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, but is {tensor!r}.")
        arguments.check_shape(name, tensor, *shapes, what="a tensor")
        if tensor.is_complex():
            raise arguments.ArrayError(f"{name} must be a tensor of real numbers, but is of {tensor.dtype}.")
    positions = given[0][1]
    if positions.dtype not in _DTYPES:
        raise ValueError(f"positions are {positions.dtype}, but must be float32 or float64.")
    return _DTYPES[positions.dtype]
