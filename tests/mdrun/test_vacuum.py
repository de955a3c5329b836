# SPDX-License-Identifier: LGPL-2.1-or-later
"""Without periodic images: pbc = no, beside plain sums over all pairs."""

import numpy as np
import pytest

from tests.support.gmx import boundary_checks, environment, mdp, reference, systems
from tests.support.gmx.mdp import settings
from tests.support.gmx.simulation import force_error, simulate

needs_double = pytest.mark.skipif(
    environment.gmx_double() is None, reason="no double-precision gmx (set GMX_DOUBLE)"
)

COULOMB = 138.935458  # kJ mol^-1 nm e^-2
WATER_CHARGES = [-0.834, 0.417, 0.417]

# Farther than anything in these tests, and a box in which there are no images within that.
REACH = 14
BOX = 40


@pytest.fixture(scope="module")
def droplet(tmp_path_factory):
    return systems.droplet(tmp_path_factory.mktemp("droplet"))


@pytest.fixture(scope="module")
def large_droplet(tmp_path_factory):
    """About 5 000 atoms: most pairs are in the far field."""
    return systems.droplet(tmp_path_factory.mktemp("large_droplet"), radius=2.4, steps=100)


@pytest.fixture(scope="module")
def protein(tmp_path_factory):
    """Net charge +4 e; grompp has nothing to warn of, as there is no background."""
    return systems.vacuum_protein(tmp_path_factory.mktemp("vacuum"))


def accuracy(value):
    return {"fmm-farfield-accuracy": value}


def fmm(*changes):
    """With Lennard-Jones interactions as all_pairs() has them."""
    own = {"vdw-modifier": "None", "rvdw": REACH, "rcoulomb": REACH}
    return settings(mdp.VACUUM, own, *changes)


def all_pairs(folder, system, entries, **more):
    """Forces of all pairs by a double-precision GROMACS without FMM."""
    top = systems.self_contained_topology(folder, system)
    alone = systems.System(folder, system.conf, top, system.atoms, system.volume)
    program = environment.gmx_double()
    entries = settings(entries, reference.all_pairs(REACH))
    return simulate(folder, "pairs", entries, alone, warnings=3, program=program, **more)


