# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sums of kernels on one thread: error against time of farfield.KernelSum, beside FMM3D where that has the kernel.

    python3 -m pip install fmm3dpy
    OMP_NUM_THREADS=1 python3 -m tests.bench.kernel_speed --json kernel_speed.json

All methods have the same points in one invocation. Potentials and fields of all points are computed; the time is that
of the fastest of several calls, and of the first one apart. FMM3D has Yukawa's kernel as Helmholtz's with an imaginary
wave number, and makes its tree in each call. Errors are those of fields at some points, beside sums over all pairs.
"""

import argparse
import time

import numpy as np

import farfield
from tests.bench import results
from tests.bench.open_points import points

KAPPA = 1.0
# How a kernel is made, and its slope, downwards
KERNELS = {
    "1/r": (lambda: farfield.Kernel.inverse_power(1), lambda r: r**-2.0),
    "Yukawa": (lambda: farfield.Kernel.yukawa(KAPPA), lambda r: np.exp(-KAPPA * r) * (KAPPA * r + 1) / r**2),
    "1/r^4": (lambda: farfield.Kernel.inverse_power(4), lambda r: 4 * r**-5.0),
    "1/r^6": (lambda: farfield.Kernel.inverse_power(6), lambda r: 6 * r**-7.0),
}


def plummer(count, random):
    """A sphere of G. C. Kuzmin and H. C. Plummer, cut where it has 0.999 of its mass."""
    radius = 1 / np.sqrt((0.999 * random.random(count)) ** (-2 / 3) - 1)
    direction = random.normal(size=(count, 3))
    x = direction * (radius / np.linalg.norm(direction, axis=1))[:, None]
    return x, random.uniform(-1, 1, count)


def exact(slope, x, q, some):
    fields = []
    for i in some:
        d = np.delete(x[i] - x, i, 0)
        r = np.linalg.norm(d, axis=1)
        fields.append((slope(r) / r * np.delete(q, i)) @ d)
    return np.array(fields)


def of_farfield(name, x, q, accuracy, dtype, repeats):
    kernel_sum = farfield.KernelSum(KERNELS[name][0](), accuracy, dtype, threads=1)
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        fields = kernel_sum(x, q).fields
        times.append(time.perf_counter() - begin)
    return fields, min(times[1:]), times[0]


def of_fmm3d(name, x, q, eps, dtype, repeats):
    import fmm3dpy

    sources, q, times = np.asfortranarray(x.T), q.astype(dtype), []
    for _ in range(repeats):
        begin = time.perf_counter()
        if name == "1/r":
            out = fmm3dpy.lfmm3d(eps=eps, sources=sources, charges=q, pg=2)
        else:
            out = fmm3dpy.hfmm3d(eps=eps, zk=1j * KAPPA, sources=sources, charges=q.astype(complex), pg=2)
        times.append(time.perf_counter() - begin)
    # FMM3D has 1/(4 pi r)
    return -4 * np.pi * out.grad.real.T, min(times), min(times)


def error(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--accuracy", type=float, nargs="+", default=[1e-3, 1e-5, 1e-7])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    for kind in ("cube", "clusters", "Plummer"):
        random = np.random.default_rng(5)
        make = plummer if kind == "Plummer" else lambda count, random, kind=kind: points(kind, count, random)
        x, q = make(arguments.count, random)
        some = random.choice(arguments.count, 200, replace=False)
        for name, (_, slope) in KERNELS.items():
            expected = exact(slope, x, q, some)
            for accuracy in arguments.accuracy:
                runs = {"farfield": (of_farfield, np.float64)}
                if accuracy > 3e-6:
                    runs["farfield, float32"] = (of_farfield, np.float32)
                if name in ("1/r", "Yukawa"):
                    runs["FMM3D"] = (of_fmm3d, np.float64)
                for method, (run, dtype) in runs.items():
                    fields, seconds, first = run(name, x, q, accuracy, dtype, arguments.repeats)
                    row = {"kind": kind, "kernel": name, "method": method, "asked": accuracy}
                    row |= {"error": error(fields[some], expected)}
                    row |= {"us": seconds / arguments.count * 1e6, "first_us": first / arguments.count * 1e6}
                    rows.append(row)
                    print(row, flush=True)
    if arguments.json:
        results.write(arguments.json, results.conditions() | {"count": arguments.count, "rows": rows})


if __name__ == "__main__":
    main()
