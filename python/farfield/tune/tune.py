# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tunes FMM and PME for a run input file, and says what was found."""

import shlex
import statistics
from operator import attrgetter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import options, results
from ..gromacs import machine, tpr
from ..gromacs.program import Gmx, GmxError
from .fmm_search import FmmSearch
from .measure import Measure
from .pme_search import PmeSearch
from .settings import Setting, pme

# GROMACS's standard settings, but for the cut-off
STANDARD_PME = {"spacing": 0.12, "order": 4, "rtol": 1e-5}
# Candidates of each method that are timed in turn in the end
FINALISTS = 3
# Half the distance of the extremes of a speed, in its median, that is no reason for doubt
STEADY = 0.05
# Columns of a file
WIDTH = 132
DYNAMICS = ("md", "md-vv", "md-vv-avek", "sd", "bd")


def finalists(candidates):
    """The fastest candidates of a method."""
    return sorted(candidates, key=attrgetter("speed"), reverse=True)[:FINALISTS]


def pme_orders(flags):
    """Interpolation orders that mdrun supports where the flags put PME."""
    return (4,) if "gpu" in flags else (4, 5)


def given(parameters):
    """The PME setting of the run input file, as lines that change nothing, or None."""
    if parameters["coulombtype"] != "PME":
        return None
    if not float(parameters["fourierspacing"]) > 0:
        return {"coulombtype": "PME"}  # the grid was given as numbers of points
    return pme(
        float(parameters["rcoulomb"]),
        float(parameters["fourierspacing"]),
        int(parameters["pme-order"]),
        float(parameters["ewald-rtol"]),
    )


def standard_pme(parameters):
    """GROMACS's standard settings, at the cut-off of Lennard-Jones interactions."""
    return pme(float(parameters["rvdw"]), **STANDARD_PME)


def check(parameters, path):
    """Raises GmxError for what cannot be tuned."""
    if parameters["integrator"] not in DYNAMICS:
        raise GmxError(
            f"{path} has integrator = {parameters['integrator']}, which is no dynamics; make it with one of "
            f"{', '.join(DYNAMICS)}"
        )
    if parameters["coulombtype"] not in ("PME", "FMM"):
        raise GmxError(
            f"{path} has coulombtype = {parameters['coulombtype']}, make it with PME or with FMM"
        )
    if parameters["pbc"] != "xyz":
        raise GmxError(f"{path} has pbc = {parameters['pbc']}; PME to compare with needs pbc = xyz")


def tune(arguments, console):
    """Measures; returns {"parameters", "candidates": all, "final": the last round's, best first}."""
    gmx = Gmx(arguments.gmx)
    gmx.check_patched()
    parameters = tpr.parameters(gmx, arguments.tpr)
    check(parameters, arguments.tpr)
    if parameters["vdw-type"] == "PME" and not arguments.no_pme:
        raise GmxError(
            f"{arguments.tpr} has vdwtype = PME, whose grid changes with that of Coulomb interactions; "
            "tune FMM alone, with --no-pme"
        )
    with options.work_folder(arguments.keep) as folder:
        flags = tuple(shlex.split(arguments.mdrun))
        run_input = tpr.RunInput(gmx, arguments.tpr, folder, flags)
        measure = Measure(
            run_input, int(parameters["init-step"]), float(parameters["dt"]), arguments.seconds
        )
        say = console.print
        console.print(f"{arguments.tpr}: {parameters['atoms']} atoms; wanted error {arguments.accuracy:.1e}")

        search = FmmSearch(measure, arguments.accuracy, say)
        fmm = search.run_exhaustively() if arguments.exhaustive else search.run()
        others = []
        if not arguments.no_pme:
            cutoff = float(parameters["rvdw"])
            others = PmeSearch(measure, arguments.accuracy, cutoff, pme_orders(flags), say).run()
        fixed = {} if parameters["vdw-type"] == "PME" else {"PME, as standard": standard_pme(parameters)}
        if given(parameters) not in (None, *fixed.values()):
            fixed["PME, as given"] = given(parameters)
        measured = [Setting(name, lines, measure.error(lines)[0]) for name, lines in fixed.items()]

        last = [*finalists(fmm), *finalists(others), *measured]
        for setting in last:
            setting.speeds.clear()
        console.print(f"Timing {len(last)} settings in turn, {arguments.rounds} rounds")
        measure.time_in_turn(last, arguments.rounds)
    return {
        "parameters": parameters,
        "candidates": [*fmm, *others],
        "final": sorted(last, key=attrgetter("speed"), reverse=True),
    }


def ratio(setting, other):
    """Median and half the range of the ratio of two speeds within each round."""
    ratios = [a / b for a, b in zip(setting.speeds, other.speeds)]
    return statistics.median(ratios), (max(ratios) - min(ratios)) / 2


def best_of(final, is_fmm, accuracy):
    """The fastest setting of a method that reaches the accuracy, or None."""
    return next((s for s in final if s.is_fmm == is_fmm and s.error <= accuracy), None)


