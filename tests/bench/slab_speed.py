# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed and accuracy of mdrun for slabs: FMM beside PME with vacuum and a correction.

    python3 -m tests.bench.slab_speed

Films of salt water with FMM (pbc = xy, default accuracy) and with what GROMACS has in its place: PME with
standard settings in a box that is three times as high as the film, ewald-geometry = 3dc. Both in turn,
several rounds, the second half of each run is timed; medians of the rounds and half the distance of
the extremes. Errors of the starting forces, in units of their root mean square, are those against the
FMM in double precision at order 20. Writes slab_speed.json.
"""

import tempfile
from pathlib import Path

import numpy as np

from farfield.gromacs.tpr import REFERENCE
from tests.bench.vacuum_speed import DYNAMICS, in_turn, parser_with, write
from tests.support.gmx import environment, mdp, simulation, systems

PADDING = 3  # heights of the film
PME = {**mdp.STANDARD_PME, "pbc": "xyz", "ewald-geometry": "3dc"}


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
    ):
        entries = mdp.settings(mdp.ONE_STEP, {"rvdw": 1.0, "rcoulomb": 1.0}, changes)
        simulation.grompp(folder, name, entries, system.conf, system.top, ["-maxwarn", 1]).ok()
        simulation.mdrun(folder, name, variables=variables).ok()
        forces[name] = simulation.Run(folder, name).forces
    return {
        f"{name}_force_error": simulation.force_error(forces[name], forces["exact"])
        for name in ("FMM", "PME")
    }


def measure(folder, film, arguments):
    system = in_tall_box(folder, film)
    steps = max(100, round(arguments.seconds * environment.threads() / (5e-6 * film.atoms)))
    for kind, changes in (("FMM", mdp.SLAB), ("PME", PME)):
        entries = mdp.settings(DYNAMICS, changes, {"nsteps": steps})
        simulation.grompp(
            folder, kind, entries, system.conf, system.top, ["-maxwarn", 1]
        ).ok()
    record = in_turn(folder, "PME", arguments.rounds)
    heights = {"thickness_nm": float(np.ptp(systems.read_gro(film.conf).x[:, 2]))}
    return {"atoms": film.atoms, **heights, **record, **errors(folder, system)}


def main():
    parser = parser_with(__doc__.splitlines()[0], "slab_speed.json")
    parser.add_argument("--edges", type=float, nargs="*", default=[3.5, 5.0, 7.0], help="nm")
    parser.add_argument("--thickness", type=float, default=4.0, help="nm")
    arguments = parser.parse_args()
    records = {}
    for edge in arguments.edges:
        name = f"film, {edge} x {edge} x {arguments.thickness} nm"
        with tempfile.TemporaryDirectory() as folder:
            film = systems.film(Path(folder), edge, arguments.thickness, steps=200)
            record = records[name] = measure(Path(folder), film, arguments)
        columns = [record[key] for key in ("FMM_ns_per_day", "PME_ns_per_day", "fmm_over_pme")]
        numbers = "  ".join(f"{median:.3g} +- {spread:.2g}" for median, spread in columns)
        both = "  ".join(f"{record[f'{kind}_force_error']:.1e}" for kind in ("FMM", "PME"))
        print(f"{name}: {record['atoms']} atoms  FMM, PME, ratio: {numbers}  errors: {both}", flush=True)
    write(arguments.output, records)


if __name__ == "__main__":
    main()
