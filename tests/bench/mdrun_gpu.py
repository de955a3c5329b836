# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed and accuracy of mdrun on a GPU with FMM against PME, both at their best.

    python3 -m tests.bench.mdrun_gpu --systems 23k 93k protein --rounds 3

makes each system once, keeps it warm in the cache folder, and runs every kind of electrostatics in
turn, several rounds in one invocation, so that a change of the machine's speed meets all of them:

    PME               with GROMACS's standard settings
    PME tuned         cut-off and grid tuned by mdrun, which starts 5 s into a run; timed after it
    FMM               with the options of --mdp
    FMM all atoms     the same with all atoms in GROMACS's pair list
    none              a plain cut-off, for boxes of water also without charges: close to what no
                      Coulomb interaction costs, though these kernels still compute it
    ... no graph      the same without CUDA graphs
    ... list N        the same with another interval of the pair search, of --nstlist; PME is tuned
                      with the first one alone

The best kind of PME is compared with the best kind of FMM. The forces of both at the first step are
compared with a converged PME: in double precision if --gmx-double names such a gmx of any version,
otherwise in mixed precision, which limits the comparison to a few 1e-6.

With --merge the rounds of earlier results are put together instead, system by system.

Systems: boxes of TIP3P and TIP4P water and of salt water, a protein in a dodecahedron of water with
three force fields, a membrane, and 27 droplets of water in large boxes of vacuum; those whose names
end with "-4fs" have heavy hydrogens and steps of 4 fs instead of 2 fs. Prints tables; writes
mdrun_gpu.json and, with matplotlib, mdrun_gpu.svg.
"""

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
import threading
from pathlib import Path

from examples import protein
from farfield.gromacs import log, machine
from farfield.gromacs.program import GmxError
from tests.bench import mdrun_speed, results
from tests.bench.figures import mdrun
from tests.bench.mdrun_speed import ALL_ATOMS, COMMON, CONTINUATION, MINIMISATION, NONE, WARM_UP, say
from tests.support.gmx import gro, mdp
from tests.support.gmx.mdp import FMM
from tests.support.gmx.mdp import STANDARD_PME as PME

DROPLETS = {"droplets-40": 40.0, "droplets-80": 80.0}  # edge of the box, nm
NUM_DROPLETS, MOLECULES_PER_DROPLET = 27, 3710
SYSTEMS = [*mdrun_speed.SYSTEMS, *DROPLETS]
# GROMACS constructs virtual sites on the CPU.
VIRTUAL_SITES = {*mdrun_speed.FOUR_SITE_BOXES,
                 *(name for name, (_, water) in mdrun_speed.PROTEINS.items()
                   if protein.has_four_sites(water))}

DEVICES = {"PME": ("-nb", "gpu", "-pme", "gpu"), "FMM": ("-nb", "gpu")}  # for the forces

TUNING_DELAY = 7.0  # s: mdrun starts to tune after 5 s
TUNING_INTERVALS = 80  # of the pair search; each setting takes two, most runs try fewer than 30
PROBE_STEPS = 100  # of the first run that finds out how many steps fill the time
PROBE_SECONDS = 0.5  # of the second, which is timed after so long


# ---- systems ----
def droplets(gmx, name, arguments):
    """The folder of 27 droplets cut from warm water, around the points of a cubic lattice."""
    edge = DROPLETS[name]
    folder = arguments.cache / name
    if (folder / "complete").exists():
        return folder
    water = mdrun_speed.prepare(gmx, "93k", arguments) / "warm.gro"
    folder.mkdir(parents=True, exist_ok=True)
    say(f"{name}: cutting droplets and warming up (once)")
    warm = gro.read(water)
    sites, box = warm.x, [warm.box[k][k] for k in range(3)]
    generator = random.Random(1)
    out = []
    for d in range(NUM_DROPLETS):
        centre = [generator.uniform(0, length) for length in box]
        target = [(d // 3 ** k % 3 + 0.5 + generator.uniform(-0.1, 0.1)) * edge / 3
                  for k in range(3)]
        # Molecules, whole around their oxygen, sorted by its distance from the centre
        molecules = []
        for first in range(0, len(sites), 3):
            oxygen = [x - length * round((x - c) / length) - c
                      for x, c, length in zip(sites[first], centre, box)]
            molecules.append((sum(x * x for x in oxygen), first, oxygen))
        molecules.sort()
        for _, first, oxygen in molecules[:MOLECULES_PER_DROPLET]:
            for atom in range(3):
                shift = [a - o for a, o in zip(sites[first + atom], sites[first])]
                shift = [x - length * round(x / length) for x, length in zip(shift, box)]
                out.append([t + o + x for t, o, x in zip(target, oxygen, shift)])
    numbers = [i // 3 + 1 for i in range(len(out))]
    names = ["OW", "HW1", "HW2"] * (len(out) // 3)
    cube = [[edge if i == k else 0.0 for k in range(3)] for i in range(3)]
    gro.write(folder / "water.gro", gro.Structure(
        f"{NUM_DROPLETS} droplets of water", numbers, ["SOL"] * len(out), names, out, cube),
        decimals=3)
    (folder / "topol.top").write_text(f"{mdrun_speed.TOPOLOGY}SOL {len(out) // 3}\n")
    # PME would need a grid of the whole box.
    mdrun_speed.warm_up(gmx, folder, "water.gro", (("minimise", MINIMISATION), ("warm", WARM_UP)),
                        FMM, arguments.threads)
    (folder / "complete").touch()
    return folder


def prepare(gmx, name, arguments):
    """The folder with warm.gro, warm.cpt and topol.top of a system, and its common settings."""
    if name in DROPLETS:
        return droplets(gmx, name, arguments), COMMON
    return mdrun_speed.system(gmx, name, arguments)


# ---- kinds of runs ----
def kinds_of(folder, arguments):
    """{name: settings, topology, whether it is tuned, graphs, nstlist, variables of mdrun}"""
    fmm = {**FMM, **arguments.mdp}
    electrostatics = {"PME": PME, "FMM": fmm}
    if not arguments.no_baseline:
        electrostatics |= {"FMM all atoms": fmm, "none": NONE}
    baseline = "uncharged.top" if (folder / "uncharged.top").exists() else "topol.top"
    kinds = {}
    for nstlist in arguments.nstlist:
        for name, settings in electrostatics.items():
            topology = baseline if name == "none" else "topol.top"
            for tuned in (False, True) if name == "PME" and not arguments.no_tuning else (False,):
                if tuned and nstlist != arguments.nstlist[0]:
                    continue
                for graph in (True, False) if not arguments.no_graphless else (True,):
                    label = (name + (" tuned" if tuned else "") + ("" if graph else " no graph")
                             + (f" list {nstlist}" if nstlist != arguments.nstlist[0] else ""))
                    variables = {"GMX_CUDA_GRAPH": "1"} if graph else {}
                    if name == "FMM all atoms":
                        variables |= ALL_ATOMS
                    kinds[label] = {"base": name, "settings": settings, "topology": topology,
                                    "tuned": tuned, "nstlist": nstlist, "variables": variables}
    return kinds


class MemoryWatch(threading.Thread):
    """The largest amount of GPU memory in use while the context is open, MiB, or None."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.finished = None, threading.Event()

    def run(self):
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
            command += ["-i", visible.split(",", maxsplit=1)[0]]
        while not self.finished.wait(0.5):
            try:
                used = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                self.peak = max(self.peak or 0, *map(int, used.split()))
            except (OSError, ValueError, subprocess.CalledProcessError):
                return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.finished.set()
        self.join()


