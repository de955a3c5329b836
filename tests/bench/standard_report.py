# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report on FMM beside PME for systems that users have, from nothing, by one command.

    python3 -m tests.bench.standard_report --output report.html

Water of three and of four sites, salt water, rock salt, at constant volume, pressure (isotropic and fully
anisotropic) and energy, and a protein in a dodecahedron are made, equilibrated with PME, and handed to
"farfield report". Those at constant energy have two time steps, and run with several orders of FMM as well
(--orders). --short leaves the protein out and has two orders; --long has seven, and adds, for a GPU, a cube
of 23 000 atoms of water at constant pressure and energy, the protein at constant energy, and a membrane
under semi-isotropic pressure. Needs the packages of farfield[tools]. With --keep and --resume a run that
was ended, as by --mdrun "... -maxh 0.1", goes on.
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from examples import membrane
from farfield import command
from farfield.gromacs.machine import usable_cores
from farfield.gromacs.program import GmxError
from farfield.report import report
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
# On a GPU what takes longest are pair searches, and steps with energies
LARGE = {"nstlist": 50, "nstcalcenergy": 100, "nstenergy": 200}
LARGE_CONSTANT_PRESSURE = {**CONSTANT_PRESSURE, **LARGE, "nsttcouple": 50, "nstpcouple": 50}
LARGE_CONSTANT_ENERGY = {**CONSTANT_ENERGY, **LARGE, "rlist": 1.1, "lincs-iter": 2}

# As CHARMM's lipids want it
SEMI_ISOTROPIC = {
    **LARGE_CONSTANT_PRESSURE,
    "rcoulomb": 1.2,
    "rvdw": 1.2,
    "vdw-modifier": "Force-switch",
    "rvdw-switch": 1.0,
    "DispCorr": "no",
    "pcoupltype": "semiisotropic",
    "ref-p": "1 1",
    "compressibility": "4.5e-5 4.5e-5",
}


def bilayer(folder):
    """A membrane of POPC in water."""
    membrane.prepare(environment.gmx(), argparse.Namespace(threads=environment.threads()), folder)
    return systems.system(folder, "patch.gro", "patch.top")


# What makes the system, and the ensemble
SYSTEMS = {
    "water-nvt": (lambda folder: systems.water(folder, 3.0), {}),
    "water-npt": (lambda folder: systems.water(folder, 3.0), CONSTANT_PRESSURE),
    "water-nve-2fs": (lambda folder: systems.water(folder, 3.0), CONSTANT_ENERGY),
    "water-nve-1fs": (lambda folder: systems.water(folder, 3.0), {**CONSTANT_ENERGY, "dt": 0.001}),
    "four-site-water-npt": (lambda folder: systems.four_site_water(folder, 3.0), CONSTANT_PRESSURE),
    "salt-water-npt": (lambda folder: systems.salt_water(folder, 3.0), CONSTANT_PRESSURE),
    "rock-salt-anisotropic": (lambda folder: systems.ion_crystal(folder, 5), ANISOTROPIC),
    "protein-npt": (systems.protein, {**LARGE_CONSTANT_PRESSURE, "pcoupl": "Parrinello-Rahman", "tau-p": 5.0}),
}
LARGE_SYSTEMS = {
    "large-water-npt": (lambda folder: systems.water(folder, 6.2), LARGE_CONSTANT_PRESSURE),
    "large-water-nve": (lambda folder: systems.water(folder, 6.2), LARGE_CONSTANT_ENERGY),
    "protein-nve": (systems.protein, LARGE_CONSTANT_ENERGY),
    "membrane-npt": (bilayer, SEMI_ISOTROPIC),
}
ALL_SYSTEMS = {**SYSTEMS, **LARGE_SYSTEMS}
# Orders whose drift is measured in the systems at constant energy, which have two time steps
SHORT_ORDERS, ORDERS, LONG_ORDERS = (4, 8), (4, 6, 8), (3, 4, 5, 6, 8, 10, 12)


def equilibrated(folder, make, ensemble):
    """The run input file of a system after some ps in its ensemble."""
    system = make(folder)
    at_constant_energy = ensemble.get("tcoupl") == "no"
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
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--short", action="store_true", help="without the largest system")
    which.add_argument("--long", action="store_true", help="with large ones")
    which.add_argument("--systems", nargs="+", choices=ALL_SYSTEMS, help="some of them")
    parser.add_argument("--orders", type=int, nargs="*", help="whose drift is measured at constant energy")
    parser.add_argument("--output", type=Path, default=Path("report.html"))
    parser.add_argument("--pdf", type=Path)
    parser.add_argument("--json", type=Path, help="all numbers of the page")
    parser.add_argument("--mdrun", help="flags of mdrun (-ntmpi 1 -ntomp, a job's share of the cores)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores")
    parser.add_argument("--keep", type=Path, help="folder for the runs; kept")
    parser.add_argument("--resume", action="store_true", help="go on with the runs in that folder")
    parser.add_argument("--overwrite", action="store_true", help="write over files of an earlier command")
    arguments = parser.parse_args()
    # Before the systems are made, which takes minutes
    try:
        report.check(argparse.Namespace(**{**vars(arguments), "tpr": [], "mdrun": "", "orders": []}))
    except GmxError as error:
        parser.error(str(error))
    flags = arguments.mdrun or f"-ntmpi 1 -ntomp {max(1, usable_cores() // max(1, arguments.jobs))}"
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-report-"))
    names = arguments.systems or list(ALL_SYSTEMS if arguments.long else SYSTEMS)
    if arguments.short:
        names.remove("protein-npt")
    paths = []
    for name in names:
        paths.append(folder / f"{name}.tpr")
        if arguments.resume and paths[-1].exists():
            continue
        print(f"{name}: making and equilibrating", flush=True)
        (folder / name).mkdir(parents=True, exist_ok=True)
        made = equilibrated(folder / name, *ALL_SYSTEMS[name])
        paths[-1].write_bytes(made.read_bytes())
    words = ["report", *paths, "--gmx", environment.gmx().program, "--length", arguments.length]
    words += ["--output", arguments.output, f"--mdrun={flags}", "--jobs", arguments.jobs]
    words += ["--pdf", arguments.pdf] if arguments.pdf else []
    orders = arguments.orders
    if orders is None and not arguments.systems:
        orders = LONG_ORDERS if arguments.long else SHORT_ORDERS if arguments.short else ORDERS
    words += ["--orders", *orders] if orders else []
    words += ["--json", arguments.json] if arguments.json else []
    words += ["--keep", folder / "runs"] if arguments.keep else []
    words += ["--resume"] if arguments.resume else []
    words += ["--overwrite"] if arguments.overwrite else []
    return command.main([str(word) for word in words])


if __name__ == "__main__":
    sys.exit(main())
