# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies in PyTorch, with gradients for positions, charges and cell."""

import abc
import functools
import inspect
import itertools
import weakref
from typing import Any, Callable, Optional

import numpy as np
import torch
from numpy.typing import ArrayLike

from . import arguments
from .batch import Batch, BatchResult, BatchTangent, check_boxes, offsets_of
from .cells import SystemInCell, boundary_of, options_of_sums
from .solver import Solver

_DTYPES = {torch.float32: np.float32, torch.float64: np.float64}


class _InGraphs(torch.nn.Module):
    """A module whose calls are operators of the graphs of torch.compile."""

    def __init__(self):
        super().__init__()
        self._number = _note(self)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._number = _note(self)

    def _in_graph(self, positions, charges, cells, batch=None, ptr=None):
        """Energies, [systems]."""
        return _energies_of_graph(positions, charges, cells, batch, ptr, self._number)[0]

    def _given_in_graph(self, positions, charges, cells, batch, ptr):
        """What a function of autograd is given, but for what is wanted."""
        raise NotImplementedError


@torch.compiler.assume_constant_result  # type: ignore[misc]
def _is_transformed():
    """Whether torch.func transforms what is traced: operators of graphs have no derivatives for it."""
    return torch._C._functorch.peek_interpreter_stack() is not None


#: Modules by the numbers that graphs have for them.
_modules: Any = weakref.WeakValueDictionary()
_numbers = itertools.count()


def _note(module):
    number = next(_numbers)
    _modules[number] = module
    return number


class Coulomb(_InGraphs):
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
        if torch.compiler.is_compiling() and not _is_transformed():
            return self._in_graph(positions, charges.to(positions), None if cell is None else cell[None])[0]
        return self._eager(positions, charges, cell)

    @torch.compiler.disable  # type: ignore[misc]
    def _eager(self, positions, charges, cell):
        wanted = charges.requires_grad, cell is not None and cell.requires_grad
        return _Energies.apply(*self._given(positions, charges, cell), wanted)[0]

    def _given(self, positions, charges, cell):
        """Positions, charges, cells in double precision, and the system."""
        given: list[Any] = [("positions", positions, ("n", 3)), ("charges", charges, ("n",))]
        given += [("cell", cell, (3, 3), (2, 3))]
        dtype = _checked_type(given[: 2 if cell is None else 3])
        own = SystemInCell(self._solver(dtype, cell), self._exclusions)
        system = _SystemOfSolver(own, functools.partial(self._sums._systems, dtype, boundary_of(cell)))
        boxes = None if cell is None else cell[None].to("cpu", torch.float64)
        return positions, charges.to(positions), boxes, system

    def _given_in_graph(self, positions, charges, cells, *_):
        return self._given(positions, charges, None if cells is None else cells[0])

    def _solver(self, dtype, cell):
        key = dtype, boundary_of(cell)
        if key not in self._solvers:
            self._solvers[key] = Solver(dtype=dtype, boundary=key[1], **self._options)
        return self._solvers[key]


