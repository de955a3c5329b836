# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed of mdrun with FMM against PME, each at its best layout: many cores, several GPUs, several runs on one GPU.

    python3 -m tests.bench.mdrun_layouts --systems 23k protein --cores 2 8 16 --budget 500
    python3 -m tests.bench.mdrun_layouts --systems 93k 373k --gpus 1 2 --threads 8 --budget 500
    python3 -m tests.bench.mdrun_layouts --systems protein --replicas 1 4 --mps --budget 500

A layout is a number of ranks times OpenMP threads of each. On cores PME runs with one rank, with a rank
per core, and with layouts between. On several GPUs PME has one GPU for the mesh, and one or more ranks
on each of the others. "mdrun's own" is what mdrun chooses without -ntmpi and -ntomp, where all cores are
used. Replicas are runs side by side on the first GPU, as those of -multidir are, with their share of the
threads; their speeds are added.

All kinds run in turn, for several rounds, and the second half of each run counts. The length of the runs
follows from --budget: seconds for the whole command, systems that have to be made included. With
--prepare it makes the systems and stops. Layouts that mdrun refuses are noted and left out.

Prints tables; writes mdrun_layouts.json.
"""

import argparse
import contextlib
import itertools
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from farfield.gromacs import log, machine
from farfield.gromacs.program import GmxError, gathered
from tests.bench import mdrun_gpu, mdrun_speed, results
from tests.bench.mdrun_speed import CONTINUATION, say
from tests.support.gmx import gro, mdp
from tests.support.gmx.mdp import FMM
from tests.support.gmx.mdp import STANDARD_PME as PME

GRAPH = {"GMX_CUDA_GRAPH": "1"}
START_UP = 3.0  # s that a run takes beside its steps, at first; measured then
SHORTEST, LONGEST = 2.0, 20.0  # s of steps
PATIENCE = 90.0  # s that a run may take longer than it should: some layouts hang on some machines


@dataclass
class Kind:
    """A method with a layout; ranks = 0: what mdrun chooses."""

    method: str
    ranks: int
    threads: int
    gpus: int = 0
    options: tuple = ()
    variables: dict = field(default_factory=dict)
    replicas: int = 1
    note: str = ""

    @property
    def layout(self):
        text = f"{self.ranks} x {self.threads}" if self.ranks else "mdrun's own"
        return ", ".join(filter(None, (text, self.note)))

    @property
    def label(self):
        return f"{self.method}, {self.layout}"


def divisions(cores):
    """Ranks and threads: one rank, a rank per core, and between."""
    ranks = sorted({1, max(1, cores // 8), max(1, cores // 4), max(1, cores // 2), cores})
    return [(count, cores // count) for count in ranks]


def on_cores(cores, every):
    """Kinds without a GPU, on so many cores; every: whether the machine has no more."""
    kinds = [Kind("FMM", 1, cores)]
    kinds += [Kind("PME", *layout) for layout in divisions(cores)]
    if every:
        kinds += [Kind(method, 0, cores) for method in ("FMM", "PME")]
    return kinds


def on_gpus(gpus, share):
    """Kinds on so many GPUs, with a share of the cores for each.

    One rank has the share of one GPU: each step waits for the slowest of its threads. GROMACS records graphs with one
    rank; PME also without, as for short steps it may gain.
    """
    kinds = [Kind("FMM", 1, share, gpus, variables=GRAPH, note="graph")]
    if gpus == 1:
        return [*kinds, Kind("FMM", 1, share, 1), Kind("PME", 1, share, 1, variables=GRAPH, note="graph"),
                Kind("PME", 1, share, 1)]
    kinds += [Kind("FMM", 1, share, 1, variables=GRAPH, note="one GPU, graph"),
              Kind("FMM", gpus, share, gpus),
              Kind("PME", 1, share, 1, variables=GRAPH, note="one GPU, graph")]
    kinds += [Kind("PME", ranks, gpus * share // ranks, gpus, ("-npme", 1), note="1 for PME")
              for ranks in (gpus, 2 * gpus, 4 * gpus) if ranks <= gpus * share]
    return kinds


def side_by_side(replicas, threads):
    share = max(1, threads // replicas)
    return [Kind(method, 1, share, 1, variables=variables, replicas=replicas, note=note)
            for method in ("FMM", "PME") for variables, note in ((GRAPH, "graph"), ({}, ""))]


def command(kind, system, arguments, replica):
    """The options of mdrun."""
    options = [*kind.options]
    # 0: mdrun's choice, for one that has the cores for itself
    stride = arguments.pin_stride or int(kind.replicas > 1)
    if kind.ranks:
        offset = arguments.pin_offset + replica * kind.ranks * kind.threads * stride
        options += ["-ntmpi", kind.ranks, "-ntomp", kind.threads,
                    "-pin", "on", "-pinoffset", offset, "-pinstride", stride]
    if kind.gpus:
        update = "cpu" if system in mdrun_gpu.VIRTUAL_SITES else "gpu"
        options += ["-nb", "gpu", "-update", update, "-gpu_id", ",".join(map(str, range(kind.gpus)))]
        if mdrun_speed.has_bonded(system):
            options += ["-bonded", "gpu"]
        if kind.method == "PME":
            options += ["-pme", "gpu"]
    else:
        options += ["-nb", "cpu"]
    return [*options, "-notunepme"] if kind.method == "PME" else options


def run(gmx, system, kind, name, seconds, arguments):
    """Sum of the speeds of the replicas, ns/day, and the log of the first."""
    def one(replica):
        folder = arguments.output / f"replica-{replica}"
        folder.mkdir(exist_ok=True)
        gmx("mdrun", "-s", arguments.output / f"{system}-{kind.method}.tpr", "-deffnm", name, "-noconfout",
            "-nsteps", -1, "-maxh", seconds / 3600, "-resethway", *command(kind, system, arguments, replica),
            folder=folder, variables=kind.variables, time_limit=seconds + PATIENCE)
        return log.speed(folder / f"{name}.log")

    with ThreadPoolExecutor(kind.replicas) as pool:
        speeds = gathered(pool, [lambda replica=replica: one(replica) for replica in range(kind.replicas)])
    return sum(speeds), arguments.output / "replica-0" / f"{name}.log"


@contextlib.contextmanager
def service(folder):
    """NVIDIA's MPS: programs that share a GPU compute at the same time."""
    variables = {f"CUDA_MPS_{name}_DIRECTORY": str(folder / f"mps-{name.lower()}") for name in ("PIPE", "LOG")}
    for path in variables.values():
        Path(path).mkdir(parents=True, exist_ok=True)
    before = dict(os.environ)
    os.environ.update(variables)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
    try:
        yield
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False)
        os.environ.clear()
        os.environ.update(before)


