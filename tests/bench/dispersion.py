# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dispersion without a cut-off: mdrun with vdwtype = FMM beside Lennard-Jones PME and a cut-off.

    python3 -m tests.bench.dispersion --systems 23k protein membrane-17k

All kinds run in turn, several rounds, on one rank with pinned threads. Errors are those of forces at the first
step, over the RMS dispersion force, beside a converged Lennard-Jones PME with the C6 of the topology and the same
Coulomb interactions.
Writes dispersion.json.
"""

import argparse
import math
import re
import sys
from pathlib import Path

import numpy as np

from farfield.gromacs import log, machine
from tests.bench import mdrun_speed, results
from tests.support.gmx import gro, mdp
from tests.support.gmx.mdp import FIXED_FMM, FMM, STANDARD_PME
from tests.support.gmx.simulation import Run

CUT_OFF = {"vdwtype": "Cut-off", "DispCorr": "EnerPres"}
LJ_PME = {"vdwtype": "PME", "lj-pme-comb-rule": "Geometric", "DispCorr": "no"}
DISPERSION = {"vdwtype": "FMM", "DispCorr": "no"}
SHORT = {"rvdw": 0.7, "rcoulomb": 0.7}
OF_TOPOLOGY = {"lj-pme-comb-rule": "Lorentz-Berthelot"}
# Lennard-Jones interactions and electrostatics of each kind of run
KINDS = {
    "cut-off 1.0 nm": {**FMM, **CUT_OFF},
    "FMM, rvdw 1.0 nm": {**FMM, **DISPERSION},
    "FMM, rvdw 0.7 nm": {**FMM, **DISPERSION, **SHORT},
    "FMM, C6 of the topology": {**FMM, **DISPERSION, **OF_TOPOLOGY},
    "LJ-PME, Coulomb FMM": {**FMM, **LJ_PME},
    "LJ-PME, Lorentz-Berthelot": {**FMM, **LJ_PME, **OF_TOPOLOGY},
    "LJ-PME, Coulomb PME": {**STANDARD_PME, **LJ_PME},
    "cut-off 1.0 nm, Coulomb PME": {**STANDARD_PME, **CUT_OFF},
}
# Of the log: sites with dispersion, and the RMS force on them
SITES = re.compile(r"FMM dispersion \(farfield\): (\d+) sites")
RMS_FORCE = re.compile(r"of their RMS value, (\S+) kJ/mol/nm")


def run(gmx, folder, name, entries, flags):
    mdp.write(folder / f"{name}.mdp", entries)
    files = ["-f", f"{name}.mdp", "-c", "warm.gro", "-t", "warm.cpt", "-p", "topol.top", "-o", f"{name}.tpr"]
    gmx("grompp", *files, "-maxwarn", 5, folder=folder)
    gmx("mdrun", "-deffnm", name, "-ntmpi", 1, "-pin", "on", *flags, folder=folder)
    return Run(folder, name)


def errors(gmx, folder, common, threads):
    """Of the forces at the first step, by kind, and the RMS dispersion force of a site, kJ/mol/nm."""
    forces, logs = {}, {}
    kinds = {kind: change for kind, change in KINDS.items() if change.get("coulombtype") == "FMM"}
    for kind, change in {"tight": {**FMM, **mdp.TIGHT_LJ_PME, **OF_TOPOLOGY}, **kinds}.items():
        # Coulomb interactions are the same; the option of the errors stays as it is
        fixed = {name: value for name, value in FIXED_FMM.items() if name != "fmm-farfield-accuracy"}
        entries = {**common, **change, **fixed, **mdp.ONE_STEP}
        ended = run(gmx, folder, "forces", entries, ["-ntomp", threads])
        forces[kind], logs[kind] = np.array(ended.forces, dtype=float), ended.log
    of_log = logs["FMM, rvdw 1.0 nm"]
    force = float(RMS_FORCE.search(of_log)[1])
    size = force * math.sqrt(int(SITES.search(of_log)[1]))
    return {kind: float(np.linalg.norm(forces[kind] - forces["tight"]) / size) for kind in kinds}, force


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mdrun_speed.add_common_arguments(parser, "dispersion.json")
    parser.add_argument("--systems", nargs="+", choices=mdrun_speed.SYSTEMS, default=["23k", "protein", "membrane-17k"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400, help="of a run; half are timed")
    parser.add_argument("--threads", type=int, default=machine.usable_cores())
    arguments = parser.parse_args()
    gmx, version = mdrun_speed.start(arguments)
    systems = {}
    for name in arguments.systems:
        folder, common = mdrun_speed.system(gmx, name, arguments)
        own, force = errors(gmx, folder, common, arguments.threads)
        speeds = {kind: [] for kind in KINDS}
        flags = ["-ntomp", arguments.threads, "-resetstep", arguments.steps // 2, "-noconfout", "-notunepme"]
        for _ in range(arguments.rounds):
            for kind, change in KINDS.items():
                run(gmx, folder, "speed", {**common, **change, "nsteps": arguments.steps}, flags)
                speeds[kind].append(log.speed(folder / "speed.log"))
                error = own.get(kind, math.nan)
                print(f"{name:14}{kind:30}{speeds[kind][-1]:8.2f} ns/day, error {error:.1e}", flush=True)
        atoms = gro.atom_count(folder / "warm.gro")
        systems[name] = {"atoms": atoms, "rms_force": force, "errors": own, "ns_per_day": speeds}
    head = {**results.conditions(), "threads": arguments.threads, "versions": version}
    if gpus := machine.gpus():
        head["gpus"] = gpus
    content = {**head, "systems": systems}
    results.write(Path(arguments.output) / "dispersion.json", content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
