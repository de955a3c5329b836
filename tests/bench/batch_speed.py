# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches of small systems on one thread, beside a solver for each system.

    build/python-package/bin/python3 -m tests.bench.batch_speed --json batch_speed.json

Charges of water at 100 atoms/nm^3 in skewed boxes that all differ. Times are those of the processor, of the fastest of
several calls, which take turns. A solver is measured twice: with its first evaluation, which builds operators, as where
every box is new; and with those that follow in the same box.
"""

import argparse
import time

import numpy as np

import farfield
from tests.bench import results


def systems(count, atoms, random):
    """Positions, charges, offsets and boxes."""
    edges = np.cbrt(atoms / 100) * random.uniform(0.97, 1.03, (count, 3))
    boxes = edges[:, :, None] * (np.eye(3) + np.tril(random.uniform(-0.2, 0.2, (count, 3, 3)), -1))
    # jittered sites: neighbours are some 0.1 nm apart
    per_edge = int(np.ceil(np.cbrt(atoms)))
    sites = np.stack(np.unravel_index(np.arange(atoms), (per_edge,) * 3), axis=1)
    fractions = (sites + random.uniform(0, 0.5, (count, atoms, 3))) / per_edge
    x = (fractions @ boxes).reshape(-1, 3)
    q = np.tile(np.resize([-0.82, 0.41, 0.41], atoms), count)
    return x, q, atoms * np.arange(count + 1), boxes


def seconds(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def measure(atoms, accuracy, dtype, total, repeats):
    random = np.random.default_rng(atoms)
    count = max(1, total // atoms)
    x, q, offsets, boxes = systems(count, atoms, random)
    x, q = x.astype(dtype), q.astype(dtype)
    batch = farfield.Batch(accuracy, dtype, threads=1)
    times = {"batch": [], "first": [], "next": []}
    for s in range(repeats):
        times["batch"].append(seconds(lambda: batch(x, q, offsets, boxes, potentials=True)) / count)
        own = slice(*offsets[s % count : s % count + 2])
        solver = farfield.Solver(accuracy, dtype, device="cpu", threads=1)
        solver.set_charges(q[own])

        def evaluate(solver=solver, own=own, box=boxes[s % count]):
            solver.evaluate(x[own], box, potentials=True)

        times["first"].append(seconds(evaluate))
        times["next"].append(min(seconds(evaluate) for _ in range(5)))
    rates = {name: atoms / min(values) for name, values in times.items()}
    return {
        "atoms": atoms,
        "dtype": np.dtype(dtype).name,
        "accuracy": accuracy,
        "measured_error": batch.setup["measured_error"],
        **{f"{name}_atoms_per_second": round(rate) for name, rate in rates.items()},
    }


def run(measure, dtypes, total, description, line):
    """Measures each size and type as the command line says, prints a line of each, and writes the table.

    measure: (atoms, accuracy, dtype, total, repeats) -> case; total: default of --total; line: case -> text.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atoms", type=int, nargs="+", default=[32, 128, 512, 2000])
    parser.add_argument("--accuracy", type=float, default=3e-4)
    parser.add_argument("--total", type=int, default=total, help=f"atoms of a batch, about ({total})")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write the table")
    given = parser.parse_args()
    cases = []
    for dtype in dtypes:
        for atoms in given.atoms:
            cases.append(measure(atoms, given.accuracy, dtype, given.total, given.repeats))
            print(line(cases[-1]), flush=True)
    if given.json:
        results.write(given.json, {**results.conditions(), "cases": cases})


def line(case):
    own, first, later = (case[f"{name}_atoms_per_second"] for name in ("batch", "first", "next"))
    return (
        f"{case['atoms']:5d} atoms, {case['dtype']}, atoms/s: batch {own:.3g}, Solver first {first:.3g} and next "
        f"{later:.3g}; batch/first {own / first:.0f}, batch/next {own / later:.2f}"
    )


if __name__ == "__main__":
    run(measure, (np.float32, np.float64), 16000, __doc__, line)
