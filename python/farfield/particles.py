# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a solver was told of its particles, and whether charges of theirs are at one place."""

from typing import Any, Optional

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import contacts
from .device_arrays import GpuArray, on_host

#: Box vectors along which there are images.
_PERIODIC = {"periodic": 3, "slab": 2, "open": 0}


class Particles:
    """Charges, exclusions and widths of a solver.

    Results of charges at one place have no meaning, and are refused. Large energies and potentials tell of them.
    Several pairs may have energies that cancel: so there is a search, too, in the first check of other particles,
    exclusions or widths, which takes much longer.

    Args:
        dtype: of the positions; single precision hardly tells those apart that are nearer than its distance.
        boundary: "periodic", "slab" or "open".
    """

    def __init__(self, dtype: DTypeLike, boundary: str):
        #: Charges that are nearer, nm, are at one place.
        self.nearest = 1e-6 if dtype == np.float32 else 1e-8
        self._periodic = _PERIODIC[boundary]
        self._on_host: tuple[NDArray, ...] = ()  # charges of one state, or of two
        self._on_gpu: Optional[GpuArray] = None  # charges, in place of those
        self._usual_charge = 0.0
        self._given_pairs: Optional[NDArray] = None  # as they were set
        self._pairs: Optional[tuple[NDArray, NDArray]] = None  # rows and partners
        self._near: Optional[tuple[str, str, NDArray]] = None  # function, rule and widths
        self._dipoles: Optional[NDArray] = None
        self._quadrupoles: Optional[NDArray] = None  # xx yy zz xy xz yz
        self._polarisable: Optional[NDArray] = None  # whether particles are, as look() was told last
        self._has_looked = False

    @property
    def count(self) -> int:
        """The number of particles, 0 before there are charges."""
        if self._on_gpu is not None:
            return len(self._on_gpu)
        return len(self._on_host[0]) if self._on_host else 0

    @property
    def _charges(self) -> tuple[NDArray, ...]:
        if self._on_gpu is not None:
            self._on_host, self._on_gpu = (self._on_gpu.get(),), None
        return self._on_host

    def set_charges(self, charges: tuple[NDArray, ...]) -> None:
        """Charges, e, [n], of one state or of two; of another number of particles nothing is kept."""
        self._forget_others(len(charges[0]))
        self._on_host, self._on_gpu = charges, None
        self._set_usual_charge()

    def memory_on_gpu(self, charges: Any, dtype: DTypeLike) -> GpuArray:
        """Memory for a copy of charges in the memory of a GPU: that of the charges before, if they fit."""
        own, shape, device = self._on_gpu, tuple(charges.shape), charges.__dlpack_device__()[1]
        if own is not None and (own.shape, own.device) == (shape, device):
            return own
        return GpuArray(shape, dtype, device)

    def set_charges_on_gpu(self, copy: GpuArray, mean_square: float) -> None:
        """Charges of one state, of memory_on_gpu().

        Args:
            mean_square: of those that are not zero, e^2.
        """
        self._forget_others(len(copy))
        self._on_gpu = copy
        if self._dipoles is None and self._quadrupoles is None:
            self._usual_charge = mean_square**0.5
        else:
            self._set_usual_charge()

    def _forget_others(self, count):
        if count != self.count:
            self._given_pairs = self._pairs = self._near = self._dipoles = self._quadrupoles = None
            self._has_looked = False

    def has_charges(self, charges: tuple[NDArray, ...]) -> bool:
        """Whether these are the charges already; those on a GPU are not compared."""
        if self._on_gpu is not None:
            return False
        same = (np.array_equal(own, other) for own, other in zip(self._charges, charges))
        return len(charges) == len(self._charges) and all(same)

    def _set_usual_charge(self):
        acting = [charges.astype(float) for charges in self._charges]
        for degree, moments in ((1, self._dipoles), (2, self._quadrupoles)):
            if moments is not None:
                # as strong as a charge at 0.1 nm
                acting.append(np.linalg.norm(moments, axis=1).astype(float) / 0.1**degree)
        count = sum(map(np.count_nonzero, acting))
        self._usual_charge = float(np.sqrt(sum(np.dot(own, own) for own in acting) / count)) if count else 0.0

    def excludes(self, pairs: NDArray) -> bool:
        """Whether pairs, [m, 2], are excluded already; nothing needs to be set, or searched, then."""
        if self._pairs is None:
            return not len(pairs)
        return self._given_pairs is not None and np.array_equal(self._given_pairs, pairs)

    def set_exclusions(self, pairs: NDArray, rows: tuple[NDArray, NDArray]) -> None:
        """Excluded pairs, [m, 2], and as rows: partners of particle i are those from offsets[i] to offsets[i + 1]."""
        self._given_pairs, self._pairs, self._has_looked = pairs.copy(), rows, False

    def set_near_function(self, name: str, rule: str, widths: NDArray) -> None:
        """The function of pairs at short distance, as Solver.set_near_function()."""
        self._near, self._has_looked = None if name == "coulomb" else (name, rule, widths), False

    def set_dipoles(self, dipoles: Optional[NDArray]) -> None:
        """Dipoles, e nm, [n, 3], or None."""
        self._dipoles, self._has_looked = dipoles, False
        self._set_usual_charge()

    def set_quadrupoles(self, quadrupoles: Optional[NDArray]) -> None:
        """Quadrupoles, e nm^2, [n, 6]: xx yy zz xy xz yz; or None."""
        self._quadrupoles, self._has_looked = quadrupoles, False
        self._set_usual_charge()

    def hand_over(self, core: Any) -> None:
        """Gives a core what was set."""
        if self._charges:
            give_charges(core, self._charges)
        if self._pairs:
            core.set_exclusions(*self._pairs)
        if self._near:
            core.set_near_function(*self._near)
        if self._dipoles is not None:
            core.set_dipoles(self._dipoles)
        if self._quadrupoles is not None:
            core.set_quadrupoles(self._quadrupoles)

    def state(self) -> dict:
        """For restore(); can be pickled."""
        names = "charges", "pairs", "near", "dipoles", "quadrupoles"
        return {name: getattr(self, f"_{name}") for name in names}

    def restore(self, state: dict) -> None:
        """Takes over a state(), which may have other entries, too."""
        if state["charges"]:
            self.set_charges(state["charges"])
        self._pairs, self._near = state["pairs"], state["near"]
        self._dipoles, self._quadrupoles = state.get("dipoles"), state.get("quadrupoles")
        if self._charges:
            self._set_usual_charge()

    def largest_potential(self, coulomb_constant: float) -> float:
        """Larger ones are those at a charge, kJ/mol/e."""
        return coulomb_constant * self._usual_charge / self.nearest

    def check(
        self, coulomb_constant: float, x: Any, box: NDArray, energy: float, potentials: Optional[Any] = None
    ) -> None:
        """Raises ValueError if charges at one place are in a result."""
        limit = self.largest_potential(coulomb_constant)
        is_large = abs(energy) > limit * self._usual_charge
        if potentials is not None and len(potentials):
            is_large = is_large or bool(abs(potentials).max() > limit)
        if is_large:
            self.refuse(x, box, 10 * self.nearest, potentials is not None)
        self.look(x, box)

    def look(self, x: Any, box: NDArray, polarisable: Optional[NDArray] = None) -> None:
        """Raises ValueError if charges are at one place, the first time that it is asked of these particles.

        Args:
            polarisable: whether particles have a polarisability, [n]; they count as charges do.
        """
        if polarisable is not None:
            known = self._polarisable is not None and np.array_equal(polarisable, self._polarisable)
            self._polarisable, self._has_looked = polarisable, self._has_looked and known
        if not self._has_looked:
            self.refuse(x, box, self.nearest)
            self._has_looked = True

    def refuse(self, x: Any, box: NDArray, distance: float, with_potentials: bool = False) -> None:
        """Raises ValueError if particles are nearer than some distance, nm, are no excluded pair and have 1/r."""
        x = on_host(x)
        is_regular = bool(np.all(np.diag(box)[: self._periodic] > 0)) and np.isfinite(x).all()
        if len(x) != self.count or not is_regular:
            return
        is_charged = np.any(np.array(self._charges) != 0, axis=0)
        for moments in (self._dipoles, self._quadrupoles):
            if moments is not None:
                is_charged |= moments.any(1)
        if self._polarisable is not None and len(self._polarisable) == self.count:
            is_charged |= self._polarisable
        at_least = 1 if with_potentials else 2

        def matters(i, j):
            return int(is_charged[i]) + int(is_charged[j]) >= at_least

        def may_coincide(i, j):
            return self._have_width(i, j) or self._is_excluded(i, j)

        pair = contacts.pair_at_one_place(x, box, self._periodic, distance, matters, may_coincide)
        if pair:
            raise ValueError(
                f"Particles {pair[0]} and {pair[1]} are at one place, where the energy or a potential is infinite: "
                "move one of them, or exclude the pair."
            )

    def _is_excluded(self, i, j):
        if not self._pairs:
            return False
        offsets, partners = self._pairs
        return any(b in partners[offsets[a] : offsets[a + 1]] for a, b in ((i, j), (j, i)))

    def _have_width(self, i, j):
        """Whether the pair of two particles has another function than 1/r."""
        if not self._near:
            return False
        _, rule, widths = self._near
        return bool(min(widths[i], widths[j]) > 0 if rule == "geometric-mean" else max(widths[i], widths[j]) > 0)


def give_charges(core: Any, charges: tuple[NDArray, ...]) -> None:
    """Sets charges, e, [n], of one state or of two."""
    (core.set_charges if len(charges) == 1 else core.set_perturbed_charges)(*charges)