def run(gmx, name, kind, steps, reset, arguments):
    """One run; ns/day. Its log is name.log."""
    update = "cpu" if kind["system"] in VIRTUAL_SITES else "gpu"
    options = ["-nb", "gpu", "-update", update, "-nstlist", kind["nstlist"]]
    if mdrun_speed.has_bonded(kind["system"]):  # mdrun refuses it where there are none
        options += ["-bonded", "gpu"]
    if kind["base"] == "PME":
        options += ["-pme", "gpu", "-tunepme" if kind["tuned"] else "-notunepme"]
    gmx("mdrun", "-s", kind["tpr"], "-deffnm", name, "-nsteps", steps, "-resetstep", reset,
        "-noconfout", "-ntmpi", 1, "-ntomp", arguments.threads, "-pin", "on",
        "-pinoffset", arguments.pin_offset, *options,
        folder=arguments.output, variables={"GMX_FMM_HELPERS": "none", **kind["variables"]})
    return log.speed(arguments.output / f"{name}.log")


def steps_per_second(gmx, name, kind, arguments):
    """How fast a kind is, about."""
    def probe(steps):
        untuned = {**kind, "tuned": False}
        speed = run(gmx, f"{name}-probe", untuned, steps, steps // 2, arguments)
        return 1000 / mdrun_speed.ms_per_step(speed, kind["dt"])

    # The first steps are slow: a second run is long enough for them not to count.
    intervals = max(2, math.ceil(PROBE_SECONDS * probe(PROBE_STEPS) / kind["nstlist"]))
    return probe(2 * kind["nstlist"] * intervals)


def plan(kind, per_second, arguments):
    """Numbers of steps, all and before the clock is reset, that fill the time."""
    nstlist = kind["nstlist"]

    def intervals(seconds):
        return max(2, math.ceil(seconds * per_second / nstlist))

    reset = intervals(arguments.seconds / 2)
    if kind["tuned"]:
        reset = intervals(TUNING_DELAY) + TUNING_INTERVALS
    return (reset + intervals(arguments.seconds)) * nstlist, reset * nstlist


def measure(gmx, name, folder, common, arguments):
    """All rounds of a system; returns the record for the JSON file."""
    kinds = kinds_of(folder, arguments)
    inputs, speeds = {}, {}
    for kind in kinds.values():
        base = kind["base"]
        if base not in inputs:
            inputs[base] = f"{name}-{base}.tpr"
            mdp.write(arguments.output / f"{name}-{base}.mdp", common, CONTINUATION,
                               kind["settings"], {"nsteps": PROBE_STEPS})
            gmx("grompp", "-f", f"{name}-{base}.mdp", "-c", folder / "warm.gro",
                "-t", folder / "warm.cpt", "-p", folder / kind["topology"], "-o", inputs[base],
                "-po", f"{name}-{base}-out.mdp", folder=arguments.output)
        kind["tpr"], kind["system"], kind["dt"] = inputs[base], name, common["dt"]
        if base not in speeds:
            speeds[base] = steps_per_second(gmx, name, kind, arguments)
        kind["steps"], kind["reset"] = plan(kind, speeds[base], arguments)
    record = {"atoms": gro.atom_count(folder / "warm.gro"), "dt": common["dt"], "kinds": {}}
    for turn in range(arguments.rounds):
        for label, kind in kinds.items():
            entry = record["kinds"].setdefault(label, {
                "base": kind["base"], "steps": kind["steps"] - kind["reset"], "ns_per_day": [],
                "search_us_per_step": [], "gpu_memory_mib": []})
            run_name = f"{name}-{label.replace(' ', '_')}-{turn + 1}"
            with MemoryWatch() as memory:
                speed = run(gmx, run_name, kind, kind["steps"], kind["reset"], arguments)
            path = arguments.output / f"{run_name}.log"
            entry["ns_per_day"].append(speed)
            entry["gpu_memory_mib"].append(memory.peak)
            search = log.cycles(path).get("Neighbor search", 0)
            entry["search_us_per_step"].append(1e6 * search / entry["steps"])
            record["gpu"] = log.gpu(path)
            if kind["base"] == "FMM":
                entry.setdefault("stages", []).append(log.stages(path))
                record["setup"] = log.setup(path)
            say(f"{name} round {turn + 1} {label:<24} {speed:9.1f} ns/day")
    summarise(record)
    return record


def summarise(record):
    """Adds medians, the best kind of each electrostatics, and ratios within each round."""
    best = {}
    for label, entry in record["kinds"].items():
        entry["median"], entry["half_range"] = results.median_and_spread(entry["ns_per_day"])
        entry["ms_per_step"] = mdrun_speed.ms_per_step(entry["median"], record["dt"])
        if "stages" in entry:
            entry["stage_ms"] = {stage: statistics.median(times[stage] for times in entry["stages"])
                                 for stage in entry["stages"][0]}
        if (entry["base"] not in best
                or entry["median"] > record["kinds"][best[entry["base"]]]["median"]):
            best[entry["base"]] = label
    record["best"] = best
    ratios = [fmm / pme for fmm, pme in zip(record["kinds"][best["FMM"]]["ns_per_day"],
                                            record["kinds"][best["PME"]]["ns_per_day"])]
    record["fmm_over_pme"], record["fmm_over_pme_half_range"] = results.median_and_spread(ratios)


def merged(paths):
    """The result of several files: {..., "systems": records}, with the rounds of all."""
    contents = [results.read(path) for path in paths]
    records = {}
    for content in contents:
        for name, record in content["systems"].items():
            kinds = records.setdefault(name, {**record, "kinds": {}})["kinds"]
            for label, entry in record["kinds"].items():
                known = kinds.setdefault(label, {"base": entry["base"], "steps": entry["steps"]})
                for key, value in entry.items():
                    if isinstance(value, list):
                        known.setdefault(key, []).extend(value)
            for key in record.keys() - records[name].keys():
                records[name][key] = record[key]
    for record in records.values():
        record.setdefault("dt", COMMON["dt"])  # of results from before there were 4 fs
        summarise(record)
    conditions = {key: "; ".join(sorted({content[key] for content in contents}))
                  for key in ("date", "revision", "machine", "command")}
    return {**contents[0], **conditions, "systems": records}


# ---- what comes out ----
def print_tables(records):
    for name, record in records.items():
        print(f"\n{name}, {record['atoms']} atoms, {record['gpu']}")
        print(f"{'':<26}{'ns/day':>18}{'ms/step':>9}{'search us':>11}{'GPU MiB':>9}")
        for label, entry in record["kinds"].items():
            memory = [value for value in entry["gpu_memory_mib"] if value]
            print(f"{label:<26}{entry['median']:>10.1f} +-{entry['half_range']:>5.1f}"
                  f"{entry['ms_per_step']:>9.4f}"
                  f"{statistics.median(entry['search_us_per_step']):>11.1f}"
                  + (f"{max(memory):>9}" if memory else f"{'-':>9}"))
        best = record["best"]
        print(f"{best['FMM']} / {best['PME']}: {record['fmm_over_pme']:.3f} +- "
              f"{record['fmm_over_pme_half_range']:.3f}")
        errors = record.get("force_error")
        if errors:
            print(mdrun_speed.describe_errors(errors))
        print("FMM, us: " + ", ".join(f"{stage} {1000 * time:.1f}" for stage, time in
                                      record["kinds"][best["FMM"]]["stage_ms"].items()))
        print("\n".join(record["setup"]))
    print("\nns/day: medians and half the distance of the extremes; search: time per step that the "
          "pair search takes on the CPU; GPU MiB: all processes")


def present(records, folder):
    """Tables to the terminal, the figure into the folder."""
    print_tables(records)
    try:
        mdrun.draw(records, folder / "mdrun_gpu.svg")
    except ImportError:
        say("no figure: matplotlib is not installed")
    print(f"\nAll numbers: {folder / 'mdrun_gpu.json'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    mdrun_speed.add_arguments(parser, "mdrun_gpu.json and mdrun_gpu.svg")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="timed length of a run")
    parser.add_argument("--threads", type=int, default=min(16, machine.usable_cores()))
    parser.add_argument("--pin-offset", type=int, default=0, metavar="CORE",
                        help="first core, for runs side by side on several GPUs")
    parser.add_argument("--nstlist", type=int, nargs="+", default=[100],
                        help="intervals of the pair search, each is run")
    parser.add_argument("--no-tuning", action="store_true", help="leave out tuned PME")
    parser.add_argument("--no-graphless", action="store_true",
                        help="leave out the runs without CUDA graphs")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="JSON",
                        help="results to put together; nothing is run")
    arguments = parser.parse_args()
    if arguments.merge:
        arguments.output.mkdir(parents=True, exist_ok=True)
        result = merged(arguments.merge)
        results.write(arguments.output / "mdrun_gpu.json", result)
        present(result["systems"], arguments.output)
        return
    if arguments.rounds < 1 or arguments.threads < 1 or min(arguments.nstlist) < 1:
        parser.error("--rounds, --threads and --nstlist must be at least 1")
    gmx, version = mdrun_speed.start(arguments)
    records = {}
    for name in arguments.systems:
        folder, common = prepare(gmx, name, arguments)
        record = records[name] = measure(gmx, name, folder, common, arguments)
        if record["atoms"] <= arguments.max_error_atoms:
            record["force_error"] = mdrun_speed.force_errors(
                gmx, name, folder, common, arguments, DEVICES)
        # After each system: a run that is stopped leaves what is done
        mdrun_speed.write_result(arguments.output / "mdrun_gpu.json", arguments, version, "systems",
                                 records)
    present(records, arguments.output)


if __name__ == "__main__":
    try:
        main()
    except (GmxError, ValueError, OSError) as error:
        sys.exit(f"mdrun_gpu.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
