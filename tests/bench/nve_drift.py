# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drift of the total energy of water at constant energy: FMM against PME on the same input.

    python3 -m tests.bench.nve_drift

Several replicas, which differ in the velocities only, run with both. Per run a line is fitted to
the energy; the scatter among replicas gives the statistical error of the mean slope. FMM's drift
is accepted if its size exceeds PME's by no more than two standard errors; with --ranks so is that on
several ranks.
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from farfield.report import drift
from tests.support.gmx import mdp, simulation, systems

TEMPERATURE = 300.0
# ps left out at the start: velocities that were just generated are not an equilibrium yet.
START = 1.0

# A pair list that misses nothing, so that the drift is that of forces and integrator alone.
COMMON = {
    "dt": 0.002,
    "rcoulomb": 0.9,
    "rvdw": 0.9,
    "vdw-modifier": "Force-switch",
    "rvdw-switch": 0.8,
    "verlet-buffer-tolerance": -1,
    "rlist": 1.05,
    "nstlist": 10,
    "gen-vel": "yes",
    "gen-temp": TEMPERATURE,
    "nstenergy": 50,
    "nstcalcenergy": 50,
    "nstcomm": 50,
    "nstlog": 0,
}
METHODS = {"PME": {}, "FMM": mdp.FMM}


def slope(run, atoms):
    """Slope of the total energy, kJ/mol/ps per atom, by least squares."""
    terms = run.energies
    late = terms["Time"] >= START
    return drift.fitted(terms["Time"][late], terms["Total Energy"][late] / atoms)[0]


def simulate(folder, name, entries, system, ranks):
    """One rank has all threads, several have one each: threads of thread-MPI that wait do not let others run."""
    # The fixed list is longer than the estimate behind one of grompp's warnings.
    warnings = ["-maxwarn", system.warnings + 1]
    simulation.grompp(folder, name, entries, system.conf, system.top, warnings).ok()
    if ranks == 1:
        simulation.mdrun(folder, name, ["-notunepme"], time_limit=7200).ok()
    else:
        simulation.mdrun_with_mpi(folder, name, ranks, time_limit=7200)
    return simulation.Run(folder, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=float, default=50.0, help="ps per run")
    parser.add_argument("--replicas", type=int, default=4, help="at least 2")
    parser.add_argument("--edge", type=float, default=2.8, help="nm, of the cube of water")
    parser.add_argument("--ranks", type=int, help="runs FMM on so many ranks as well, by mpirun and GMX_MPI")
    parser.add_argument("--keep", type=Path, help="folder for the runs; kept")
    arguments = parser.parse_args()
    if arguments.replicas < 2:
        parser.error("--replicas must be at least 2: their scatter is the error")

    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-drift-"))
    folder.mkdir(parents=True, exist_ok=True)
    system = systems.water(folder, arguments.edge, 5000)
    steps = round((arguments.length + START) / COMMON["dt"])
    print(f"{system.atoms} atoms of water, {arguments.replicas} x {arguments.length:g} ps")

    # options and number of ranks
    runs = {method: (options, 1) for method, options in METHODS.items()}
    if arguments.ranks:
        runs[f"FMM, {arguments.ranks} ranks"] = (mdp.FMM, arguments.ranks)
    slopes = {name: [] for name in runs}
    for replica in range(arguments.replicas):
        for name, (electrostatics, ranks) in runs.items():
            seed = {"gen-seed": 1000 + replica, "nsteps": steps}
            entries = mdp.settings(COMMON, seed, electrostatics)
            begin = time.monotonic()
            run = simulate(folder, f"{name.replace(' ', '')}-{replica}", entries, system, ranks)
            slopes[name].append(slope(run, system.atoms))
            print(
                f"  replica {replica}, {name}: {slopes[name][-1]:+.2e} kJ/mol/ps per atom "
                f"({time.monotonic() - begin:.0f} s)",
                flush=True,
            )

    print(f"\n{'':12}{'kJ/mol/ps per atom':>24}{'kT/ns per atom':>22}")
    mean, error = {}, {}
    for name, values in slopes.items():
        mean[name] = np.mean(values)
        error[name] = np.std(values, ddof=1) / np.sqrt(len(values))
        scaled = [drift.per_ns(value, TEMPERATURE) for value in (mean[name], error[name])]
        print(f"{name:12}{mean[name]:+13.2e} +- {error[name]:.1e}{scaled[0]:+13.2e} +- {scaled[1]:.1e}")
    print()
    rejected = 0
    for name in [name for name in slopes if name != "PME"]:
        excess = abs(mean[name]) - abs(mean["PME"])
        allowed = 2 * np.hypot(error[name], error["PME"])
        rejected += excess > allowed
        verdict = "LARGER than" if excess > allowed else "no larger than"
        print(f"The drift of {name} is {verdict} PME's: excess {excess:+.1e}, allowed {allowed:.1e}")
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main())
