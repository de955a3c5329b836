# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The solver, with NumPy arrays, or arrays in the memory of a GPU."""

import contextlib
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import arguments, contacts, processes
from ._library import _core

_KINDS = {np.dtype(np.float32): _core.SingleSolver, np.dtype(np.float64): _core.DoubleSolver}
#: Of solvers on a GPU that a child process has from its parent, which it must not destroy.
_lost = []
#: How the widths of two particles make that of a pair, unless the caller says so.
_RULES = {"gaussian": "root-sum-square", "thole": "geometric-mean", "soft-core": "larger", "coulomb": "larger"}


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

    A net charge in a periodic box is neutralised by a uniform background. Threads that use one solver
    wait for each other; what belongs together, as set_charges() and evaluate(), they have to keep
    together themselves. A solver can be copied and pickled, with its charges, exclusions, widths and cells.
    After fork() it works on in the child, with one thread where the parent has used several; one that
    is on a GPU does not.

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
        self.dtype = np.dtype(dtype)
        if self.dtype not in _KINDS:
            raise ValueError(f"dtype is {self.dtype}, but must be float32 or float64.")
        given = {
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
        self._charges = ()  # what was set: of one state, or of two
        self._pairs: Any = None  # rows and partners
        self._near: Any = None  # function, rule and widths
        self._usual_charge = 0.0
        self._start()

    def set_charges(self, charges: ArrayLike) -> None:
        """Sets the number of particles and their charges, e, [n].

        Clears exclusions and widths if the number changes. Particles without a charge get no force; their
        potentials are those of others.
        """
        self._set_charges(self._reals("charges", charges, ("n",)))

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
        pairs = arguments.pairs("pairs", pairs)
        with self.alone() as core:
            if pairs.size and (pairs.min() < 0 or pairs.max() >= self._count):
                raise ValueError(f"An index of pairs is outside the range 0 to {self._count - 1}.")
            pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            offsets = np.searchsorted(pairs[:, 0], np.arange(self._count + 1)).astype(np.int32)
            rows = offsets, np.ascontiguousarray(pairs[:, 1])
            core.set_exclusions(*rows)
            self._pairs, self._has_looked = rows, False

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
            given = np.zeros(self._count) if name == "coulomb" else widths
            near = name, rule, np.array(self._reals("widths", given, ("n",)))
            core.set_near_function(*near)
            self._near, self._has_looked = None if name == "coulomb" else near, False

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
            grid_offset: position of the grid of cells, in cells; the result is the same within the
                error. Integrate motion with another one at each step.
            lambda_: coupling parameter of set_perturbed_charges().
            slope: whether to compute dV/dlambda.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: a position or the box is not valid, or the accuracy cannot be met; two charges that
                are no excluded pair are at one place, where they have 1/r. All pairs are looked at in the first
                evaluation of other particles, exclusions or widths. Later such charges are known by their large energy
                or potentials: several pairs whose energies cancel are not, unless potentials are asked for.
            MemoryError: memory is exhausted.
        """
        offset, box = _offset(grid_offset), _box(box)
        lambda_ = arguments.number("lambda_", lambda_)
        wanted = bool(virial), offset, lambda_, bool(slope)
        if not _is_on_gpu(x):
            x = self._reals("x", x, ("n", 3))
        with self.alone() as core:
            if _is_on_gpu(x):
                take, function = _importer(x), self._on_gpu(core, "evaluate_on_gpu", x=x)
                energy, matrix, derivative, forces, values = self._evaluated(
                    x, box, function, x, box, bool(potentials), *wanted
                )
                forces, values = take(forces), take(values) if potentials else None
            else:
                forces = np.empty_like(x)
                values = np.empty(len(forces), self.dtype) if potentials else None
                energy, matrix, derivative = self._evaluated(
                    x, box, core.evaluate, x, box, forces, values, *wanted
                )
            self._check_contacts(x, box, energy, values)
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
        evaluation of the particles with the points among them. At a charge the potential is infinite,
        and the field is that of the other charges.

        Args:
            x, box, grid_offset: as for evaluate().
            points: nm, [m, 3], any periodic image.
        """
        offset, box = _offset(grid_offset), _box(box)
        if _is_on_gpu(x) != _is_on_gpu(points):
            raise ValueError("Positions and points must both be on a GPU, or both on the host.")
        if not _is_on_gpu(x):
            x, points = self._reals("x", x, ("n", 3)), self._reals("points", points, ("m", 3))
        with self.alone() as core:
            if _is_on_gpu(x):
                function = self._on_gpu(core, "evaluate_at_on_gpu", x=x, points=points)
                found = self._evaluated(x, box, function, x, box, points, offset)
                potentials, fields = map(_importer(points), found)
            else:
                fields = np.empty_like(points)
                work = self._count + len(fields)
                if work > (self._work or 0) and self._needs_other_threads(work):
                    self._make_for(work)
                potentials = np.empty(len(fields), self.dtype)
                given = x, box, points, potentials, fields, offset
                self._evaluated(x, box, self._core.evaluate_at, *given)
            return self._at_points(potentials), fields

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
            self._check_contacts(x, box, np.abs(energies).max())
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
            return {
                "dtype": self.dtype,
                "options": self._options,
                "charges": self._charges,
                "pairs": self._pairs,
                "near": self._near,
                "cells": core.state(),
            }

    def __setstate__(self, state: dict) -> None:
        self.dtype, self._options = state["dtype"], state["options"]
        self._charges, self._pairs, self._near = state["charges"], state["pairs"], state["near"]
        self._usual_charge = _usual(self._charges)
        self._start()
        if self._needs_other_threads(self._count):
            self._adopt(self._made(self._count), self._count)
        self._hand_over(self._core)
        try:
            if state["cells"]:
                processes.note_threads(self._threads)
                self._core.restore(state["cells"])
        except ValueError:
            pass  # of another version or machine: the first evaluation chooses

    @contextlib.contextmanager
    def alone(self):
        """The core, for one thread at a time; whoever needs several calls in a row keeps it meanwhile."""
        with self._lock:
            if self._core is None:
                raise RuntimeError(
                    "This solver has worked on a GPU before fork(), and cannot do so in the child: start processes "
                    "by the method 'spawn' or 'forkserver', or make solvers in the children alone."
                )
            if self._generation != processes.generation:
                self._make_for(self._work)
            yield self._core

    def hold(self):
        """Waits until nobody is at work with the solver."""
        self._lock.acquire()

    def release(self):
        """Ends hold()."""
        self._lock.release()

    def leave_behind(self):
        """In a child process: what is on a GPU can neither be used nor given back."""
        if not self._is_on_host:
            _lost.append(self._core)
            self._core = None

    @property
    def _count(self):
        return len(self._charges[0]) if self._charges else 0

    def _start(self):
        self._lock = threading.RLock()
        self._adopt(self._made(None), None)
        self._has_looked = False  # for particles at one place
        self._offered = self._threads
        self._is_on_host = self._core.setup()["device"] == "cpu"
        processes.register(self)

    def _made(self, work):
        """A core without particles, with no more threads than so many particles can use."""
        most = processes.most_threads()
        return _KINDS[self.dtype](self._options, most if work is None else min(most, _most_threads(work)))

    def _adopt(self, core, work):
        """Makes a core that of the solver, and of this process."""
        self._core, self._work = core, work
        self._threads, self._generation = core.setup()["threads"], processes.generation

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

    def _hand_over(self, core):
        """Gives a core what was set."""
        if self._charges:
            setter = core.set_charges if len(self._charges) == 1 else core.set_perturbed_charges
            setter(*self._charges)
        if self._pairs:
            core.set_exclusions(*self._pairs)
        if self._near:
            core.set_near_function(*self._near)

    def _make_for(self, work):
        """Replaces the core by another one, for so many particles, which goes on where it is."""
        core, cells = self._made(work), self._core.state()
        self._hand_over(core)
        if cells:
            processes.note_threads(core.setup()["threads"])
            core.restore(cells)
        self._adopt(core, work)

    def _set_charges(self, *charges):
        charges = tuple(np.array(of_state) for of_state in charges)
        count = len(charges[0])
        with self.alone() as core:
            # Of another number of particles nothing is kept
            needs_other = count != self._count and self._needs_other_threads(count)
            core = self._made(count) if needs_other else core
            (core.set_charges if len(charges) == 1 else core.set_perturbed_charges)(*charges)
            if needs_other:
                self._adopt(core, count)
            if count != self._count:
                self._pairs = self._near = None
                self._has_looked = False
            self._charges = charges
            self._usual_charge = _usual(charges)

    def _evaluated(self, x, box, function, *given):
        """What a function gives; a refusal tells of charges at one place, if these are why."""
        processes.note_threads(self._threads)
        was_best_effort = self._core.is_best_effort()
        try:
            result = function(*given)
        except ValueError:
            self._refuse_contacts(x, box, 10 * self._nearest())
            raise
        if self._core.is_best_effort() and not was_best_effort:
            warnings.warn(
                "The requested accuracy is not reached at these positions: the error is up to "
                f"{self._core.setup()['largest_error']:.1e}, and no setting has less. Charges may nearly coincide.",
                RuntimeWarning,
                stacklevel=3,
            )
        return result

    def _nearest(self):
        """Charges that are nearer, nm, are at one place; single precision hardly tells positions apart there."""
        return 1e-6 if self.dtype == np.float32 else 1e-8

    def _largest_potential(self):
        """Larger ones are those at a charge, kJ/mol/e."""
        return self._core.coulomb_constant() * self._usual_charge / self._nearest()

    def _check_contacts(self, x, box, energy, potentials=None):
        """Refuses results of charges at one place.

        Large energies and potentials tell of them. Several pairs may have energies that cancel: so there is a search,
        too, in the first evaluation, which takes much longer.
        """
        limit = self._largest_potential()
        is_large = abs(energy) > limit * self._usual_charge
        if potentials is not None and len(potentials):
            is_large = is_large or bool(abs(potentials).max() > limit)
        if is_large:
            self._refuse_contacts(x, box, 10 * self._nearest(), potentials is not None)
        if not self._has_looked:
            self._refuse_contacts(x, box, self._nearest())
            self._has_looked = True

    def _refuse_contacts(self, x, box, distance, with_potentials=False):
        """Raises if particles are nearer than some distance, nm, that are no excluded pair and have 1/r."""
        x, periodic = _on_host(x), {"periodic": 3, "slab": 2, "open": 0}[self._options["boundary"]]
        is_regular = bool(np.all(np.diag(box)[:periodic] > 0)) and np.isfinite(x).all()
        if len(x) != self._count or not is_regular:
            return
        is_charged = np.any(np.array(self._charges) != 0, axis=0)
        at_least = 1 if with_potentials else 2

        def matters(i, j):
            return int(is_charged[i]) + int(is_charged[j]) >= at_least

        def is_excluded(i, j):
            offsets, partners = self._pairs or (np.zeros(self._count + 1, int), np.empty(0))
            return any(b in partners[offsets[a] : offsets[a + 1]] for a, b in ((i, j), (j, i)))

        def may_coincide(i, j):
            return self._have_width(i, j) or is_excluded(i, j)

        pair = contacts.pair_at_one_place(x, box, periodic, distance, matters, may_coincide)
        if pair:
            raise ValueError(
                f"Particles {pair[0]} and {pair[1]} are at one place, where the energy or a potential is infinite: "
                "move one of them, or exclude the pair."
            )

    def _have_width(self, i, j):
        """Whether the pair of two particles has another function than 1/r."""
        if not self._near:
            return False
        _, rule, widths = self._near
        return bool(min(widths[i], widths[j]) > 0 if rule == "geometric-mean" else max(widths[i], widths[j]) > 0)

    def _at_points(self, potentials):
        """Potentials at points, infinite where a charge is."""
        with np.errstate(divide="ignore"):
            return potentials / (abs(potentials) <= self._largest_potential())

    def _on_gpu(self, core: Any, name: str, **arrays: Any) -> Callable:
        """A function of the core, if it can read the arrays."""
        if not hasattr(core, name):
            raise RuntimeError("This farfield was built without CUDA: pass arrays of the host.")
        for argument, array in arrays.items():
            dtype, shape = str(array.dtype).rpartition(".")[2], tuple(array.shape)
            if dtype != self.dtype.name or len(shape) != 2 or shape[1] != 3:
                raise arguments.ArrayError(
                    f"{argument} on the GPU has the type {dtype} and the shape {shape}, but must have "
                    f"{self.dtype.name} and (n, 3)."
                )
        return getattr(core, name)

    def _reals(self, name, values, shape):
        return arguments.reals(name, values, shape, dtype=self.dtype)


def _usual(charges):
    """Their root mean square, e, of those that are not 0."""
    acting = np.concatenate((*charges, [])).astype(float)
    return float(np.sqrt(np.mean(acting[acting != 0] ** 2))) if acting.any() else 0.0


def _most_threads(work):
    """More threads have no use for so many particles.

    A thread computes some 1.5 us a particle; that threads wait for each other takes some 50 us.
    """
    return max(1, work // 200)


def _is_on_gpu(x: Any) -> bool:
    cuda = 2  # in DLPack
    return hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == cuda


def _on_host(x: Any) -> NDArray:
    """A copy of an array of whatever package."""
    for to_host in ("detach", "cpu", "get"):
        if _is_on_gpu(x) and hasattr(x, to_host):
            x = getattr(x, to_host)()
    return np.asarray(x, dtype=float)


def _importer(like: Any) -> Callable:
    """The function of the package of an array that takes arrays of others."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack
    packages = (sys.modules[kind.__module__.partition(".")[0]] for kind in type(like).__mro__)
    return next(package.from_dlpack for package in packages if hasattr(package, "from_dlpack"))


def _box(box: Optional[ArrayLike]) -> NDArray:
    if box is None:
        return np.zeros((3, 3))
    matrix = arguments.reals("box", box, (3,), (3, 3))
    return np.ascontiguousarray(np.diag(matrix)) if matrix.ndim == 1 else matrix


def _offset(grid_offset: Sequence[float]) -> tuple[float, ...]:
    return tuple(arguments.reals("grid_offset", grid_offset, (3,)).tolist())
