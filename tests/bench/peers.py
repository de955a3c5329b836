# SPDX-License-Identifier: LGPL-2.1-or-later
"""The interface to PyTorch, beside nvalchemi-toolkit-ops and torch-pme where these are installed.

    python3 -m tests.bench.peers --device gpu --json peers.json
    python3 -m tests.bench.peers --device gpu --parts batches --dtypes float32 --orders 4 5 6 --json peers_batches.json

The part "single": a step of training on forces with one large system: energy, forces, and the gradients of a loss on
forces by all positions and by two parameters of the charges. farfield.torch.Coulomb, PME of nvalchemi-toolkit-ops, and
PME and P3M of torch-pme. The part "batches": energies and forces of many small systems in one call. CoulombBatch,
Ewald sums and PME of nvalchemi-toolkit-ops. Systems are those of batch_speed, with a net charge of zero.

Errors of forces are relative to their RMS, against Ewald sums of CoulombBatch at an accuracy of 1e-9 in float64. Of the
others the settings are taken that make them fastest, with an error of at most 1.1 times that of farfield: a search
before the measurement varies meshes or waves, orders, and the error that pairs may have. To each mesh it takes the
smallest cut-off that reaches the error. Boxes stay as they are, so what the others can compute from boxes alone is
given to them. Their lists of neighbours are made anew in each call, in buffers that are prepared.

Times are those of the fastest of several calls, which take turns, each with other positions: of a clock on a GPU, and
of the processor with one thread on the CPU. With --row each has so many calls in a row before the GPU is waited for, as
in training, and CoulombBatch is asynchronous. What fails has no time, and a reason. The file is written after each
case.
"""

import argparse
import contextlib
import copy
import importlib
import math
import traceback
import warnings
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
import torch

from farfield.gromacs import machine
from farfield.torch import Coulomb, CoulombBatch
from tests.bench import results
from tests.bench.batch_speed import clock_of, systems
from tests.bench.batch_training import COULOMB

TOLERANCE = 1.1  # errors of the others, over that of farfield
MOVE = 0.002  # nm, of each coordinate between calls
STEP = 1.05  # from a cut-off to the next
CUTOFFS = 0.3 * STEP ** np.arange(35)  # nm
#: Points of meshes along an edge: transforms are fast.
SIZES = sorted(a * 2**k for a in (8, 9, 10, 12, 14) for k in range(6))
WAVES = 8 * 1.1 ** np.arange(30)  # longest waves, 1/nm


class Sums(NamedTuple):
    """A method with its settings."""

    energies: Optional[Callable]  # (x, q) -> energies that can be differentiated twice
    forces: Optional[Callable]  # (x, q) -> energies and forces
    settings: dict


class Case:
    """Systems of one size in one precision."""

    def __init__(self, atoms, count, dtype, device, repeats):
        random = np.random.default_rng(atoms)
        x, q, offsets, cells = systems(count, atoms, random)
        q -= np.repeat(q.reshape(count, atoms).mean(1), atoms)
        self.atoms, self.count, self.device, self.dtype = atoms, count, device, dtype
        self.place = "cuda" if device == "gpu" else "cpu"
        self.x, self.q, self.cells, self.target = map(self._tensor, (x, q, cells, random.normal(size=x.shape)))
        self.moved = [self._tensor(x + MOVE * random.normal(size=x.shape)) for _ in range(repeats)]
        self.offsets = torch.as_tensor(offsets)
        self.starts = self.offsets.to(self.place, torch.int32)
        self.index = torch.arange(count, dtype=torch.int32, device=self.place).repeat_interleave(atoms)
        self.volume = float(np.abs(np.linalg.det(cells)).mean())
        self.squares = float((q**2).sum()) / count  # of charges, in a system
        #: longest of each vector of the boxes
        self.edges = np.linalg.norm(cells, axis=2).max(0)

    def _tensor(self, array):
        return torch.as_tensor(array).to(self.place, self.dtype)

    def double(self):
        """The same numbers in float64."""
        case = copy.copy(self)
        case.dtype = torch.float64
        case.x, case.q, case.cells, case.target = (t.double() for t in (self.x, self.q, self.cells, self.target))
        return case

    def batched(self, **options):
        """Options that tell systems apart; none with a single one."""
        return options if self.count > 1 else {}

    @property
    def boxes(self):
        return self.cells if self.count > 1 else self.cells[0]

    @property
    def periodic(self):
        return torch.ones(self.boxes.shape[:-1], dtype=torch.bool, device=self.place)


