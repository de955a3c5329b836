# SPDX-License-Identifier: LGPL-2.1-or-later
"""GROMACS's own physical validation ("make check-phys") of its systems with PME, with FMM in its place.

GROMACS's sources have systems, bounds and a driver for the package physical_validation (Merz and Shirts, PLoS ONE 13,
e0202764 (2018), doi:10.1371/journal.pone.0202764) in tests/physicalvalidation. The driver lays out the runs here, too,
and judges them by the bounds of GROMACS's list:

    integrator   fluctuations of the conserved energy fall with the square of the time step: the largest deviation
                 of a ratio from that, relative to it
    ensemble     potential energies, and volumes, at two temperatures or pressures are distributed as Boltzmann has
                 it: the largest deviation, in standard errors
    kin_mb       kinetic energies are distributed as Maxwell has it: the probability of such a distribution by chance,
                 to be no less than its bound

The package is the one of PyPI, not the older copy beside the driver. To be run in the root of the tree:

    python3 -m regressiontests.check_phys

Environment: see tests/support/gmx/environment.py.
"""

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import physical_validation as pv

from farfield.gromacs import machine
from farfield.gromacs.program import GmxError
from tests.support.gmx import environment, mdp, simulation
from tests.support.gmx.mdp import value_of

# A check of a system, and the part of GROMACS's steps that it gets. Ensembles are not among them: their energies, 2 ps
# apart as in GROMACS's runs, are then too few to compare. Energies nearer to each other depend on each other for longer
# than the package sees in short runs: of 500 in 10 ps it kept 84 as independent, and found them a chance of 3e-4.
SHORT = {
    "int_water_md_verlet_none_pme_switch": ("integrator", 1.0),
    "ens_water_md_verlet_settle_pme_vr": ("kin_mb", 0.05),
}
TIME_LIMIT = 7 * 24 * 3600  # s, of one run


@dataclass
class Check:
    """A line of the table; the note says what kept a check from being made."""

    system: str
    name: str
    passed: bool
    value: float = float("nan")
    bound: float = float("nan")
    note: str = ""

    def __str__(self):
        relation = ">=" if self.name == "kin_mb" else "<="
        numbers = self.note or f"{self.value:8.3g} {relation} {self.bound:<6g}"
        return f"{self.system:42}{self.name:12}{numbers:22}{'pass' if self.passed else 'FAIL'}"


class Suite:
    """GROMACS's driver, and its systems with PME."""

    def __init__(self):
        self.folder = environment.folder_from_environment("GROMACS_SOURCE_DIR") / "tests/physicalvalidation"
        spec = importlib.util.spec_from_file_location("driver", self.folder / "gmx_physicalvalidation.py")
        self.driver = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.driver)
        # The name that the test has in the package of today
        self.driver.kinetic_energy = SimpleNamespace(
            mb_ensemble=lambda data, verbosity: pv.kinetic_energy.distribution(data, strict=True, verbosity=verbosity)
        )
        double = environment.gmx().version()["Precision"] == "double"
        listed = json.loads((self.folder / ("systems_d.json" if double else "systems.json")).read_text())
        self.systems = {
            s["name"]: s["tests"]
            for s in listed
            if value_of(mdp.read(self.input(s["name"]) / "system.mdp"), "coulombtype").upper() == "PME"
        }

    def shorten(self):
        """The checks of the short selection are left."""
        self.systems = {
            name: [t for t in self.systems[name] if t["test"] == check] for name, (check, _) in SHORT.items()
        }

    def input(self, name):
        return self.folder / "systems" / name / "input"

    def tests(self, name):
        """The class of the driver and the words of its command line, of each check of a system."""
        return {t["test"]: (self.driver.all_tests[t["test"]], t["args"].split()) for t in self.systems[name]}

    def prepare(self, name, folder, scale, method):
        """Inputs of all runs of a system; returns their folders."""
        base = folder / "base"
        shutil.copytree(self.input(name), base)
        write_input(base / "system.mdp", scale, method)
        made = [base]
        for test, words in self.tests(name).values():
            made += map(Path, test.prepare_parser(str(base), str(folder), name, True, words))
        return made

    def judge(self, name, folder):
        parser = pv.data.GromacsParser(exe=str(environment.gmx().program))
        shared = {"reduced": None, "full": None}
        for check, (test, words) in self.tests(name).items():
            try:
                found = test.analyze_parser(parser, str(folder), name, shared, 0, words)
            # As in the driver: whatever stops the package, which too few samples do, is a failure
            except Exception as error:
                message = " ".join(str(error).split())
                yield Check(name, check, False, note=f"{type(error).__name__}: {message} ")
            else:
                yield Check(name, check, bool(found["test"]), float(found["result"]), found["tolerance"])


def write_input(path, scale, method):
    """A system's input with the method, and a part of the steps."""
    entries = mdp.read(path)
    changes = {"nsteps": round(scale * int(value_of(entries, "nsteps")))}
    if method == "FMM":
        changes |= mdp.FMM
    mdp.write(path, mdp.change(entries, changes))


def run(folder):
    """grompp and mdrun as the driver calls them."""
    inputs = ["-f", "system.mdp", "-p", "system.top", "-c", "system.gro"]
    environment.gmx()("grompp", *inputs, "-o", "system.tpr", "-po", "mdout.mdp", folder=folder)
    simulation.mdrun(folder, "system", time_limit=TIME_LIMIT).ok()


def check(suite, name, folder, scale, method="FMM"):
    """All checks of a system."""
    for made in suite.prepare(name, folder, scale, method):
        run(made)
    return list(suite.judge(name, folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--select", choices=["short", "all"], default="short", help="two checks in short, or all")
    parser.add_argument("--system", action="append", help="all checks of this system; may be repeated")
    parser.add_argument("--scale", type=float, help="part of GROMACS's steps (1, but of the short selection)")
    parser.add_argument("--method", choices=["FMM", "PME"], default="FMM", help="PME: the inputs as they are")
    parser.add_argument("--keep", type=Path, help="a new folder for the runs, which are kept")
    arguments = parser.parse_args()
    try:
        suite = Suite()
    except (FileNotFoundError, GmxError) as error:
        parser.error(str(error))
    scales = dict.fromkeys(arguments.system or suite.systems, 1.0)
    unknown = set(scales) - set(suite.systems)
    if unknown:
        parser.error(f"no such system: {', '.join(sorted(unknown))}; there are {', '.join(suite.systems)}")
    if arguments.select == "short" and not arguments.system:
        suite.shorten()
        scales = {name: scale for name, (_, scale) in SHORT.items()}

    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-check-phys-"))
    print(f"{arguments.method}; {machine.describe()}")
    print(f"{'system':42}{'check':12}{'value':>8}    bound", flush=True)
    checks = []
    start = time.monotonic()
    for name, scale in scales.items():
        try:
            new = check(suite, name, folder / name, arguments.scale or scale, arguments.method)
        except GmxError as error:
            new = [Check(name, "runs", False, note=str(error).splitlines()[-1])]
        print(*new, sep="\n", flush=True)
        checks += new
    failed = sum(not each.passed for each in checks)
    print(f"\n{len(checks) - failed} of {len(checks)} checks passed, {time.monotonic() - start:.0f} s")
    if not arguments.keep:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
