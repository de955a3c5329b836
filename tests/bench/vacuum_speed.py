# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed of mdrun without periodic images: FMM beside a sum over all pairs.

    python3 -m tests.bench.vacuum_speed

Droplets of water, which evaporate, and proteins side by side, in vacuum with FMM (pbc = no, default
accuracy, Lennard-Jones to 1 nm), and with what GROMACS has in its place: a plain cut-off beyond the size
of the system, in a box with as much room. Both in turn, several rounds, the second half of each run is timed; medians of the rounds and half the
distance of the extremes. Writes vacuum_speed.json.
"""

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from farfield.gromacs import log, machine
from tests.bench import results
from tests.support.gmx import environment, mdp, reference, simulation, systems

ROOM = 1.5  # nm, for the droplet to spread
HALF = ["-resethway"]  # what is timed
DYNAMICS = {
    "gen-vel": "yes",
    "gen-temp": 300,
    "tcoupl": "v-rescale",
    "tc-grps": "System",
    "tau-t": 1,
    "ref-t": 300,
    "nstcalcenergy": 100,
    "nstenergy": 100,
    "rvdw": 1.0,
    "rcoulomb": 1.0,
}


def make_inputs(folder, system, seconds):
    """FMM.tpr and pairs.tpr, for runs of about so many seconds."""
    x = systems.read_gro(system.conf).x
    reach = float(np.linalg.norm(np.ptp(x, axis=0))) + ROOM
    boxed = systems.in_box(folder, system, 3 * reach)
    steps = lengths(system.atoms, seconds)
    pairs = {**reference.all_pairs(reach), "comm-mode": "angular", "nstlist": 100}
    for kind, changes, start in (("FMM", mdp.VACUUM, system), ("pairs", pairs, boxed)):
        entries = mdp.settings(DYNAMICS, changes, {"nsteps": steps[kind]})
        files = (start.conf, start.top, ["-maxwarn", 2])
        simulation.grompp(folder, kind, entries, *files).ok()


def lengths(atoms, seconds):
    """Steps of either kind, rough: a pair takes 0.3 ns of a core, FMM 3 us per atom."""
    cores = environment.threads()
    costs = {"FMM": 3e-6 * atoms / cores, "pairs": 0.3e-9 * atoms**2 / cores}
    return {kind: max(40, round(seconds / cost)) for kind, cost in costs.items()}


def measure(folder, system, arguments):
    make_inputs(folder, system, arguments.seconds)
    kinds = dict.fromkeys(("FMM", "pairs"), HALF)
    return {"atoms": system.atoms, **in_turn(folder, kinds, arguments.rounds)}


def in_turn(folder, kinds, rounds):
    """Runs KIND.tpr of all kinds in turn, several rounds: medians of speeds, and FMM over the best other one.

    kinds: {name: options of mdrun}, FMM first; the name of the ratio is that of the second.
    """
    speeds = {kind: [] for kind in kinds}
    for turn in range(rounds):
        for kind, flags in kinds.items():
            output = f"{kind}-{turn}"
            files = ["-s", f"{kind}.tpr", "-deffnm", output, "-noconfout"]
            parallel = ["-ntmpi", 1, "-ntomp", environment.threads()]
            environment.gmx()("mdrun", *files, *parallel, *flags, folder=folder, time_limit=3600)
            speeds[kind].append(log.speed(folder / f"{output}.log"))
    ours, *others = speeds
    best = max(others, key=lambda kind: statistics.median(speeds[kind]))
    ratios = [a / b for a, b in zip(speeds[ours], speeds[best])]
    setup = (folder / f"{ours}-0.log").read_text(errors="replace")
    first = setup.index("  multipole order")
    return {
        **{f"{kind}_ns_per_day": results.median_and_spread(v) for kind, v in speeds.items()},
        f"fmm_over_{others[0].lower()}": results.median_and_spread(ratios),
        "setup": setup[first : setup.index("  device ", first)].splitlines(),
    }


def parser_with(description, output):
    """Options of how long, how often and where to."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="of a run, rough")
    parser.add_argument("--output", type=Path, default=Path(output))
    return parser


def write(path, records):
    """The records with the machine and the program that they are of."""
    results.write(
        path,
        {
            "machine": machine.describe(),
            "threads": environment.threads(),
            "versions": environment.gmx().version(),
            "systems": records,
        },
    )


def main():
    parser = parser_with(__doc__.splitlines()[0], "vacuum_speed.json")
    parser.add_argument("--radii", type=float, nargs="*", default=[1.4, 2.3, 3.2, 5.0], help="nm")
    parser.add_argument("--proteins", type=int, nargs="*", default=[1, 3, 8], help="copies")
    arguments = parser.parse_args()
    makers = {f"droplet, {r} nm": partial(systems.droplet, radius=r) for r in arguments.radii}
    for copies in arguments.proteins:
        makers[f"{copies} proteins"] = partial(systems.vacuum_protein, copies=copies)
    records = {}
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as folder:
            system = make(Path(folder), steps=100)
            record = records[name] = measure(Path(folder), system, arguments)
        columns = [record[key] for key in ("FMM_ns_per_day", "pairs_ns_per_day", "fmm_over_pairs")]
        numbers = "  ".join(f"{median:8.3g} +- {spread:.2g}" for median, spread in columns)
        print(f"{name:<16} {record['atoms']:>8} atoms  FMM, all pairs, ratio: {numbers}", flush=True)
    write(arguments.output, records)


if __name__ == "__main__":
    main()
