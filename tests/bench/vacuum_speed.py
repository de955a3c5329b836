# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed and accuracy of mdrun without periodic images: FMM beside a sum over all pairs.

    python3 -m tests.bench.vacuum_speed
    python3 -m tests.bench.vacuum_speed --radii --proteins --accuracies 1e-5

Droplets of water, which evaporate, proteins side by side, and a protein of 6 000 atoms, in vacuum with
FMM (pbc = no, Lennard-Jones to 1 nm) at the default accuracy and at 1e-5, and with what GROMACS has in its
place: a plain cut-off beyond the size of the system, in a box with as much room. All in turn, several
rounds, the second half of each run is timed; medians of the rounds and half the distance of the extremes.

Errors are those of the starting forces, bonded ones included, relative to their root mean square, against
all pairs by a double-precision GROMACS (gmx_d), with all Lennard-Jones interactions in both. Without
gmx_d they are against the mixed precision that is timed, whose own error is a part of them then;
"reference" in the result says which. Writes vacuum_speed.json.
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
REPORT = "\nFMM electrostatics with farfield"
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


def fmm(accuracy):
    """Settings without images at an accuracy."""
    return {**mdp.VACUUM, "fmm-farfield-accuracy": accuracy}


def name_of(accuracy):
    """Of a kind of run."""
    return f"FMM_{accuracy:.0e}"


def make_inputs(folder, system, boxed, reach, accuracies):
    """A tpr file of each kind."""
    kinds = {name_of(accuracy): (fmm(accuracy), system) for accuracy in accuracies}
    pairs = {**reference.all_pairs(reach), "comm-mode": "angular", "nstlist": 100}
    for kind, (changes, start) in {**kinds, "pairs": (pairs, boxed)}.items():
        files = (start.conf, start.top, ["-maxwarn", 2])
        simulation.grompp(folder, kind, mdp.settings(DYNAMICS, changes), *files).ok()


def steps_of(kind, atoms, seconds):
    """For a run of so many seconds, rough: a pair takes 0.3 ns of a core, FMM 3 us per atom."""
    cost = 0.3e-9 * atoms**2 if kind == "pairs" else 3e-6 * atoms
    return max(40, round(seconds * environment.threads() / cost))


def errors(folder, boxed, reach, accuracies):
    """Relative RMS errors of the starting forces, and of what program those of all pairs are."""
    double = environment.gmx_double()
    alone = systems.System(
        folder, boxed.conf, systems.self_contained_topology(folder, boxed), boxed.atoms, boxed.volume
    )

    def forces(name, changes, program=None):
        own = {"vdw-modifier": "None", "rvdw": reach, "rcoulomb": reach}
        entries = mdp.settings(mdp.ONE_STEP, own, changes)
        run = simulation.simulate(
            folder, name, entries, alone, warnings=3, program=program, time_limit=3600
        )
        return run.forces

    exact = forces("exact", reference.all_pairs(reach), double)
    found = {
        f"{name_of(accuracy)}_force_error":
            simulation.force_error(forces(f"error-{accuracy}", fmm(accuracy)), exact)
        for accuracy in accuracies
    }
    return {**found, "reference": (double or environment.gmx()).version()}


def measure(folder, system, arguments):
    x = systems.read_gro(system.conf).x
    reach = float(np.linalg.norm(np.ptp(x, axis=0))) + ROOM
    boxed = systems.in_box(folder, system, 3 * reach)
    make_inputs(folder, system, boxed, reach, arguments.accuracies)
    kinds = {
        kind: [*HALF, "-nsteps", steps_of(kind, system.atoms, arguments.seconds)]
        for kind in [*map(name_of, arguments.accuracies), "pairs"]
    }
    timed = in_turn(folder, kinds, arguments.rounds)
    return {"atoms": system.atoms, **timed, **errors(folder, boxed, reach, arguments.accuracies)}


