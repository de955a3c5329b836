# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sums over points of other functions of the distance than 1/r: Yukawa, inverse powers, a table."""

from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import arguments, processes
from ._library import _core

_KINDS = {np.dtype(np.float32): _core.SingleKernelSum, np.dtype(np.float64): _core.DoubleKernelSum}


class Kernel:
    """What a unit charge makes at a distance: made by one of the functions below. Lengths have any one unit."""

    def __init__(self, made_by: str, *values: Any):
        self._made_by, self._values = made_by, values
        self._core = getattr(_core.Kernel, made_by)(*values)

    @classmethod
    def yukawa(cls, kappa: float) -> "Kernel":
        """exp(-kappa r) / r: screened charges.

        Raises:
            ValueError: kappa is not finite, or not above 0.
        """
        return cls("yukawa", arguments.number("kappa", kappa))

    @classmethod
    def inverse_power(cls, n: int) -> "Kernel":
        """r^-n: 6 is dispersion. From 1 to 12, and in a periodic box 4, 6, 8, 10 or 12.

        Raises:
            ValueError: n is another number.
        """
        return cls("inverse_power", arguments.integer("n", n))

    @classmethod
    def table(cls, first: float, last: float, values: ArrayLike, slopes: ArrayLike) -> "Kernel":
        """A function by its values and slopes at distances from first to last, even steps apart.

        In between it is a cubic polynomial. If the last value and the last slope are 0, the function is 0 from there
        on. Else no two points may be farther apart, and none may be nearer than the first distance.

        Args:
            first, last: distances, 0 <= first < last.
            values, slopes: at least 3 each, as many of both.

        Raises:
            ValueError: a number is not finite, or there are too few of them.
        """
        first, last = arguments.number("first", first), arguments.number("last", last)
        arrays = (arguments.reals(name, a, ("m",)) for name, a in (("values", values), ("slopes", slopes)))
        return cls("table", first, last, *(list(a) for a in arrays))

    @classmethod
    def of(
        cls,
        value: Callable[[NDArray], ArrayLike],
        slope: Callable[[NDArray], ArrayLike],
        first: float,
        last: float,
        points: int = 4096,
    ) -> "Kernel":
        """A table of a function and its derivative, which take arrays of distances.

        Raises:
            ValueError: halfway between two points the table is off by more than 1e-6 of the larger of their values, and
                by 1e-12 of the largest of all.
        """
        r = np.linspace(first, last, arguments.integer("points", points))
        kernel, known = cls.table(first, last, value(r), slope(r)), np.abs(value(r))
        halves = (r[1:] + r[:-1]) / 2
        off = np.abs([kernel.value(a) for a in halves] - np.asarray(value(halves)))
        limit = 1e-6 * np.maximum(known[1:], known[:-1]) + 1e-12 * known.max()
        if np.any(off > limit):
            worst = np.argmax(off - limit)
            raise ValueError(
                f"At {halves[worst]:g} the table is off by {off[worst]:.1e}: take more than {points} points, or begin "
                "farther from where the function is steep."
            )
        return kernel

    def value(self, r: float) -> float:
        """The function at a distance."""
        return self._core.value(r)

    def slope(self, r: float) -> float:
        """Its derivative."""
        return self._core.slope(r)

    def __repr__(self) -> str:
        return f"<Kernel {self._core.name()}>"

    def __getstate__(self) -> tuple:
        return (self._made_by, *self._values)

    def __setstate__(self, state: tuple) -> None:
        Kernel.__init__(self, *state)


@dataclass
class KernelResult:
    """Results at the points that were asked for, [points], or [points, sets] of several sets of charges."""

    potentials: NDArray  # of a charge without what it makes itself
    fields: NDArray  # minus their gradients, one more dimension of size 3
    virials: Optional[NDArray] = None  # -1/2 sum r (x) f over pairs, [3, 3], or [sets, 3, 3]


