# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Methods for points without images: farfield on both devices, jaxFMM on a GPU, FMM3D on the host.

Every one takes the same points and returns potentials, e/nm, and fields, e/nm^2, at some of them, with
the seconds of a call at several orders or tolerances. What a time holds:

    farfield  cells are made anew, at positions that it has not seen, and potentials and forces
              computed; order, cells and operators are chosen in the first call, which is listed by itself
    jaxFMM    new charges at positions that its set-up knows, potentials and fields by a call each;
              the set-up with its compilation is in the first call
    FMM3D     the whole call, in which it makes its tree, potentials and fields
"""

import importlib.util
import time
from typing import Any

import numpy as np

from tests.bench import results
from tests.bench.open_points import near_cells

COULOMB = 138.935458  # of the package; divided out
GIB = 2.0**30


def affordable(repeats, longest, seconds):
    """So many calls, or what takes no longer; one at least."""
    return max(1, min(repeats, int(longest / seconds)))


def summary(times, first):
    """What all records have."""
    seconds, half_range = results.median_and_spread(times)
    return {"seconds": seconds, "half_range": half_range, "calls": len(times), "first": first}


class Farfield:
    """Times evaluations after the first; every one has other positions."""

    def __init__(self, dtype, device):
        self.dtype, self.device = np.dtype(dtype), device
        self.needs = ("farfield", "cupy") if device == "gpu" else ("farfield",)

    def settings(self, arguments):
        """What to ask for: {name: options of the solver}."""
        engine = {"m2l": arguments.m2l}
        if arguments.orders:
            return {f"p = {p}": {"order": p, "accuracy": 0.1, **engine} for p in arguments.orders}
        least = 2e-6 if self.dtype == np.float32 else 0
        wanted = [accuracy for accuracy in arguments.accuracies if accuracy >= least]
        return {f"{accuracy:.0e}": {"accuracy": accuracy, **engine} for accuracy in wanted}

    def run(self, x, q, targets, options, arguments):
        import farfield

        own = x.astype(self.dtype)
        if self.device == "gpu":
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()
            own, targets = cupy.asarray(own), cupy.asarray(targets)
        solver = farfield.Solver(dtype=self.dtype, boundary="open", device=self.device, **options)
        solver.set_charges(q)

        def call(turn):
            here = own + self.dtype.type(1e-4 * turn)
            if self.device == "gpu":
                cupy.cuda.Device().synchronize()
            before, start, busy = solver.timings, time.perf_counter(), time.process_time()
            result = solver.evaluate(here, potentials=True)
            seconds = time.perf_counter() - start
            return seconds, (time.process_time() - busy) / seconds, before, result

        first = call(0)[0]
        number = affordable(arguments.repeats, arguments.longest, call(1)[0])
        times = []
        for turn in range(number - 1, -1, -1):
            # The last one has the positions whose sums are known
            seconds, busy, before, result = call(turn)
            times.append(seconds)
        setup = {name: value for name, value in solver.setup.items() if name != "device_id"}
        record = summary(times, first) | {
            "setup": setup,
            **near_cells(x, setup),
            "stages": {name: now - before.get(name, 0) for name, now in solver.timings.items()},
        }
        values, forces = result.potentials[targets], result.forces[targets]
        if self.device == "gpu":
            free, total = cupy.cuda.Device().mem_info
            record["gib"] = (total - free) / GIB
            values, forces, targets = values.get(), forces.get(), targets.get()
        else:
            record["cores_busy"] = busy
        return record, values.astype(float) / COULOMB, forces.astype(float) / COULOMB / q[targets, None]


class JaxFmm:
    """Times new charges at fixed positions."""

    needs = ("jaxfmm", "cupy")

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def settings(self, arguments):
        """Orders of the engine with equivalent densities, orders and openings of the flexible one."""
        found = {}
        for words in (text.split(":") for text in arguments.jaxfmm):
            name, options = f"{words[0]} p = {words[1]}", {"p": int(words[1])}
            if len(words) > 2:
                name += f", theta = {words[2]}"
                options["theta"] = float(words[2])
            found[name] = (words[0], options)
        return found

    def run(self, x, q, targets, options, arguments):
        import jax

        jax.config.update("jax_enable_x64", True)  # its cells have indices of 64 bits
        from jaxfmm import flex, kifmm

        place, charges = (jax.numpy.asarray(values.astype(self.dtype)) for values in (x, q))
        engine, options = options
        start = time.perf_counter()
        if engine == "flex":
            # The rest as jaxfmm.plan() has it
            setup = flex.setup(place, N_max=128, s="auto", jit_cnct=True, **options)
            evaluators = [flex.compile_evaluator(setup, field=field) for field in (True, False)]
        else:
            setup = kifmm.setup(place, **options)
            evaluators = [kifmm.compile_evaluator(setup, field=field) for field in (True, False)]

        def call():
            start, values, durations = time.perf_counter(), [], []
            for evaluate in evaluators:
                values.append(jax.block_until_ready(evaluate(charges)))
                durations.append(time.perf_counter() - start)
            return durations, values

        call()
        first = time.perf_counter() - start
        number = affordable(arguments.repeats, arguments.longest, call()[0][1])
        times = []
        for _ in range(number):
            durations, values = call()
            times.append(durations)
        alone, both = zip(*times)
        record = summary(both, first) | {
            "fields_alone": results.median_and_spread(alone),
            "gib": jax.devices()[0].memory_stats()["peak_bytes_in_use"] / GIB,
        }
        # Its kernel is 1 / (4 pi r)
        fields, potentials = (4 * np.pi * np.asarray(v)[targets] for v in values)
        return record, potentials, fields


class Fmm3d:
    """Times the whole call, in double precision."""

    needs = ("fmm3dpy",)

    def settings(self, arguments):
        return {f"{eps:.0e}": eps for eps in arguments.fmm3d}

    def run(self, x, q, targets, eps, arguments):
        import fmm3dpy

        sources = np.asfortranarray(x.T)

        def call():
            start, busy = time.perf_counter(), time.process_time()
            out = fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=q, pg=2)
            seconds = time.perf_counter() - start
            return seconds, (time.process_time() - busy) / seconds, out

        first, busy, out = call()
        times = [first]
        if 2 * first < arguments.longest:
            times = []
            for _ in range(affordable(arguments.repeats, arguments.longest, first)):
                seconds, busy, out = call()
                times.append(seconds)
        # Its kernel is 1 / (4 pi r), too
        potentials, gradients = (4 * np.pi * np.asarray(v)[..., targets] for v in (out.pot, out.grad))
        record = summary(times, first) | {"cores_busy": busy}
        return record, potentials, -gradients.T


METHODS: dict[str, Any] = {
    "farfield float32, GPU": Farfield(np.float32, "gpu"),
    "farfield float64, GPU": Farfield(np.float64, "gpu"),
    "jaxFMM float32": JaxFmm(np.float32),
    "jaxFMM float64": JaxFmm(np.float64),
    "farfield float32, CPU": Farfield(np.float32, "cpu"),
    "farfield float64, CPU": Farfield(np.float64, "cpu"),
    "FMM3D": Fmm3d(),
}
ON_HOST = [name for name, method in METHODS.items() if "cupy" not in method.needs]


def present(names):
    """Those of the methods that are installed."""
    found = []
    for name in names:
        missing = [package for package in METHODS[name].needs if not importlib.util.find_spec(package)]
        if missing:
            print(f"{name} is not there: needs {', '.join(missing)}")
        else:
            found.append(name)
    return found
