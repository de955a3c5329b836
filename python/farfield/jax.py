# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies in JAX, with derivatives by positions, charges and cells.

The functions work under jax.jit, jax.grad, jax.jvp, jax.vjp and jax.vmap. JAX calls the library on the host: arrays on
a GPU are copied there and back.
"""

from functools import partial
from typing import Any, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from numpy.typing import ArrayLike

from . import arguments
from .batch import Batch, offsets_of
from .cells import lower_triangular
from .solver import Solver

_FIRST_ONLY = "farfield.jax.Coulomb has first derivatives only. CoulombBatch has second ones."
_SECOND_ONLY = "farfield.jax.CoulombBatch has first and second derivatives only."


class Coulomb:
    """The Coulomb energy of point charges, kJ/mol, as a function that can be differentiated once.

    Arrays are float32, whose accuracy ends at 2e-6, or float64, which JAX has where jax_enable_x64 is set. Energy and
    gradients are within the error that is asked for of each other.

    Args:
        exclusions: pairs of particles whose minimum-image interaction is left out, [m, 2].
        options: those of farfield.Solver, but for dtype and boundary.
    """

    def __init__(self, exclusions: ArrayLike = (), **options):
        self._options = _checked_options(options)
        self._exclusions = arguments.pairs("exclusions", exclusions)
        self._solvers: dict[Any, Any] = {}

    def __getstate__(self):
        # solvers are made anew
        return {**self.__dict__, "_solvers": {}}

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
        x, q = _of_one_type(("positions", positions, ("n", 3)), ("charges", charges, ("n",)))
        box = None if cell is None else _array("cell", cell, (3, 3), (2, 3))
        key = x.dtype, "open" if box is None else "periodic" if len(box) == 3 else "slab"
        if key not in self._solvers:
            self._solvers[key] = Solver(dtype=key[0], boundary=key[1], **self._options)
        return _energy(_System(self._solvers[key], self._exclusions), x, q, box)


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
        x, q = _of_one_type(("positions", positions, ("n", 3)), ("charges", charges, ("n",), ("n", "channels")))
        boxes = None if cells is None else _array("cells", cells, ("systems", 3, 3), ("systems", 2, 3))
        for name, value in (("batch", batch), ("ptr", ptr)):
            if isinstance(value, jax.core.Tracer):
                raise TypeError(f"{name} must be known when the function is traced: give an array of NumPy.")
        if batch is None and ptr is None:
            ptr = [0, len(x)]
        starts = offsets_of(len(x), ptr, batch, None if boxes is None else len(boxes))
        key = x.dtype, "open" if boxes is None else "periodic" if boxes.shape[1] == 3 else "slab"
        if key not in self._batches:
            self._batches[key] = Batch(dtype=key[0], boundary=key[1], **self._options)
        return _energies(_Systems(self._batches[key], starts), x, q, boxes)


def _checked_options(options):
    if given := {"dtype", "boundary"} & options.keys():
        raise ValueError(f"{given.pop()} follows from the arrays, leave it out.")
    return options


def _array(name, values, *shapes):
    array = jnp.asarray(values)
    arguments.check_shape(name, array, *shapes)
    return array


def _of_one_type(*given):
    """Arrays of the type of the first."""
    first, *others = (_array(*argument) for argument in given)
    if first.dtype not in (np.float32, np.float64):
        raise ValueError(f"{given[0][0]} are {first.dtype}, but must be float32 or float64.")
    return first, *(other.astype(first.dtype) for other in others)


def _called(function, results, *operands):
    """What a function of the host gives; results are arrays that are like them."""
    shapes = jax.tree.map(lambda like: jax.ShapeDtypeStruct(like.shape, like.dtype), results)
    return jax.pure_callback(function, shapes, *operands, vmap_method="sequential")


class _System:
    """A system of a solver, on the host."""

    def __init__(self, solver, exclusions):
        self.solver, self.exclusions = solver, exclusions

    def evaluate(self, x, q, cell, *, potentials=False, virial=False):
        """Energy, and its gradients by positions, and by charges and cell where asked for."""
        x, q = np.asarray(x), np.asarray(q)
        box, turned = (None, np.eye(3)) if cell is None else lower_triangular(np.asarray(cell))
        moved = (x @ turned.T).astype(x.dtype)
        with self.solver.alone():
            self.solver.set_charges(q)
            self.solver.set_exclusions(self.exclusions)
            result = self.solver.evaluate(moved, box, potentials=potentials, virial=virial)
        by_positions = -result.forces @ turned
        by_cell = None
        if virial:
            # Of the energy under a strain of positions and cell, 2 virial, the cell's own part
            strain = turned.T @ (2 * result.virial) @ turned
            by_cell = np.linalg.pinv(np.asarray(cell, float).T) @ (strain - x.astype(float).T @ by_positions)
        return x.dtype.type(result.energy), by_positions.astype(x.dtype), result.potentials, by_cell


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _energy(system, x, q, cell):
    def energy(x, q, cell):
        return system.evaluate(x, q, cell)[0]

    return _called(energy, jax.ShapeDtypeStruct((), x.dtype), x, q, cell)


@partial(_energy.defjvp, symbolic_zeros=True)
def _energy_jvp(system, inputs, tangents):
    wanted = tuple(tangent is not None and type(tangent) is not SymbolicZero for tangent in tangents)
    energy, gradients = _first_gradients(system, wanted, *inputs)
    products = (jnp.sum(g * d).astype(energy.dtype) for g, d, asked in zip(gradients, tangents, wanted) if asked)
    return energy, sum(products, jnp.zeros_like(energy))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _first_gradients(system, wanted, x, q, cell):
    def gradients(x, q, cell):
        energy, *by_inputs = system.evaluate(x, q, cell, potentials=wanted[1], virial=wanted[2])
        likes = x, q, cell
        return energy, tuple(
            np.asarray(g, like.dtype) if asked else None for g, like, asked in zip(by_inputs, likes, wanted)
        )

    likes = tuple(like if asked else None for like, asked in zip((x, q, cell), wanted))
    return _called(gradients, (jax.ShapeDtypeStruct((), x.dtype), likes), x, q, cell)


@_first_gradients.defjvp
def _refuse_second(system, wanted, inputs, tangents):
    raise NotImplementedError(_FIRST_ONLY)


class _Systems:
    """The systems of a batch, on the host. Errors are handed on as their bits, since JAX may have no float64."""

    def __init__(self, batch, offsets):
        self.batch, self.offsets = batch, offsets
        self.count = len(offsets) - 1
        self.index = np.repeat(np.arange(self.count), np.diff(offsets))

    def energies(self, x, q, cells):
        x, q, rows = self._arrays(x, q, cells)
        return self.batch(x, q, self.offsets, rows).energies.astype(x.dtype)

    def gradients(self, x, q, cells):
        """Energies, gradients by positions, charges and cells, and the errors that the sums were cut for."""
        x, q, rows = self._arrays(x, q, cells)
        result = self.batch(x, q, self.offsets, rows, potentials=True, virials=rows is not None)
        by_x = -result.forces
        by_cells = None if rows is None else self._of_cells(rows, 2 * result.virials, (x, by_x)).astype(cells.dtype)
        bits = result.errors.view(np.uint32).reshape(self.count, 2)
        return result.energies.astype(x.dtype), (by_x, result.potentials, by_cells), bits

    def products(self, inputs, bits, gradients, direction):
        """Derivatives of the gradients along a direction, Hessian-vector products."""
        x, q, rows = self._arrays(*inputs)
        dx, dq, dcells = (None if part is None else np.asarray(part) for part in direction)
        changes = None if dcells is None else dcells.astype(float)
        errors = np.ascontiguousarray(bits).view(np.float64).reshape(-1)
        given = {"dx": dx, "dcharges": dq, "dboxes": changes, "errors": errors}
        tangent = self.batch.tangent(x, q, self.offsets, rows, **given, virials=rows is not None)
        by_x, by_cells = -tangent.forces, None
        if rows is not None and changes is not None:
            slope_x, _, slope = gradients
            strain = 2 * tangent.virials - changes.swapaxes(1, 2) @ np.asarray(slope, float)
            by_cells = self._of_cells(rows, strain, (x, by_x), (dx, np.asarray(slope_x))).astype(inputs[2].dtype)
        return by_x, tangent.potentials, by_cells

    def _of_cells(self, rows, strain, *products):
        """Gradients by cells: strain less sums over particles of a (x) b is what cells have, kJ/mol."""
        own = np.array(strain)
        for a, b in products:
            np.subtract.at(own, self.index, a.astype(float)[:, :, None] * b.astype(float)[:, None, :])
        columns = rows.swapaxes(1, 2)
        return np.linalg.solve(columns, own) if rows.shape[1] == 3 else np.linalg.pinv(columns) @ own

    @staticmethod
    def _arrays(x, q, cells):
        return np.asarray(x), np.asarray(q), None if cells is None else np.asarray(cells, float)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _energies(systems, x, q, cells):
    return _called(systems.energies, jax.ShapeDtypeStruct((systems.count,), x.dtype), x, q, cells)


@_energies.defjvp
def _energies_jvp(systems, inputs, tangents):
    energies, gradients, _ = _gradients(systems, *inputs)
    return energies, _slopes(systems, gradients, tangents)


def _slopes(systems, gradients, tangents):
    """Derivatives of the energies along a direction."""
    (by_x, by_q, by_cells), (dx, dq, dcells) = gradients, tangents
    of_particles = (by_x * dx).sum(1) + (by_q * dq).reshape(len(by_q), -1).sum(1)
    slopes = jax.ops.segment_sum(of_particles, systems.index, systems.count)
    return slopes if dcells is None else slopes + (by_cells * dcells).sum((1, 2)).astype(slopes.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _gradients(systems, x, q, cells):
    energies = jax.ShapeDtypeStruct((systems.count,), x.dtype)
    bits = jax.ShapeDtypeStruct((systems.count, 2), np.uint32)
    return _called(systems.gradients, (energies, (x, q, cells), bits), x, q, cells)


@_gradients.defjvp
def _gradients_jvp(systems, inputs, tangents):
    results = _gradients(systems, *inputs)
    _, gradients, bits = results
    residuals, structure = jax.tree.flatten((inputs, bits, gradients))
    direction, of_direction = jax.tree.flatten(tangents)
    products = _products.bind(*residuals, *direction, systems=systems, structures=(structure, of_direction))
    no_bits = np.zeros(bits.shape, jax.dtypes.float0)
    return results, (_slopes(systems, gradients, tangents), jax.tree.unflatten(of_direction, products), no_bits)


# The Hessian of the energies times a direction: linear in it, and its own transpose.
_products = Primitive("farfield_products")
_products.multiple_results = True


def _parted(operands, structures):
    """What the Hessian is of, and the direction."""
    count = structures[0].num_leaves
    return operands[:count], operands[count:]


@_products.def_abstract_eval
def _like_direction(*operands, systems, structures):
    return list(_parted(operands, structures)[1])


def _run_products(*operands, systems, structures):
    def products(*arrays):
        given = (jax.tree.unflatten(s, part) for s, part in zip(structures, _parted(arrays, structures)))
        (inputs, bits, gradients), direction = given
        return jax.tree.leaves(systems.products(inputs, bits, gradients, direction))

    return _called(products, list(_parted(operands, structures)[1]), *operands)


def _differentiate_products(operands, tangents, **parameters):
    of_residuals, of_direction = _parted(tangents, parameters["structures"])
    if any(type(tangent) is not ad.Zero for tangent in of_residuals):
        raise NotImplementedError(_SECOND_ONLY)
    residuals = _parted(operands, parameters["structures"])[0]
    moved = [ad.instantiate_zeros(tangent) for tangent in of_direction]
    return _products.bind(*operands, **parameters), _products.bind(*residuals, *moved, **parameters)


def _transpose_products(cotangents, *operands, **parameters):
    residuals, direction = _parted(operands, parameters["structures"])
    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    products = _products.bind(*residuals, *given, **parameters)
    linear = [product if ad.is_undefined_primal(d) else None for product, d in zip(products, direction)]
    return [None] * len(residuals) + linear


def _map_products(operands, axes, **parameters):
    mapped = {k: jnp.moveaxis(a, axis, 0) for k, (a, axis) in enumerate(zip(operands, axes)) if axis is not None}

    def products(own):
        return _products.bind(*(own.get(k, a) for k, a in enumerate(operands)), **parameters)

    results = jax.lax.map(products, mapped)
    return results, [0] * len(results)


_products.def_impl(_run_products)
mlir.register_lowering(_products, mlir.lower_fun(_run_products, multiple_results=True))
ad.primitive_jvps[_products] = _differentiate_products
ad.primitive_transposes[_products] = _transpose_products
batching.primitive_batchers[_products] = _map_products
