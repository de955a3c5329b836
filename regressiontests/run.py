# SPDX-License-Identifier: LGPL-2.1-or-later
"""GROMACS's own regression tests with FMM, against tightened PME of the same gmx.

Of every case four short simulations are made: with FMM, with two tightened PME set-ups, whose
difference shows their error, and a rerun of the FMM trajectory by tightened PME. Compared are the
first frame (forces, Coulomb energy, potential, pressure) and the last one (forces, energies). The
errors allowed are those of tests/support/gmx/limits.py plus the reference's own error. The energies
of the first frame are also computed by double-precision PME, where such a gmx is installed: mixed
precision loses digits of the energy where charges nearly coincide. Cases that FMM does not support
must be refused by grompp. To be run in the root of the tree:

    python3 -m regressiontests.run

Environment: see tests/support/gmx/environment.py; GROMACS_REGRESSIONTESTS_DIR names the unpacked
tests.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from farfield.gromacs.program import GmxError
from tests.support.gmx import environment, limits, mdp, simulation
from tests.support.gmx.mdp import FMM, OTHER_TIGHT_PME, TIGHT_PME, value_of
from tests.support.gmx.systems import System

# A fixed grid of the case would override the spacing.
FREE_GRID = {"fourier-nx": 0, "fourier-ny": 0, "fourier-nz": 0}


@dataclass
class Result:
    """One line of the table; each quantity with its limit."""

    case: str
    group: str
    passed: bool = False
    seconds: float = 0.0
    atoms: int = 0
    note: str = ""
    values: dict = field(default_factory=dict)

    def check(self, quantity, value, limit):
        """Records a quantity; a value that is not a number fails."""
        self.values[quantity] = (float(value), float(limit))

    def judge(self):
        self.passed = all(value <= limit for value, limit in self.values.values())


def adapted(entries):
    """The case's input as both runs use it, and a note on what had to change.

    FMM leaves the Lennard-Jones cut-off to rvdw and wants rcoulomb equal to it.
    """
    changes = {}
    rcoulomb, rvdw = (value_of(entries, key) for key in ("rcoulomb", "rvdw"))
    note = ""
    if rcoulomb and rvdw and float(rcoulomb) != float(rvdw):
        changes["rcoulomb"] = rvdw
        note = f"adapted: rcoulomb {rcoulomb} -> {rvdw} in all runs"
    # A frame of coordinates and forces at the first and at the last step.
    steps = value_of(entries, "nsteps")
    changes |= {"nstxout": steps, "nstvout": steps, "nstfout": steps}
    return mdp.change(entries, changes), note


def adapted_for_pme(entries):
    """PME without energy groups: with them its sums of the energy lose a digit."""
    if not value_of(entries, "energygrps") or value_of(entries, "energygrps").lower() == "system":
        return entries, ""
    return mdp.change(entries, {"energygrps": ""}), "PME without energy groups"


def prepare(folder, name, entries, program=None):
    """grompp as GROMACS's own driver calls it."""
    mdp.write(folder / f"{name}.mdp", entries)
    files = ["-f", f"{name}.mdp", "-c", "conf", "-r", "conf", "-p", "topol", "-o", f"{name}.tpr"]
    index = ["-n", "index"] if (folder / "index.ndx").exists() else []
    options = ["-po", f"{name}-out.mdp", "-maxwarn", 10]
    gmx = program or environment.gmx()
    return gmx.attempt("grompp", *files, *index, *options, folder=folder)


def run(folder, name, entries, program=None, ranks=1, options=()):
    prepare(folder, name, entries, program).ok()
    threads = None if ranks == 1 else 1
    simulation.mdrun(
        folder, name, ["-notunepme", *options], program=program, ntmpi=ranks, ntomp=threads
    ).ok()
    return simulation.Run(folder, name)


def on_ranks(case, ranks):
    """How a case runs on several ranks: on how many, options of mdrun, and a note on it."""
    if ranks == 1:
        return 1, [], ""
    if "one_rank" in case:
        return 1, [], f"on one rank: {case['one_rank']}"
    if "nstlist" in case:
        return ranks, ["-nstlist", case["nstlist"]], f"FMM with -nstlist {case['nstlist']}"
    return ranks, [], ""


