# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies in JAX, with derivatives by positions, charges and cells.

The functions work under jax.jit, jax.grad, jax.jvp, jax.vjp and jax.vmap, on CPUs and on NVIDIA GPUs. Programs of XLA
call the library with arrays where these are, if it works on the same device. Else they are copied through the host.
"""

from functools import lru_cache, partial
from typing import Any, NamedTuple, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from numpy.typing import ArrayLike

from . import arguments, xla_calls
from .batch import Batch, check_boxes, offsets_of
from .cells import SystemInCell, boundary_of, options_of_sums, orientation
from .device_arrays import on_host
from .solver import Solver


class Coulomb:
    """The Coulomb energy of point charges, kJ/mol, as a function that can be differentiated twice.

    Arrays are float32, whose accuracy ends at 2e-6, or float64, which JAX has where jax_enable_x64 is set. Energy and
    gradients are within the error that is asked for of each other. Second derivatives are those of the gradients to
    rounding, as long as no particle changes its cell. Where one of two is by the cell they are those of direct Ewald
    sums with the same accuracy, without exclusions. These take as long as CoulombBatch, which grows with the particles
    to the power 3/2.

    Args:
        exclusions: pairs of particles whose minimum-image interaction is left out, [m, 2].
        options: those of farfield.Solver, but for dtype and boundary.
    """

    def __init__(self, exclusions: ArrayLike = (), **options):
        self._options = _checked_options(options)
        self._exclusions = np.array(arguments.pairs("exclusions", exclusions))
        self._systems: dict[Any, Any] = {}

    def __getstate__(self):
        # solvers are made anew
        return {**self.__dict__, "_systems": {}}

    def __call__(self, positions: ArrayLike, charges: ArrayLike, cell: Optional[ArrayLike] = None) -> jax.Array:
        """Energy, a scalar of the type of the positions.

        Args:
            positions: nm, [n, 3], any periodic image.
            charges: e, [n].
            cell: vectors of the box as rows, nm, [3, 3], of any orientation; two of them, [2, 3]: a slab, with images
                along both and none across; None: no images.

        Raises:
            TypeError, ValueError: an array has another shape or type.
            jax.errors.JaxRuntimeError: an error of Solver.evaluate(), whose text it has.
        """
        x, q = _particles(positions, charges)
        box = None if cell is None else _cell_array("cell", cell, x, (3, 3), (2, 3))
        key = x.dtype, boundary_of(box)
        if key not in self._systems:
            solver = Solver(dtype=key[0], boundary=key[1], **self._options)
            sums = _Calls(Batch(dtype=key[0], boundary=key[1], **options_of_sums(self._options)))
            self._systems[key] = _SystemOfSolver(SystemInCell(solver, self._exclusions), sums)
        return _energies(self._systems[key], x, q, None if box is None else box[None])[0]


class CoulombBatch:
    """Coulomb energies of many systems, kJ/mol, as a function that can be differentiated twice.

    Arrays are float32, whose accuracy ends at 2e-6, or float64, which JAX has where jax_enable_x64 is set. Derivatives
    are those of the sums that are computed, with splitting and cut-offs held. The method is that of farfield.Batch.

    Args:
        options: those of farfield.Batch, but for dtype and boundary.
    """

    def __init__(self, **options):
        self._options = _checked_options(options)
        self._batches: dict[Any, Any] = {}

    def __getstate__(self):
        # batches are made anew
        return {**self.__dict__, "_batches": {}}

    def __call__(
        self,
        positions: ArrayLike,
        charges: ArrayLike,
        cells: Optional[ArrayLike] = None,
        *,
        batch: Optional[ArrayLike] = None,
        ptr: Optional[ArrayLike] = None,
    ) -> jax.Array:
        """Energies, [systems], of the type of the positions.

        Args:
            positions: nm, [n, 3], any periodic image.
            charges: e, [n], or [n, channels].
            cells: vectors of the boxes as rows, nm, [systems, 3, 3], of any orientation; two of each, [systems, 2, 3]:
                slabs, with images along both and none across; None: no images.
            batch: the system of each particle, ascending from 0, [n]. It has to be known when a function is traced.
            ptr: first particle of each system, and the number of all, [systems + 1], in place of batch. Without both
                there is one system.

        Raises:
            TypeError, ValueError: an array has another shape or type, or batch or ptr is traced.
            jax.errors.JaxRuntimeError: an error of farfield.Batch, whose text it has.
        """
        x, q = _particles(positions, charges, self._options.get("channels", 1))
        boxes = None if cells is None else _cell_array("cells", cells, x, ("systems", 3, 3), ("systems", 2, 3))
        for name, value in (("batch", batch), ("ptr", ptr)):
            if isinstance(value, jax.core.Tracer):
                raise TypeError(f"{name} must be known when the function is traced: give an array of NumPy.")
        if batch is None and ptr is None:
            ptr = [0, len(x)]
        starts = offsets_of(len(x), ptr, batch, None if boxes is None else len(boxes))
        if starts[0] != 0 or np.any(np.diff(starts) < 0):
            raise ValueError("ptr must begin with 0, and ascend.")
        if boxes is not None:
            check_boxes(boxes, len(starts) - 1)
        key = x.dtype, boundary_of(boxes)
        if key not in self._batches:
            self._batches[key] = _Calls(Batch(dtype=key[0], boundary=key[1], **self._options))
        return _energies(_Systems(self._batches[key], starts), x, q, boxes)


def _checked_options(options):
    if given := {"dtype", "boundary"} & options.keys():
        raise ValueError(f"{given.pop()} follows from the arrays, leave it out.")
    return options


def _array(name, values, *shapes):
    array = jnp.asarray(values)
    arguments.check_shape(name, array, *shapes)
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise arguments.ArrayError(f"{name} must be an array of real numbers, but is of {array.dtype}.")
    return array


def _particles(positions, charges, channels=None):
    """Positions, and charges of their type."""
    x = _array("positions", positions, ("n", 3))
    if x.dtype not in (np.float32, np.float64):
        raise ValueError(f"positions are {x.dtype}, but must be float32 or float64.")
    n = len(x)
    shapes = [(n,)] if channels is None else [(n, channels), (n,)][: 2 if channels == 1 else 1]
    return x, _array("charges", charges, *shapes).astype(x.dtype)


def _cell_array(name, values, x, *shapes):
    """Cells, which may be more accurate than positions."""
    array = _array(name, values, *shapes)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(x.dtype)


class _Calls:
    """A solver or a batch, and the compiled calls of it, which go with it."""

    def __init__(self, owner):
        self.owner = owner
        self.compiled = lru_cache(maxsize=64)(_compile)
        self._known: dict[Any, xla_calls.Call] = {}

    def __getitem__(self, fill):
        return self._known.setdefault(fill, xla_calls.Call(fill))


class _Function(NamedTuple):
    """A function of systems with arrays of JAX in double precision; those that are equal are one to JAX."""

    systems: Any
    name: str
    given: tuple = ()

    def __call__(self, *arrays):
        return getattr(self.systems, self.name)(*self.given, *arrays)


class _Fill(NamedTuple):
    """A function of systems that the library runs. It is given a place, results that it fills, and operands."""

    systems: Any
    name: str
    operands: Any  # their structure
    results: Any
    given: tuple = ()

    @property
    def device(self):
        return self.systems.device

    def __call__(self, place, operands, results):
        arrays = *jax.tree.unflatten(self.results, results), *jax.tree.unflatten(self.operands, operands)
        getattr(self.systems, self.name)(place, *self.given, *arrays)


# A function of systems as one operation: within it there is float64, which JAX may not have outside.
_operation = Primitive("farfield_systems")
_operation.multiple_results = True
# What XLA calls within it
_library = Primitive("farfield_library")
_library.multiple_results = True
# the context manager in versions before 0.8
_double = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def _compile(function, structure, results):
    return jax.jit(lambda *leaves: _operation.bind(*leaves, function=function, structure=structure, results=results))


@_operation.def_impl
def _run_compiled(*leaves, function, structure, results):
    return function.systems.calls.compiled(function, structure, results)(*leaves)


@_operation.def_abstract_eval
def _like_results(*leaves, function, structure, results):
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in results]


def _lower(ctx, *leaves, function, structure, results):
    def run(*arrays):
        found = jax.tree.leaves(function(*jax.tree.unflatten(structure, arrays)))
        return [array.astype(dtype) for array, (_, dtype) in zip(found, results)]

    with _double(True):
        return mlir.lower_fun(run, multiple_results=True)(ctx, *leaves)


@_library.def_abstract_eval
def _like_filled(*leaves, fill, results):
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in results]


def _lower_fill(platform, ctx, *leaves, fill, results):
    return xla_calls.lower(platform, ctx, *leaves, call=fill.systems.calls[fill])


def _filled(systems, name, given, results, *operands):
    """What a function of the library fills; results are arrays that are like them."""
    leaves, structure = jax.tree.flatten(operands)
    likes, of_results = jax.tree.flatten(results)
    shapes = tuple((like.shape, np.dtype(like.dtype)) for like in likes)
    values = _library.bind(*leaves, fill=_Fill(systems, name, structure, of_results, given), results=shapes)
    return jax.tree.unflatten(of_results, values)


def _called(function, results, *operands):
    """What a function of systems gives; results are arrays that are like them."""
    leaves, structure = jax.tree.flatten(operands)
    likes, of_results = jax.tree.flatten(results)
    shapes = tuple((like.shape, np.dtype(like.dtype)) for like in likes)
    values = _operation.bind(*leaves, function=function, structure=structure, results=shapes)
    return jax.tree.unflatten(of_results, values)


def _map(primitive, operands, axes, **parameters):
    """One after the other."""
    mapped = {k: jnp.moveaxis(a, axis, 0) for k, (a, axis) in enumerate(zip(operands, axes)) if axis is not None}

    def run(own):
        return primitive.bind(*(own.get(k, a) for k, a in enumerate(operands)), **parameters)

    results = jax.lax.map(run, mapped)
    return results, [0] * len(results)


mlir.register_lowering(_operation, _lower)
mlir.register_lowering(_library, partial(_lower_fill, "cpu"), platform="cpu")
mlir.register_lowering(_library, partial(_lower_fill, "CUDA"), platform="cuda")
batching.primitive_batchers[_operation] = partial(_map, _operation)


def _varying(tangents):
    """Which of them are not zero."""
    return tuple(tangent is not None and type(tangent) is not SymbolicZero for tangent in tangents)


def _where(mask, values):
    return tuple(value if asked else None for value, asked in zip(values, mask))


def _bits_of(errors):
    return jax.lax.bitcast_convert_type(errors, np.uint32)


def _numbers(*shape):
    return jax.ShapeDtypeStruct(shape, float)


def _rotated(vectors, matrix):
    """The products of vectors with a matrix, in the type of the vectors; None for no vectors, or no matrix."""
    return vectors if vectors is None or matrix is None else (vectors.astype(float) @ matrix).astype(vectors.dtype)


def _of_cells(systems, cells, strain, *products):
    """Gradients by cells: strain less sums over particles of a (x) b is what cells have, kJ/mol."""
    own = strain
    for a, b in products:
        own = own - systems.outer_products(a.astype(float), b.astype(float))
    rows = cells.astype(float)
    a, b = rows[:, 0], rows[:, 1]
    c = rows[:, 2] if rows.shape[1] == 3 else jnp.cross(a, b)
    dual = (
        jnp.stack((jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)), 1) / (jnp.cross(a, b) * c).sum(1)[:, None, None]
    )
    return dual[:, : rows.shape[1]] @ own


class _SystemOfSolver:
    """A system of a solver; sums are calls of a batch."""

    name, count = "Coulomb", 1

    def __init__(self, own, sums):
        self.own, self.calls, self._sums = own, _Calls(own), sums

    @property
    def device(self):
        return self.own.solver.setup["device_id"]

    def sums(self, of_particles):
        return of_particles.sum()[None]

    def outer_products(self, a, b):
        return (a.T @ b)[None]

    def check_second(self, wanted, given):
        """Whether there are derivatives of the wanted gradients by what is given."""
        if wanted[2] or given[2]:
            self.own.check_sums()

    def energies(self, x, q, cells):
        return self.gradients((False, False, False), x, q, cells)[0]

    def gradients(self, wanted, x, q, cells):
        """Energies, and gradients by positions, charges and cells where they are wanted; as those of _Systems."""
        cell, turned, back = self._turned(cells)
        likes = _numbers(10), x, q if wanted[1] else None
        totals, forces, potentials = _filled(self, "evaluate", (wanted[2],), likes, _rotated(x, back), q, cell)
        by_x = -_rotated(forces, turned)
        by_cells = None
        if wanted[2]:
            strain = back @ (2 * totals[1:].reshape(3, 3)) @ turned
            by_cells = _of_cells(self, cells, strain[None], (x, by_x))
        no_bits = jnp.zeros((1, 2), np.uint32)  # of errors, which a solver does not hand on
        return totals[:1], _where(wanted, (by_x, potentials, by_cells)), no_bits

    def evaluate(self, place, virial, totals, forces, potentials, x, q, cell):
        box, _ = self.own.box_of(None if cell is None else on_host(cell))
        with self.own.with_charges(q, place) as solver:
            energy, matrix, _ = solver.evaluate_into(place, x, box, (forces, potentials, None, None, None), virial)
        _set(totals, np.append(energy, matrix))

    def products(self, asked, inputs, bits, gradients, direction):
        (x, q, cells), (dx, dq, dcells) = inputs, direction
        if asked[2] or dcells is not None:
            errors = self.own.error_of_sums(gradients[0].astype(float))[None]
            sums = _Systems(self._sums, [0, len(x)])
            return sums.products(asked, inputs, _bits_of(errors), gradients, direction)
        cell, turned, back = self._turned(cells)
        operands = _rotated(x, back), q, cell, _rotated(dx, back), dq
        forces, potentials = _filled(self, "tangent", (), (x, q), *operands)
        return _where(asked, (-_rotated(forces, turned), potentials, None))

    def tangent(self, place, forces, potentials, x, q, cell, dx, dq):
        box, _ = self.own.box_of(None if cell is None else on_host(cell))
        with self.own.with_charges(q, place) as solver:
            solver.tangent_into(place, x, box, dx, dq, (forces, potentials))

    @staticmethod
    def _turned(cells):
        """The cell, its orientation, and the transpose of that."""
        if cells is None:
            return None, None, None
        cell = cells[0].astype(float)
        turned = orientation(cell, jnp)
        return cell, turned, turned.T


def _set(array, numbers):
    """Fills an array of the host or of a GPU with numbers."""
    if isinstance(array, np.ndarray):
        array[...] = numbers
    else:
        array.set(numbers)


class _Systems:
    """The systems of a batch. Errors are handed on as their bits, since JAX may have no float64."""

    name = "CoulombBatch"

    def __init__(self, calls, offsets):
        self.calls, self.batch, self.offsets = calls, calls.owner, np.array(offsets, np.int32)
        self.count = len(offsets) - 1
        self.index = np.repeat(np.arange(self.count), np.diff(offsets))
        self._identity = id(calls), self.offsets.tobytes()

    def __eq__(self, other):
        return isinstance(other, _Systems) and self._identity == other._identity

    def __hash__(self):
        return hash(self._identity)

    @property
    def device(self):
        return self.batch.setup["device_id"]

    def sums(self, of_particles):
        return jax.ops.segment_sum(of_particles, self.index, self.count)

    def outer_products(self, a, b):
        return (a.T @ b)[None] if self.count == 1 else self.sums(a[:, :, None] * b[:, None, :])

    def check_second(self, wanted, given):
        """As that of _SystemOfSolver: there are all."""

    def energies(self, x, q, cells):
        return self.gradients((False, False, False), x, q, cells)[0]

    def gradients(self, wanted, x, q, cells):
        """Energies, gradients by positions, charges and cells, and the errors that the sums were cut for."""
        charges, each = self._table(q), _numbers(self.count)
        likes = each, x, charges if wanted[1] else None, _numbers(self.count, 3, 3) if wanted[2] else None, each
        found = _filled(self, "evaluate", (), likes, x, charges, self._rows(cells))
        energies, forces, potentials, virials, errors = found
        by_x = -forces
        by_q = potentials.reshape(q.shape) if wanted[1] else None
        by_cells = _of_cells(self, cells, 2 * virials, (x, by_x)) if wanted[2] else None
        return energies, _where(wanted, (by_x, by_q, by_cells)), _bits_of(errors)

    def evaluate(self, place, energies, forces, potentials, virials, errors, x, q, rows):
        outputs = energies, forces, potentials, virials, errors
        self.batch.run_measured("evaluate" + place.suffix, x, q, self.offsets, rows, *outputs, *place.more)

    def products(self, asked, inputs, bits, gradients, direction):
        """Derivatives of the gradients along a direction, Hessian-vector products."""
        (x, q, cells), (dx, dq, dcells) = inputs, direction
        charges, changes = self._table(q), None if dq is None else self._table(dq)
        drows = None if dcells is None else self._rows(dcells)
        errors = jax.lax.bitcast_convert_type(bits, float)
        likes = x, charges, _numbers(self.count, 3, 3) if asked[2] else None
        operands = x, charges, self._rows(cells), dx, changes, drows, errors
        forces, potentials, virials = _filled(self, "tangent", (), likes, *operands)
        by_x, by_cells = -forces, None
        if asked[2]:
            slope_x, _, slope = gradients
            strain, products = 2 * virials, [(x, by_x)]
            if dx is not None:
                products.append((dx, slope_x))
            if dcells is not None:
                strain = strain - dcells.astype(float).swapaxes(1, 2) @ slope.astype(float)
            by_cells = _of_cells(self, cells, strain, *products)
        return _where(asked, (by_x, potentials.reshape(q.shape), by_cells))

    def tangent(self, place, forces, potentials, virials, x, q, rows, dx, dq, drows, errors):
        given = x, q, self.offsets, rows, dx, dq, drows, errors, forces, potentials, virials
        self.batch.run("evaluate_tangent" + place.suffix, *given, *place.more)

    def _table(self, charges):
        return charges.reshape(len(charges), self.batch.channels)

    def _rows(self, cells):
        """Three vectors of each cell: the third ones of slabs are zero."""
        if cells is None:
            return jnp.zeros((self.count, 3, 3))
        return jnp.pad(cells.astype(float), ((0, 0), (0, 3 - cells.shape[1]), (0, 0)))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _energies(systems, x, q, cells):
    like = jax.ShapeDtypeStruct((systems.count,), x.dtype)
    return _called(_Function(systems, "energies"), like, x, q, cells)


@partial(_energies.defjvp, symbolic_zeros=True)
def _energies_jvp(systems, inputs, tangents):
    given = _varying(tangents)
    energies, gradients, _ = _gradients(systems, _with_forces(given), *inputs)
    return energies, _slopes(systems, energies, gradients, _where(given, tangents))


def _with_forces(mask):
    """Forces are always there, and derivatives by cells need them."""
    return (True, *mask[1:])


def _slopes(systems, energies, gradients, direction):
    """Derivatives of the energies along a direction."""
    (by_x, by_q, by_cells), (dx, dq, dcells) = gradients, direction
    slopes = jnp.zeros_like(energies)
    for by, change in ((by_x, dx), (by_q, dq)):
        if change is not None:
            of_particles = (by * change).sum(tuple(range(1, by.ndim)))
            slopes = slopes + systems.sums(of_particles)
    return slopes if dcells is None else slopes + (by_cells * dcells).sum((1, 2)).astype(slopes.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _gradients(systems, wanted, x, q, cells):
    energies = jax.ShapeDtypeStruct((systems.count,), x.dtype)
    bits = jax.ShapeDtypeStruct((systems.count, 2), np.uint32)
    likes = energies, _where(wanted, (x, q, cells)), bits
    return _called(_Function(systems, "gradients", (wanted,)), likes, x, q, cells)


@partial(_gradients.defjvp, symbolic_zeros=True)
def _gradients_jvp(systems, wanted, inputs, tangents):
    given = _varying(tangents)
    systems.check_second(wanted, given)
    direction = _where(given, tangents)
    # energies have derivatives, too
    both = tuple(a or b for a, b in zip(wanted, given))
    energies, gradients, bits = _gradients(systems, both, *inputs)
    residuals, structure = jax.tree.flatten((inputs, bits, gradients))
    changes = [change for change in direction if change is not None]
    found = _products.bind(*residuals, *changes, systems=systems, structure=structure, given=given, asked=wanted)
    products = _spread(wanted, found)
    no_bits = np.zeros(bits.shape, jax.dtypes.float0)
    values = energies, _where(wanted, gradients), bits
    return values, (_slopes(systems, energies, gradients, direction), products, no_bits)


# The Hessian of the energies times a direction: linear in it. Its transpose is the same, with inputs and outputs
# exchanged.
_products = Primitive("farfield_products")
_products.multiple_results = True


def _spread(mask, values):
    """A value for each that the mask has, and None for the others."""
    left = iter(values)
    return tuple(next(left) if asked else None for asked in mask)


def _parted(operands, structure):
    """What the Hessian is of, and the direction."""
    return operands[: structure.num_leaves], operands[structure.num_leaves :]


def _asked_likes(operands, structure, asked):
    inputs = jax.tree.unflatten(structure, _parted(operands, structure)[0])[0]
    return _where(asked, inputs)


@_products.def_abstract_eval
def _like_asked(*operands, systems, structure, given, asked):
    return [
        jax.core.ShapedArray(like.shape, like.dtype)
        for like in _asked_likes(operands, structure, asked)
        if like is not None
    ]


def _run_products(*operands, systems, structure, given, asked):
    residuals, direction = _parted(operands, structure)
    likes = _asked_likes(operands, structure, asked)
    arrays = *jax.tree.unflatten(structure, residuals), _spread(given, direction)
    found = _called(_Function(systems, "products", (asked,)), likes, *arrays)
    return [value for value in found if value is not None]


def _differentiate_products(operands, tangents, **parameters):
    of_residuals, of_direction = _parted(tangents, parameters["structure"])
    if any(type(tangent) is not ad.Zero for tangent in of_residuals):
        name = parameters["systems"].name
        raise NotImplementedError(f"farfield.jax.{name} has first and second derivatives only.")
    residuals = _parted(operands, parameters["structure"])[0]
    moved = [ad.instantiate_zeros(tangent) for tangent in of_direction]
    return _products.bind(*operands, **parameters), _products.bind(*residuals, *moved, **parameters)


def _transpose_products(cotangents, *operands, systems, structure, given, asked):
    residuals = _parted(operands, structure)[0]
    changes = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    found = _products.bind(*residuals, *changes, systems=systems, structure=structure, given=asked, asked=given)
    return [None] * len(residuals) + list(found)


_products.def_impl(_run_products)
mlir.register_lowering(_products, mlir.lower_fun(_run_products, multiple_results=True))
ad.primitive_jvps[_products] = _differentiate_products
ad.primitive_transposes[_products] = _transpose_products
batching.primitive_batchers[_products] = partial(_map, _products)