def in_turn(folder, kinds, rounds):
    """Runs KIND.tpr of all kinds in turn, several rounds: medians of speeds, and FMM over the best other one.

    kinds: {name: options of mdrun, -nsteps among them}; names of those with FMM begin so and come first;
    the name of the ratio is that of the first other one. What it returns has the speeds of all rounds.
    """
    speeds = {kind: [] for kind in kinds}
    for turn in range(rounds):
        for kind, flags in kinds.items():
            output = f"{kind}-{turn}"
            files = ["-s", f"{kind}.tpr", "-deffnm", output, "-noconfout"]
            parallel = ["-ntmpi", 1, "-ntomp", environment.threads()]
            environment.gmx()("mdrun", *files, *parallel, *flags, folder=folder, time_limit=3600)
            speeds[kind].append(log.speed(folder / f"{output}.log"))
    ours = [kind for kind in kinds if kind.startswith("FMM")]
    others = [kind for kind in kinds if kind not in ours]
    best = max(others, key=lambda kind: statistics.median(speeds[kind]))
    record = {f"{kind}_steps": flags[flags.index("-nsteps") + 1] for kind, flags in kinds.items()}
    record |= {f"{kind}_rounds": values for kind, values in speeds.items()}
    record |= {f"{kind}_ns_per_day": results.median_and_spread(v) for kind, v in speeds.items()}
    for kind in ours:
        ratios = [a / b for a, b in zip(speeds[kind], speeds[best])]
        record[f"{kind}_over_{others[0]}".lower()] = results.median_and_spread(ratios)
        logs = [folder / f"{kind}-{turn}.log" for turn in range(rounds)]
        record[f"{kind}_setup"] = log.setup(logs[0])
        # More than one where particles have gone so far that cells had to follow
        record[f"{kind}_reports"] = [path.read_text(errors="replace").count(REPORT) for path in logs]
    return record


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
            **results.conditions(),
            "gpus": machine.gpus(),
            "threads": environment.threads(),
            "versions": environment.gmx().version(),
            "systems": records,
        },
    )


def describe(name, record, accuracies):
    """A line for each accuracy, and one for all pairs."""
    median, spread = record["pairs_ns_per_day"]
    yield f"{name:<22}{record['atoms']:>7} atoms  all pairs {median:8.3g} +- {spread:.2g} ns/day"
    for kind in map(name_of, accuracies):
        (median, spread), (ratio, range_) = (
            record[key] for key in (f"{kind}_ns_per_day", f"{kind}_over_pairs".lower())
        )
        yield (f"{'':<35}  {kind:<9} {median:8.3g} +- {spread:.2g} ns/day, {ratio:.3g} +- {range_:.2g}"
               f" times, force error {record[f'{kind}_force_error']:.1e}")


def main():
    parser = parser_with(__doc__.splitlines()[0], "vacuum_speed.json")
    parser.add_argument("--radii", type=float, nargs="*", default=[1.4, 2.3, 3.2, 5.0], help="nm")
    parser.add_argument("--proteins", type=int, nargs="*", default=[1, 3, 8], help="copies of 1 856 atoms")
    parser.add_argument("--large-protein", action=argparse.BooleanOptionalAction, default=True,
                        help="a protein of 6 000 atoms")
    parser.add_argument("--accuracies", type=float, nargs="+", default=[3e-4, 1e-5],
                        help="fmm-farfield-accuracy")
    arguments = parser.parse_args()
    makers = {f"droplet, {r} nm": partial(systems.droplet, radius=r) for r in arguments.radii}
    for copies in arguments.proteins:
        makers[f"{copies} proteins"] = partial(systems.vacuum_protein, copies=copies)
    if arguments.large_protein:
        makers["large protein"] = partial(systems.vacuum_protein, structure=systems.LARGE_PROTEIN)
    records = {}
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as folder:
            system = make(Path(folder), steps=100)
            records[name] = measure(Path(folder), system, arguments)
        print(*describe(name, records[name], arguments.accuracies), sep="\n", flush=True)
        # After each system: a run that is stopped leaves what is done
        write(arguments.output, records)


if __name__ == "__main__":
    main()