def training(case, sums):
    """A step: forces, and the gradients of a loss on forces by positions and by parameters."""
    parameters = torch.tensor([1.0, 0.0], dtype=case.dtype, device=case.place, requires_grad=True)

    def call(x):
        x = x.detach().requires_grad_()
        charges = parameters[0] * case.q + parameters[1] * case.q**3
        (gradient,) = torch.autograd.grad(sums.energies(x, charges).sum(), x, create_graph=True)
        loss = ((gradient + case.target) ** 2).mean()
        by_positions, by_parameters = torch.autograd.grad(loss, (x, parameters))
        return -gradient.detach(), by_positions, by_parameters

    return call


def evaluation(case, sums):
    """Energies and forces, of which the forces are returned."""

    def call(x):
        return (sums.forces(x, case.q)[1],)

    return call


def of_farfield(case, accuracy, kind, **options):
    options.update(accuracy=accuracy, device=case.device, threads=1 if case.device == "cpu" else None)
    function = kind(**options)

    def energies(x, q):
        return function(x, q, case.cells[0]) if kind is Coulomb else function(x, q, case.cells, ptr=case.offsets)

    def forces(x, q):
        x = x.detach().requires_grad_()
        values = energies(x, q)
        (gradient,) = torch.autograd.grad(values.sum(), x)
        return values.detach(), -gradient

    return Sums(energies, forces, {})


class Lists:
    """Lists of neighbours by nvalchemi-toolkit-ops, which are made anew in each call."""

    def __init__(self, case, cutoff, **options):
        from nvalchemiops.torch.neighbors import neighbor_list, prepare_neighbor_list

        # sites are at most twice as dense as particles are on average
        room = 48 + int(2 * case.atoms / case.volume * 4 / 3 * math.pi * cutoff**3)
        given = {"cell": case.boxes, "pbc": case.periodic, "fixed_cell": True, **options}
        given.update(case.batched(batch_idx=case.index, batch_ptr=case.starts))
        self._make = neighbor_list
        self.state = prepare_neighbor_list(case.x, cutoff, max_neighbors=room, **given)
        most = int(self.counts(self(case.x)[1]).max())
        if most > room:
            raise RuntimeError(f"{most} neighbours, and room for {room}")
        # a few more may come as particles move
        self.width = 8 * math.ceil((1.05 * most + 4) / 8)
        self.state = prepare_neighbor_list(case.x, cutoff, max_neighbors=self.width, **given)

    def counts(self, numbers):
        return numbers if self.state.format == "matrix" else numbers.diff()

    def __call__(self, x):
        return self._make(x.detach(), state=self.state)

    def near(self, x):
        """Options of sums."""
        matrix, _, shifts = self(x)
        return {"neighbor_matrix": matrix, "neighbor_matrix_shifts": shifts}

    @property
    def settings(self):
        return {"lists": self.state.strategy, "width": self.width}


class Kind:
    """Of sums, with a choice of settings.

    Derived classes have: name, of the kind; lengths: of meshes or waves, from the coarsest; start: index of the one
    that a search begins with; product, power: a typical product of length and splitting, and how the error depends on
    it; orders: of splines; patience: lengths in a row that are no better before a search ends.
    """

    patience = 2
    list_options: dict = {}

    def __init__(self, case, given):
        self.case, self.given = case, given
        self._method = None

    def lists(self, cutoff):
        if self._method is None:
            self._method = self._fastest_lists(cutoff)
        return Lists(self.case, cutoff, method=self._method, **self.list_options)

    def _fastest_lists(self, cutoff):
        """The fastest of the methods that the package expects to be the best three."""
        from nvalchemiops.torch.neighbors import estimate_neighbor_list_costs

        case, times = self.case, {}
        given = {"batch_idx": case.index, "positions_dtype": case.dtype, **self.list_options}
        ranked = estimate_neighbor_list_costs(case.starts, case.cells, case.periodic, cutoff, **given)
        for method, _ in ranked[:3]:
            with contextlib.suppress(Exception):
                lists = Lists(case, cutoff, method=method, **self.list_options)
                times[method] = min(seconds(lists, case.x, case.device)[0] for _ in range(4))
        return min(times, key=times.__getitem__, default=None)