class CoulombBatch(_InGraphs):
    """Coulomb energies of many systems, kJ/mol, as a function that can be differentiated twice.

    Losses on forces, on potentials and on stresses can be trained, with charges from a network. Tensors are float32,
    whose accuracy ends at 2e-6, or float64. Those on a GPU stay there, in order with the current stream. The host waits
    for the results. Derivatives are those of the sums that are computed, with splitting and cut-offs held. They are
    there for torch.autograd and torch.func, whose vmap takes its elements in turn. Calls are operators of the graphs
    of torch.compile, which leaves those within torch.func out. The method is that of farfield.Batch.

    Args:
        options: those of farfield.Batch, but for dtype, boundary and device_id. The device is that of the tensors.
            Tensors on the CPU are copied to a GPU if the option device is "gpu".
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
        if torch.compiler.is_compiling() and not _is_transformed():
            return self._in_graph(positions, charges.to(positions.dtype), cells, batch, ptr)
        return self._eager(positions, charges, cells, batch, ptr)

    @torch.compiler.disable  # type: ignore[misc]
    def _eager(self, positions, charges, cells, batch, ptr):
        wanted = charges.requires_grad, cells is not None and cells.requires_grad
        return _Energies.apply(*self._given(positions, charges, cells, batch, ptr), wanted)

    def _given(self, positions, charges, cells, batch, ptr):
        """Positions, charges, cells in double precision, and the systems."""
        given: list[Any] = [("positions", positions, ("n", 3)), ("charges", charges, ("n",), ("n", "channels"))]
        given += [("cells", cells, ("systems", 3, 3), ("systems", 2, 3))][: cells is not None]
        given += [("batch", batch, ("n",))][: batch is not None]
        given += [("ptr", ptr, ("systems + 1",))][: ptr is not None]
        dtype = _checked_type(given)
        self._check_devices([(name, tensor.device) for name, tensor, *_ in given if name not in ("batch", "ptr")])
        n = len(positions)

        def starts():
            index = None if batch is None else batch.cpu().numpy()
            offsets: Optional[ArrayLike] = None if ptr is None else ptr.cpu().numpy()
            if index is None and offsets is None:
                offsets = [0, n]
            return offsets_of(n, offsets, index, None if cells is None else len(cells))

        systems = self._systems(dtype, boundary_of(cells), positions.device, starts)
        boxes = None if cells is None else cells.double()
        return positions, charges.to(positions.dtype), boxes, systems

    _given_in_graph = _given

    def _systems(self, dtype: type, boundary: str, device: torch.device, starts: Callable) -> "_SystemsOfBatch":
        """Systems whose tensors are on a device. starts: gives the first particle of each, and the number of all."""
        kind = _SystemsOnGpu if device.type == "cuda" else _SystemsOfBatch
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


class _Systems(abc.ABC):
    """Systems of a call, and what they have at the tensors of their first evaluation."""

    name: str  # of the module

    def __init__(self):
        self.result: Optional[BatchResult] = None

    @abc.abstractmethod
    def anew(self):
        """The same, with other positions, charges or cells."""

    @abc.abstractmethod
    def sums(self, of_particles):
        """Over the particles of each system."""

    @abc.abstractmethod
    def outer_products(self, a, b):
        """Sums of a (x) b over the particles of each system."""

    @abc.abstractmethod
    def spread(self, of_systems, positions):
        """The value of its system for each particle."""

    @abc.abstractmethod
    def evaluate(self, positions, charges, cells, *, potentials=False, virials=False) -> BatchResult:
        """Energies, forces, and what else is asked for."""

    @abc.abstractmethod
    def tangent(self, positions, charges, cells, direction, *, virials=False) -> BatchTangent:
        """Derivatives along a direction, whose parts may be None."""

    def results(self, positions, charges, cells, potentials, virials):
        """What the first evaluation has found; if it lacks something, that of another one."""
        has_potentials = self.result is not None and self.result.potentials is not None
        has_virials = self.result is not None and self.result.virials is not None
        if self.result is None or potentials > has_potentials or virials > has_virials:
            wanted = {"potentials": potentials or has_potentials, "virials": virials or has_virials}
            self.result = self.evaluate(positions, charges, cells, **wanted)
        return self.result

    def of_cells(self, cells, strain, *products):
        """Gradients by cells: strain less sums over particles of a (x) b is what cells have, kJ/mol."""
        own = torch.as_tensor(strain)
        for a, b in products:
            own = own - self.outer_products(a, b)
        return torch.linalg.solve(cells.mT, own) if cells.shape[1] == 3 else torch.linalg.pinv(cells.mT) @ own


class _SystemOfSolver(_Systems):
    """The system of a solver. sums_of: see CoulombBatch._systems()."""

    name = "Coulomb"

    def __init__(self, own, sums_of):
        super().__init__()
        self.own, self._sums_of = own, sums_of

    def anew(self):
        return type(self)(self.own, self._sums_of)

    def sums(self, of_particles):
        return of_particles.sum()[None]

    def outer_products(self, a, b):
        return (a.cpu().double().mT @ b.cpu().double())[None]

    def spread(self, of_systems, positions):
        return of_systems.expand(len(positions))

    def evaluate(self, positions, charges, cells, *, potentials=False, virials=False):
        own = self._oriented(positions, cells)
        with self.own.with_charges(own.there(charges)) as solver:
            result = solver.evaluate(own.read(positions), own.box, virial=virials, potentials=potentials)
        turned = own.turned
        return BatchResult(
            torch.tensor([result.energy], dtype=positions.dtype, device=positions.device),
            own.back(result.forces, positions),
            torch.as_tensor(result.potentials).to(positions) if potentials else None,
            torch.as_tensor((turned.T @ result.virial @ turned)[None]) if virials else None,
        )

    def tangent(self, positions, charges, cells, direction, *, virials=False):
        dx, dq, dcells = direction
        if virials or dcells is not None:
            return self._tangent_of_sums(positions, charges, cells, direction, virials)
        own = self._oriented(positions, cells)
        changes = {"dx": None if dx is None else own.read(dx), "dcharges": None if dq is None else own.there(dq)}
        with self.own.with_charges(own.there(charges)) as solver:
            found = solver.tangent(own.read(positions), own.box, **changes)
        return BatchTangent(own.back(found.forces, positions), torch.as_tensor(found.potentials).to(positions))

    def _tangent_of_sums(self, positions, charges, cells, direction, virials):
        self.own.check_sums()
        device = positions.device
        known = self.results(positions, charges, cells, False, False)
        error = self.own.error_of_sums(torch.as_tensor(known.forces).double())
        sums = self._sums_of(device, lambda: np.array([0, len(positions)], np.int32))
        sums.take(known, torch.tensor([error], dtype=torch.float64, device=device))
        *others, dcells = direction
        changes = None if dcells is None else dcells.to(device)
        found = sums.tangent(positions, charges, cells.to(device), [*others, changes], virials=virials)
        of_cells = torch.as_tensor(found.virials).cpu() if virials else None  # as the cells are
        return BatchTangent(found.forces, found.potentials, of_cells)

    def _oriented(self, positions, cells):
        is_there = positions.is_cuda and positions.device.index == self.own.solver.setup["device_id"]
        cell = None if cells is None else _on_host(cells[0])
        return _Oriented(self.own, cell, positions.device if is_there else "cpu")


class _Oriented:
    """The box of a cell, and vectors in its orientation, where a solver reads them."""

    def __init__(self, own, cell, device):
        self.box, self.turned = own.box_of(cell)
        self._device = device
        self._turn = None if (self.turned == np.eye(3)).all() else torch.tensor(self.turned, device=device)

    def there(self, tensor):
        """Numbers that have no orientation."""
        own = tensor.detach().to(self._device).contiguous()
        return own if own.is_cuda else own.numpy()

    def read(self, vectors):
        own = vectors.detach().to(self._device)
        return self.there(own if self._turn is None else (own.to(self._turn) @ self._turn.T).to(own.dtype))

    def back(self, vectors, like):
        """Vectors of the solver, as a tensor that is like another one."""
        own = torch.as_tensor(vectors)
        return (own if self._turn is None else own.to(self._turn) @ self._turn).to(like)


class _SystemsOfBatch(_Systems):
    """The systems of a batch, on the host."""

    name = "CoulombBatch"

    def __init__(self, batch, starts, device):
        super().__init__()
        self.batch, self.starts, self.device = batch, starts, device
        self.errors = None

    @functools.cached_property
    def offsets(self):
        """First particles; in an evaluation only: torch.func lets nothing else read arrays."""
        return self.starts()

    @functools.cached_property
    def sizes(self):
        """Particles of each system."""
        return torch.as_tensor(np.diff(self.offsets), device=self.device)

    def anew(self):
        return type(self)(self.batch, lambda: self.offsets, self.device)

    def take(self, result, errors):
        """What others have found, and the errors of forces that sums are to have, [systems]."""
        self.result, self.errors = result, errors

    @property
    def index(self):
        """The system of each particle; not kept, as torch.func marks it with the level that made it."""
        return torch.arange(len(self.sizes), device=self.device).repeat_interleave(self.sizes)

    def sums(self, of_particles):
        return of_particles.new_zeros(len(self.sizes)).index_add(0, self.index, of_particles)

    def outer_products(self, a, b):
        products = a.double()[:, :, None] * b.double()[:, None, :]
        return products.new_zeros(len(self.sizes), 3, 3).index_add(0, self.index, products)

    def spread(self, of_systems, positions):
        if len(of_systems) and of_systems.stride() == (0,):
            return of_systems[0].expand(len(positions))  # one value, as of a sum
        return of_systems.repeat_interleave(self.sizes, output_size=len(positions))

    def evaluate(self, positions, charges, cells, *, potentials=False, virials=False):
        result = self.batch(*self._arrays(positions, charges, cells), potentials=potentials, virials=virials)
        self.errors = result.errors
        return result

    def tangent(self, positions, charges, cells, direction, *, virials=False):
        self.results(positions, charges, cells, False, False)  # whose errors are those of the sums
        names = "dx", "dcharges", "dboxes"
        given = {name: None if part is None else part.numpy() for name, part in zip(names, direction)}
        arrays = self._arrays(positions, charges, cells)
        return self.batch.tangent(*arrays, **given, errors=self.errors, virials=virials)

    def _arrays(self, positions, charges, cells):
        boxes = None if cells is None else cells.detach().numpy()
        return positions.detach().numpy(), charges.detach().numpy(), self.offsets, boxes


class _SystemsOnGpu(_SystemsOfBatch):
    """The same of tensors on a GPU, where all of them stay."""

    def evaluate(self, positions, charges, cells, *, potentials=False, virials=False):
        x, q, starts, boxes = self._arrays(positions, charges, cells)
        forces, values = torch.empty_like(x), torch.empty_like(q) if potentials else None
        energies, self.errors = torch.empty((2, len(boxes)), dtype=torch.float64, device=self.device)
        tensors = torch.empty_like(boxes) if virials else None
        outputs = energies, forces, values, tensors, self.errors
        self.batch.run_measured("evaluate_on_gpu", x, q, starts, boxes, *outputs, _stream_of(x))
        values = None if values is None else values.reshape(charges.shape)
        return BatchResult(energies, forces, values, tensors)

    def tangent(self, positions, charges, cells, direction, *, virials=False):
        self.results(positions, charges, cells, False, False)
        systems = x, q, _, boxes = self._arrays(positions, charges, cells)
        dx, dq, dboxes = direction
        given = (
            None if dx is None else dx.contiguous(),
            None if dq is None else dq.reshape(q.shape).contiguous(),
            None if dboxes is None else self._rows_of(dboxes),
        )
        forces, values = torch.empty_like(x), torch.empty_like(q)
        tensors = torch.empty_like(boxes) if virials else None
        outputs = forces, values, tensors
        self.batch.run("evaluate_tangent_on_gpu", *systems, *given, self.errors, *outputs, _stream_of(x))
        return BatchTangent(forces, values.reshape(charges.shape), tensors)

    def _arrays(self, positions, charges, cells):
        x = positions.detach().contiguous()
        shape = len(x), self.batch.channels
        arguments.check_shape("charges", charges, shape, *[shape[:1]][: shape[1] == 1], what="a tensor")
        systems = len(self.offsets) - 1
        boxes = x.new_zeros((systems, 3, 3), dtype=torch.float64) if cells is None else self._rows_of(cells)
        check_boxes(boxes, systems)
        return x, charges.detach().reshape(shape).contiguous(), self.offsets, boxes

    @staticmethod
    def _rows_of(cells):
        """Three vectors of each cell: the third one of slabs is zero."""
        rows = cells.detach().double()
        return torch.nn.functional.pad(rows, (0, 0, 0, 3 - rows.shape[1])).contiguous()


def _stream_of(tensor):
    return torch.cuda.current_stream(tensor.device).cuda_stream


class _InTurn(torch.autograd.Function):
    """A function for torch.func: of batches it takes the elements in turn."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        *tensors, ctx.systems, ctx.wanted = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @classmethod
    def vmap(cls, info, in_dims, *inputs):
        *tensors, systems, wanted = inputs
        moves = any(dim is not None for dim in in_dims[:3])  # positions, charges, cells
        results = []
        for k in range(info.batch_size):
            parts = [part if dim is None else part.select(dim, k) for part, dim in zip(tensors, in_dims)]
            results.append(cls.apply(*parts, systems.anew() if moves else systems, wanted))
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        stacked = [None if parts[0] is None else torch.stack(parts) for parts in zip(*results)]
        return tuple(stacked), tuple(None if part is None else 0 for part in stacked)


