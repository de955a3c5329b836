# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the search of "farfield tune" leaves behind: its setting beside the best of all cells.

    python3 -m tests.bench.tune_search FILE.tpr [FILE.tpr ...]

For each run input file the search is done as the command does it, then for all cells, both ranges
and both engines; the setting found and the fastest of all are timed in turn. Needs rich.
"""

import argparse
import tempfile
from pathlib import Path

from farfield.gromacs import tpr
from farfield.tune.fmm_search import FmmSearch
from farfield.tune.measure import Measure, fastest
from farfield.tune.tune import finalists, ratio
from tests.bench import results
from tests.support.gmx import environment


def compare(gmx, path, arguments, folder):
    """The setting that the search finds, timed beside the best of all; returns the record."""
    parameters = tpr.parameters(gmx, path)
    run_input = tpr.RunInput(gmx, path, folder, ("-ntmpi", "1"))
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
    value, spread = ratio(found, best)
    print(
        f"{path.name}: found {found.describe()}, error {found.error:.1e}, {found.speed:.1f} ns/day "
        f"after {tried} settings; best of {len(search.found)}: {best.describe()}, "
        f"{best.speed:.1f} ns/day; found / best {value:.3f} +- {spread:.3f}",
        flush=True,
    )
    return {
        "tpr": path.name,
        "atoms": int(parameters["atoms"]),
        "found": found.mdp,
        "error": found.error,
        "found_ns_per_day": found.speeds,
        "tried": tried,
        "all": len(search.found),
        "best": best.mdp,
        "best_ns_per_day": best.speeds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tpr", type=Path, nargs="+")
    parser.add_argument("--accuracy", type=float, default=3e-4)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=environment.ROOT / "build/bench/tune_search.json")
    arguments = parser.parse_args()
    records = []
    with tempfile.TemporaryDirectory() as name:
        for path in arguments.tpr:
            records.append(compare(environment.gmx(), path, arguments, Path(name)))
            results.write(arguments.output, {"accuracy": arguments.accuracy, "cases": records})


if __name__ == "__main__":
    main()
