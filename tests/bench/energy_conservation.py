# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the error of the forces, the time step, constraints and precision do to the total energy.

    python3 -m tests.bench.energy_conservation --output energy_conservation.json

Water runs at constant energy with FMM of many orders and with PME of many grids, whose errors are measured
against double precision at order 20; and, with steps of several lengths, rigid (SETTLE), with constrained bonds
(LINCS) and flexible, with the standard settings of both and with two whose errors are about equal. Several
replicas, which differ in the velocities, give the drift and its error. --double names the patched gmx in double
precision, for the same in that. Runs go side by side, --jobs at a time, each with --threads threads. --only
chooses kinds of runs, and --add puts them beside those of an earlier result. Writes JSON, and a figure beside it.
Steps, precision and constraints at equal errors alone:

    python3 -m tests.bench.energy_conservation --only equal --double PROGRAM --output equal.json
    python3 -m tests.bench.energy_conservation --table equal.json
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from farfield.gromacs import machine
from farfield.gromacs.program import Gmx
from farfield.gromacs.tpr import RunInput
from farfield.report import drift
from farfield.report.series import describe
from farfield.tune.measure import Measure
from tests.bench import results
from tests.bench.figures import energy
from tests.bench.nve_drift import COMMON, METHODS, START, TEMPERATURE
from tests.support.gmx import environment, mdp, simulation, systems

STANDARD = {"FMM": METHODS["FMM"], "PME": mdp.STANDARD_PME}
# Of about equal errors of the forces, 2e-4: the order that the default takes, and the grid that comes nearest
EQUAL_ORDER, EQUAL_GRID = 8, (0.12, 6, 1e-6)
ORDERS = (3, 4, 5, 6, 8, 10, 12)
# Grid spacing, order and tolerance at the cut-off, from coarse to fine
GRIDS = ((0.3, 4, 1e-3), (0.2, 4, 1e-4), (0.16, 4, 1e-5), (0.12, 4, 1e-5), (0.12, 6, 1e-6), (0.08, 6, 1e-7))
RIGID_STEPS = (0.0005, 0.001, 0.002, 0.003)
FLEXIBLE = {"define": "-DFLEXIBLE", "constraints": "none"}
FLEXIBLE_STEPS = (0.00025, 0.0005, 0.001)
# Bonds of water by LINCS, not all of it by SETTLE: angles are left to bend
BONDS = {"define": "-DFLEXIBLE", "constraints": "h-bonds", "constraint-algorithm": "lincs", "lincs-iter": 2}
BONDS_STEPS = (0.0005, 0.001, 0.002)
NOTHING: dict[str, str] = {}
MODELS = (("rigid", RIGID_STEPS, NOTHING), ("flexible", FLEXIBLE_STEPS, FLEXIBLE), ("bonds", BONDS_STEPS, BONDS))
# Energies are written this often, ps
INTERVAL = 0.1


@dataclass
class Case:
    """One kind of run; what was measured joins it."""

    section: str
    method: str
    label: str
    electrostatics: dict
    dt: float
    changes: dict = field(default_factory=dict)
    precision: str = "mixed"
    error: float = float("nan")  # of the forces, relative
    slopes: list = field(default_factory=list)  # kJ/mol/ps per atom
    scatter: list = field(default_factory=list)  # of the energy about its line, kJ/mol per atom

    @property
    def drift(self):
        """And its standard error, kT/ns per atom."""
        values = drift.per_ns(np.array(self.slopes), TEMPERATURE)
        return values.mean(), values.std(ddof=1) / np.sqrt(len(values))

    def record(self):
        value, error = self.drift
        kept = ("section", "method", "label", "electrostatics", "dt", "changes", "precision", "slopes", "scatter")
        return {
            **{name: getattr(self, name) for name in kept},
            "force_error": self.error,
            "drift_kT_per_ns_atom": value,
            "drift_error": error,
        }


def fmm(order):
    """FMM of an order that is given, whatever its error."""
    return drift.of_order(mdp.FIXED_FMM, order, 0.55)


