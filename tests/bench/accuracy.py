# SPDX-License-Identifier: LGPL-2.1-or-later
"""Accuracy of FMM in mdrun, on water and on a protein, against converged double-precision PME.

    python3 -m tests.bench.accuracy

Prints one line per setting: relative RMS error of the total force, error of the Coulomb energy per
atom, of the pressure, and the grid in use. Needs a double-precision gmx (GMX_DOUBLE, gmx_d).
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import re
import tempfile
from pathlib import Path

import numpy as np

from tests.support.gmx import environment, mdp, reference, simulation, systems

CUTOFF = 1.0
SYSTEMS = {
    "water": lambda folder: systems.water(folder, 6.2, 1000),
    "protein": systems.protein,
}


def settings_to_try(orders, ranges):
    """(label, mdp changes) of every line of the table."""
    yield "PME, 0.12 nm, order 4", mdp.STANDARD_PME
    yield "PME, tightened", mdp.TIGHT_PME
    yield "FMM, default", mdp.FMM
    for ws in ranges:
        for p in orders:
            chosen = {"fmm-farfield-order": p, "fmm-farfield-direct-range": ws}
            yield f"FMM, p = {p}, ws = {ws}", {**mdp.FMM, **chosen}


def grid(log):
    """Order, range and cells, from the log."""
    patterns = (r"multipole order\s+(\d+)", r"\(ws\)\s+(\d+)", r"leaf cells.*size (\d\S*)")
    found = [re.search(pattern, log) for pattern in patterns]
    engine = re.search(r"M2L engine\s+(\w+)", log)
    if not all(found) or not engine:
        return ""
    p, ws, size = (match.group(1) for match in found)
    return f"p {p}, ws {ws}, cells {size} nm, {engine.group(1)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", choices=[*SYSTEMS, "all"], default="all")
    parser.add_argument("--orders", type=int, nargs="+", default=[6, 8, 10, 12])
    parser.add_argument("--ranges", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--keep", type=Path, help="folder for the runs; kept")
    arguments = parser.parse_args()
    if environment.gmx_double() is None:
        parser.error("no double-precision gmx; set GMX_DOUBLE")

    root = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-accuracy-"))
    for name in SYSTEMS if arguments.system == "all" else [arguments.system]:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        system = SYSTEMS[name](folder)
        exact = reference.converged(folder, system, CUTOFF)
        forces, energy = exact.forces, exact.coulomb()[0]
        pressure = np.trace(exact.pressure_tensor()[0]) / 3
        print(
            f"\n{name}: {system.atoms} atoms, RMS force {simulation.rms(forces):.0f} kJ/mol/nm, "
            f"Coulomb energy {energy / system.atoms:.2f} kJ/mol per atom"
        )
        print(f"{'':24}{'force':>9}{'kJ/mol/atom':>13}{'bar':>8}  grid")
        for label, changes in settings_to_try(arguments.orders, arguments.ranges):
            entries = mdp.settings(reference.single_point(CUTOFF), changes)
            run = simulation.simulate(folder, "run", entries, system, warnings=1)
            error = simulation.force_error(run.forces, forces)
            per_atom = (run.coulomb()[0] - energy) / system.atoms
            bar = np.trace(run.pressure_tensor()[0]) / 3 - pressure
            print(f"{label:24}{error:9.1e}{per_atom:13.1e}{bar:8.2f}  {grid(run.log)}", flush=True)


if __name__ == "__main__":
    main()