class KernelSum(processes.CoreOfOptions):
    """Potentials and fields of points, for one kernel.

    Far cells act on each other through polynomials of a total degree, projected on each of two cells. The tree is as
    deep as the points need. The first call chooses degree and cells, and takes longer. Errors are measured beside sums
    over all pairs at some points, in a periodic box beside Ewald sums. They are measured again where the number of
    points or the size of what they fill has changed by a tenth, after 64 calls, and after twice as many each time, 1024
    at most. A sum can be copied and pickled. After fork() it works on in the child; one that is on a GPU does not.

    Z. Gimbutas and V. Rokhlin, SIAM J. Sci. Comput. 24, 796 (2003), doi:10.1137/S1064827500381148; L. Greengard and V.
    Rokhlin, J. Comput. Phys. 73, 325 (1987), doi:10.1016/0021-9991(87)90140-9.

    Args:
        kernel: a Kernel.
        accuracy: wanted RMS error of the fields, relative to their RMS value. Fields above ten times the median count
            as that.
        dtype: numpy.float64, or numpy.float32, which is faster; positions are double in any case.
        of_forces: whether accuracy is that of forces, charges times fields, where results are at the charges. Fields
            are large next to large charges. If small charges are there, errors of their forces may be a larger part.
            Forces of all sets of charges count together.
        boundary: "open", or "periodic": with all images, and with the wave vector 0.
        device: "auto", "cpu" or "gpu". "auto" is the CPU: a GPU pays from some ten thousand points on.
        device_id: CUDA device; None: the current one.
        threads: OpenMP threads at most; for a GPU they make operators. None: what the runtime offers, see
            OMP_NUM_THREADS.

    Raises:
        TypeError: an option is of the wrong type.
        ValueError: an option is out of range.
        RuntimeError: the device is not there, or the kernel has no sum over periodic images.
    """

    _names = ("sum", "sums")

    def __init__(
        self,
        kernel: Kernel,
        accuracy: float = 1e-4,
        dtype: DTypeLike = np.float64,
        *,
        of_forces: bool = False,
        boundary: str = "open",
        device: str = "auto",
        device_id: Optional[int] = None,
        threads: Optional[int] = None,
    ):
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel, but is {kernel!r}.")
        self.dtype = arguments.precision(dtype)
        self.kernel = kernel
        shared: dict[str, Any] = {
            "accuracy": arguments.number("accuracy", accuracy),
            "boundary": arguments.text("boundary", boundary),
            "device": arguments.text("device", device),
        }
        if device_id is not None:
            shared["deviceId"] = arguments.integer("device_id", device_id)
        if threads is not None:
            shared["threads"] = arguments.integer("threads", threads)
        self._options = shared, arguments.flag("of_forces", of_forces)
        self._start_with(self._made())

    def __call__(
        self,
        x: ArrayLike,
        charges: ArrayLike,
        box: Optional[ArrayLike] = None,
        *,
        at: Optional[ArrayLike] = None,
        exclusions: Optional[ArrayLike] = None,
        virials: bool = False,
    ) -> KernelResult:
        """Potentials and fields of charges.

        Args:
            x: positions of the charges, [n, 3], any periodic image.
            charges: [n], or [n, sets]: sets at the same places, which do not act on each other.
            box: edges of a rectangular box, [3], or box vectors as rows, any that span a volume, [3, 3].
            at: points where results are wanted, [points, 3]. None: the charges, each without what it makes itself.
            exclusions: pairs of charges that do not act on each other in their shortest image, [m, 2], each in one
                direction or in both. They may be at one place.
            virials: whether the virials of the charges are wanted. Twice a virial is the derivative of the energy, half
                the sum of charges times potentials, by a strain of positions and box. The first time takes longer, and
                after it boxes of r^-n that have changed their shape by little need no new operators.

        Raises:
            TypeError: an argument is of the wrong type.
            ValueError: an array has the wrong shape or values; a charge is at a point or at another charge; a distance
                is not in the table; virials are wanted with other points.
            RuntimeError: the accuracy cannot be reached; the best that can is named.
            MemoryError: memory is exhausted.
        """
        x = arguments.reals("x", x, ("n", 3))
        q = arguments.reals("charges", charges, (len(x),), (len(x), "sets"), dtype=self.dtype)
        rows = None if box is None else arguments.box(box)
        points = None if at is None else arguments.reals("at", at, ("points", 3))
        table = q if q.ndim == 2 else q[:, None]
        count, sets = len(x if points is None else points), table.shape[1]
        potentials = np.zeros((count, sets), self.dtype)
        fields = np.zeros((count, sets, 3), self.dtype)
        pairs = (None, None) if exclusions is None else arguments.rows_of_pairs("exclusions", exclusions, len(x))
        tensors = np.zeros((sets, 3, 3)) if arguments.flag("virials", virials) else None
        self.run("evaluate", x, table, rows, points, *pairs, potentials, fields, tensors)
        if q.ndim == 2:
            return KernelResult(potentials, fields, tensors)
        return KernelResult(potentials[:, 0], fields[:, 0], None if tensors is None else tensors[0])

    @property
    def setup(self) -> dict:
        """What is in use after a call.

        ``degree`` of the polynomials and ``coefficients`` of a cell; cells up to the displacement ``direct_range``
        interact by pairs; ``levels`` of the tree; ``cell`` is the size of a leaf; ``measured_error`` of the fields, as
        accuracy; ``threads``; ``device`` is "cpu" or "gpu".
        """
        with self._lock:
            return self._own_core().setup()

    def __getstate__(self) -> dict:
        return {"kernel": self.kernel, "dtype": self.dtype, "options": self._options}

    def __setstate__(self, state: dict) -> None:
        self.kernel, self.dtype, self._options = state["kernel"], state["dtype"], state["options"]
        self._start_with(self._made())

    def _made(self):
        return _KINDS[self.dtype](self.kernel._core, *self._options, processes.most_threads())