class NvalchemiPme(Kind):
    name = "nvalchemi_pme"
    product, power = 0.35, 4

    def __init__(self, case, given):
        super().__init__(case, given)
        self.orders = given.orders
        self.lengths = max(case.edges) / np.array(SIZES)
        self.start = int(np.abs(self.lengths - 0.1).argmin())

    def sums(self, cutoff, splitting, resolution, order):
        from nvalchemiops.torch.interactions import electrostatics

        case, lists = self.case, self.lists(cutoff)
        sizes = [next(s for s in SIZES if s >= edge / self.lengths[resolution] - 1e-6) for edge in case.edges]
        alpha = torch.full((case.count,), splitting, dtype=case.dtype, device=case.place)
        shared = {"alpha": alpha, "energy_reduction": "system", **case.batched(batch_idx=case.index)}
        mesh = {"mesh_dimensions": tuple(sizes), "spline_order": order, **self._of_boxes(sizes, order)}

        def energies(x, q):
            # particle_mesh_ewald() would compute the pairs once more for second derivatives
            pairs = electrostatics.ewald_real_space(x, q, case.cells, **lists.near(x), **shared)
            return COULOMB * (pairs + electrostatics.pme_reciprocal_space(x, q, case.cells, **mesh, **shared))

        def forces(x, q):
            with torch.no_grad():
                given = {**lists.near(x), **mesh, **shared}
                values, vectors = electrostatics.particle_mesh_ewald(x, q, case.cells, compute_forces=True, **given)
            return COULOMB * values, COULOMB * vectors

        settings = {"cutoff": cutoff, "splitting": splitting, "mesh": sizes, "order": order}
        return Sums(energies, forces, {**settings, **lists.settings})

    def _of_boxes(self, sizes, order):
        """What follows from boxes and the mesh."""
        from nvalchemiops.torch.interactions.electrostatics import compute_bspline_moduli_1d, generate_k_squared_pme

        cells, kind = self.case.cells, {"dtype": self.case.dtype, "device": self.case.place}
        frequencies = [torch.fft.fftfreq, torch.fft.fftfreq, torch.fft.rfftfreq]
        moduli = [compute_bspline_moduli_1d(f(n, d=1 / n, **kind), n, order) for f, n in zip(frequencies, sizes)]
        return {
            "k_squared": generate_k_squared_pme(cells, tuple(sizes)),
            "cell_inv_t": torch.linalg.inv(cells).mT.contiguous(),
            "volume": torch.linalg.det(cells).abs(),
            **dict(zip(("moduli_x", "moduli_y", "moduli_z"), moduli)),
        }


class NvalchemiEwald(Kind):
    """Lengths are those of waves over 2 pi."""

    name = "nvalchemi_ewald"
    product, power = 0.19, 13
    orders = (0,)

    def __init__(self, case, given):
        super().__init__(case, given)
        self.lengths = 1 / WAVES
        # as many pairs as waves, about
        self.start = int(np.abs(WAVES - 35 * (100 / case.atoms) ** (1 / 6)).argmin())

    def sums(self, cutoff, splitting, resolution, order):
        from nvalchemiops.torch.interactions.electrostatics import ewald_summation

        case, waves, lists = self.case, self._waves(WAVES[resolution]), self.lists(cutoff)
        fixed = {"k_vectors": waves, "energy_reduction": "system"}
        fixed["alpha"] = torch.full((case.count,), splitting, dtype=case.dtype, device=case.place)
        fixed.update(case.batched(batch_idx=case.index, max_atoms_per_system=case.atoms))

        def forces(x, q):
            with torch.no_grad():
                values, vectors = ewald_summation(x, q, case.cells, compute_forces=True, **lists.near(x), **fixed)
            return COULOMB * values, COULOMB * vectors

        settings = {"cutoff": cutoff, "splitting": splitting, "waves": waves.shape[-2]}
        return Sums(None, forces, {**settings, **lists.settings})

    def _waves(self, longest):
        """Those within a sphere in any of the boxes; the package itself would take a block."""
        from nvalchemiops.torch.interactions import electrostatics

        cells = self.case.cells
        indices = electrostatics.generate_ewald_miller_indices(cells, float(longest))
        waves = electrostatics.k_vectors_from_miller_indices(cells, indices)
        near = (waves.norm(dim=-1) <= longest).reshape(-1, waves.shape[-2]).any(0)
        return waves[..., near, :].contiguous()