def _called_often(function):
    """A static method whose signature torch need not look for in each call."""
    function.__signature__ = inspect.signature(function)
    return staticmethod(function)


class _Energies(_InTurn):
    @_called_often
    def forward(positions, charges, cells, systems, wanted):
        result = systems.results(positions, charges, cells, *wanted)
        # a tensor of its own: autograd makes it know this function, which knows the systems and their results
        return torch.as_tensor(result.energies).to(positions.dtype, copy=True)

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return (None,) * 5
        _, needs_charges, needs_cells = ctx.needs_input_grad[:3]
        by_positions, by_charges, by_cells = _Gradients.apply(
            *ctx.saved_tensors, ctx.systems, (needs_charges, needs_cells)
        )
        of_particles = ctx.systems.spread(grad, by_positions)
        return (
            of_particles[:, None] * by_positions,
            None if by_charges is None else of_particles.reshape(-1, *[1] * (by_charges.dim() - 1)) * by_charges,
            None if by_cells is None else grad.to(by_cells)[:, None, None] * by_cells,
            None,
            None,
        )

    @staticmethod
    def jvp(ctx, moves, dcharges, dcells, *_):
        by_positions, by_charges, by_cells = _Gradients.apply(
            *ctx.saved_tensors, ctx.systems, (dcharges is not None, dcells is not None)
        )
        pairs = (by_positions, moves), (by_charges, dcharges)
        of_particles = sum((a * b).reshape(len(a), -1).sum(1) for a, b in pairs if b is not None)
        energies = ctx.systems.sums(of_particles) if isinstance(of_particles, torch.Tensor) else 0
        if dcells is not None:
            energies = energies + (by_cells * dcells).sum((1, 2)).to(by_positions)
        return energies


