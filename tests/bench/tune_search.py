# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the search of "farfield tune" leaves behind: its setting beside the best of all cells.

    python3 -m tests.bench.tune_search --output tune_search.json
    python3 -m tests.bench.tune_search FILE.tpr [FILE.tpr ...]
    python3 -m tests.bench.tune_search --table tune_search.json

For each run input file the search is done as the command does it, then for all cells, both ranges
and both engines; the setting found and the fastest of all are timed in turn, until the mean of the ratio
within a round is known to KNOWN. Without files three
systems of the standard report are made. Writes JSON, and prints it as the table of docs/tools.md, which
--table makes of an earlier result without a run. Needs the packages of farfield[tools].
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from farfield.gromacs import tpr
from farfield.tune.fmm_search import FmmSearch
from farfield.tune.measure import Measure, fastest
from farfield.tune.settings import Setting
from farfield.tune.tune import as_record, finalists
from tests.bench import results, standard_report
from tests.support.gmx import environment

# Standard error of a ratio of speeds that tells 5 % from none, and where to give up
KNOWN = 0.015
MOST_ROUNDS = 60
# Of the standard report: large, with charges apart from Lennard-Jones sites, in a skewed box
SYSTEMS = {
    "large-water-npt": "water of three sites",
    "four-site-water-npt": "water of four sites, constant pressure",
    "protein-npt": "protein in a dodecahedron, AMBER",
}


def compare(gmx, path, arguments, folder):
    """The setting that the search finds, timed beside the best of all; returns the record."""
    parameters = tpr.parameters(gmx, path)
    run_input = tpr.RunInput(gmx, path, folder, ("-ntmpi", "1", *arguments.mdrun.split()))
    first_step, dt = int(parameters["init-step"]), float(parameters["dt"])
    measure = Measure(run_input, first_step, dt, arguments.seconds)
    search = FmmSearch(measure, arguments.accuracy, lambda line: None)
    found = fastest(search.run())
    tried = len(search.found)
    everything = search.run_exhaustively()
    last = [found, *(setting for setting in finalists(everything) if setting is not found)]
    for setting in last:
        setting.speeds.clear()
    measure.time_in_turn(last, arguments.rounds)
    best = fastest(last)
    while best is not found and ratio(found, best)[1] > KNOWN and len(best.speeds) < MOST_ROUNDS:
        measure.time_in_turn([found, best], 1)
    print(f"{path.name}: found {found.describe()}; best {best.describe()}", flush=True)
    return {
        "system": path.stem,
        "atoms": int(parameters["atoms"]),
        "tried": tried,
        "all": len(search.found),
        # Timed in turn, one speed a round
        "found": as_record(found, arguments.accuracy),
        "best": as_record(best, arguments.accuracy),
        "others": [as_record(setting, arguments.accuracy) for setting in last if setting not in (found, best)],
        # Those that suffice and are slower, timed once
        "candidates": [as_record(setting, arguments.accuracy) for setting in everything if setting not in last],
    }


def ratio(setting, other):
    """Mean of the ratio of two speeds within each round, and its standard error."""
    ratios = np.divide(setting.speeds, other.speeds)
    return ratios.mean(), ratios.std(ddof=1) / np.sqrt(len(ratios))


def setting_of(record):
    return Setting(record["name"], record["mdp"], record["error"], record["ns_per_day"])


def table(cases):
    """The table of docs/tools.md."""
    lines = [
        "| | atoms | settings tried | of | found | its error | the best of all | its error | found / best |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        found, best = setting_of(case["found"]), setting_of(case["best"])
        value, error = ratio(found, best)
        cells = [
            SYSTEMS.get(case["system"], case["system"]),
            f"{case['atoms']:,}".replace(",", " "),
            case["tried"],
            case["all"],
            found.describe(),
            f"{found.error:.1e}",
            "the same" if case["found"] == case["best"] else best.describe(),
            f"{best.error:.1e}",
            "1" if case["found"] == case["best"] else f"{value:.2f} ± {error:.2f}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def made(folder):
    """The run input files of SYSTEMS."""
    for name in SYSTEMS:
        print(f"{name}: making and equilibrating", flush=True)
        (folder / name).mkdir(parents=True, exist_ok=True)
        path = standard_report.equilibrated(folder / name, *standard_report.ALL_SYSTEMS[name])
        yield path.rename(folder / f"{name}.tpr")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tpr", type=Path, nargs="*")
    parser.add_argument("--table", type=Path, metavar="JSON", help="prints the table of an earlier result")
    parser.add_argument("--accuracy", type=float, default=3e-4)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mdrun", default="", metavar="FLAGS", help='of mdrun, as "-ntomp 8"')
    parser.add_argument("--output", type=Path, default=environment.ROOT / "build/bench/tune_search.json")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(results.read(arguments.table)["cases"]))
        return
    gmx = environment.gmx()
    conditions = {
        **results.conditions(),
        "versions": gmx.version(),
        "mdrun": arguments.mdrun,
        "accuracy": arguments.accuracy,
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    cases = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in arguments.tpr or made(folder):
            cases.append(compare(gmx, path, arguments, folder))
            results.write(arguments.output, {**conditions, "cases": cases})
    print(table(cases))
    print(f"All numbers: {arguments.output}")


if __name__ == "__main__":
    main()
