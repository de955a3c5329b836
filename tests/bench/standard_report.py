# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report on FMM beside PME for systems that users have, from nothing, by one command.

    python3 -m tests.bench.standard_report --output report.html

Water of three and of four sites, salt water, rock salt, at constant volume, pressure (isotropic and fully
anisotropic) and energy, and a protein in a dodecahedron are made, equilibrated with PME, and handed to
"farfield report". --short leaves the protein out. Needs the packages of farfield[tools].
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from farfield import command
from farfield.gromacs.machine import usable_cores
from tests.bench import nve_drift
from tests.support.gmx import environment, mdp, simulation, systems

EQUILIBRATION = 20.0  # ps
COMMON = {
    "rcoulomb": 1.0,
    "rvdw": 1.0,
    "DispCorr": "EnerPres",
    "nstlist": 20,
    "nstcalcenergy": 20,
    "nstenergy": 100,
    "nstlog": 0,
    "tcoupl": "v-rescale",
    "tc-grps": "System",
    "tau-t": 0.5,
    "ref-t": 300,
}
CONSTANT_PRESSURE = {
    "pcoupl": "C-rescale",
    "tau-p": 2.0,
    "ref-p": 1.0,
    "compressibility": 4.5e-5,
    "nstpcouple": 20,
}
ANISOTROPIC = {
    **CONSTANT_PRESSURE,
    "pcoupl": "Parrinello-Rahman",
    "pcoupltype": "anisotropic",
    "ref-p": "1 1 1 0 0 0",
    "compressibility": "4e-6 4e-6 4e-6 1e-6 1e-6 1e-6",
}
CONSTANT_ENERGY = {"tcoupl": "no", **{k: v for k, v in nve_drift.COMMON.items() if not k.startswith("nst")}}

# What makes the system, and the ensemble
SYSTEMS = {
    "water-nvt": (lambda folder: systems.water(folder, 3.0), {}),
    "water-npt": (lambda folder: systems.water(folder, 3.0), CONSTANT_PRESSURE),
    "water-nve-2fs": (lambda folder: systems.water(folder, 3.0), CONSTANT_ENERGY),
    "water-nve-1fs": (lambda folder: systems.water(folder, 3.0), {**CONSTANT_ENERGY, "dt": 0.001}),
    "four-site-water-npt": (lambda folder: systems.four_site_water(folder, 3.0), CONSTANT_PRESSURE),
    "salt-water-npt": (lambda folder: systems.salt_water(folder, 3.0), CONSTANT_PRESSURE),
    "rock-salt-anisotropic": (lambda folder: systems.ion_crystal(folder, 5), ANISOTROPIC),
    "protein-npt": (systems.protein, {**CONSTANT_PRESSURE, "pcoupl": "Parrinello-Rahman"}),
}
LONG = ("protein-npt",)


def equilibrated(folder, make, ensemble):
    """The run input file of a system after some ps in its ensemble."""
    system = make(folder)
    at_constant_energy = "no" == ensemble.get("tcoupl")
    # Velocities for constant energy come from a run with a thermostat
    before = {} if at_constant_energy else ensemble
    # The barostat for systems that are not in equilibrium yet; it has no anisotropic form
    if before.get("pcoupl") == "Parrinello-Rahman" and "pcoupltype" not in before:
        before = {**before, "pcoupl": "C-rescale"}
    dt = 0.002
    start = {"gen-vel": "yes", "nsteps": round(EQUILIBRATION / dt), "dt": dt}
    entries = mdp.settings(COMMON, mdp.STANDARD_PME, before, start)
    simulation.simulate(folder, "equilibration", entries, system, warnings=2, time_limit=3600)
    files = ["-t", "equilibration.cpt", "-maxwarn", 2]
    # continued without constraining again: velocities are those of the run before
    entries = mdp.settings(COMMON, mdp.STANDARD_PME, ensemble, {"nsteps": 1000, "continuation": "yes", "gen-vel": "no"})
    simulation.grompp(folder, "run", entries, "equilibration.gro", system.top, files).ok()
    return folder / "run.tpr"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=float, default=100.0, help="of the runs, ps")
    parser.add_argument("--short", action="store_true", help="without the largest system")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, help="some of them")
    parser.add_argument("--output", type=Path, default=Path("report.html"))
    parser.add_argument("--pdf", type=Path)
    parser.add_argument("--mdrun", default=f"-ntmpi 1 -ntomp {usable_cores()}", help="flags of mdrun")
    parser.add_argument("--keep", type=Path, help="folder for the runs; kept")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-report-"))
    paths = []
    for name in arguments.systems or SYSTEMS:
        if arguments.short and name in LONG:
            continue
        print(f"{name}: making and equilibrating", flush=True)
        (folder / name).mkdir(parents=True, exist_ok=True)
        made = equilibrated(folder / name, *SYSTEMS[name])
        paths.append(folder / f"{name}.tpr")
        paths[-1].write_bytes(made.read_bytes())
    words = ["report", *paths, "--gmx", environment.gmx().program, "--length", arguments.length]
    words += ["--output", arguments.output, f"--mdrun={arguments.mdrun}"]
    words += ["--pdf", arguments.pdf] if arguments.pdf else []
    return command.main([str(word) for word in words])


if __name__ == "__main__":
    sys.exit(main())
