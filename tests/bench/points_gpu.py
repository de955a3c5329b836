# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images on a GPU: error against time of the Python package, beside jaxFMM.

    python3 -m pip install jaxfmm
    python3 -m tests.bench.points_gpu --counts 100000 1000000 10000000 100000000

Potentials and fields of random charges, in a cube, in clusters, in a sheet or along a line, whose
positions are in the memory of the GPU, with farfield in both precisions, for several errors that are
asked for, and with the engines of jaxFMM that have fields (if it is installed), for several of their
orders. Positions are such that single precision has them. Errors are relative in the 2-norm, over points
for which all pairs are summed on the GPU in double precision.

A time of farfield is that of one call with positions it has not seen: cells are made anew. The first
call chooses order and cells, and is listed by itself. jaxFMM has a set-up for fixed positions, listed
with its compilation as its first time; its times are those of new charges, of fields alone and of
potentials besides.

    python3 -m tests.bench.points_gpu --orders 4 8 12 --counts 1048576 --kinds cube

has fixed orders of farfield instead, as the table of Gumerov and Duraiswami, J. Comput. Phys. 227, 8290
(2008), doi:10.1016/j.jcp.2008.05.023.

Each method has a process of its own, which is given up after --limit seconds: what is missing then, as
what needs more memory than there is, is a line of the result. Needs CuPy. Writes points_gpu.json and,
with matplotlib, points_gpu.svg.
"""

import argparse
import importlib.util
import multiprocessing
import os
import queue
import time
from pathlib import Path

import numpy as np

from farfield.gromacs import machine
from tests.bench import results
from tests.bench.figures.points import draw, floor_of
from tests.bench.open_speed import COULOMB, KINDS, THIN_KINDS, points, relative

GIB = 2.0**30


def all_pairs(x, q, targets):
    """Potential and field at some of the points, [m], [m, 3]; x and q are CuPy arrays."""
    import cupy

    potentials, fields = [], []
    for i in targets.tolist():
        d = x[i] - x
        r2 = (d**2).sum(axis=1)
        r2[i] = np.inf
        potentials.append((q / cupy.sqrt(r2)).sum())
        fields.append((q / r2**1.5) @ d)
    return cupy.stack(potentials).get(), cupy.stack(fields).get()


# ---- methods ----
class Farfield:
    """Times evaluations after the first; every one has other positions."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def settings(self, arguments):
        """What to ask for: {name: options of the solver}."""
        engine = {"m2l": arguments.m2l}
        if arguments.orders:
            return {f"p = {p}": {"order": p, "accuracy": 0.1, **engine} for p in arguments.orders}
        least = 2e-6 if self.dtype == np.float32 else 0
        wanted = [accuracy for accuracy in arguments.accuracies if accuracy >= least]
        return {f"{accuracy:.0e}": {"accuracy": accuracy, **engine} for accuracy in wanted}

    def run(self, x, q, targets, options, repeats):
        import cupy
        import farfield

        own = x.astype(self.dtype)
        solver = farfield.Solver(dtype=self.dtype, boundary="open", device="gpu", **options)
        solver.set_charges(q.get())
        start = time.perf_counter()
        solver.evaluate(own, potentials=True)
        first = time.perf_counter() - start
        times = []
        for turn in range(repeats, -1, -1):
            # The last one has the positions whose sums are known
            here = own + self.dtype.type(1e-4 * turn)
            cupy.cuda.Device().synchronize()
            before = solver.timings
            start = time.perf_counter()
            result = solver.evaluate(here, potentials=True)
            times.append(time.perf_counter() - start)
        seconds, half_range = results.median_and_spread(times[1:])
        free, total = cupy.cuda.Device().mem_info
        record = {
            "seconds": seconds,
            "half_range": half_range,
            "first": first,
            "gib": (total - free) / GIB,
            "setup": {name: value for name, value in solver.setup.items() if name != "device_id"},
            "stages": {name: now - before.get(name, 0) for name, now in solver.timings.items()},
        }
        values, forces, own = (v[targets].get() for v in (result.potentials, result.forces, q))
        return record, values.astype(float) / COULOMB, forces.astype(float) / COULOMB / own[:, None]


class JaxFmm:
    """Times new charges at fixed positions."""

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

    def run(self, x, q, targets, options, repeats):
        import jax

        jax.config.update("jax_enable_x64", True)  # its cells have indices of 64 bits
        from jaxfmm import flex, kifmm

        place, charges = (jax.numpy.asarray(a.get().astype(self.dtype)) for a in (x, q))
        engine, options = options
        start = time.perf_counter()
        if engine == "flex":
            # The rest as jaxfmm.plan() has it
            setup = flex.setup(place, N_max=128, s="auto", jit_cnct=True, **options)
            evaluators = [flex.compile_evaluator(setup, field=field) for field in (True, False)]
        else:
            setup = kifmm.setup(place, **options)
            evaluators = [kifmm.compile_evaluator(setup, field=field) for field in (True, False)]
        for evaluate in evaluators:
            jax.block_until_ready(evaluate(charges))
        first = time.perf_counter() - start
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            values, durations = [], []
            for evaluate in evaluators:
                values.append(jax.block_until_ready(evaluate(charges)))
                durations.append(time.perf_counter() - start)
            times.append(durations)
        alone, both = ([pair[which] for pair in times] for which in (0, 1))
        seconds, half_range = results.median_and_spread(both)
        record = {
            "seconds": seconds,
            "half_range": half_range,
            "fields_alone": results.median_and_spread(alone),
            "first": first,
            "gib": jax.devices()[0].memory_stats()["peak_bytes_in_use"] / GIB,
        }
        # Its kernel is 1 / (4 pi r)
        fields, potentials = (4 * np.pi * np.asarray(v)[targets.get()] for v in values)
        return record, potentials, fields


