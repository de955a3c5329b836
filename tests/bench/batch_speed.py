# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches of small systems, beside a solver for each system.

    build/python-package/bin/python3 -m tests.bench.batch_speed --json batch_speed.json
    build/python-package/bin/python3 -m tests.bench.batch_speed --device gpu --total 131072 --json batch_speed_gpu.json

Charges of water at 100 atoms/nm^3 in skewed boxes that all differ. Times are those of the fastest of several calls,
which take turns: on the CPU those of the processor, with one thread; on a GPU those of a clock, with all threads. A
solver is measured twice: with its first evaluation, which builds operators, as where every box is new; and with those
that follow in the same box. Arrays are of NumPy: on a GPU their copies count. With PyTorch, energies and forces of
tensors on the GPU are measured, too: of single calls, and of asynchronous ones in a row.
"""

import argparse
import importlib.util
import time

import numpy as np

import farfield
from farfield.gromacs import machine
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


def clock_of(device):
    """Seconds: of the processor, or of a clock where a GPU works."""
    return time.perf_counter if device == "gpu" else time.process_time


def seconds(call, device="cpu"):
    clock = clock_of(device)
    begin = clock()
    call()
    return clock() - begin


#: Asynchronous calls in a row.
ROW = 20


def of_tensors(x, q, offsets, boxes, accuracy):
    """A call with tensors on a GPU, and a row of asynchronous ones; nothing without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    from farfield.torch import CoulombBatch

    tensors = [torch.tensor(array, device="cuda") for array in (x, q, boxes)]
    ptr = torch.tensor(offsets)

    def row(function, calls):
        for _ in range(calls):
            function(*tensors, ptr=ptr)
        torch.cuda.synchronize()

    waiting, asynchronous = CoulombBatch(accuracy=accuracy), CoulombBatch(accuracy=accuracy, asynchronous=True)
    return {"tensors": (lambda: row(waiting, 1), 1), "row": (lambda: row(asynchronous, ROW), ROW)}


def measure(atoms, accuracy, dtype, total, repeats, device):
    random = np.random.default_rng(atoms)
    count = max(1, total // atoms)
    x, q, offsets, boxes = systems(count, atoms, random)
    x, q = x.astype(dtype), q.astype(dtype)
    threads = 1 if device == "cpu" else None
    batch = farfield.Batch(accuracy, dtype, device=device, threads=threads)
    tensors = of_tensors(x, q, offsets, boxes, accuracy) if device == "gpu" else {}
    times = {name: [] for name in ("batch", "first", "next", *tensors)}
    for s in range(repeats):
        times["batch"].append(seconds(lambda: batch(x, q, offsets, boxes, potentials=True), device) / count)
        for name, (calls, number) in tensors.items():
            times[name].append(seconds(calls, device) / number / count)
        own = slice(*offsets[s % count : s % count + 2])
        solver = farfield.Solver(accuracy, dtype, device=device, threads=threads)
        solver.set_charges(q[own])

        def evaluate(solver=solver, own=own, box=boxes[s % count]):
            solver.evaluate(x[own], box, potentials=True)

        times["first"].append(seconds(evaluate, device))
        times["next"].append(min(seconds(evaluate, device) for _ in range(5)))
    rates = {name: atoms / min(values) for name, values in times.items()}
    return {
        "atoms": atoms,
        "dtype": np.dtype(dtype).name,
        "device": device,
        "systems": count,
        "accuracy": accuracy,
        "measured_error": batch.setup["measured_error"],
        **{f"{name}_atoms_per_second": round(rate) for name, rate in rates.items()},
    }


def run(measure, dtypes, total, description, line):
    """Measures each size and type as the command line says, prints a line of each, and writes the table.

    measure: (atoms, accuracy, dtype, total, repeats, device) -> case; total: default of --total; line: case -> text.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atoms", type=int, nargs="+", default=[32, 128, 512, 2000])
    parser.add_argument("--accuracy", type=float, default=3e-4)
    parser.add_argument("--total", type=int, default=total, help=f"atoms of a batch, about ({total})")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--json", metavar="FILE", help="write the table")
    given = parser.parse_args()
    cases = []
    for dtype in dtypes:
        for atoms in given.atoms:
            cases.append(measure(atoms, given.accuracy, dtype, given.total, given.repeats, given.device))
            print(line(cases[-1]), flush=True)
    if given.json:
        gpus = {"gpus": machine.gpus()} if given.device == "gpu" else {}
        results.write(given.json, {**results.conditions(), **gpus, "cases": cases})


def line(case):
    own, first, later = (case[f"{name}_atoms_per_second"] for name in ("batch", "first", "next"))
    tensors, row = (case.get(f"{name}_atoms_per_second") for name in ("tensors", "row"))
    return (
        f"{case['atoms']:5d} atoms, {case['dtype']}, atoms/s: batch {own:.3g}, "
        f"{f'of tensors {tensors:.3g}, in a row {row:.3g}, ' if tensors else ''}Solver first {first:.3g} and next "
        f"{later:.3g}; batch/first {own / first:.0f}, batch/next {own / later:.2f}"
    )


if __name__ == "__main__":
    run(measure, (np.float32, np.float64), 16000, __doc__, line)