def doubts(final, accuracy):
    """What the timings leave open about the fastest setting of each method, as sentences."""
    found = []
    for is_fmm, method in ((True, "FMM"), (False, "PME")):
        enough = [s for s in final if s.is_fmm == is_fmm and s.error <= accuracy]
        if not enough:
            continue
        best, *others = enough
        if len(best.speeds) < 2:
            found.append(f"{method}: one round tells nothing of the scatter of speeds")
            continue
        spread = best.spread / best.speed
        if spread > STEADY:
            found.append(
                f"{method}: the speed of the fastest setting scatters by {100 * spread:.0f} %, "
                f"more than {100 * STEADY:.0f} %"
            )
        for setting in others:
            # Within a round both met the same machine
            rounds = sum(other >= own for own, other in zip(best.speeds, setting.speeds))
            if rounds:
                found.append(
                    f"{method}: {setting.describe()} was as fast as the fastest or faster in {rounds} of "
                    f"{len(best.speeds)} rounds, either may be the best"
                )
    return found


def show(final, accuracy, console):
    """The table, and the .mdp lines to paste."""
    compared = best_of(final, False, accuracy) or next((s for s in final if not s.is_fmm), final[0])
    table = Table(title="Timed in turn, fastest first", title_justify="left")
    for title in ("", "setting", "error", "ns/day", "over the best PME"):
        table.add_column(title, justify="left" if title in ("", "setting") else "right")
    for setting in final:
        value, spread = ratio(setting, compared)
        table.add_row(
            setting.name,
            setting.describe(),
            f"{setting.error:.1e}" + ("" if setting.error <= accuracy else " (missed)"),
            f"{setting.speed:.1f} ± {setting.spread:.1f}",
            f"{value:.2f} ± {spread:.2f}",
        )
    console.print(table)
    console.print(
        "error: RMS error of the forces over the RMS Coulomb force, against double precision at "
        "order 20;\nof FMM the largest of several positions of its cells. "
        "Speeds: medians, half the distance of the extremes."
    )
    open_questions = doubts(final, accuracy)
    if open_questions:
        console.print("\n[bold]Not certain:[/bold]")
        for sentence in open_questions:
            console.print(f"- {sentence}", highlight=False)
        console.print("More --rounds, more --seconds, and a machine that does nothing else tell more.", highlight=False)
    for is_fmm, title in ((True, "FMM"), (False, "PME")):
        best = best_of(final, is_fmm, accuracy)
        if not best:
            console.print(f"\nNo setting of {title} that was timed has an error of {accuracy:.1e}.")
        else:
            console.print(f"\n[bold]The fastest {title} with that accuracy, for the .mdp file:[/bold]")
            for name, value in best.mdp.items():
                console.print(f"{name:<26} = {format_value(value)}", highlight=False)


def format_value(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_record(setting, accuracy):
    """For the JSON file."""
    return {
        "name": setting.name,
        "mdp": setting.mdp,
        "error": setting.error,
        "meets_accuracy": setting.error <= accuracy,
        "ns_per_day": setting.speeds,
    }


def add_parser(subparsers):
    """The command "tune"."""
    parser = subparsers.add_parser(
        "tune",
        help="find the fastest settings of FMM and of PME for a run input file",
        description="Finds the fastest settings of FMM and of PME that reach an accuracy, for a run "
        "input file: measures the error of the forces of each setting, times mdrun, and prints the "
        "lines for the .mdp file. The run input file itself is not changed.",
    )
    parser.add_argument("tpr", type=Path, metavar="FILE.tpr", help="made with PME or with FMM")
    options.add_common(parser)
    parser.add_argument("--rounds", type=options.number(int, 1), default=3, help="of the last comparison (3)")
    parser.add_argument(
        "--seconds", type=options.number(float, 0, above=True), default=4, help="of each timed run (4)"
    )
    parser.add_argument("--no-pme", action="store_true", help="tune FMM alone, beside standard PME")
    parser.add_argument("--exhaustive", action="store_true", help="try all cells, for comparison")
    parser.set_defaults(run=run)


def run(arguments):
    options.check_files([arguments.tpr], {"--json": arguments.json}, arguments.keep, arguments.overwrite)
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    busy = machine.busy()
    if busy:
        console.print(busy, highlight=False)
    found = tune(arguments, console)
    show(found["final"], arguments.accuracy, console)
    if arguments.json:
        results.write(
            arguments.json,
            {
                "command": arguments.command,
                "tpr": str(arguments.tpr),
                "atoms": int(found["parameters"]["atoms"]),
                "machine": machine.describe(),
                "versions": Gmx(arguments.gmx).version(),
                "accuracy": arguments.accuracy,
                "rounds": arguments.rounds,
                "seconds": arguments.seconds,
                "not_certain": [*doubts(found["final"], arguments.accuracy), *([busy] if busy else [])],
                **{
                    kind: [as_record(setting, arguments.accuracy) for setting in found[kind]]
                    for kind in ("candidates", "final")
                },
            },
        )