def pme(spacing, order, tolerance):
    return {"coulombtype": "PME", "fourierspacing": spacing, "pme-order": order, "ewald-rtol": tolerance}


def cases(with_double):
    """All kinds of runs."""
    found = []
    for dt in (0.001, 0.002):
        section = f"error, {1000 * dt:g} fs"
        found += [Case(section, "FMM", f"order {order}", fmm(order), dt) for order in ORDERS]
        found += [
            Case(section, "PME", f"{spacing} nm, order {order}, {tolerance:.0e}", pme(spacing, order, tolerance), dt)
            for spacing, order, tolerance in GRIDS
        ]
    # What users have as it comes, and at equal errors of the forces
    settings = {"": STANDARD, "equal, ": {"FMM": fmm(EQUAL_ORDER), "PME": pme(*EQUAL_GRID)}}
    for prefix, methods in settings.items():
        for model, steps, changes in MODELS:
            for precision in ("mixed", "double") if with_double else ("mixed",):
                section = f"{prefix}{model}, {precision}"
                found += [
                    Case(section, method, f"{1000 * dt:g} fs", electrostatics, dt, changes, precision)
                    for dt in steps
                    for method, electrostatics in methods.items()
                ]
    return found


def run(folder, name, case, system, replica, length, program, flags):
    """One replica: makes, runs and measures it."""
    steps = round((length + START) / case.dt)
    often = max(1, round(INTERVAL / case.dt))
    output = {"nstenergy": often, "nstcalcenergy": often, "nstcomm": often}
    # A pair list of so many ps, whatever the step
    search = {"nstlist": max(1, round(0.02 / case.dt))}
    entries = mdp.settings(
        {**COMMON, **output, **search, "dt": case.dt, "nsteps": steps, "gen-seed": 1000 + replica},
        case.electrostatics,
        case.changes,
    )
    flags = ["-notunepme", *(["-ntmpi", 1] if program else []), *flags]
    made = simulation.simulate(
        folder, name, entries, system, flags, warnings=2, program=program, time_limit=7200
    )
    terms = made.energies
    late = terms["Time"] >= START
    times, energies = terms["Time"][late], terms["Total Energy"][late] / system.atoms
    return drift.fitted(times, energies)


def measure_errors(folder, every, system, programs, flags):
    """Errors of the forces of each electrostatics at the starting structure."""
    measures, errors = {}, {}
    for case in every:
        model = json.dumps(case.changes), case.precision
        if model not in measures:
            name = f"start{len(measures)}"
            entries = mdp.settings(COMMON, case.changes, mdp.STANDARD_PME)
            program = programs[case.precision]
            simulation.grompp(
                folder, name, entries, system.conf, system.top, ["-maxwarn", 2], program=program
            ).ok()
            own = ("-ntmpi", "1", "-pin", "off", *flags)
            start = RunInput(program or environment.gmx(), folder / f"{name}.tpr", folder, own)
            measures[model] = Measure(start, 0, COMMON["dt"], 0)
        key = model, json.dumps(case.electrostatics, sort_keys=True)
        if key not in errors:
            errors[key], _ = measures[model].error(case.electrostatics)
        case.error = errors[key]


def table(cases):
    """Text of records, section by section."""
    lines = []
    for section in dict.fromkeys(case["section"] for case in cases):
        lines.append(f"\n{section:<28}{'force error':>12}{'drift, kT/ns per atom':>30}{'scatter, kJ/mol per atom':>28}")
        for case in cases:
            if case["section"] == section:
                lines.append(
                    f"{case['method']} {case['label']:<24}{case['force_error']:>12.1e}"
                    f"{case['drift_kT_per_ns_atom']:>+18.5f} +- {case['drift_error']:<8.5f}"
                    f"{np.mean(case['scatter']):>26.1e}"
                )
    return "\n".join(lines)