def energy_of_water(x):
    """Coulomb energy between molecules, kJ/mol, in double precision."""
    total = 0.0
    charges = np.tile(WATER_CHARGES, len(x) // 3)
    for first in range(0, len(x), 3):
        others = slice(first + 3, None)
        for i in range(first, first + 3):
            r = np.linalg.norm(x[others] - x[i], axis=1)
            total += charges[i] * np.sum(charges[others] / r)
    return COULOMB * total


@needs_double
@pytest.mark.parametrize("wanted", [1e-5, 3e-4])
@pytest.mark.parametrize("name", ["droplet", "large_droplet", "protein"])
def test_forces_are_those_of_all_pairs(work, request, name, wanted):
    system = systems.in_box(work, request.getfixturevalue(name), BOX)
    exact = all_pairs(work, system, mdp.ONE_STEP)
    run = simulate(work, "fmm", fmm(mdp.ONE_STEP, accuracy(wanted)), system)
    assert force_error(run.forces, exact.forces) <= wanted


@pytest.mark.parametrize("engine", ["hierarchy", "fft"])
def test_energy_is_that_of_all_pairs(work, large_droplet, engine):
    entries = fmm(mdp.ONE_STEP, accuracy(1e-5), {"fmm-farfield-m2l": engine})
    run = simulate(work, "fmm", entries, large_droplet)
    exact = energy_of_water(run.frames[0].x)
    assert run.coulomb()[0] == pytest.approx(exact, rel=1e-5)
    assert run.energies["Pressure"][0] == 0


@needs_double
def test_forces_at_every_step_of_an_evaporating_droplet(work, droplet):
    """A hot droplet, from which a molecule flies away; steps with energies are rare."""
    s = systems.read_gro(droplet.conf)
    shift = np.array([2.5, 0, 0])
    s.x[-3:] += shift - s.x[-3]
    systems.write_gro(work / "conf.gro", s)
    start = systems.System(work, work / "conf.gro", droplet.top, droplet.atoms, 0)
    system = systems.in_box(work, start, BOX)
    hot = {"gen-vel": "yes", "gen-temp": 10000, "dt": 0.0005, "nsteps": 400}
    rare = {"nstcalcenergy": 50, "nstenergy": 50, "nstxout": 1, "nstfout": 1}
    cells = {"fmm-farfield-cell-size": 0.5}
    moving = simulate(work, "fmm", fmm(hot, rare, cells, accuracy(1e-4)), system)
    flags = ["-rerun", work / "fmm.trr"]
    exact = all_pairs(work, system, {"nstfout": 1, "nstxout": 1}, flags=flags)
    assert len(moving.frames) == len(exact.frames) == 401
    for ours, theirs in zip(moving.frames, exact.frames):
        assert force_error(ours.f, theirs.f) <= 1e-4
    extent = [np.ptp(frame.x, axis=0).max() for frame in moving.frames]
    assert extent[-1] > 1.1 * extent[0]


@pytest.mark.parametrize("name", ["droplet", "protein"])
def test_particles_may_be_anywhere(work, request, name):
    """Far from the origin, on any side of it, and of the box: positions are exact in either place."""
    system = request.getfixturevalue(name)
    entries = settings(mdp.ONE_STEP, mdp.VACUUM, accuracy(1e-5))
    here = simulate(work, "here", entries, system)
    s = systems.read_gro(system.conf)
    s.x += [-100, 64, 7]
    systems.write_gro(work / "moved.gro", s)
    moved = systems.System(work, work / "moved.gro", system.top, system.atoms, 0)
    there = simulate(work, "there", entries, moved)
    assert force_error(there.forces, here.forces) <= 2e-5


@pytest.mark.parametrize(
    "name, box", [("droplet", 0), ("droplet", 0.5), ("droplet", 5), ("protein", 0)]
)
def test_the_pair_search_does_not_see_the_box(work, request, name, box):
    """A cut-off within the system: forces are those in a periodic box that is far wider."""
    system = request.getfixturevalue(name)
    s = systems.read_gro(system.conf)
    s.box = np.eye(3) * box
    systems.write_gro(work / "own.gro", s)
    own = systems.System(work, work / "own.gro", system.top, system.atoms, 0)
    near = {"rvdw": 0.9, "rcoulomb": 0.9}
    run = simulate(work, "open", settings(mdp.ONE_STEP, mdp.VACUUM, near, accuracy(1e-5)), own)
    wide = systems.in_box(work, system, BOX)
    wide.warnings = 1  # of a net charge, whose background has no field in the middle
    entries = settings(mdp.ONE_STEP, mdp.FMM, near, accuracy(1e-5))
    periodic = simulate(work, "periodic", entries, wide)
    terms = [r.energies["LJ (SR)"][0] for r in (run, periodic)]
    assert terms[0] == pytest.approx(terms[1], rel=1e-6)
    # images of the dipole, or of the charge, are far away
    assert force_error(run.forces, periodic.forces) < 1e-4


def test_energy_is_conserved(work, droplet):
    boundary_checks.expect_constant_energy(work, mdp.VACUUM, droplet, tolerance=2)


def test_particles_in_a_plane(work):
    """A layer without a thickness has a density, and a pair search, too."""
    s = systems.ions_above_water(work, 0, 100, 0, (0, 0, 0))
    flat = systems.read_gro(s.conf)
    flat.x = np.array([[0.4 * (i % 10), 0.4 * (i // 10), 1.0] for i in range(100)])
    systems.write_gro(s.conf, flat)
    runs = []
    for name, box in (("open", 0), ("boxed", BOX)):
        flat.box = np.eye(3) * box
        systems.write_gro(work / f"{name}.gro", flat)
        own = systems.System(work, work / f"{name}.gro", s.top, s.atoms, 0)
        pbc = {} if box == 0 else {"pbc": "xyz", "comm-mode": "linear"}
        entries = settings(mdp.ONE_STEP, mdp.VACUUM, pbc, accuracy(1e-5))
        runs.append(simulate(work, name, entries, own))
    terms = [r.energies["LJ (SR)"][0] for r in runs]
    assert terms[0] == pytest.approx(terms[1], rel=1e-6)
    # the two halves of the layer have a large dipole, and so its images
    assert force_error(runs[0].forces, runs[1].forces) < 1e-3


def test_a_restart_continues_bit_by_bit(work, droplet):
    boundary_checks.expect_exact_restart(work, mdp.VACUUM, droplet)


def test_a_structure_can_be_minimised(work, protein):
    entries = settings(mdp.VACUUM, {"integrator": "steep", "nsteps": 20, "comm-mode": "linear"})
    run = simulate(work, "steep", entries, protein)
    energy = run.energies["Potential"]
    assert energy[-1] < energy[0]


def test_energies_between_groups_are_those_of_all_pairs(work, droplet):
    """Two halves of a droplet."""
    half = 3 * (droplet.atoms // 6)
    atoms = [" ".join(map(str, range(a + 1, b + 1))) for a, b in ((0, half), (half, droplet.atoms))]
    (work / "halves.ndx").write_text(f"[ first ]\n{atoms[0]}\n[ second ]\n{atoms[1]}\n")
    entries = fmm(mdp.ONE_STEP, {"energygrps": "first second"}, accuracy(1e-5))
    flags = ["-n", work / "halves.ndx"]
    run = simulate(work, "fmm", entries, droplet, grompp_flags=flags)
    x = run.frames[0].x
    parts = {"first-first": energy_of_water(x[:half]), "second-second": energy_of_water(x[half:])}
    parts["first-second"] = energy_of_water(x) - sum(parts.values())
    for pair, exact in parts.items():
        assert run.energies[f"Coul-SR:{pair}"][0] == pytest.approx(exact, rel=2e-5, abs=0.2)


def test_the_log_says_that_boundaries_are_open(work, droplet):
    run = simulate(work, "fmm", settings(mdp.ONE_STEP, mdp.VACUUM), droplet)
    assert "open (pbc = no)" in run.log


def test_pme_can_not_be_set_in_such_a_file(work, droplet):
    boundary_checks.expect_no_way_to_pme(work, mdp.VACUUM, droplet, "pbc = no")


@pytest.mark.parametrize("tool", ["sorient", "spol"])
def test_tools_take_a_length_of_their_own_without_a_box(work, droplet, tool):
    """Both size their tables by the largest cut-off, which without images has no limit."""
    simulate(work, "run", settings(mdp.ONE_STEP, mdp.VACUUM), droplet)
    groups = {"first": range(1, 4), "others": range(4, droplet.atoms + 1)}
    text = "".join(f"[ {key} ]\n{' '.join(map(str, atoms))}\n" for key, atoms in groups.items())
    (work / "index.ndx").write_text(text)
    files = ["-s", "run.tpr", "-f", "run.trr", "-n", "index.ndx"]
    environment.gmx()(tool, *files, folder=work, answer="0\n1\n")
