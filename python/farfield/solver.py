# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The solver, with NumPy arrays, or arrays in the memory of a GPU."""

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import arguments, processes
from ._library import _core
from .device_arrays import Place, is_on_gpu, place_of
from .particles import Particles, give_charges

_KINDS = {np.dtype(np.float32): _core.SingleSolver, np.dtype(np.float64): _core.DoubleSolver}
#: How the widths of two particles make that of a pair, unless the caller says so.
_RULES = {"gaussian": "root-sum-square", "thole": "geometric-mean", "soft-core": "larger", "coulomb": "larger"}

#: Of a symmetric matrix, row by row, among xx yy zz xy xz yz.
_PLACES = np.array([0, 3, 4, 3, 1, 5, 4, 5, 2])


@dataclass
class Result:
    """What an evaluation gives; what is of each particle is where the positions are."""

    energy: float  # kJ/mol
    forces: Any  # kJ/mol/nm, [n, 3]
    virial: Optional[NDArray] = None  # -1/2 sum of x f, kJ/mol, [3, 3]
    potentials: Optional[Any] = None  # dE/dq of every particle, kJ/mol/e, [n]
    slope: Optional[float] = None  # dV/dlambda, kJ/mol
    gradients: Optional[Any] = None  # of the potentials, kJ/mol/e/nm, [n, 3]
    hessians: Optional[Any] = None  # second derivatives of the potentials, kJ/mol/e/nm^2, [n, 3, 3]
    torques: Optional[Any] = None  # on dipoles and quadrupoles, kJ/mol, [n, 3]


@dataclass
class Tangent:
    """Derivatives along a direction, where the positions are."""

    forces: Any  # kJ/mol/nm, [n, 3]
    potentials: Any  # kJ/mol/e, [n]


@dataclass
class InducedDipoles:
    """Dipoles that the field induces, and what they cost."""

    dipoles: NDArray  # e nm, [n, 3]
    self_energy: float  # 1/2 sum of mu^2/alpha, kJ/mol; add it to the energy of an evaluation with the dipoles
    residual: float  # what is left in the dipoles, as the tolerance
    iterations: int