METHODS = {
    "farfield float32": Farfield(np.float32),
    "farfield float64": Farfield(np.float64),
    "jaxFMM float32": JaxFmm(np.float32),
    "jaxFMM float64": JaxFmm(np.float64),
}


# ---- one set of points, one method ----
def work(found, kind, count, name, arguments):
    """Puts the records of all settings of a method into a queue, and None when it is done."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import cupy

    random = np.random.default_rng(5)
    x, q = points(kind, count, random)
    targets = cupy.asarray(random.choice(count, arguments.targets, replace=False))
    x, q = (cupy.asarray(values.astype(np.float32).astype(float)) for values in (x, q))
    exact = all_pairs(x, q, targets)
    method = METHODS[name]
    for asked, options in method.settings(arguments).items():
        cupy.get_default_memory_pool().free_all_blocks()
        try:
            record, *values = method.run(x, q, targets, options, arguments.repeats)
            record |= {
                which: relative(value, reference)
                for which, value, reference in zip(("potential", "field"), values, exact)
            }
        except (MemoryError, RuntimeError, ValueError) as error:
            # What is missing is a result, too
            record = {"error": (str(error) or repr(error)).splitlines()[0]}
        found.put({"asked": asked, **record})
    found.put(None)


def records_of(kind, count, name, arguments, seconds):
    """The records of work() in a process of its own, as they come; what fails or is late says so."""
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    process = context.Process(target=work, args=(found, kind, count, name, arguments), daemon=True)
    end = time.monotonic() + seconds
    missing = list(METHODS[name].settings(arguments))
    why = None if seconds > 0 else "no time was left"
    if not why:
        process.start()
    while why is None:
        try:
            record = found.get(timeout=1)
        except queue.Empty:
            if time.monotonic() > end:
                why = f"not within {seconds:.0f} s"
            elif not process.is_alive():
                why = f"the process ended with status {process.exitcode}"
            continue
        if record is None:
            break
        missing.remove(record["asked"])
        yield record
    if process.pid:
        process.kill()
        process.join()
    yield from ({"asked": asked, "error": why} for asked in missing)


# ---- what comes out ----
def describe(record):
    """A line of the table; its last column is the floor, or the time of fields alone."""
    name, count, floor = record["method"], record["count"], floor_of(record)
    start = f"{name:<17} {record['asked']:>24}"
    if "error" in record:
        return f"{start}  {record['error']}"
    special = record["fields_alone"][0] if "fields_alone" in record else floor
    return (f"{start}{record['potential']:>10.1e}{record['field']:>9.1e}"
            f"{1e3 * record['seconds']:>10.3f} +-{1e3 * record['half_range']:>6.2f}"
            f"{count / record['seconds']:>10.2e}{record['first']:>8.2f}{record['gib']:>7.2f}"
            + (f"{1e3 * special:>11.3f}" if special else ""))


def measure(kind, count, arguments, end):
    """The records of one set of points; end: when to stop, of time.monotonic()."""
    print(f"\n{kind}, {count} points\n{'':<17} {'asked':>24}{'potential':>10}{'field':>9}{'ms':>10}"
          f"{'':>9}{'points/s':>10}{'first s':>8}{'GiB':>7}{'floor, ms':>11}")
    for name in arguments.methods:
        seconds = max(0, min(arguments.limit, end - time.monotonic()))
        for record in records_of(kind, count, name, arguments, seconds):
            record = {"kind": kind, "count": count, "method": name, **record}
            print(describe(record), flush=True)
            yield record


def present_methods():
    """Those that are installed."""
    names = list(METHODS)
    if not importlib.util.find_spec("jaxfmm"):
        print("jaxFMM is not there: pip install jaxfmm")
        names = [name for name in names if "jaxFMM" not in name]
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--kinds", nargs="*", choices=KINDS + THIN_KINDS, default=KINDS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all that are installed")
    parser.add_argument("--accuracies", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4, 1e-6])
    parser.add_argument("--orders", type=int, nargs="+", help="of farfield, in place of accuracies")
    parser.add_argument("--m2l", default="auto", help="engine of farfield; hierarchy has the shortest set-up")
    parser.add_argument("--jaxfmm", nargs="+", default=["kifmm:3", "kifmm:4", "kifmm:6", "flex:5:0.7"],
                        metavar="ENGINE:P[:THETA]", help="engines of jaxFMM and their orders")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--targets", type=int, default=300, help="points whose errors are taken")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a method and a set of points")
    parser.add_argument("--total", type=float, default=3600, help="seconds for all")
    parser.add_argument("--merge", type=Path, metavar="JSON",
                        help="a result whose records are kept before these; with --kinds and none, drawn")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.methods = arguments.methods or present_methods()
    end = time.monotonic() + arguments.total
    records = results.read(arguments.merge)["records"] if arguments.merge else []
    for kind in arguments.kinds:
        for count in arguments.counts:
            for record in measure(kind, count, arguments, end):
                records.append(record)
                # After each: a run that is stopped leaves what is done
                results.write(arguments.output / "points_gpu.json",
                              {"machine": machine.describe(), "records": records})
    try:
        draw(records, arguments.output / "points_gpu.svg")
    except ImportError:
        print("no figure: matplotlib is not installed")


if __name__ == "__main__":
    main()