def reason_of(error):
    """What mdrun says of an error, in one line: the paragraph below its kind."""
    text = str(error)
    found = re.search(r"(?:[Ee]rror|[Ii]nput|implemented|[Ff]ailure).*:\n(.+?)\n\n", text, re.DOTALL)
    return " ".join((found[1] if found else text.strip().splitlines()[-1]).split())


class Clock:
    """Shares what is left of the budget among the runs that are left."""

    def __init__(self, budget, runs):
        self.end, self.left, self.overheads = time.monotonic() + budget, runs, [START_UP]

    def seconds(self):
        """Of the steps of the next run."""
        overhead = sum(self.overheads) / len(self.overheads)
        share = (self.end - time.monotonic()) / max(1, self.left) - overhead
        return min(LONGEST, max(SHORTEST, share))

    def has_run(self, took, steps):
        self.left -= 1
        self.overheads.append(max(0.0, took - steps))


def rows_of(arguments):
    """[(what, kinds)]: what stands in the first columns of a table."""
    rows = [({"cores": cores}, on_cores(cores, cores == machine.usable_cores())) for cores in arguments.cores]
    rows += [({"gpus": gpus, "cores": gpus * arguments.threads}, on_gpus(gpus, arguments.threads))
             for gpus in arguments.gpus]
    for replicas, mps in itertools.product(arguments.replicas, (False, True) if arguments.mps else (False,)):
        rows.append(({"gpus": 1, "cores": arguments.threads, "replicas": replicas, "mps": mps},
                     side_by_side(replicas, arguments.threads)))
    return rows


def title(what):
    """What a row was measured on."""
    if "replicas" in what:
        return f"{what['replicas']} runs on a GPU, {what['cores']} cores{', MPS' if what['mps'] else ''}"
    gpus = what.get("gpus", 0)
    return (f"{gpus} GPU{'s' if gpus > 1 else ''}, " if gpus else "") + f"{what['cores']} cores"


def measure(gmx, system, what, kinds, clock, arguments):
    """All rounds of a row; returns its record."""
    record = {**what, "kinds": {}}
    with service(arguments.output.resolve()) if what.get("mps") else contextlib.nullcontext():
        for turn in range(arguments.rounds):
            for number, kind in enumerate(kinds):
                entry = record["kinds"].setdefault(
                    kind.label, {"method": kind.method, "layout": kind.layout, "ns_per_day": []})
                if "refused" in entry:
                    clock.has_run(0, 0)
                    continue
                seconds, begin = clock.seconds(), time.monotonic()
                name = f"{system}-{'-'.join(map(str, what.values()))}-{number}-{turn + 1}"
                try:
                    speed, path = run(gmx, system, kind, name, seconds, arguments)
                except (GmxError, subprocess.TimeoutExpired) as error:
                    entry["refused"] = reason_of(error)
                    say(f"{system}, {title(what)}, {kind.label}: {entry['refused']}")
                else:
                    entry["ns_per_day"].append(speed)
                    if kind.method == "FMM":
                        record["setup"] = log.setup(path)
                    say(f"{system}, {title(what)}, round {turn + 1}, {kind.label:<32} {speed:9.1f} ns/day")
                clock.has_run(time.monotonic() - begin, seconds)
    summarise(record)
    return record