def double_precision(folder, entries, fallback):
    """The first frame in double precision; the fallback without such a gmx, or if it fails.

    It may be an older GROMACS that does not know every input.
    """
    program = environment.gmx_double()
    if program is None:
        return fallback
    changes = {**mdp.CONVERGED_PME, **FREE_GRID, "nsteps": 0}
    try:
        return run(folder, "double", mdp.change(entries, changes), program)
    except GmxError:
        return fallback


def energies_on_grids(folder, entries, count):
    """Coulomb and potential energy of the first frame, means over positions of the FMM's grid.

    The number of the step decides on the position.
    """
    sums = np.zeros(2)
    for k in range(count):
        done = run(folder, "grid", mdp.change(entries, {"nsteps": 0, "init-step": 7 * k}))
        sums += [done.coulomb()[0], done.energies["Potential"][0]]
    return sums / count


def check_refusal(folder, entries, case, result):
    done = prepare(folder, "fmm", mdp.change(entries, FMM))
    lines = [line.strip() for line in done.text.splitlines()]
    reason = " ".join(lines[next((i for i, x in enumerate(lines) if x.startswith("ERROR")), 0) :])
    named = any(word in reason for word in case["refused"])
    result.passed = done.status > 0 and named and not (folder / "fmm.tpr").exists()
    result.note = "refused, as it should be" if result.passed else "NOT refused as it should be"


def check_against_pme(folder, entries, case, result, ranks):
    entries, result.note = adapted(entries)
    if "accuracy" in case:
        result.note += f"FMM with fmm-farfield-accuracy = {case['accuracy']:g}"
    with_fmm = mdp.change(entries, {**FMM, "fmm-farfield-accuracy": case.get("accuracy", 3e-4)})
    ranks, options, how = on_ranks(case, ranks)
    fmm = run(folder, "fmm", with_fmm, ranks=ranks, options=options)
    first = (fmm.coulomb()[0], fmm.energies["Potential"][0])
    if "grids" in case:
        first = energies_on_grids(folder, with_fmm, case["grids"])
        result.note = f"energies of {case['grids']} positions of the grid"
    entries, note = adapted_for_pme(entries)
    result.note = "; ".join(filter(None, [result.note, how, note]))
    pme = run(folder, "pme", mdp.change(entries, {**TIGHT_PME, **FREE_GRID}))
    other = run(folder, "other", mdp.change(entries, {**OTHER_TIGHT_PME, **FREE_GRID}))
    double = double_precision(folder, entries, pme)
    if double is pme:
        result.note += "energies against mixed precision"
    if case.get("history"):
        # The forces depend on the past: the run itself, whose path is still the same.
        again = pme
    else:
        simulation.mdrun(folder, "again", ["-s", "pme.tpr", "-rerun", "fmm.trr"]).ok()
        again = simulation.Run(folder, "again")

    frames, start, other_start = fmm.frames, pme.frames[0], other.frames[0]
    system = System(folder, None, None, len(start.f), float(np.linalg.det(start.box)))
    result.atoms = system.atoms
    # Atoms without a force of their own (virtual sites) would hide an error in the mean.
    felt = np.any(start.f != 0, axis=1)

    def error(frame, reference):
        return simulation.force_error(frame.f[felt], reference.f[felt])

    noise = error(other_start, start)
    force_limit = limits.PROTEIN_LIMIT
    result.check("force", error(frames[0], start), force_limit + noise)
    result.check("force, last", error(frames[-1], again.frames[-1]), force_limit + noise)

    exact = pme.coulomb()[0]
    for quantity, of, energy in [
        ("Coulomb", lambda r: r.coulomb(), first[0]),
        ("potential", lambda r: r.energies["Potential"], first[1]),
    ]:
        noise = max(abs(of(r)[0] - of(pme)[0]) for r in (other, double))
        # A potential has seven digits in mixed precision.
        allowed = limits.energy_limit(system, exact) + 1e-6 * abs(of(pme)[0])
        at_first = allowed + (2 * noise if double is pme else 0)
        result.check(quantity, abs(energy - of(double)[0]), at_first)
        result.check(f"{quantity}, last", abs(of(fmm)[-1] - of(again)[-1]), allowed + 2 * noise)

    tensors = [r.pressure_tensor()[0] for r in (fmm, pme, other)]
    component, average = limits.pressure_limits(system, simulation.rms(start.f), exact, force_limit)
    noise = np.abs(tensors[2] - tensors[1]).max()
    difference = tensors[0] - tensors[1]
    result.check("pressure", abs(np.trace(difference)) / 3, average + 2 * noise)
    result.check("pressure tensor", np.abs(difference).max(), component + 2 * noise)
    result.judge()


