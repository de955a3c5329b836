# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images on a GPU: error against time of the Python package, beside jaxFMM.

    python3 -m pip install jaxfmm
    python3 -m tests.bench.points_gpu --counts 100000 1000000 10000000 100000000

Potentials and fields of random charges, uniform in a cube or in clusters, whose positions are in the
memory of the GPU, in turn with farfield in both precisions, for several errors that are asked for, and
with the engine of jaxFMM that has fields (if it is installed), for several of its orders. Errors are
relative in the 2-norm, over points for which all pairs are summed on the GPU in double precision.

A time of farfield is that of one call with positions it has not seen: cells are made anew. The first
call chooses order and cells, and is listed by itself. jaxFMM has a set-up for fixed positions, listed
as its first time; its time is that of new charges, of potentials and of fields one after the other.

    python3 -m tests.bench.points_gpu --orders 4 8 12 --counts 1048576 --kinds cube

has fixed orders of farfield instead, as the table of Gumerov and Duraiswami, J. Comput. Phys. 227, 8290
(2008), doi:10.1016/j.jcp.2008.05.023. Needs CuPy. Writes points_gpu.json.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from tests.bench import results
from tests.bench.open_speed import COULOMB, KINDS, points, relative


def all_pairs(x, q, targets):
    """Potential and field at some of the points, [m], [m, 3]; x and q are CuPy arrays."""
    import cupy

    x, q = x.astype(float), q.astype(float)
    potentials, fields = [], []
    for i in targets:
        d = x[i] - x
        r2 = (d**2).sum(axis=1)
        r2[i] = np.inf
        potentials.append((q / cupy.sqrt(r2)).sum())
        fields.append((q / r2**1.5) @ d)
    return cupy.stack(potentials).get(), cupy.stack(fields).get()


class Farfield:
    """Times evaluations after the first; every one has other positions."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.name = f"farfield {self.dtype.name}"

    def settings(self, arguments):
        """What to ask for: {name: options of the solver}."""
        if arguments.orders:
            return {f"p = {order}": {"order": order} for order in arguments.orders}
        least = 2e-6 if self.dtype == np.float32 else 0
        wanted = [accuracy for accuracy in arguments.accuracies if accuracy >= least]
        return {f"{accuracy:.0e}": {"accuracy": accuracy} for accuracy in wanted}

    def run(self, x, q, options, repeats):
        import cupy
        import farfield

        own, charges = x.astype(self.dtype), q.astype(self.dtype)
        solver = farfield.Solver(dtype=self.dtype, boundary="open", device="gpu", **options)
        solver.set_charges(charges.get())
        start = time.perf_counter()
        solver.evaluate(own, potentials=True)
        first = time.perf_counter() - start
        times = []
        for turn in range(repeats, -1, -1):
            # The last one has the positions whose sums are known
            here = own + self.dtype.type(1e-4 * turn)
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            result = solver.evaluate(here, potentials=True)
            times.append(time.perf_counter() - start)
        setup = {key: solver.setup[key] for key in ("order", "levels", "leaf_cells", "m2l")}
        potentials = result.potentials.astype(float) / COULOMB
        fields = result.forces.astype(float) / COULOMB / q[:, None]
        seconds, half_range = results.median_and_spread(times[1:])
        return {"seconds": seconds, "half_range": half_range, "first": first, "setup": setup}, \
            potentials, fields


class JaxFmm:
    """Times new charges at fixed positions."""

    name = "jaxFMM"

    def settings(self, arguments):
        return {f"p = {order}": {"p": order} for order in arguments.jaxfmm_orders}

    def run(self, x, q, options, repeats):
        import cupy
        import jax
        from jaxfmm import kifmm

        jax.config.update("jax_enable_x64", True)
        place, charges = (jax.dlpack.from_dlpack(a) for a in (x, q))
        start = time.perf_counter()
        setup = kifmm.setup(place, **options)
        evaluators = [kifmm.compile_evaluator(setup, field=field) for field in (False, True)]
        values = [jax.block_until_ready(evaluate(charges)) for evaluate in evaluators]
        first = time.perf_counter() - start
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            for evaluate in evaluators:
                jax.block_until_ready(evaluate(charges))
            times.append(time.perf_counter() - start)
        seconds, half_range = results.median_and_spread(times)
        # Its kernel is 1 / (4 pi r)
        potentials, fields = (4 * np.pi * cupy.from_dlpack(v) for v in values)
        return {"seconds": seconds, "half_range": half_range, "first": first}, potentials, fields


def methods():
    """farfield in both precisions, and jaxFMM if it is there."""
    found = [Farfield(np.float32), Farfield(np.float64)]
    try:
        import jaxfmm  # noqa: F401

        found.append(JaxFmm())
    except ImportError:
        print("jaxFMM is not there: pip install jaxfmm")
    return found


def measure(kind, count, arguments, compared):
    """The records of one set of points."""
    import cupy

    random = np.random.default_rng(5)
    x, q = map(cupy.asarray, points(kind, count, random))
    targets = random.choice(count, arguments.targets, replace=False)
    exact = all_pairs(x, q, targets)
    print(f"\n{kind}, {count} points")
    print(f"{'':<18}{'asked':>8}{'potential':>11}{'field':>9}{'ms':>10}{'':>8}{'points/s':>10}{'first s':>9}")
    records = []
    for method in compared:
        for asked, options in method.settings(arguments).items():
            try:
                record, potentials, fields = method.run(x, q, options, arguments.repeats)
            except (MemoryError, RuntimeError, ValueError) as error:
                # What is missing is a result, too
                print(f"{method.name:<18}{asked:>8}  {str(error).splitlines()[0]}", flush=True)
                records.append({"kind": kind, "count": count, "method": method.name,
                                "asked": asked, "error": str(error)})
                continue
            record |= {
                "kind": kind, "count": count, "method": method.name, "asked": asked,
                "potential": relative(potentials[targets].get(), exact[0]),
                "field": relative(fields[targets].get(), exact[1]),
            }
            records.append(record)
            print(f"{method.name:<18}{asked:>8}{record['potential']:>11.1e}{record['field']:>9.1e}"
                  f"{1e3 * record['seconds']:>10.3f} +-{1e3 * record['half_range']:>5.2f}"
                  f"{count / record['seconds']:>10.2e}{record['first']:>9.2f}", flush=True)
            del potentials, fields
            cupy.get_default_memory_pool().free_all_blocks()
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--accuracies", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4, 1e-6])
    parser.add_argument("--orders", type=int, nargs="+", help="of farfield, in place of accuracies")
    parser.add_argument("--jaxfmm-orders", type=int, nargs="*", default=[3, 4, 5, 6])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--targets", type=int, default=300, help="points whose errors are taken")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    compared, records = methods(), []
    for kind in arguments.kinds:
        for count in arguments.counts:
            records += measure(kind, count, arguments, compared)
            # After each set: a run that is stopped leaves what is done
            results.write(arguments.output / "points_gpu.json", {"records": records})


if __name__ == "__main__":
    main()
