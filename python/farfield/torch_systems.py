# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Systems of calls from PyTorch, and the functions of autograd that they have."""

import abc
import functools
import inspect
from typing import Optional

import numpy as np
import torch

from . import arguments
from .batch import BatchResult, BatchTangent, check_boxes, offsets_of


class Systems(abc.ABC):
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
        # solve() and pinv() would wait for a GPU, to check cells that are checked elsewhere
        if cells.shape[1] == 3:
            return torch.linalg.solve_ex(cells.mT, own).result
        return torch.linalg.solve_ex(cells @ cells.mT, cells @ own).result  # the pseudoinverse


class SystemOfSolver(Systems):
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
        error = float(self.own.error_of_sums(torch.as_tensor(known.forces).double()))
        sums = self._sums_of(device, Starts(len(positions)))
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


class Starts:
    """The first particle of each system, and the number of all, from an index or from what is given as them.

    n: particles; without index and given there is one system; systems: their number, if it is known.
    """

    def __init__(self, n, index=None, given=None, systems=None):
        self.n, self.index, self.given, self.systems = n, index, given, systems

    def on_host(self):
        index, given = (None if tensor is None else tensor.cpu().numpy() for tensor in (self.index, self.given))
        if index is None and given is None:
            given = [0, self.n]
        return offsets_of(self.n, given, index, self.systems)

    def on_gpu(self, device):
        """A tensor there, if it takes no wait. What makes no sense in it is refused in a call, and by on_host()."""
        if (self.index is None) == (self.given is None):
            return self.on_host()
        known = self.given if self.index is None else self.index
        if known.device != device or known.dtype not in (torch.int32, torch.int64):
            return self.on_host()
        if self.index is None:
            return known.to(torch.int32).contiguous()
        if self.systems is None:
            return self.on_host()
        systems = torch.arange(self.systems + 1, dtype=known.dtype, device=known.device)
        starts = torch.searchsorted(known.contiguous(), systems, out_int32=True)
        return torch.where((known.diff() >= 0).all(), starts, -1)


class SystemsOfBatch(Systems):
    """The systems of a batch, on the host. starts: see Starts."""

    name = "CoulombBatch"

    def __init__(self, batch, starts, device):
        super().__init__()
        self.batch, self.starts, self.device = batch, starts, device
        self.errors = None

    @functools.cached_property
    def offsets(self):
        """First particles; in an evaluation only: torch.func lets nothing else read arrays."""
        return self.starts.on_host()

    @property
    def sizes(self):
        """Particles of each system; not kept, as torch.func marks it with the level that made it."""
        return torch.as_tensor(self.offsets).to(self.device, non_blocking=True).diff()

    def anew(self):
        return type(self)(self.batch, self.starts, self.device)

    def take(self, result, errors):
        """What others have found, and the errors of forces that sums are to have, [systems]."""
        self.result, self.errors = result, errors

    def sums(self, of_particles):
        """Sums over the particles of each system."""
        systems = len(self.offsets) - 1
        index = torch.arange(systems, device=self.device).repeat_interleave(self.sizes, output_size=self.starts.n)
        return of_particles.new_zeros(systems, *of_particles.shape[1:]).index_add(0, index, of_particles)

    def outer_products(self, a, b):
        return self.sums(a.double()[:, :, None] * b.double()[:, None, :])

    def spread(self, of_systems, positions):
        if len(of_systems) and of_systems.stride() == (0,):
            return of_systems[0].expand(len(positions))  # one value, as of a sum
        return of_systems.repeat_interleave(self.sizes, output_size=self.starts.n)

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


class SystemsOnGpu(SystemsOfBatch):
    """The same of tensors on a GPU, where all of them stay."""

    @functools.cached_property
    def offsets(self):
        return self.starts.on_gpu(self.device)

    def evaluate(self, positions, charges, cells, *, potentials=False, virials=False):
        x, q, starts, boxes = self._arrays(positions, charges, cells)
        forces, values = torch.empty_like(x), torch.empty_like(q) if potentials else None
        energies, self.errors = torch.empty((2, len(boxes)), dtype=torch.float64, device=self.device)
        tensors = torch.empty_like(boxes) if virials else None
        outputs = energies, forces, values, tensors, self.errors
        try:
            self.batch.run_measured("evaluate_on_gpu", x, q, starts, boxes, *outputs, _stream_of(x))
        except ValueError:
            self.starts.on_host()  # says more about an index that makes no sense
            raise
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


class Energies(_InTurn):
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
        by_positions, by_charges, by_cells = Gradients.apply(
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
        by_positions, by_charges, by_cells = Gradients.apply(
            *ctx.saved_tensors, ctx.systems, (dcharges is not None, dcells is not None)
        )
        pairs = (by_positions, moves), (by_charges, dcharges)
        of_particles = sum((a * b).reshape(len(a), -1).sum(1) for a, b in pairs if b is not None)
        energies = ctx.systems.sums(of_particles) if isinstance(of_particles, torch.Tensor) else 0
        if dcells is not None:
            energies = energies + (by_cells * dcells).sum((1, 2)).to(by_positions)
        return energies


class Gradients(_InTurn):
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
        return *Tangents.apply(*ctx.saved_tensors, *direction, ctx.systems, ctx.needs_input_grad[1:3]), None, None

    @staticmethod
    def jvp(ctx, moves, dcharges, dcells, *_):
        return Tangents.apply(*ctx.saved_tensors, moves, dcharges, dcells, ctx.systems, ctx.wanted)


class Tangents(_InTurn):
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


def _on_host(tensor):
    return tensor.detach().cpu().numpy().astype(float)