def pairs(cases):
    """FMM beside PME at each step, as the table of docs/energy.md."""
    lines = ["| | step | errors of the forces, FMM and PME | drift with FMM, $kT$/ns | with PME |"]
    lines += ["|---|---|---|---|---|"]
    found = {}
    for case in cases:
        if case["section"].split(", ")[-1] in ("mixed", "double"):
            found.setdefault((case["section"], case["label"]), {})[case["method"]] = case
    for (section, step), methods in found.items():
        fmm_case, pme_case = methods["FMM"], methods["PME"]
        errors = f"{fmm_case['force_error']:.1e}, {pme_case['force_error']:.1e}"
        drifts = (describe(c["drift_kT_per_ns_atom"], c["drift_error"]) for c in (fmm_case, pme_case))
        lines.append(f"| {section} | {step} | {errors} | {' | '.join(drifts)} |")
    return "\n".join(lines)


def present(result, path):
    """Writes all that is known by now, and shows it."""
    results.write(path, result)
    print(table(result["cases"]), flush=True)
    try:
        energy.draw(result["cases"], path.with_suffix(".svg"))
    except ImportError:
        print("no figure: matplotlib is not installed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=float, default=50.0, help="ps per run")
    parser.add_argument("--replicas", type=int, default=4, help="at least 2")
    parser.add_argument("--edge", type=float, default=2.8, help="nm, of the cube of water")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--threads", type=int, default=environment.threads(), help="of each run")
    parser.add_argument("--mdrun", default="", metavar="FLAGS", help='of mdrun, as "-nb cpu"')
    parser.add_argument("--double", type=Path, help="the patched gmx in double precision")
    parser.add_argument("--only", nargs="+", metavar="WORD", help='as "error", "rigid", "double"')
    parser.add_argument("--add", type=Path, metavar="JSON", help="an earlier result, whose cases join")
    parser.add_argument("--output", type=Path, default=Path("energy_conservation.json"))
    parser.add_argument("--keep", type=Path, help="folder for the runs; kept")
    parser.add_argument("--table", type=Path, metavar="JSON", help="prints FMM beside PME of an earlier result")
    arguments = parser.parse_args()
    if arguments.table:
        print(pairs(results.read(arguments.table)["cases"]))
        return 0
    if arguments.replicas < 2:
        parser.error("--replicas must be at least 2: their scatter is the error")
    os.environ["FARFIELD_TEST_THREADS"] = str(arguments.threads)
    every = [
        case
        for case in cases(arguments.double is not None)
        if all(word in case.section for word in arguments.only or ())
    ]
    if not every:
        parser.error(f"no kind of run has all of: {' '.join(arguments.only)}")
    before = results.read(arguments.add)["cases"] if arguments.add else []

    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-energy-"))
    folder.mkdir(parents=True, exist_ok=True)
    system = systems.water(folder, arguments.edge, 5000)
    length = f"{arguments.replicas} x {arguments.length:g} ps"
    print(f"{system.atoms} atoms, {len(every)} kinds of runs, {length}", flush=True)
    programs = {"mixed": None, "double": Gmx(arguments.double) if arguments.double else None}
    flags = arguments.mdrun.split()
    measure_errors(folder, every, system, programs, flags)
    conditions = {
        "machine": " ".join([machine.describe(), *flags]),
        "length_ps": arguments.length,
        "atoms": system.atoms,
    }

    def one(task):
        number, replica = task
        case = every[number]
        name = f"run-{number}-{replica}"
        own = folder / name
        own.mkdir(exist_ok=True)
        return run(own, name, case, system, replica, arguments.length, programs[case.precision], flags)

    tasks = [(number, replica) for replica in range(arguments.replicas) for number in range(len(every))]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for (number, replica), (slope, scatter) in zip(tasks, pool.map(one, tasks)):
            every[number].slopes.append(slope)
            every[number].scatter.append(scatter)
            if number + 1 == len(every) and replica > 0:
                # what is done stands, however the rest ends
                records = [{**case.record(), **conditions} for case in every]
                print(f"\n{replica + 1} replicas")
                present({**results.conditions(), "cases": before + records}, arguments.output)
    print(pairs(results.read(arguments.output)["cases"]))
    print(f"All numbers: {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