class TorchPme(Kind):
    """PME and P3M of torch-pme for one system; lists are those of nvalchemi-toolkit-ops, each pair once."""

    name = "torch_pme"
    product, power, patience = 0.35, 4, 1
    orders = ("PME 5", "P3M 5", "P3M 4", "PME 6", "PME 7")
    list_options = {"half_fill": True, "return_neighbor_list": True}

    def __init__(self, case, given):
        super().__init__(case, given)
        # the package takes powers of two
        self.sizes = [size for size in SIZES if size & (size - 1) == 0]
        self.lengths = max(case.edges) / np.array(self.sizes)
        self.start = int(np.abs(self.lengths - 0.1).argmin())

    def sums(self, cutoff, splitting, resolution, order):
        import torchpme

        case, (method, nodes), size = self.case, order.split(), self.sizes[resolution]
        lists = self.lists(cutoff)
        potential = torchpme.CoulombPotential(smearing=1 / (math.sqrt(2) * splitting), prefactor=COULOMB)
        # its mesh has at least 2 edge / spacing + 1 points
        spacing = 2 * max(case.edges) / (size * (1 - 1e-5) - 1)
        kind = {"PME": torchpme.PMECalculator, "P3M": torchpme.P3MCalculator}[method]
        calculator = kind(potential, mesh_spacing=spacing, interpolation_nodes=int(nodes))
        calculator.to(case.place, case.dtype)

        def energies(x, q):
            pairs, _, shifts = lists(x)
            pairs = pairs.long()
            distances = (x[pairs[1]] - x[pairs[0]] + shifts.to(x.dtype) @ case.boxes).norm(dim=1)
            potentials = calculator(q[:, None], case.boxes, x, pairs.T, distances)
            return (potentials[:, 0] * q).sum()

        settings = {"cutoff": cutoff, "splitting": splitting, "mesh": size, "order": order, **lists.settings}
        return Sums(energies, None, settings)


class Found(NamedTuple):
    seconds: float
    call: Callable
    errors: list
    settings: dict
    resolution: int
    order: Any


