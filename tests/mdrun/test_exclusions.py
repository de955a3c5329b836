# SPDX-License-Identifier: LGPL-2.1-or-later
"""Excluded pairs at any distance: FMM takes each out, wherever the atoms are."""

import numpy as np

from tests.support.gmx import gro, mdp, simulation, systems
from tests.support.gmx.mdp import settings

COLUMNS, ROWS, SPACING = 20, 10, 0.3
ATOMS = COLUMNS * ROWS
EDGES = (6.3, 3.3, 3.0)


def write_sheet(folder):
    """A sheet of atoms, all pairs excluded, as wide as the box; two ions above it."""
    column, row = np.meshgrid(np.arange(COLUMNS), np.arange(ROWS))
    # Neighbours in the chain are neighbours in space
    column[1::2] = column[1::2, ::-1].copy()
    x = np.stack([column.ravel(), row.ravel(), np.zeros(ATOMS)], axis=1) * SPACING
    x += [0.2, 0.2, 0.5]
    x = np.concatenate([x, [[1.0, 1.0, 1.5], [5.0, 2.0, 2.0]]])
    names = ["C"] * ATOMS + ["NA", "CL"]
    s = gro.Structure(
        "sheet",
        [1] * ATOMS + [2, 3],
        ["SHT  "] * ATOMS + ["NA   ", "CL   "],
        [f"{name:>5}" for name in names],
        x,
        np.diag(EDGES),
    )
    systems.write_gro(folder / "conf.gro", systems.snap_to_grid(s))
    lines = [f'#include "{systems.FORCE_FIELD}.ff/forcefield.itp"', "[ moleculetype ]", "SHT 1"]
    lines += ["[ atoms ]"] + [f"{i} CT 1 SHT C {i} 0 12.011" for i in range(1, ATOMS + 1)]
    lines += ["[ bonds ]"] + [f"{i} {i + 1} 1 {SPACING} 1e4" for i in range(1, ATOMS)]
    every = " ".join(str(i) for i in range(1, ATOMS + 1))
    lines += ["[ exclusions ]"] + [f"{i} {every}" for i in range(1, ATOMS + 1)]
    lines += [f'#include "{systems.FORCE_FIELD}.ff/ions.itp"', "[ system ]", "sheet"]
    lines += ["[ molecules ]", "SHT 1", "NA 1", "CL 1"]
    (folder / "topol.top").write_text("\n".join(lines) + "\n")


def test_an_excluded_pair_may_be_farther_apart_than_the_box_is_wide(work):
    """mdrun on one rank needs no domains that hold both atoms."""
    write_sheet(work)
    entries = settings(mdp.ONE_STEP, mdp.UNTUNED_FMM, {"constraints": "none"})
    forces = []
    for name, ordered in (("ordered", "1"), ("plain", "0")):
        simulation.grompp(work, name, entries, "conf.gro", "topol.top").ok()
        variables = {"GMX_DD_SINGLE_RANK": ordered}
        simulation.mdrun(work, name, ["-nb", "cpu"], variables=variables).ok()
        forces.append(simulation.Run(work, name).forces)
    # Some hundred terms of single precision, added in another order.
    assert simulation.force_error(forces[0], forces[1]) < 1e-5
    assert simulation.rms(forces[0][ATOMS:]) > 0
