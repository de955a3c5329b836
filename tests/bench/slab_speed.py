# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed and accuracy of mdrun for slabs: FMM beside PME with vacuum and a correction.

    python3 -m tests.bench.slab_speed
    python3 -m tests.bench.slab_speed --gpu --edges --membranes 1 2

Films of salt water, and bilayers of POPC with water on both sides, with FMM (pbc = xy, default accuracy)
and with what GROMACS has in its place: PME with standard settings in a box that is three times as high
as the film, ewald-geometry = 3dc. Both in turn, several rounds, the second half of each run is timed;
medians of the rounds and half the distance of the extremes. On a GPU (--gpu) PME runs as it is and tuned
by mdrun, and the faster one counts.

Errors of the starting forces, in units of their root mean square, are those against the FMM in double
precision at order 20, and those of FMM and PME against converged PME with the correction (3dc), which
shares nothing with the FMM but has an error of its own, that of mixed precision and of the vacuum.
Bilayers are made once and kept in the cache folder. Rows of bilayers alone, on a CPU and on a GPU:

    python3 -m tests.bench.slab_speed --edges --membranes 1 --output slab_membrane.json
    python3 -m tests.bench.slab_speed --gpu --edges --membranes 1 2 --output slab_gpu.json

Writes slab_speed.json, with the speed of every round and the steps of each run.
"""

import argparse
import shutil
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from examples import membrane
from farfield.gromacs import log
from farfield.gromacs.program import GmxError
from farfield.gromacs.tpr import REFERENCE
from tests.bench.mdrun_gpu import TUNING_DELAY, TUNING_INTERVALS
from tests.bench.mdrun_speed import cache_folder, ms_per_step
from tests.bench.vacuum_speed import DYNAMICS, HALF, in_turn, parser_with, write
from tests.support.gmx import environment, gro, mdp, simulation, systems

PADDING = 3  # heights of the film
SLAB_PME = {"pbc": "xyz", "ewald-geometry": "3dc"}
PME = {**mdp.STANDARD_PME, **SLAB_PME}
INPUTS = {"FMM": mdp.SLAB, "PME": PME}
NSTLIST = 100  # of PME on a GPU; with FMM mdrun takes 200


def bilayer():
    """The folder with conf.gro and topol.top, which needs no other file, of a bilayer without a height."""
    folder, patch = cache_folder() / "membrane-slab", cache_folder() / "membrane-patch"
    if (folder / "complete").exists():
        return folder
    gmx = environment.gmx()
    membrane.prepare(gmx, argparse.Namespace(threads=environment.threads()), patch)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(patch / "patch.top", folder / "topol.top")
    one = systems.System(folder, patch / "patch.gro", folder / "topol.top", 0, 0)
    alone = systems.self_contained_topology(folder, one)
    # Whole molecules, those of water around the lipids
    files = ["-f", one.conf, "-s", "processed.tpr", "-o", "whole.gro", "-pbc", "mol", "-center"]
    gmx("trjconv", *files, folder=folder, answer=f"{membrane.LIPID}\nSystem\n")
    s = systems.read_gro(folder / "whole.gro")
    s.box[2] = 0
    systems.write_gro(folder / "whole.gro", s)
    systems.relax(folder, "whole.gro", 1000, mdp.SLAB)
    alone.replace(folder / "topol.top")
    (folder / "complete").touch()
    return folder


def wide_bilayer(folder, copies):
    """So many bilayers side by side along x and along y."""
    s = systems.read_gro(bilayer() / "conf.gro")
    number = copies**2
    x = [s.x + i * s.box[0] + j * s.box[1] for i in range(copies) for j in range(copies)]
    names = (column * number for column in (s.residue_numbers, s.residues, s.atoms))
    box = s.box * [[copies], [copies], [1]]
    wide = gro.Structure(s.title, *names, np.concatenate(x), box)
    systems.write_gro(folder / "conf.gro", systems.snap_to_grid(wide))
    head, molecules = (bilayer() / "topol.top").read_text().split("[ molecules ]\n")
    (folder / "topol.top").write_text(f"{head}[ molecules ]\n{molecules * number}")
    return systems.system(folder)


def in_tall_box(folder, film):
    """The same film in the middle of a box with vacuum."""
    s = systems.read_gro(film.conf)
    lowest, highest = s.x[:, 2].min(), s.x[:, 2].max()
    s.box[2] = [0, 0, PADDING * (highest - lowest)]
    s.x[:, 2] += (s.box[2][2] - lowest - highest) / 2
    systems.write_gro(folder / "tall.gro", systems.snap_to_grid(s))
    return systems.System(folder, folder / "tall.gro", film.top, film.atoms, 0, warnings=1)


def errors(folder, system):
    """Relative RMS errors of the starting forces."""
    forces = {}
    for name, changes, variables in (
        ("exact", mdp.SLAB, REFERENCE),
        ("FMM", mdp.SLAB, None),
        ("PME", PME, None),
        ("converged_PME", {**mdp.TIGHT_PME, **SLAB_PME}, None),
    ):
        entries = mdp.settings(mdp.ONE_STEP, {"rvdw": 1.0, "rcoulomb": 1.0}, changes)
        simulation.grompp(folder, name, entries, system.conf, system.top, ["-maxwarn", 1]).ok()
        simulation.mdrun(folder, name, variables=variables).ok()
        forces[name] = simulation.Run(folder, name).forces
    exact, converged = forces.pop("exact"), forces["converged_PME"]
    return {
        f"{name}_force_error": simulation.force_error(found, exact) for name, found in forces.items()
    } | {
        f"{name}_from_converged_PME": simulation.force_error(forces[name], converged)
        for name in ("FMM", "PME")
    }


def steps_per_second(folder, flags):
    """How fast PME.tpr is, about."""
    name, steps = "probe", 20 * NSTLIST
    length = ["-nsteps", steps, *HALF, "-noconfout"]
    files = ["-s", "PME.tpr", "-deffnm", name]
    parallel = ["-ntmpi", 1, "-ntomp", environment.threads()]
    environment.gmx()("mdrun", *files, *parallel, *length, *flags, folder=folder)
    return 1000 / ms_per_step(log.speed(folder / f"{name}.log"), mdp.STANDARD["dt"])


def tuned(folder, pme, delay, timed):
    """Options of a run whose speed counts when mdrun has tuned PME, which a trial shows.

    mdrun refuses to reset its clock before, and has more grids to try, the higher the box.
    """
    flags = [*pme, "-tunepme", "-resetstep", delay, "-nsteps", delay + timed]
    files = ["-s", "PME tuned.tpr", "-deffnm", "trial", "-noconfout"]
    parallel = ["-ntmpi", 1, "-ntomp", environment.threads()]
    try:
        environment.gmx()("mdrun", *files, *parallel, *flags, folder=folder)
    except GmxError as error:
        if "PME tuning was still active" not in " ".join(str(error).split()):
            raise
        return tuned(folder, pme, 2 * delay, timed)
    return flags


def kinds_on_cpu(film, seconds):
    """{name: options of mdrun}"""
    steps = max(100, round(seconds * environment.threads() / (5e-6 * film.atoms)))
    return {name: ["-nb", "cpu", *HALF, "-nsteps", steps] for name in INPUTS}


def kinds_on_gpu(folder, arguments, has_bonded):
    """The same on a GPU, with tuned PME."""
    common = ["-nb", "gpu", "-update", arguments.update, "-pin", "on"]
    common += ["-pinoffset", arguments.pin_offset]
    if has_bonded:  # mdrun refuses it where there are none
        common += ["-bonded", "gpu"]
    pme = [*common, "-pme", "gpu", "-nstlist", NSTLIST]
    shutil.copy(folder / "PME.tpr", folder / "PME tuned.tpr")
    speed = steps_per_second(folder, [*pme, "-notunepme"])
    steps = round(arguments.seconds * speed)
    delay = round(TUNING_DELAY * speed) + TUNING_INTERVALS * NSTLIST
    return {
        "FMM": [*common, *HALF, "-nsteps", steps],
        "PME": [*pme, "-notunepme", *HALF, "-nsteps", steps],
        "PME tuned": tuned(folder, pme, delay, steps // 2),
    }


def measure(folder, film, arguments, has_bonded):
    system = in_tall_box(folder, film)
    for kind, changes in INPUTS.items():
        entries = mdp.settings(DYNAMICS, changes)
        files = (system.conf, system.top, ["-maxwarn", 1])
        simulation.grompp(folder, kind, entries, *files).ok()
    if arguments.gpu:
        kinds = kinds_on_gpu(folder, arguments, has_bonded)
    else:
        kinds = kinds_on_cpu(film, arguments.seconds)
    record = in_turn(folder, kinds, arguments.rounds)
    heights = {"thickness_nm": float(np.ptp(systems.read_gro(film.conf).x[:, 2]))}
    return {"atoms": film.atoms, **heights, **record, **errors(folder, system)}


def describe(name, record):
    """A line of the table."""
    speeds = [key for key in record if key.endswith("_ns_per_day")] + ["fmm_over_pme"]
    columns = ", ".join(f"{key.removesuffix('_ns_per_day')} {median:.3g} +- {spread:.2g}"
                        for key, (median, spread) in ((key, record[key]) for key in speeds))
    both = ", ".join(f"{key.removesuffix('_force_error')} {value:.1e}"
                     for key, value in record.items() if key.endswith("_force_error"))
    return f"{name}: {record['atoms']} atoms  {columns}  errors: {both}"


def main():
    parser = parser_with(__doc__.splitlines()[0], "slab_speed.json")
    parser.add_argument("--edges", type=float, nargs="*", default=[3.5, 5.0, 7.0], help="nm")
    parser.add_argument("--thickness", type=float, default=4.0, help="nm")
    parser.add_argument("--membranes", type=int, nargs="*", default=[],
                        help="copies of a patch of 4.8 nm along x and along y")
    parser.add_argument("--gpu", action="store_true", help="everything on a GPU")
    parser.add_argument("--update", default="gpu", help="where mdrun integrates, with --gpu")
    parser.add_argument("--pin-offset", type=int, default=0, metavar="CORE",
                        help="first core, with --gpu: mdrun does not mind taskset")
    arguments = parser.parse_args()
    makers = {
        f"film, {edge} x {edge} x {arguments.thickness} nm":
            partial(systems.film, edge=edge, thickness=arguments.thickness, steps=200)
        for edge in arguments.edges
    }
    makers |= {
        f"membrane, {copies} x {copies}": partial(wide_bilayer, copies=copies)
        for copies in arguments.membranes
    }
    records = {}
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as folder:
            film = make(Path(folder))
            has_bonded = name.startswith("membrane")
            records[name] = measure(Path(folder), film, arguments, has_bonded)
        print(describe(name, records[name]), flush=True)
        # After each system: a run that is stopped leaves what is done
        write(arguments.output, records)


if __name__ == "__main__":
    main()