class Search:
    """For the settings of a kind of sums with which a call is fastest, and whose error of forces is small enough.

    wrap: training or evaluation; exact: values of a call; limit: of the error; allowed: seconds of all calls, but for
    those that come first with an order, which compile.
    """

    def __init__(self, kind, case, wrap, exact, limit, allowed):
        self.kind, self.case, self.wrap, self.exact, self.limit, self.allowed = kind, case, wrap, exact, limit, allowed
        self.spent, self.known = 0.0, {}
        self.best, self.problem = None, None
        self.near = None  # the length of a mesh and the index of its cut-off
        self.strongest = float(exact[0].double().pow(2).sum(1).mean().sqrt())  # RMS

    def run(self):
        for order in self.kind.orders:
            self._climb(order)
        if self.best is None:
            raise self.problem or RuntimeError("no settings with this error were found")
        for share in (0.5, 0.9):
            self._took(self.best.resolution, self.best.order, share)
        return self.best

    @property
    def summary(self):
        return {"tried": len(self.known), "ended": self.spent < self.allowed}

    def _climb(self, order):
        """From the best resolution so far both ways, while one of the next is better."""
        if self.spent >= self.allowed:
            return
        origin, before = self.kind.start if self.best is None else self.best.resolution, self.spent
        lowest = self._took(origin, order)
        self.spent = before
        if self.best is None and self.problem:
            return
        for way in (1, -1):
            at, failures = origin + way, 0
            while failures < self.kind.patience and 0 <= at < len(self.kind.lengths):
                took = self._took(at, order)
                failures = 0 if took < lowest else failures + 1
                at, lowest = at + way, min(lowest, took)

    def _took(self, resolution, order, share=0.7):
        """Seconds of a call, infinite where the error is too large or the time is up. share: see _splitting()."""
        key = resolution, order, share
        if key not in self.known and self.spent < self.allowed:
            try:
                self.known[key] = self._measure(*key)
            except Exception as problem:  # of these settings only, as where memory is exhausted
                traceback.clear_frames(problem.__traceback__)
                self.known[key], self.problem = math.inf, problem
                _free(self.case.device)
        return self.known.get(key, math.inf)

    def _measure(self, resolution, order, share):
        calls = {}

        def error(at):
            if at not in calls:
                sums = self.kind.sums(float(CUTOFFS[at]), self._splitting(CUTOFFS[at], share), resolution, order)
                call = self.wrap(self.case, sums)
                took, values = seconds(call, self.case.x, self.case.device)
                self.spent += took
                calls[at] = call, errors_of(values, self.exact), sums.settings
            return calls[at][1][0]

        at = self._smallest(error, self._guess(resolution, share))
        if at is None:
            return math.inf
        self.near = self.kind.lengths[resolution], at
        call, errors, settings = calls[at]
        took = min(seconds(call, self.case.x, self.case.device)[0] for _ in range(3))
        self.spent += 3 * took
        if self.best is None or took < self.best.seconds:
            self.best = Found(took, call, errors, settings, resolution, order)
        return took

    def _smallest(self, error, at):
        """The index of the smallest cut-off with an error within the limit, from a guess; None: none is there."""
        for _ in range(8):
            if error(at) <= self.limit:
                break
            # errors of meshes are powers of the splitting
            at += max(1, round(0.7 * math.log(error(at) / self.limit, STEP) / self.kind.power))
            if at >= len(CUTOFFS) or self.spent >= self.allowed:
                return None
        else:
            return None
        while at > 0 and error(at - 1) <= self.limit:
            at -= 1
        return at

    def _guess(self, resolution, share):
        """Cut-offs grow as the lengths of meshes and waves."""
        length, last = self.kind.lengths[resolution], len(CUTOFFS) - 1
        if self.near is None:
            products = [length * self._splitting(cutoff, share) for cutoff in CUTOFFS]
            return int(np.abs(np.array(products) - self.kind.product).argmin())
        return int(np.clip(self.near[1] + round(math.log(length / self.near[0], STEP)), 0, last))

    def _splitting(self, cutoff, share):
        """1/nm; the error of pairs is a share of the limit, by the estimate of Kolafa and Perram."""
        case = self.case
        amplitude = 2 * COULOMB * case.squares / math.sqrt(case.atoms * cutoff * case.volume)
        return math.sqrt(math.log(amplitude / (share * self.limit * self.strongest))) / cutoff


def seconds(call, x, device, row=1):
    """Of a call of a row, and what it gives."""
    clock = clock_of(device)
    wait = torch.cuda.synchronize if device == "gpu" else bool
    wait()
    begin = clock()
    for _ in range(row):
        values = call(x)
    wait()
    return (clock() - begin) / row, values


def errors_of(values, exact):
    """Relative to the RMS of the exact values; too large where values are not finite."""
    return [float(torch.nan_to_num((v.double() - e).norm() / e.norm(), nan=1e9)) for v, e in zip(values, exact)]


PARTS = {
    "single": (training, Coulomb, (NvalchemiPme, TorchPme)),
    "batches": (evaluation, CoulombBatch, (NvalchemiEwald, NvalchemiPme)),
}
QUANTITIES = ("error_of_forces", "error_of_gradients_by_positions", "error_of_gradients_by_parameters")


