# SPDX-License-Identifier: LGPL-2.1-or-later
"""What perturbed atoms cost: mdrun with a perturbed methanol over one that is not, FMM beside PME.

    python3 -m tests.bench.perturbed_speed --edge 6.2

All kinds run in turn, several rounds. Perturbed are the charges halfway (the pairs' Lennard-Jones
interactions are whole), or the Lennard-Jones interactions halfway after the charges are gone.
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from farfield.gromacs import log, machine
from tests.bench import hydration, results
from tests.support.gmx import gro, mdp, simulation

# Lambda states of tests.bench.hydration; none: nothing is perturbed.
KINDS = {"unperturbed": None, "charges": 2, "Lennard-Jones": 7}
# An integrator that GROMACS has on GPUs.
INTEGRATOR = {"integrator": "md", "tcoupl": "v-rescale", "tau-t": 1.0, "nstcalcenergy": 100}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edge", type=float, default=6.2, help="nm, of the cubic box")
    parser.add_argument("--steps", type=int, default=1000, help="of a run; half are timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--equilibration", type=float, default=2.0, help="ps of the box")
    parser.add_argument("--threads", type=int, default=machine.usable_cores())
    parser.add_argument("--mdrun-flags", default="", help="such as '-nb gpu'")
    parser.add_argument("--keep", type=Path, help="folder for the runs; a box there is used again")
    arguments = parser.parse_args()

    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-perturbed-"))
    folder.mkdir(parents=True, exist_ok=True)
    solute = hydration.SOLUTES["methanol"]
    if not (folder / "conf.gro").exists():
        hydration.solvated(
            folder, solute, arguments.edge, arguments.equilibration, arguments.threads
        )
    speeds = {}
    for method, electrostatics in hydration.METHODS.items():
        for kind, state in KINDS.items():
            perturbed = hydration.states(solute.molecule) if state is not None else {}
            interval = {"nstdhdl": INTEGRATOR["nstcalcenergy"]}
            start = {"init-lambda-state": state, **interval} if state is not None else {}
            length = {"nsteps": arguments.steps}
            entries = mdp.settings(
                hydration.COMMON, INTEGRATOR, electrostatics, perturbed, start, length
            )
            name = f"{method}-{kind}"
            simulation.grompp(folder, name, entries, "conf.gro", "topol.top", ["-maxwarn", 2]).ok()
            speeds[method, kind] = []
    flags = ["-resetstep", arguments.steps // 2, "-noconfout", "-notunepme"]
    for _ in range(arguments.rounds):
        for method, kind in speeds:
            name = f"{method}-{kind}"
            command = [*flags, *arguments.mdrun_flags.split()]
            simulation.mdrun(folder, name, command, ntomp=arguments.threads).ok()
            speeds[method, kind].append(log.speed(folder / f"{name}.log"))
    atoms = gro.atom_count(folder / "conf.gro")
    print(f"{atoms} atoms, 6 of them perturbed; {machine.describe()}")
    print(f"{'':22}{'ns/day':>16}{'over unperturbed':>26}")
    record = {"atoms": atoms, "machine": machine.describe(), "kinds": {}}
    for (method, kind), values in speeds.items():
        median, spread = results.median_and_spread(values)
        ratios = [a / b for a, b in zip(values, speeds[method, "unperturbed"])]
        ratio, ratio_spread = results.median_and_spread(ratios)
        record["kinds"][f"{method}, {kind}"] = {"ns_per_day": values, "over_unperturbed": ratios}
        print(f"{method + ', ' + kind:22}{median:9.1f} +- {spread:4.1f}", end="")
        print(f"{ratio:18.3f} +- {ratio_spread:.3f}")
    results.write(folder / "perturbed_speed.json", record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