class _Gradients(_InTurn):
    """Gradients of the energies by positions, charges and cells. Its own derivatives are Hessian-vector products.

    With W twice the virial, which is the derivative by a strain of positions x and cells B, and g = dE/dx,

        dE/dB = B^-T (W - x^T g).

    wanted: whether those by charges and by cells are wanted.
    """

    @_called_often
    def forward(positions, charges, cells, systems, wanted):
        result = systems.results(positions, charges, cells, *wanted)
        by_positions = torch.as_tensor(-result.forces)
        by_charges = torch.as_tensor(result.potentials).clone() if wanted[0] else None
        by_cells = None
        if wanted[1]:
            by_cells = systems.of_cells(cells, 2 * result.virials, (positions, by_positions))
        return by_positions, by_charges, by_cells

    @staticmethod
    def backward(ctx, *direction):
        # the Hessian is symmetric
        return *_Tangents.apply(*ctx.saved_tensors, *direction, ctx.systems, ctx.needs_input_grad[1:3]), None, None

    @staticmethod
    def jvp(ctx, moves, dcharges, dcells, *_):
        return _Tangents.apply(*ctx.saved_tensors, moves, dcharges, dcells, ctx.systems, ctx.wanted)


class _Tangents(_InTurn):
    """Products of the Hessian with a direction, of which any part may be None."""

    @_called_often
    def forward(positions, charges, cells, moves, dcharges, dcells, systems, wanted):
        wants_charges, wants_cells = wanted
        inputs, direction = (positions, charges, cells), (moves, dcharges, dcells)
        tangent = systems.tangent(*inputs, [None if d is None else d.detach() for d in direction], virials=wants_cells)
        by_positions = torch.as_tensor(-tangent.forces)
        by_cells = None
        if wants_cells:
            known = systems.results(*inputs, False, dcells is not None)
            forces = torch.as_tensor(known.forces)
            strain = torch.as_tensor(2 * tangent.virials)
            products = [(positions, by_positions)]
            if moves is not None:
                products.append((moves, -forces))
            if dcells is not None:
                slope = systems.of_cells(cells, 2 * known.virials, (positions, -forces))
                strain = strain - dcells.mT @ slope
            by_cells = systems.of_cells(cells, strain, *products)
        return by_positions, torch.as_tensor(tangent.potentials) if wants_charges else None, by_cells

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError(f"farfield.torch.{ctx.systems.name} has first and second derivatives only.")

    jvp = backward


