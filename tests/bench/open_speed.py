# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images: error against time of the Python package, beside FMM3D.

    build/python-package/bin/python3 -m pip install fmm3dpy
    build/python-package/bin/python3 -m tests.bench.open_speed

Potentials and fields of random charges, in a cube, in clusters, in a sheet or along a line, in turn with
farfield in both precisions and with FMM3D (fmm3dpy, if it is installed), for several errors that are
asked for. Errors are relative in the 2-norm, over points for which all pairs are summed. farfield chooses
order and cells in its first evaluation; that time is listed by itself, as it is spent once in a simulation.
FMM3D makes its tree in every call. Writes open_speed.json.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from tests.bench import results

KINDS = ("cube", "clusters")
THIN_KINDS = ("sheet", "line")
COULOMB = 138.935458  # of the package; divided out


def points(kind, count, random):
    """[n, 3] and charges of both signs, [n]: 100 points per nm^3 of a cube, nm^2 of a sheet, nm of a line."""
    edge = (count / 100) ** (1 / 3)
    if kind == "cube":
        x = random.random((count, 3)) * edge
    elif kind == "clusters":
        # Gaussian clusters of 1000 about random points of a cube ten times as long
        centres = random.random((max(1, count // 1000), 3)) * 10 * edge
        x = centres[random.integers(len(centres), size=count)] + random.normal(size=(count, 3))
    else:
        # Of Gaussian thickness, 1 nm
        along = THIN_KINDS[::-1].index(kind) + 1
        x = random.normal(size=(count, 3))
        x[:, :along] = random.random((count, along)) * (count / 100) ** (1 / along)
    return x, random.uniform(-1, 1, count)


def all_pairs(x, q, targets):
    """Potential and field at some of the points, [m], [m, 3]."""
    potentials, fields = [], []
    for i in targets:
        d = x[i] - x
        r2 = (d**2).sum(axis=1)
        r2[i] = np.inf
        potentials.append((q / np.sqrt(r2)).sum())
        fields.append((q / r2**1.5) @ d)
    return np.array(potentials), np.array(fields)


def relative(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


class Farfield:
    """Times one evaluation after the first."""

    def __init__(self, dtype, threads):
        self.dtype, self.threads = dtype, threads
        self.name = f"farfield {np.dtype(dtype).name}"

    def run(self, x, q, accuracy, repeats):
        import farfield

        own = np.ascontiguousarray(x, dtype=self.dtype)
        solver = farfield.Solver(accuracy, self.dtype, boundary="open", device="cpu", threads=self.threads)
        solver.set_charges(q)
        start = time.perf_counter()
        solver.evaluate(own, potentials=True)
        first = time.perf_counter() - start
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            result = solver.evaluate(own, potentials=True)
            times.append(time.perf_counter() - start)
        setup = {key: solver.setup[key] for key in ("order", "levels", "leaf_cells")}
        potentials = result.potentials.astype(float) / COULOMB
        fields = result.forces.astype(float) / COULOMB / q[:, None]
        return {"seconds": min(times), "first": first, "setup": setup}, potentials, fields


class Fmm3d:
    """Times the whole call."""

    name = "FMM3D"

    def run(self, x, q, accuracy, repeats):
        import fmm3dpy

        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            out = fmm3dpy.lfmm3d(eps=accuracy, sources=x.T, charges=q, pg=2)
            times.append(time.perf_counter() - start)
        potentials, gradients = (4 * np.pi * np.asarray(v) for v in (out.pot, out.grad))
        return {"seconds": min(times), "first": times[0]}, potentials, -gradients.T


def methods(threads):
    """farfield in both precisions, and FMM3D if it is there."""
    found = [Farfield(np.float32, threads), Farfield(np.float64, threads)]
    try:
        import fmm3dpy  # noqa: F401

        found.append(Fmm3d())
    except ImportError:
        print("FMM3D is not there: pip install fmm3dpy")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS + THIN_KINDS, default=KINDS)
    parser.add_argument("--accuracies", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4, 1e-6])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--targets", type=int, default=300, help="points whose errors are taken")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # before FMM3D is loaded
    records, compared = [], methods(arguments.threads)
    for kind in arguments.kinds:
        for count in arguments.counts:
            random = np.random.default_rng(5)
            x, q = points(kind, count, random)
            targets = random.choice(count, arguments.targets, replace=False)
            exact = all_pairs(x, q, targets)
            print(f"\n{kind}, {count} points, {arguments.threads} threads")
            print(f"{'':<18}{'asked':>8}{'potential':>11}{'field':>9}{'s':>9}{'points/s':>10}{'first s':>9}")
            for accuracy in arguments.accuracies:
                for method in compared:
                    if accuracy < 2e-6 and method.name == "farfield float32":
                        continue
                    record, potentials, fields = method.run(x, q, accuracy, arguments.repeats)
                    record |= {
                        "kind": kind, "count": count, "method": method.name, "asked": accuracy,
                        "potential": relative(potentials[targets], exact[0]),
                        "field": relative(fields[targets], exact[1]),
                    }
                    records.append(record)
                    print(f"{method.name:<18}{accuracy:>8.0e}{record['potential']:>11.1e}"
                          f"{record['field']:>9.1e}{record['seconds']:>9.3f}"
                          f"{count / record['seconds']:>10.2e}{record['first']:>9.2f}", flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    results.write(arguments.output / "open_speed.json",
                  {"threads": arguments.threads, "records": records})


if __name__ == "__main__":
    main()