def measure(part, atoms, dtype, given):
    wrap, own, kinds = PARTS[part]
    count = 1 if part == "single" else max(1, given.total // atoms)
    case = Case(atoms, count, dtype, given.device, given.repeats)
    exact = wrap(case.double(), of_farfield(case.double(), 1e-9, CoulombBatch))(case.x.double())
    options = {"asynchronous": True} if own is CoulombBatch and given.row > 1 else {}
    call = wrap(case, of_farfield(case, given.accuracy, own, **options))
    errors = errors_of(call(case.x), exact)
    calls, table = {"farfield": call}, {"farfield": dict(zip(QUANTITIES, errors))}
    for kind in kinds:
        limit = given.limit or TOLERANCE * errors[0]
        search = Search(kind(case, given), case, wrap, exact, limit, given.search)
        try:
            found = search.run()
            calls[kind.name] = found.call
            table[kind.name] = {**dict(zip(QUANTITIES, found.errors)), **_rounded(found.settings), **search.summary}
        except Exception as problem:
            table[kind.name] = {"ms": None, "reason": _reason(problem), **search.summary}
        _free(given.device)
    for name, taken in _times(calls, case, given.row).items():
        table[name]["ms"] = 1e3 * min(taken) if isinstance(taken, list) else None
        if not isinstance(taken, list):
            table[name]["reason"] = taken
    return {"systems": count, **table}


def _case(part, atoms, dtype, given):
    head = {"part": part, "atoms": atoms, "dtype": dtype, "device": given.device, "accuracy": given.accuracy}
    head["row"] = given.row
    try:
        return {**head, **measure(part, atoms, getattr(torch, dtype), given)}
    except Exception as problem:
        return {**head, "farfield": {"ms": None, "reason": _reason(problem)}}
    finally:
        _free(given.device)


def _times(calls, case, row):
    """Seconds of each call, which take turns by rows, or why there are none."""
    times = {name: [] for name in calls}
    for x in [case.x, *case.moved]:
        for name, call in calls.items():
            if isinstance(times[name], list):
                try:
                    times[name].append(seconds(call, x, case.device, row)[0])
                except Exception as problem:
                    times[name] = _reason(problem)
    return times


def _rounded(settings):
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in settings.items()}


def _reason(problem):
    """In one line; where it comes from goes to the terminal."""
    traceback.print_exception(type(problem), problem, problem.__traceback__, limit=-3)
    return f"{type(problem).__name__}: {problem}".splitlines()[0][:200]


def _free(device):
    if device == "gpu":
        torch.cuda.empty_cache()


def line(case):
    rows = {name: row for name, row in case.items() if isinstance(row, dict)}
    own = rows["farfield"]["ms"] or math.nan
    texts = []
    for name, row in rows.items():
        if row["ms"] is None:
            texts.append(f"{name} none ({row['reason']})")
        else:
            texts.append(f"{name} {row['ms']:.3g} ({row['ms'] / own:.2f}, {row[QUANTITIES[0]]:.1e})")
    return f"{case['part']}, {case['atoms']} atoms, {case['dtype']}, ms (ratio, error): " + ", ".join(texts)


def versions():
    """Of the packages; null: it is not there."""
    found = {"cuda": torch.version.cuda}
    for name in ("torch", "warp", "nvalchemiops", "torchpme"):
        try:
            found[name] = getattr(importlib.import_module(name), "__version__", "unknown")
        except ImportError:
            found[name] = None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--atoms-single", type=int, nargs="+", default=[20000, 100000])
    parser.add_argument("--atoms", type=int, nargs="+", default=[128, 512, 2000], help="of a system of a batch")
    parser.add_argument("--total", type=int, default=131072, help="atoms of a batch, about")
    parser.add_argument("--dtypes", choices=("float32", "float64"), nargs="+", default=["float32", "float64"])
    parser.add_argument("--accuracy", type=float, default=3e-4, help="that farfield is asked for")
    parser.add_argument("--limit", type=float, help="of errors of the others, if not 1.1 times that of farfield")
    parser.add_argument("--orders", type=int, nargs="+", default=[5], help="of splines; each is compiled first")
    parser.add_argument("--search", type=float, default=4, help="seconds of a search (4)")
    parser.add_argument("--row", type=int, default=1, help="calls in a row (1)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--json", metavar="FILE", help="write the table")
    given = parser.parse_args()
    if given.device == "cpu":
        torch.set_num_threads(1)
    warnings.simplefilter("ignore", DeprecationWarning)  # of functions that return forces at once
    head = {**results.conditions(), **({"gpus": machine.gpus()} if given.device == "gpu" else {})}
    head["versions"] = versions()
    cases = []
    for part in given.parts:
        for dtype in given.dtypes:
            for atoms in given.atoms_single if part == "single" else given.atoms:
                cases.append(_case(part, atoms, dtype, given))
                print(line(cases[-1]), flush=True)
                if given.json:
                    results.write(given.json, {**head, "cases": cases})


if __name__ == "__main__":
    main()
