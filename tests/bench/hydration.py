# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hydration free energies of methanol and of a sodium ion by gmx bar, with FMM and with PME.

    python3 -m tests.bench.hydration --length 500

The solute loses its charges, then its Lennard-Jones interactions with the water. An ion changes
the net charge of the box: both methods have the same uniform background, so that they have to
agree, while the value for infinite dilution needs the usual correction. All states of both methods
start from the same structure, at constant volume. Exit status 0 if the methods differ by at most
two standard errors. OPLS-AA with TIP3P: Jorgensen, Maxwell and Tirado-Rives, J. Am. Chem. Soc. 118,
11225 (1996), doi:10.1021/ja9621760. BAR: Bennett, J. Comput. Phys. 22, 245 (1976),
doi:10.1016/0021-9991(76)90078-4.
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import math
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from farfield.gromacs import machine
from tests.bench import mdrun_speed, results
from tests.support.gmx import environment, gro, mdp, simulation, systems

FORCE_FIELD = "oplsaa"
TEMPERATURE = 298.15

# Discharging, then decoupling: FMM has no soft core for charges.
COULOMB = [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
VDW = [0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0]
STATES = len(COULOMB)


@dataclass
class Solute:
    """A molecule type of the force field and a structure of it, nm."""

    include: str
    molecule: str
    residue: str
    names: list
    positions: list


SOLUTES = {
    "methanol": Solute(
        "methanol",
        "MET",
        "MET",
        ["C", "H", "H", "H", "OA", "HO"],
        [
            [0.0, 0.0, 0.0],
            [-0.0363, 0.1028, 0.0],
            [-0.0363, -0.0514, 0.0890],
            [-0.0363, -0.0514, -0.0890],
            [0.1410, 0.0, 0.0],
            [0.1713, 0.0896, 0.0],
        ],
    ),
    "sodium": Solute("ions", "NA", "NA", ["NA"], [[0.0, 0.0, 0.0]]),
}
METHODS = {"PME": mdp.STANDARD_PME, "FMM": mdp.UNTUNED_FMM}

COMMON = {
    "integrator": "sd",
    "dt": 0.002,
    "constraints": "h-bonds",
    "rcoulomb": 1.0,
    "rvdw": 1.0,
    "tc-grps": "System",
    "tau-t": 1.0,
    "ref-t": TEMPERATURE,
    "nstcalcenergy": 50,
    "nstenergy": 5000,
    "nstlog": 5000,
}
NPT = {
    "pcoupl": "C-rescale",
    "tau-p": 1.0,
    "ref-p": 1.0,
    "compressibility": 4.5e-5,
    "gen-vel": "yes",
    "gen-temp": TEMPERATURE,
}


def steps(length):
    """Number of steps that take so many ps."""
    return round(length / COMMON["dt"])


def states(molecule):
    """Entries that discharge and decouple a molecule type, but for the state of a run."""
    return {
        "free-energy": "yes",
        "couple-moltype": molecule,
        "couple-lambda0": "vdw-q",
        "couple-lambda1": "none",
        "couple-intramol": "no",
        "coul-lambdas": " ".join(map(str, COULOMB)),
        "vdw-lambdas": " ".join(map(str, VDW)),
        "calc-lambda-neighbors": 1,
        "nstdhdl": 50,
        "sc-alpha": 0.5,
        "sc-power": 1,
        "sc-sigma": 0.3,
        "sc-coul": "no",
    }


def solvated(folder, solute, edge, length, threads):
    """The solute in water after length ps at constant pressure: conf.gro and topol.top."""
    middle = [[0.5 * edge + value for value in position] for position in solute.positions]
    box = [[edge if i == k else 0.0 for k in range(3)] for i in range(3)]
    numbers, residues = [1] * len(middle), [solute.residue] * len(middle)
    gro.write(
        folder / "solute.gro",
        gro.Structure("solute", numbers, residues, solute.names, middle, box),
        decimals=3,
    )
    includes = dict.fromkeys(["forcefield", "tip3p", "ions", solute.include])
    (folder / "topol.top").write_text(
        "".join(f'#include "{FORCE_FIELD}.ff/{name}.itp"\n' for name in includes)
        + f"[ system ]\nhydration\n[ molecules ]\n{solute.molecule} 1\n"
    )
    conf = systems.solvate(folder, None, solute="solute.gro")
    minimise = {"integrator": "steep", "nsteps": 500, "constraints": "none"}
    stages = (("em", minimise), ("conf", {**NPT, "nsteps": steps(length)}))
    common = mdp.settings(COMMON)
    gmx = environment.gmx()
    mdrun_speed.warm_up(gmx, folder, conf, stages, mdp.STANDARD_PME, threads, common, 2)


def run_state(folder, method, solute, state, arguments):
    """A run in one state, unless it is there: its dhdl file."""
    name = f"{method}{state}"
    output = folder / f"{name}.xvg"
    if not (folder / f"{name}.gro").exists():
        length = {"nsteps": steps(arguments.length), "init-lambda-state": state}
        seed = {"gen-vel": "yes", "gen-temp": TEMPERATURE, "gen-seed": 100 + state}
        entries = mdp.settings(
            COMMON, METHODS[method], states(solute.molecule), length, seed, {"ld-seed": 200 + state}
        )
        (folder / name).mkdir(exist_ok=True)
        # warnings: a net charge
        files = [folder / "conf.gro", folder / "topol.top", ["-maxwarn", 2]]
        simulation.grompp(folder / name, name, entries, *files).ok()
        flags = ["-dhdl", f"{name}.xvg", *arguments.mdrun_flags.split()]
        simulation.mdrun(folder / name, name, flags, ntomp=arguments.threads).ok()
        for kind in ("xvg", "log", "gro"):
            (folder / name / f"{name}.{kind}").rename(folder / f"{name}.{kind}")
        print(f"  {name} done", file=sys.stderr, flush=True)
    return output


def free_energy(folder, method, files, arguments):
    """Free energy of hydration and its standard error, kJ/mol: minus that of the decoupling."""
    command = ["-f", *files, "-b", arguments.discard, "-o", f"{method}-bar.xvg"]
    text = environment.gmx()("bar", *command, folder=folder)
    (folder / f"{method}-bar.txt").write_text(text)
    total = re.search(r"total\s+0\s+-\s+\d+,\s+DG\s+(\S+)\s+\+/-\s+(\S+)", text)
    return -float(total.group(1)), float(total.group(2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=float, default=500.0, help="ps per state")
    parser.add_argument("--discard", type=float, default=20.0, help="ps at the start of each")
    parser.add_argument("--equilibration", type=float, default=100.0, help="ps of the box")
    parser.add_argument("--edge", type=float, default=2.6, help="nm, of the cubic box")
    parser.add_argument("--solutes", nargs="+", choices=SOLUTES, default=list(SOLUTES))
    parser.add_argument("--parallel", type=int, default=machine.usable_cores(), help="runs")
    parser.add_argument("--threads", type=int, default=1, help="of each run")
    parser.add_argument("--mdrun-flags", default="", help="such as '-nb gpu'")
    parser.add_argument("--keep", type=Path, help="folder; what is there is not repeated")
    arguments = parser.parse_args()

    top = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-hydration-"))
    top = top.resolve()
    agree = True
    record = {"length": arguments.length, "machine": machine.describe(), "solutes": {}}
    for name in arguments.solutes:
        folder, solute = top / name, SOLUTES[name]
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "conf.gro").exists():
            cores = arguments.parallel * arguments.threads
            solvated(folder, solute, arguments.edge, arguments.equilibration, cores)
        with ThreadPoolExecutor(arguments.parallel) as pool:
            jobs = {
                method: [
                    pool.submit(run_state, folder, method, solute, state, arguments)
                    for state in range(STATES)
                ]
                for method in METHODS
            }
        found = {
            method: free_energy(folder, method, [job.result() for job in submitted], arguments)
            for method, submitted in jobs.items()
        }
        difference = found["FMM"][0] - found["PME"][0]
        error = math.hypot(found["FMM"][1], found["PME"][1])
        agree = agree and abs(difference) <= 2 * error
        atoms = gro.atom_count(folder / "conf.gro")
        record["solutes"][name] = {"atoms": atoms, **found}
        print(f"{name}, {atoms} atoms, {STATES} states of {arguments.length:g} ps, kJ/mol:")
        for method, (value, deviation) in found.items():
            print(f"  {method}          {value:10.2f} +- {deviation:.2f}")
        print(f"  FMM - PME    {difference:10.2f} +- {error:.2f}", flush=True)
    results.write(top / "hydration.json", record)
    print(f"{'The methods agree' if agree else 'The methods DIFFER'}; all numbers: {top}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