def run_case(name, case, source, keep, ranks):
    result = Result(name, case["group"])
    start = time.monotonic()
    folder = Path(keep) / name if keep else Path(tempfile.mkdtemp(prefix=f"farfield-{name}-"))
    try:
        shutil.copytree(source / "complex" / name, folder, dirs_exist_ok=True)
        entries = mdp.read(folder / "grompp.mdp")
        if "refused" in case:
            check_refusal(folder, entries, case, result)
        else:
            check_against_pme(folder, entries, case, result, ranks)
    except (GmxError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        result.note = f"{type(error).__name__}: {' | '.join(lines[:1] + lines[-6:])}"
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    result.seconds = time.monotonic() - start
    return result


COLUMNS = [
    ("force", "8.1e"),
    ("force, last", "8.1e"),
    ("Coulomb", "8.3f"),
    ("potential", "8.3f"),
    ("pressure", "8.3f"),
    ("pressure tensor", "8.3f"),
]
HEADER = (
    f"{'case':27}{'group':15}{'atoms':>6}  {'force rel.':18}{'force, last':18}"
    f"{'Coulomb kJ/mol':18}{'potential kJ/mol':18}{'pressure bar':18}{'P tensor bar':18}"
    f"{'s':>4}  result"
)


def line_of(result):
    text = f"{result.case:27}{result.group:15}{result.atoms or '':>6}  "
    for quantity, form in COLUMNS:
        if quantity in result.values:
            value, limit = (f"{v:{form}}".strip() for v in result.values[quantity])
            text += f"{value + ' / ' + limit:18}"
        else:
            text += f"{'-':18}"
    failed = [q for q, (value, limit) in result.values.items() if not value <= limit]
    verdict = "pass" if result.passed else "FAIL"
    remarks = [", ".join(failed)] * bool(failed) + [result.note] * bool(result.note)
    return f"{text}{result.seconds:4.0f}  {verdict}  {'; '.join(remarks)}".rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--select", choices=["ci", "all"], default="ci", help="which cases")
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    parser.add_argument("--json", type=Path, help="write the results to this file too")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    parser.add_argument(
        "--ranks", type=int, default=1, help="of the runs with FMM, with one thread each"
    )
    parser.add_argument("--jobs", type=int, default=1, help="cases side by side")
    arguments = parser.parse_args()

    cases = tomllib.loads(Path(__file__).with_name("cases.toml").read_text())
    if arguments.case:
        unknown = set(arguments.case) - set(cases)
        if unknown:
            parser.error(f"no such case: {', '.join(sorted(unknown))}")
        cases = {name: cases[name] for name in arguments.case}
    elif arguments.select == "ci":
        cases = {name: case for name, case in cases.items() if case.get("ci")}

    try:
        source = environment.folder_from_environment("GROMACS_REGRESSIONTESTS_DIR")
        environment.gmx()
    except (FileNotFoundError, GmxError) as error:
        parser.error(str(error))

    print("Each quantity: difference of FMM from tightened PME / what is allowed.\n")
    print(HEADER, flush=True)
    results = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(
            lambda entry: run_case(*entry, source, arguments.keep, arguments.ranks), cases.items()
        ):
            results.append(result)
            print(line_of(result), flush=True)
    failed = [result.case for result in results if not result.passed]
    print(f"\n{len(results) - len(failed)} of {len(results)} cases as they should be")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