# Operators of graphs: x, q, cells, batch, ptr, the number of a module, and what each has besides. An operator has one
# derivative: energies have gradients, these have products with the Hessian.
_OfGraph = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@torch.library.custom_op("farfield::energies", mutates_args=())
def _energies_of_graph(
    x: torch.Tensor,
    q: torch.Tensor,
    cells: Optional[torch.Tensor],
    batch: Optional[torch.Tensor],
    ptr: Optional[torch.Tensor],
    module: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Energies, and their gradients by positions, charges and cells: of no cells there are none."""
    given = _modules[module]._given_in_graph(x, q, cells, batch, ptr)
    wanted = True, cells is not None
    energies = _Energies.forward(*given, wanted)
    return energies, *_as_inputs(_Gradients.forward(*given, wanted), x, q, cells)


@torch.library.custom_op("farfield::gradients", mutates_args=())
def _gradients_of_graph(
    x: torch.Tensor,
    q: torch.Tensor,
    cells: Optional[torch.Tensor],
    batch: Optional[torch.Tensor],
    ptr: Optional[torch.Tensor],
    module: int,
    by_x: torch.Tensor,
    by_q: torch.Tensor,
    by_cells: torch.Tensor,
) -> _OfGraph:
    """The gradients that farfield::energies has found, with derivatives."""
    return by_x.clone(), by_q.clone(), by_cells.clone()


@torch.library.custom_op("farfield::tangents", mutates_args=())
def _tangents_of_graph(
    x: torch.Tensor,
    q: torch.Tensor,
    cells: Optional[torch.Tensor],
    batch: Optional[torch.Tensor],
    ptr: Optional[torch.Tensor],
    module: int,
    dx: torch.Tensor,
    dq: torch.Tensor,
    dcells: torch.Tensor,
) -> _OfGraph:
    """Products of the Hessian with a direction."""
    *inputs, systems = _modules[module]._given_in_graph(x, q, cells, batch, ptr)
    changes = None if cells is None or not dcells.any() else dcells.to(inputs[2])
    found = _Tangents.forward(*inputs, dx, dq, changes, systems, (True, cells is not None))
    return _as_inputs(found, x, q, cells)


def _as_inputs(found, x, q, cells):
    of_cells = x.new_empty(0) if cells is None else found[2].to(cells)
    return found[0].to(x).contiguous(), found[1].reshape(q.shape).contiguous(), of_cells.contiguous()


def _like_inputs(x, q, cells):
    return torch.empty_like(x), torch.empty_like(q), x.new_empty(0) if cells is None else torch.empty_like(cells)


@_energies_of_graph.register_fake
def _like_energies(x, q, cells, batch, ptr, module):
    if cells is not None:
        count = len(cells)
    elif ptr is not None:
        count = len(ptr) - 1
    else:
        count = 1 if batch is None else torch.library.get_ctx().new_dynamic_size()
    return x.new_empty(count), *_like_inputs(x, q, cells)


@_gradients_of_graph.register_fake
@_tangents_of_graph.register_fake
def _like_gradients(x, q, cells, *_):
    return _like_inputs(x, q, cells)


def _save(ctx, inputs, output):
    *tensors, ctx.module = inputs[:6]
    ctx.save_for_backward(*tensors, *(output[1:] if len(output) == 4 else ()))


def _backward_of_energies(ctx, by_energies, *_):
    *inputs, by_x, by_q, by_cells = ctx.saved_tensors
    x, _, cells, batch, ptr = inputs
    found = _gradients_of_graph(*inputs, ctx.module, by_x, by_q, by_cells)
    if batch is not None:
        of_particles = by_energies[batch.to(x.device)]
    elif ptr is not None:
        of_particles = by_energies.repeat_interleave(ptr.diff().to(x.device), output_size=len(x))
    else:
        of_particles = by_energies.expand(len(x))
    of_cells = None if cells is None else by_energies.to(found[2])[:, None, None] * found[2]
    of_charges = of_particles.reshape(-1, *[1] * (found[1].dim() - 1)) * found[1]
    return of_particles[:, None] * found[0], of_charges, of_cells, None, None, None


def _backward_of_gradients(ctx, *direction):
    *inputs, cells, batch, ptr = ctx.saved_tensors
    found = _tangents_of_graph(*inputs, cells, batch, ptr, ctx.module, *direction)
    return *found[:2], None if cells is None else found[2], *[None] * 6


_energies_of_graph.register_autograd(_backward_of_energies, setup_context=_save)
_gradients_of_graph.register_autograd(_backward_of_gradients, setup_context=_save)


def _on_host(tensor):
    return tensor.detach().cpu().numpy().astype(float)
