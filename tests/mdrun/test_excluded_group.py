# SPDX-License-Identifier: LGPL-2.1-or-later
"""A group of which all pairs are excluded, as QM/MM has one; here its atoms have charges.

GROMACS leaves them their charges where a neural network takes over the group, which needs another
build of it. A rerun of MiMiC has the group of the tpr file, too, but grompp takes its charges: so
a tpr file of plain dynamics, which has all charges, is made one of MiMiC.
"""

import re

import numpy as np
import pytest

from tests.support.gmx import environment, mdp, simulation, systems
from tests.support.gmx.mdp import UNTUNED_FMM, settings

# Places in GROMACS's list of integrators, which a tpr file holds as one number.
PLACES = {"md": 0, "md-vv": 10, "mimic": 12}

# One grid of cells, whatever is excluded.
GRID = {
    "fmm-farfield-order": 8,
    "fmm-farfield-cell-size": 0.7,
    "fmm-farfield-direct-range": 1,
    "fmm-farfield-m2l": "fft",
}
RIGID_IONS = {"constraints": "none"}
UNORDERED, ORDERED = ({"GMX_DD_SINGLE_RANK": value} for value in "01")


def with_group(folder, name, entries, system, group):
    """Makes NAME.tpr, in which all pairs of the atoms of the group, from 0, are excluded."""
    lines = {"System": range(system.atoms), "QM": group}
    index = [f"[ {key} ]\n" + "".join(f"{i + 1}\n" for i in lines[key]) for key in lines]
    (folder / "index.ndx").write_text("".join(index))
    tpr = {}
    for integrator in ("md-vv", "md"):
        changed = {**entries, "integrator": integrator, "QMMM-grps": "QM"}
        flags = ["-n", "index.ndx"]
        simulation.grompp(folder, name, changed, system.conf, system.top, flags).ok()
        tpr[integrator] = (folder / f"{name}.tpr").read_bytes()
    pairs = enumerate(zip(tpr["md"], tpr["md-vv"], strict=True))
    [(place, values)] = [(at, pair) for at, pair in pairs if pair[0] != pair[1]]
    assert values == (PLACES["md"], PLACES["md-vv"])
    changed = bytearray(tpr["md"])
    changed[place] = PLACES["mimic"]
    (folder / f"{name}.tpr").write_bytes(changed)


def rerun(folder, name, system, variables):
    flags = ["-rerun", system.conf, "-nb", "cpu"]
    simulation.mdrun(folder, name, flags, variables=variables).ok()
    return simulation.Run(folder, name)


def write_as_one_molecule(folder, system, group):
    """A topology of the ions of a crystal as one molecule that lists the pairs of the group."""
    types = {"NA": ("Na", 1, 22.99), "CL": ("Cl", -1, 35.45)}
    lines = [f'#include "{systems.FORCE_FIELD}.ff/forcefield.itp"', "[ moleculetype ]", "ALL 0"]
    lines.append("[ atoms ]")
    for i, name in enumerate(systems.read_gro(system.conf).atoms, 1):
        kind, charge, mass = types[name.strip()]
        lines.append(f"{i} {kind} {i} ION {name.strip()} {i} {charge} {mass}")
    # The section on exclusions has to follow one like this; type 5 has no potential
    lines += ["[ bonds ]", f"{group[0] + 1} {group[1] + 1} 5", "[ exclusions ]"]
    for k, i in enumerate(group[:-1]):
        lines.append(" ".join(str(j + 1) for j in (i, *group[k + 1 :])))
    lines += ["[ system ]", "crystal", "[ molecules ]", "ALL 1"]
    (folder / "listed.top").write_text("\n".join(lines) + "\n")
    return folder / "listed.top"


def excluded_pairs(run):
    return int(re.search(r"excluded pairs +(\d+)", run.log).group(1))


@pytest.mark.parametrize("vdwtype", ["Cut-off", "FMM"])
def test_its_forces_are_those_of_a_molecule_that_lists_its_pairs(work, vdwtype):
    crystal = systems.ion_crystal(work, cells=4)
    group = sorted(np.random.default_rng(15).choice(crystal.atoms, 200, replace=False))
    entries = settings(mdp.ONE_STEP, UNTUNED_FMM, GRID, RIGID_IONS, {"vdwtype": vdwtype})
    with_group(work, "group", entries, crystal, group)
    listed = write_as_one_molecule(work, crystal, group)
    simulation.grompp(work, "listed", entries, crystal.conf, listed).ok()
    runs = [rerun(work, name, crystal, UNORDERED) for name in ("group", "listed")]
    # Some hundred terms of single precision, added in another order.
    assert simulation.force_error(runs[0].forces, runs[1].forces) < 1e-5
    assert [excluded_pairs(run) for run in runs] == 2 * [200 * 199 // 2]


def pair_energies(system, atoms, charges):
    """Sum of the Coulomb energies of the nearest images, of atoms that are not in one molecule."""
    s = systems.read_gro(system.conf)
    x, box, q = s.x[atoms], np.diag(s.box), charges[atoms]
    d = x[:, None] - x[None]
    d -= box * np.round(d / box)
    r = np.linalg.norm(d, axis=-1)
    apart = np.subtract.outer(atoms // 3, atoms // 3) > 0
    return 138.935458 * np.sum(np.outer(q, q)[apart] / r[apart])


@pytest.mark.parametrize("variables", [UNORDERED, ORDERED], ids=["global order", "local order"])
def test_each_pair_is_left_out_once(work, water, variables):
    """Those within a molecule are left out already, in the group and with the atom beside it."""
    molecules = water.atoms // 3
    of_group = range(7, molecules, 6)
    atoms = np.concatenate([[3 * m, 3 * m + 1] for m in of_group])
    entries = settings(mdp.ONE_STEP, UNTUNED_FMM, GRID)
    with_group(work, "group", entries, water, atoms)
    simulation.grompp(work, "none", entries, water.conf, water.top).ok()
    group, none = (rerun(work, name, water, variables) for name in ("group", "none"))
    pairs = len(atoms) * (len(atoms) - 1) // 2
    assert excluded_pairs(group) == pairs + 3 * molecules - len(of_group)
    assert excluded_pairs(none) == 3 * molecules

    charges = np.tile([-0.834, 0.417, 0.417], molecules)
    expected = none.coulomb()[0] - pair_energies(water, atoms, charges)
    # Energies are stored in single precision, each of some hundred thousand pairs is rounded.
    assert group.coulomb()[0] == pytest.approx(expected, rel=1e-6)
    assert abs(expected - none.coulomb()[0]) > 1e-4 * abs(expected)


@pytest.mark.skipif(environment.on_gpu(), reason="the pairs are in memory of the GPU as well")
def test_it_takes_six_integers_a_pair(work):
    """One of them here, the others in the library while it replaces the pairs that it has.

    With local order GROMACS itself keeps no list of the pairs of such a group in a rerun.
    """
    crystal = systems.ion_crystal(work, cells=8)
    entries = settings(mdp.ONE_STEP, UNTUNED_FMM, GRID, RIGID_IONS)
    peak = {}
    for atoms in (2, 3000):
        with_group(work, f"of{atoms}", entries, crystal, range(atoms))
        flags = ["-rerun", crystal.conf]
        peak[atoms] = simulation.peak_memory(work, f"of{atoms}", flags, ORDERED)
    pairs = 3000 * 2999 // 2
    assert excluded_pairs(simulation.Run(work, "of3000")) == pairs
    # A tenth more for all that is linear in the atoms.
    assert peak[3000] - peak[2] <= 1.1 * 6 * 4 * pairs