def summarise(record):
    """Adds medians, the best layout of each method, and the ratio within each round."""
    measured = {label: entry for label, entry in record["kinds"].items() if "refused" not in entry}
    for entry in measured.values():
        entry["median"], entry["half_range"] = results.median_and_spread(entry["ns_per_day"])
    record["best"] = {}
    for label, entry in measured.items():
        best = record["best"].get(entry["method"])
        if best is None or entry["median"] > measured[best]["median"]:
            record["best"][entry["method"]] = label
    if len(record["best"]) == 2:
        fmm, pme = (measured[record["best"][method]]["ns_per_day"] for method in ("FMM", "PME"))
        record["fmm_over_pme"], record["fmm_over_pme_half_range"] = results.median_and_spread(
            [one / other for one, other in zip(fmm, pme)])


def print_tables(records):
    for system, record in records.items():
        for row in record["rows"]:
            print(f"\n{system}, {record['atoms']} atoms, {title(row)}")
            for label, entry in row["kinds"].items():
                best = "  best" if label in row["best"].values() else ""
                print(f"  {label:<36}" + (f"refused: {entry['refused']}" if "refused" in entry else
                                          f"{entry['median']:>10.1f} +-{entry['half_range']:>6.1f}{best}"))
            if "fmm_over_pme" in row:
                print(f"  {'FMM / PME':<36}{row['fmm_over_pme']:>10.3f} +-{row['fmm_over_pme_half_range']:>6.3f}")
    print("\nns/day: medians and half the distance of the extremes")


def main():
    begin = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mdrun_speed.add_common_arguments(parser, "mdrun_layouts.json")
    parser.add_argument("--systems", nargs="+", choices=mdrun_gpu.SYSTEMS, default=["23k", "93k", "protein"])
    parser.add_argument("--cores", type=int, nargs="*", default=[], help="numbers of cores, without a GPU")
    parser.add_argument("--gpus", type=int, nargs="*", default=[], help="numbers of GPUs")
    parser.add_argument("--replicas", type=int, nargs="*", default=[], help="numbers of runs on one GPU")
    parser.add_argument("--mps", action="store_true", help="replicas with NVIDIA's MPS as well")
    parser.add_argument("--threads", type=int, help="for each GPU; default: its share of the cores")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=540, help="seconds for all; fewer make the runs shorter")
    parser.add_argument("--pin-offset", type=int, default=0, metavar="CORE")
    parser.add_argument("--pin-stride", type=int, default=0, metavar="CORES", help="default: mdrun chooses")
    parser.add_argument("--prepare", action="store_true", help="only make the systems")
    arguments = parser.parse_args()
    if arguments.threads is None:
        arguments.threads = max(1, machine.usable_cores() // max(1, len(machine.gpus())))
    rows = rows_of(arguments)
    numbers = [arguments.rounds, arguments.threads, *arguments.cores, *arguments.gpus, *arguments.replicas]
    if min(numbers) < 1 or not (rows or arguments.prepare):
        parser.error("name some --cores, --gpus or --replicas; all numbers must be at least 1")
    gmx, version = mdrun_speed.start(arguments)
    folders = {system: mdrun_gpu.prepare(gmx, system, arguments) for system in arguments.systems}
    if arguments.prepare:
        return
    records = {}
    for system, (folder, common) in folders.items():
        for method, settings in (("FMM", {**FMM, **arguments.mdp}), ("PME", PME)):
            name = f"{system}-{method}"
            mdp.write(arguments.output / f"{name}.mdp", common, CONTINUATION, settings, {"nsteps": -1})
            gmx("grompp", "-f", f"{name}.mdp", "-c", folder / "warm.gro", "-t", folder / "warm.cpt",
                "-p", folder / "topol.top", "-o", f"{name}.tpr", "-po", f"{name}-out.mdp", folder=arguments.output)
        records[system] = {"atoms": gro.atom_count(folder / "warm.gro"), "rows": []}
    runs = len(records) * arguments.rounds * sum(len(kinds) for _, kinds in rows)
    clock = Clock(arguments.budget - (time.monotonic() - begin), runs)
    path = arguments.output / "mdrun_layouts.json"
    for (system, record), (what, kinds) in itertools.product(records.items(), rows):
        record["rows"].append(measure(gmx, system, what, kinds, clock, arguments))
        # After each row: a command that is stopped leaves what is done
        mdrun_speed.write_result(path, arguments, {**version, "GPUs": machine.gpus()}, "systems", records)
    print_tables(records)
    print(f"\nAll numbers: {path}")


if __name__ == "__main__":
    try:
        main()
    except (GmxError, ValueError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"mdrun_layouts.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