class Solver(processes.CoreOwner):
    """Point charges in a periodic box, with conducting surroundings, in a slab or without images.

    A net charge in a periodic box is neutralised by a uniform background. Threads that use one solver
    wait for each other; what belongs together, as set_charges() and evaluate(), they have to keep
    together themselves. A solver can be copied and pickled, with its charges, exclusions, widths and cells.
    After fork() it works on in the child, with one thread where the parent has used several; one that
    is on a GPU does not.

    evaluate(), tangent() and evaluate_at() take arrays in the memory of a GPU, too, if they speak DLPack,
    as those of PyTorch, CuPy and JAX, have the solver's dtype, and the solver has that GPU: they are read
    there, and what is returned is of the same package and stays there. So does set_charges(). A call is in order with
    the current stream of PyTorch or CuPy. With arrays of other packages it first waits for all that was given to the
    GPU before. Exclusions, widths and groups are NumPy's arrays all the same.

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
        threads: OpenMP threads at most; None: what the runtime offers, see OMP_NUM_THREADS. No more are
            started than the processors that the process may use, by its affinity and the quotas of its
            container, nor than the particles give work.
        reproducible: bitwise equal results on a GPU, too.
        tune: on a GPU, time the settings that meet the accuracy and take the fastest.
        coulomb_constant: kJ/mol nm/e^2; None: that of GROMACS.

    Raises:
        TypeError: an option is of the wrong type.
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
        self.dtype = arguments.precision(dtype)
        given: dict[str, Any] = {
            "accuracy": arguments.number("accuracy", accuracy),
            "m2l": arguments.text("m2l", m2l),
            "boundary": arguments.text("boundary", boundary),
            "device": arguments.text("device", device),
            "reproducible": arguments.flag("reproducible", reproducible),
            "tune": arguments.flag("tune", tune),
        }
        for name, key, checked, value in (
            ("order", "order", arguments.integer, order),
            ("direct_range", "directRange", arguments.integer, direct_range),
            ("cell_size", "cellSize", arguments.number, cell_size),
            ("device_id", "deviceId", arguments.integer, device_id),
            ("threads", "threads", arguments.integer, threads),
            ("coulomb_constant", "coulombConstant", arguments.number, coulomb_constant),
        ):
            if value is not None:
                given[key] = checked(name, value)
        self._options = given
        self._start()

    @property
    def accuracy(self) -> float:
        """The error of forces that was asked for."""
        return self._options["accuracy"]

    def set_charges(self, charges: ArrayLike) -> None:
        """Sets the number of particles and their charges, e, [n].

        Clears exclusions and widths if the number changes. Particles without a charge get no force; their
        potentials are those of others.

        Args:
            charges: an array of the host, or in the memory of the GPU, as evaluate() takes positions.
        """
        own = self._array("charges", charges, ("n",))
        self.set_charges_in(place_of(self.dtype, {}, {"charges": own})[0], own)

    def set_charges_in(self, place: Place, charges: Any) -> None:
        """set_charges() with an array in a place."""
        if not is_on_gpu(charges):
            self._set_charges(charges)
            return
        with self.alone() as core:
            copy = self._particles.memory_on_gpu(charges, self.dtype)
            mean_square = place.function(core, "set_charges")(charges, copy)
            self._particles.set_charges_on_gpu(copy, mean_square)

    def set_perturbed_charges(self, charges_a: ArrayLike, charges_b: ArrayLike) -> None:
        """Sets charges of two states, e, [n] each, in place of set_charges().

        Energies are mixed: V = (1 - lambda) E(A) + lambda E(B).
        """
        first = self._reals("charges_a", charges_a, ("n",))
        self._set_charges(first, self._reals("charges_b", charges_b, first.shape))

    def set_exclusions(self, pairs: ArrayLike) -> None:
        """Sets the pairs whose minimum-image interaction is left out, after the charges.

        Args:
            pairs: indices, [m, 2]; each pair in one direction or in both.

        Raises:
            ValueError: an index is out of range.
        """
        given = arguments.pairs("pairs", pairs)
        with self.alone() as core:
            if not self._particles.excludes(given):
                rows = arguments.rows_of_pairs("pairs", given, self._particles.count)
                core.set_exclusions(*rows)
                self._particles.set_exclusions(given, rows)

    def set_dipoles(self, dipoles: Optional[ArrayLike]) -> None:
        """Sets point dipoles of the particles, beside their charges, e nm, [n, 3]; None: there are none any more.

        With the potential phi of all others, the energy is 1/2 the sum of q phi + mu.grad phi over particles, and a
        force is -(q grad phi + mu.grad grad phi). The accuracy is that of these forces. The virial is that of strains
        that leave the dipoles as they are. Not with charges of two states, nor with soft cores; with other near
        functions without the virial.

        Raises:
            ValueError: a component is not finite.
        """
        own = None if dipoles is None else np.array(self._reals("dipoles", dipoles, ("n", 3)))
        with self.alone() as core:
            core.set_dipoles(own)
            self._particles.set_dipoles(own)

    def set_quadrupoles(self, quadrupoles: Optional[ArrayLike]) -> None:
        """Sets point quadrupoles of the particles, e nm^2, [n, 3, 3]; None: there are none any more.

        They are symmetric and traceless, in the convention of Buckingham (doi:10.1039/QR9591300183): sum of
        q (3 r r - r^2)/2 over the charges of a particle. Some programs store a third of that. The energy of a
        quadrupole Theta is 1/6 Theta:grad grad phi. All that is said of set_dipoles() holds, but that there are no
        near functions.

        Raises:
            ValueError: a component is not finite, a quadrupole is not symmetric, or it has a trace.
        """
        own = None
        if quadrupoles is not None:
            given = self._reals("quadrupoles", quadrupoles, ("n", 3, 3))
            uneven = np.abs(given - given.transpose(0, 2, 1)).max(axis=(1, 2), initial=0)
            is_uneven = uneven > 1e-5 * np.abs(given).max(axis=(1, 2), initial=0)
            if is_uneven.any():
                raise ValueError(f"The quadrupole of particle {int(np.argmax(is_uneven))} is not symmetric.")
            own = np.ascontiguousarray(given.reshape(-1, 9)[:, [0, 4, 8, 1, 2, 5]])
        with self.alone() as core:
            core.set_quadrupoles(own)
            self._particles.set_quadrupoles(own)

    def set_near_function(self, name: str, widths: Optional[ArrayLike] = None, rule: Optional[str] = None) -> None:
        """Sets what pairs have in place of 1/r at short distance, after the charges.

        With the width b of a pair and x = r/b:

        - "gaussian": erf(x)/r, of Gaussian charges with densities like exp(-r^2/w^2), doi:10.1021/ct5009069;
        - "thole": (1 - (1 + x/2) exp(-x))/r, Thole damping, doi:10.1016/0301-0104(81)85176-2;
        - "soft-core": (b^6 + r^6)^(-1/6), doi:10.1016/0009-2614(94)00397-1;
        - "coulomb": 1/r again, for all pairs.

        Pairs with a width may be at one place. The energy of a particle with itself is not included: of Gaussian
        charges it is k q^2/(sqrt(2 pi) w). The trace of the virial is not -energy/2. Points of evaluate_at() have the
        width 0. The function differs from 1/r within a range, see Solver::setNearFunction() in the C++ reference, of
        which the box has to be twice as wide.

        Args:
            name: the function.
            widths: of the particles, nm, [n]; 0: pairs have 1/r. None with "coulomb".
            rule: the width of a pair of those of its particles, v and w: "root-sum-square", "geometric-mean" or
                "larger". None: "root-sum-square" for Gaussian charges, "geometric-mean" for Thole damping, whose
                widths are (polarisability)^(1/3) over Thole's parameter, and "larger" for soft cores.

        Raises:
            ValueError: a name is not one of these, or a width is negative or not finite.
        """
        name = arguments.text("name", name)
        if name not in _RULES:
            raise ValueError(f"name has no value '{name}', but must be one of {', '.join(map(repr, _RULES))}.")
        rule = _RULES[name] if rule is None else arguments.text("rule", rule)
        if widths is None and name != "coulomb":
            raise ValueError(f"widths must be given with '{name}'.")
        with self.alone() as core:
            given = np.zeros(self._particles.count) if name == "coulomb" else widths
            near = name, rule, np.array(self._reals("widths", given, ("n",)))
            core.set_near_function(*near)
            self._particles.set_near_function(*near)

    def prepare(self, x: ArrayLike, box: Optional[ArrayLike] = None) -> None:
        """Chooses order and cells and builds the operators, which the first evaluation does else."""
        x, box = self._reals("x", x, ("n", 3)), _box(box)
        with self.alone() as core:
            self._evaluated(x, box, core.prepare, x, box)

    def evaluate(
        self,
        x: ArrayLike,
        box: Optional[ArrayLike] = None,
        *,
        virial: bool = False,
        potentials: bool = False,
        gradients: bool = False,
        hessians: bool = False,
        torques: bool = False,
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
        lambda_: float = 0.0,
        slope: bool = False,
    ) -> Result:
        """Computes energy and forces, and what is asked for besides.

        Args:
            x: positions, nm, [n, 3], any periodic image.
            box: edges of a rectangular box, nm, [3], or box vectors as rows, lower triangular, [3, 3];
                None where the boundary is open; the third is not read where it is a slab.
            virial, potentials: whether to compute them. From the first call with potentials on, particles
                without a charge cost as much as others.
            gradients, hessians: whether to compute first and second derivatives of the potentials, which dipoles
                have as their energies and forces; minus the gradient is the field.
                Particles without a charge cost as with potentials.
            torques: whether to compute those on dipoles and quadrupoles.
            grid_offset: position of the grid of cells, in cells; the result is the same within the
                error. Integrate motion with another one at each step.
            lambda_: coupling parameter of set_perturbed_charges(), any finite number. Beyond 0 to 1 energies are
                extrapolated, and the errors of forces, too.
            slope: whether to compute dV/dlambda.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: a position or the box is not valid, or the accuracy cannot be met; two charges that
                are no excluded pair are at one place, where they have 1/r. All pairs are looked at in the first
                evaluation of other particles, exclusions or widths. Later such charges are known by their large energy
                or potentials: several pairs whose energies cancel are not, unless potentials are asked for.
            MemoryError: memory is exhausted.
        """
        wanted = bool(virial), _offset(grid_offset), arguments.number("lambda_", lambda_), bool(slope)
        at = self._array("x", x, ("n", 3))
        with self.alone():
            (place, new, take), n = place_of(self.dtype, {"x": at}), len(at)
            shapes = (n, 3), (n,), (n, 3), (n, 6), (n, 3)
            asked = True, potentials, gradients, hessians, torques
            outputs = [new(*shape) if flag else None for shape, flag in zip(shapes, asked)]
            energy, matrix, derivative = self.evaluate_into(place, at, box, outputs, *wanted)
        forces, values, first, second, turning = (None if a is None else take(a) for a in outputs)
        return Result(
            energy,
            forces,
            np.array(matrix) if virial else None,
            values,
            derivative if slope else None,
            first,
            None if second is None else second[:, _PLACES].reshape(-1, 3, 3),
            turning,
        )

    def tangent(
        self,
        x: ArrayLike,
        box: Optional[ArrayLike] = None,
        *,
        dx: Optional[ArrayLike] = None,
        dcharges: Optional[ArrayLike] = None,
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> Tangent:
        """Derivatives of forces and potentials along a direction: Hessian-vector products.

        They are those of what evaluate() computes, to rounding, as long as no particle changes its cell. Costs two
        evaluations. Without dipoles. Arrays are all on the host, or all in the memory of the GPU, as for evaluate().

        Args:
            x, box, grid_offset: as for evaluate().
            dx: derivatives of the positions, nm, [n, 3]; None: they do not change.
            dcharges: those of the charges, e, [n]; None: they do not change.

        Raises:
            TypeError, ValueError, MemoryError: as evaluate().
            RuntimeError: the solver has dipoles or charges of two states; near functions that do not go with dipoles.
        """
        offset = _offset(grid_offset)
        at = self._array("x", x, ("n", 3))
        for name, array in (("dx", dx), ("dcharges", dcharges)):
            if is_on_gpu(x) and array is not None and not is_on_gpu(array):
                raise arguments.ArrayError(f"{name} must be in the memory of the GPU, as x is.")
        moves = None if dx is None else self._array("dx", dx, at.shape)
        changes = None if dcharges is None else self._array("dcharges", dcharges, at.shape[:1])
        vectors = {"x": at} if moves is None else {"x": at, "dx": moves}
        place, new, take = place_of(self.dtype, vectors, {} if changes is None else {"dcharges": changes})
        outputs = new(len(at), 3), new(len(at))
        self.tangent_into(place, at, box, moves, changes, outputs, offset)
        return Tangent(*map(take, outputs))

    def evaluate_into(
        self,
        place: Place,
        x: Any,
        box: Optional[ArrayLike],
        outputs: Sequence[Any],
        virial: bool = False,
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
        lambda_: float = 0.0,
        slope: bool = False,
    ) -> tuple[float, Any, float]:
        """evaluate() with arrays in a place, of which others are filled.

        Args:
            outputs: forces, potentials, gradients, hessians and torques, or None; of hessians xx yy zz xy xz yz.

        Returns:
            Energy, virial and slope.
        """
        rows = _box(box)
        with self.alone() as core:
            given = x, rows, *outputs, virial, grid_offset, lambda_, slope
            found = self._evaluated(x, rows, place.function(core, "evaluate"), *given, depth=4)
            self._particles.check(core.coulomb_constant(), x, rows, found[0], outputs[1])
        return found

    def tangent_into(
        self,
        place: Place,
        x: Any,
        box: Optional[ArrayLike],
        dx: Any,
        dcharges: Any,
        outputs: Sequence[Any],
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        """tangent() with arrays in a place, of which others are filled: forces and potentials."""
        rows = _box(box)
        with self.alone() as core:
            given = x, rows, dx, dcharges, *outputs, grid_offset
            self._evaluated(x, rows, place.function(core, "evaluate_tangent"), *given, depth=4)
            self._particles.look(x, rows)

    def induced_dipoles(
        self,
        x: ArrayLike,
        box: Optional[ArrayLike] = None,
        *,
        polarisabilities: ArrayLike,
        start: Optional[ArrayLike] = None,
        tolerance: float = 1e-5,
        grid_offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> InducedDipoles:
        """Dipoles that charges and dipoles induce, and that induce each other; nothing is set.

        Each is its polarisability times the field, with the dipoles of all others. Excluded pairs do not induce.
        Conjugate gradients: W. Wang and R. D. Skeel, J. Chem. Phys. 123, 164107 (2005), doi:10.1063/1.2056544. Costs
        two evaluations, and one for each iteration, all but the first with dipoles. Particles without a charge cost as
        with potentials from then on. Particles at one place are looked for in the first call. Arrays are on the host.

        Args:
            x, box, grid_offset: as for evaluate().
            polarisabilities: nm^3, [n], not negative; 0: none.
            start: dipoles to begin with, e nm, [n, 3]: those of the last step of a run, say. None: those that the field
                alone induces.
            tolerance: RMS of what is left in the dipoles, over their RMS; at least 1e-6 for float32.

        Raises:
            TypeError, MemoryError: as evaluate().
            ValueError: as evaluate(); a polarisability is negative or not finite; dipoles of near particles raise each
                other without end.
            RuntimeError: the solver has charges of two states; near functions that do not go with dipoles.
        """
        offset, rows = _offset(grid_offset), _box(box)
        at = self._reals("x", x, ("n", 3))
        alpha = self._reals("polarisabilities", polarisabilities, at.shape[:1])
        dipoles = np.zeros_like(at) if start is None else np.array(self._reals("start", start, at.shape))
        given = alpha, dipoles, arguments.number("tolerance", tolerance), offset
        with self.alone() as core:
            found = self._evaluated(at, rows, core.induce_dipoles, at, rows, *given)
            self._particles.look(at, rows, alpha > 0)
        return InducedDipoles(dipoles, *found)

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
        evaluation of the particles with the points among them. At a charge the potential is infinite,
        and the field is that of the other charges.

        Args:
            x, box, grid_offset: as for evaluate().
            points: nm, [m, 3], any periodic image.
        """
        offset, box = _offset(grid_offset), _box(box)
        if is_on_gpu(x) != is_on_gpu(points):
            raise ValueError("Positions and points must both be on a GPU, or both on the host.")
        own, at = self._array("x", x, ("n", 3)), self._array("points", points, ("m", 3))
        with self.alone():
            place, new, take = place_of(self.dtype, {"x": own, "points": at})
            found = new(len(at)), new(len(at), 3)
            work = self._particles.count + len(at)
            if work > (self._work or 0) and self._needs_other_threads(work):
                self._make_for(work)
            function = place.function(self._own_core(), "evaluate_at")
            self._evaluated(own, box, function, own, box, at, *found, offset)
            potentials, fields = map(take, found)
            limit = self._particles.largest_potential(self._own_core().coulomb_constant())
            with np.errstate(divide="ignore"):
                return potentials / (abs(potentials) <= limit), fields  # infinite where a charge is

    def group_energies(
        self, x: ArrayLike, box: Optional[ArrayLike], group: ArrayLike, lambda_: float = 0.0
    ) -> NDArray:
        """Coulomb energies within and between groups, kJ/mol, [groups, groups], upper triangle.

        With all periodic images and without excluded pairs; they add up to the energy.

        Args:
            x, box, lambda_: as for evaluate().
            group: group of each particle, from 0, [n].
        """
        x, box = self._reals("x", x, ("n", 3)), _box(box)
        group = arguments.indices("group", group, ("n",))
        groups = int(group.max(initial=0)) + 1
        lambda_ = arguments.number("lambda_", lambda_)
        with self.alone() as core:
            given = x, box, group, groups, lambda_
            energies = np.array(self._evaluated(x, box, core.group_energies, *given))
            self._particles.check(core.coulomb_constant(), x, box, np.abs(energies).max())
        return energies.reshape(groups, groups)

    @property
    def setup(self) -> dict:
        """Order, cells, device and estimated error in use; meaningful after an evaluation.

        ``largest_error`` is the estimated error at the position of the grid of cells where it is largest. Cells are
        chosen so that it is no more than the accuracy; later in a run it may be 5 % more, and with an order that is
        given it may be anything.
        ``is_best_effort`` says that the accuracy is not met and nothing better can be had, because charges nearly
        coincide, or because no setting suffices for where particles have moved. A RuntimeWarning has told of it.
        """
        with self.alone() as core:
            return core.setup()

    @property
    def timings(self) -> dict:
        """Seconds per stage so far, in the order of the pipeline."""
        with self.alone() as core:
            return dict(core.timings())

    def __getstate__(self) -> dict:
        with self.alone() as core:
            own = {"dtype": self.dtype, "options": self._options, "cells": core.state()}
            return {**own, **self._particles.state()}

    def __setstate__(self, state: dict) -> None:
        self.dtype, self._options = state["dtype"], state["options"]
        self._start()
        self._particles.restore(state)
        count = self._particles.count
        if self._needs_other_threads(count):
            self._adopt(self._made(count), count)
        core = self._own_core()
        self._particles.hand_over(core)
        try:
            if state["cells"]:
                processes.note_threads(self._threads)
                core.restore(state["cells"])
        except ValueError:
            pass  # of another version or machine: the first evaluation chooses

    @contextlib.contextmanager
    def alone(self):
        """The core, for one thread at a time; whoever needs several calls in a row keeps it meanwhile."""
        with self._lock:
            self._own_core()
            if self._generation != processes.generation:
                self._make_for(self._work)
            yield self._own_core()

    def _start(self):
        self._work: Optional[int] = None  # particles that the threads are for
        self._start_with(self._made(None))
        self._offered = self._threads
        self._particles = Particles(self.dtype, self._options["boundary"])

    def _made(self, work):
        """A core without particles, with no more threads than so many particles can use."""
        most = processes.most_threads()
        return _KINDS[self.dtype](self._options, most if work is None else min(most, _most_threads(work)))

    def _adopt(self, core, work):
        """Makes a core for so many particles that of the solver."""
        self._take(core)
        self._work = work

    def _needs_other_threads(self, work):
        """Whether so many particles can use other numbers of threads than there are."""
        if not self._is_on_host:
            return False
        have, wanted = (
            self._offered if number is None else min(self._offered, _most_threads(number))
            for number in (self._work, work)
        )
        # Cells are chosen anew at about the same changes
        return have != wanted and (self._work is None or not 2 / 3 < work / max(self._work, 1) < 1.5)

    def _make_for(self, work):
        """Replaces the core by another one, for so many particles, which goes on where it is."""
        core, cells = self._made(work), self._own_core().state()
        self._particles.hand_over(core)
        if cells:
            processes.note_threads(core.setup()["threads"])
            core.restore(cells)
        self._adopt(core, work)

    def _set_charges(self, *charges):
        charges = tuple(np.array(of_state) for of_state in charges)
        count = len(charges[0])
        with self.alone() as core:
            if self._particles.has_charges(charges):
                return
            needs_other = count != self._particles.count and self._needs_other_threads(count)
            core = self._made(count) if needs_other else core
            give_charges(core, charges)
            if needs_other:
                self._adopt(core, count)
            self._particles.set_charges(charges)

    def _evaluated(self, x, box, function, *given, depth=3):
        """What a function gives; a refusal tells of charges at one place, if these are why.

        Args:
            depth: calls from the caller of the package to here, whom a warning names.
        """
        processes.note_threads(self._threads)
        core = self._own_core()
        was_best_effort = core.is_best_effort()
        try:
            result = function(*given)
        except ValueError:
            self._particles.refuse(x, box, 10 * self._particles.nearest)
            raise
        if core.is_best_effort() and not was_best_effort:
            warnings.warn(
                "The requested accuracy is not reached at these positions: the error is up to "
                f"{core.setup()['largest_error']:.1e}, and no setting has less. Charges may nearly coincide.",
                RuntimeWarning,
                stacklevel=depth,
            )
        return result

    def _array(self, name: str, values: Any, shape: tuple) -> Any:
        """An array in the memory of a GPU as it is, or one of the host as _reals()."""
        return values if is_on_gpu(values) else self._reals(name, values, shape)

    def _reals(self, name, values, shape):
        return arguments.reals(name, values, shape, dtype=self.dtype)


def _most_threads(work):
    """More threads have no use for so many particles.

    A thread computes some 1.5 us a particle; that threads wait for each other takes some 50 us.
    """
    return max(1, work // 200)


def _box(box: Optional[ArrayLike]) -> NDArray:
    return np.zeros((3, 3)) if box is None else arguments.box(box)


def _offset(grid_offset: Sequence[float]) -> tuple[float, ...]:
    return tuple(arguments.reals("grid_offset", grid_offset, (3,)).tolist())
