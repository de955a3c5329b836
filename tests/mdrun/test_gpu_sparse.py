# SPDX-License-Identifier: LGPL-2.1-or-later
"""Films and droplets on a GPU: forces of many steps of a run, with and without energies, against a
rerun on the CPU. The occupied cells of a tree are others at every step."""

import numpy as np
import pytest

from tests.support.gmx import environment, gro, simulation, systems
from tests.support.gmx.mdp import FMM, settings

pytestmark = pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")

ACCURACY = 3e-4
TREE = {"fmm-farfield-m2l": "hierarchy", "fmm-farfield-cell-size": 0.6}
# No frame is written by a graph: GROMACS 2026.3 then writes coordinates of another moment.
RUN = {"nsteps": 400, "nstxout": 4, "nstfout": 4, "nstenergy": 100, "nstcalcenergy": 100}
HOT = {"gen-vel": "yes", "gen-temp": 300, "nstlist": 50}


def placed(folder, source, copies, axis, height):
    """Copies of a box of water side by side, in a box that is long along an axis (or all: None)."""
    s = systems.read_gro(source.conf)
    edge = np.diag(s.box)
    oxygen = s.x[::3]
    inside = np.floor(oxygen / edge) * edge
    # whole molecules, whose oxygens are in the box
    bonds = s.x.reshape(-1, 3, 3) - oxygen[:, None]
    bonds -= np.round(bonds / edge) * edge
    molecules = (oxygen - inside)[:, None] + bonds
    x = np.concatenate(
        [(molecules + np.array(c) * edge).reshape(-1, 3) for c in np.ndindex(copies)]
    )
    edges = edge * copies
    long = [2] if axis is not None else [0, 1, 2]
    edges[long] = height
    x[:, long] += height / 3
    if axis is not None:
        # the long axis comes to its place
        turn = np.roll([0, 1, 2], axis + 1)
        x, edges = x[:, turn], edges[turn]
    count = len(x) // 3
    tiled = gro.Structure(
        "water",
        [1 + i // 3 for i in range(len(x))],
        s.residues[:3] * count,
        s.atoms[:3] * count,
        x,
        np.diag(edges),
    )
    systems.write_gro(folder / "conf.gro", systems.snap_to_grid(tiled))
    (folder / "topol.top").write_text(systems.WATER_TOP + f"SOL {count}\n")
    return systems.system(folder)


SCENES = {
    "film of 2 nm, z": (2.0, (3, 3, 1), 2, 24),
    "film of 3 nm, x": (3.0, (2, 2, 1), 0, 24),
    "film of 3 nm, y": (3.0, (2, 2, 1), 1, 20),
    "droplet": (3.0, (1, 1, 1), None, 22),
}


@pytest.mark.parametrize("scene", SCENES)
def test_forces_of_a_run_are_those_of_a_rerun_on_the_cpu(work, scene):
    edge, copies, axis, height = SCENES[scene]
    (work / "water").mkdir()
    source = systems.water(work / "water", edge, steps=200)
    system = placed(work, source, copies, axis, height)
    entries = settings(RUN, HOT, FMM, TREE)
    simulation.grompp(work, "run", entries, system.conf, system.top).ok()
    simulation.mdrun(work, "run", ["-nb", "gpu", "-update", "gpu"]).ok()
    exact = {"fmm-farfield-accuracy": 1e-5, "nstcalcenergy": 1, "nstfout": 1, "nstxout": 1}
    simulation.grompp(work, "rerun", settings(exact, FMM), system.conf, system.top).ok()
    simulation.mdrun(work, "rerun", ["-nb", "cpu", "-rerun", "run.trr"]).ok()
    run, rerun = simulation.Run(work, "run"), simulation.Run(work, "rerun")
    assert len(run.frames) == 101
    errors = [
        simulation.force_error(a.f, b.f) for a, b in zip(run.frames, rerun.frames, strict=True)
    ]
    print(f"{scene}: {max(errors):.2e} at step {4 * int(np.argmax(errors))}")
    assert max(errors) <= ACCURACY
