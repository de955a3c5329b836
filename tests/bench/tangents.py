# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors and times of derivatives of potentials, dipoles, quadrupoles, tangents and induction, beside charges alone.

    build/python-package/bin/python3 -m tests.bench.tangents --json tangents.json
    build/python-package/bin/python3 -m tests.bench.tangents --device gpu --atoms 20000 100000 --json tangents_gpu.json

The systems are those of batch_speed: charges of water in a skewed box. The direction is random in all positions and
charges. Errors are relative to the RMS, against direct Ewald sums of farfield.Batch at an accuracy of 1e-9. Dipoles are
induced in molecules of water that are turned at random, 0.31 nm apart. Times are those of the fastest of several calls,
which take turns: on the CPU those of the processor, with one thread; on a GPU those of a clock. Systems of more than
20 000 atoms have no errors.
"""

import argparse

import numpy as np

import farfield
from farfield.gromacs import machine
from tests.bench import results
from tests.bench.batch_speed import seconds, systems


def error(own, exact):
    return float(np.linalg.norm(own - exact) / np.linalg.norm(exact))


def measure(atoms, dtype, accuracies, repeats, device):
    random = np.random.default_rng(atoms)
    x, q, offsets, boxes = systems(1, atoms, random)
    box, dx, dq, dipoles = boxes[0], random.normal(size=x.shape), random.normal(size=atoms), random.normal(size=x.shape)
    x, q = x.astype(dtype).astype(float), q.astype(dtype).astype(float)
    has_exact = atoms <= 20000
    if has_exact:
        batch = farfield.Batch(1e-9, device=device)
        forces = batch(x, q, offsets, boxes).forces
        exact = batch.tangent(x, q, offsets, boxes, dx=dx, dcharges=dq)
    for accuracy in accuracies:
        solver, polar, quadrupolar = (
            farfield.Solver(accuracy, dtype, device=device, threads=1 if device == "cpu" else None) for _ in range(3)
        )
        for one in solver, polar, quadrupolar:
            one.set_charges(q)
        for one in polar, quadrupolar:
            one.set_dipoles(0.02 * dipoles)
        quadrupolar.set_quadrupoles(np.einsum("i,jk->ijk", 1e-3 * dipoles[:, 0], np.diag([1, 1, -2])))
        own = solver.tangent(x, box, dx=dx, dcharges=dq)
        calls = {
            "forces": lambda solver=solver: solver.evaluate(x, box),
            "gradients": lambda solver=solver: solver.evaluate(x, box, gradients=True),
            "hessians": lambda solver=solver: solver.evaluate(x, box, gradients=True, hessians=True),
            "dipoles": lambda polar=polar: polar.evaluate(x, box),
            "quadrupoles": lambda quadrupolar=quadrupolar: quadrupolar.evaluate(x, box),
            "tangent": lambda solver=solver: solver.tangent(x, box, dx=dx, dcharges=dq),
        }
        times = {name: [] for name in calls}
        for _ in range(repeats):
            for name, call in calls.items():
                times[name].append(seconds(call, device))
        errors = {}
        if has_exact:
            errors["error_of_forces"] = error(solver.evaluate(x, box).forces, forces)
            errors["error_of_tangent_forces"] = error(own.forces, exact.forces)
            errors["error_of_tangent_potentials"] = error(own.potentials, exact.potentials)
        yield {
            "atoms": atoms,
            "dtype": np.dtype(dtype).name,
            "accuracy": accuracy,
            "order": solver.setup["order"],
            "forces_ms": 1e3 * min(times["forces"]),
            **errors,
            **{f"{name}_over_forces": min(times[name]) / min(times["forces"]) for name in calls if name != "forces"},
            "induction": induction(atoms, dtype, accuracy, repeats, device),
        }


def induction(atoms, dtype, accuracy, repeats, device):
    """Of polarisable oxygens; charges of SPC."""
    random = np.random.default_rng(atoms)
    molecules = atoms // 3
    per_edge = int(np.ceil(np.cbrt(molecules)))
    sites = np.stack(np.unravel_index(np.arange(molecules), (per_edge,) * 3), axis=1)
    water = np.array([[0, 0, 0], [0.1, 0, 0], [-0.0333, 0.0943, 0]])
    turns = np.linalg.qr(random.normal(size=(molecules, 3, 3)))[0]
    x = (0.31 * (sites + random.uniform(-0.1, 0.1, sites.shape))[:, None] + water @ turns).reshape(-1, 3)
    solver = farfield.Solver(accuracy, dtype, device=device, threads=1 if device == "cpu" else None)
    solver.set_charges(np.tile([-0.82, 0.41, 0.41], molecules))
    first = 3 * np.arange(molecules)[:, None]
    solver.set_exclusions((first[:, None] + [[0, 1], [0, 2], [1, 2]]).reshape(-1, 2))
    box = 3 * [0.31 * per_edge]
    given = {"polarisabilities": np.tile([1.444e-3, 0, 0], molecules)}
    iterations = solver.induced_dipoles(x, box, **given).iterations
    times = {"forces": [], "induction": []}
    for _ in range(repeats):
        times["forces"].append(seconds(lambda: solver.evaluate(x, box), device))
        times["induction"].append(seconds(lambda: solver.induced_dipoles(x, box, **given), device))
    return {
        "iterations": iterations,
        "forces_ms": 1e3 * min(times["forces"]),
        "over_forces": min(times["induction"]) / min(times["forces"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atoms", type=int, nargs="+", default=[648, 6000])
    parser.add_argument("--accuracies", type=float, nargs="+", default=[3e-3, 3e-4, 1e-5])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--json", metavar="FILE", help="write the table")
    given = parser.parse_args()
    cases = []
    for dtype in (np.float32, np.float64):
        for atoms in given.atoms:
            for case in measure(atoms, dtype, given.accuracies, given.repeats, given.device):
                cases.append(case)
                print(case, flush=True)
    if given.json:
        gpus = {"gpus": machine.gpus()} if given.device == "gpu" else {}
        results.write(given.json, {**results.conditions(), **gpus, "cases": cases})


if __name__ == "__main__":
    main()
