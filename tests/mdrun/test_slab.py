# SPDX-License-Identifier: LGPL-2.1-or-later
"""Slabs, pbc = xy, beside PME of slabs with vacuum and a correction."""

import re

import numpy as np
import pytest

from tests.support.gmx import boundary_checks, environment, mdp, reference, simulation, systems
from tests.support.gmx.mdp import settings
from tests.support.gmx.simulation import force_error, simulate

needs_double = pytest.mark.skipif(
    environment.gmx_double() is None, reason="no double-precision gmx (set GMX_DOUBLE)"
)

# In which images of the film have no field: exp(-2 pi 12 / 2.6) is 3e-13.
HEIGHT = 14
# Smooth where it ends, so that no pair is in one sum and not in the other
LENNARD_JONES = {"vdw-modifier": "Force-switch", "rvdw-switch": 0.8, "rvdw": 0.9, "rcoulomb": 0.9}
WALLS = {
    "nwall": 2,
    "wall-type": "9-3",
    "wall-atomtype": "OW OW",
    "wall-density": "33 33",
    "wall-r-linpot": 0.05,
}


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    return systems.film(tmp_path_factory.mktemp("film"))


def accuracy(value):
    return {"fmm-farfield-accuracy": value}


def changed(folder, system, name, change):
    """The film with another structure."""
    s = systems.read_gro(system.conf)
    change(s)
    systems.write_gro(folder / f"{name}.gro", systems.snap_to_grid(s))
    return systems.System(folder, folder / f"{name}.gro", system.top, system.atoms, 0)


def boxed(folder, system, height=HEIGHT):
    """The film in the middle of a box."""

    def change(s):
        s.box[2] = [0, 0, height]
        middle = (s.x[:, 2].min() + s.x[:, 2].max()) / 2
        s.x[:, 2] += np.round((height / 2 - middle) / systems.POSITION_GRID) * systems.POSITION_GRID

    return changed(folder, system, "boxed", change)


def in_double(folder, system, entries, **more):
    """By a double-precision GROMACS without FMM."""
    top = systems.self_contained_topology(folder, system)
    alone = systems.System(folder, system.conf, top, system.atoms, 0)
    program = environment.gmx_double()
    return simulate(folder, "exact", entries, alone, warnings=3, program=program, **more)


@needs_double
@pytest.mark.parametrize("wanted", [1e-5, 3e-4])
@pytest.mark.parametrize("shape", ["film", "skewed", "polarised"])
def test_forces_are_those_of_slabs_far_apart(work, film, shape, wanted):
    def change(s):
        if shape == "skewed":
            s.box[1][0] = 0.4 * s.box[0][0]
        if shape == "polarised":  # cations up, anions down
            names = np.char.strip(np.array(s.atoms))
            s.x[names == "NA", 2] += 3
            s.x[names == "CL", 2] -= 3

    system = boxed(work, changed(work, film, "changed", change))
    exact = in_double(work, system, settings(mdp.ONE_STEP, LENNARD_JONES, reference.far_apart()))
    run = simulate(work, "fmm", settings(mdp.ONE_STEP, mdp.SLAB, LENNARD_JONES, accuracy(wanted)), system)
    assert force_error(run.forces, exact.forces) <= wanted
    # Five deviations of errors of forces that are independent, over the distance of molecules
    error = 5 * wanted * np.linalg.norm(exact.forces) / np.sqrt(3) * 0.31
    assert run.coulomb()[0] == pytest.approx(exact.coulomb()[0], abs=error)


@needs_double
def test_forces_along_a_run_of_a_moving_film(work, film):
    """Hot water and ions, some of which evaporate; steps with energies are rare.

    Every third step is looked at: three divides no interval of mdrun, so these are steps of all kinds.
    """
    system = boxed(work, film)
    hot = {"gen-vel": "yes", "gen-temp": 10000, "dt": 0.0005, "nsteps": 200}
    rare = {"nstcalcenergy": 50, "nstenergy": 50, "nstxout": 3, "nstfout": 3}
    cells = {"fmm-farfield-cell-size": 0.5}
    entries = settings(mdp.SLAB, LENNARD_JONES, hot, rare, cells, accuracy(1e-4))
    moving = simulate(work, "fmm", entries, system)
    # The boxes of a slab have no height, and PME needs one; a rerun with it needs whole molecules
    box = systems.read_gro(system.conf).box.diagonal()
    files = ["-s", "fmm.tpr", "-f", "fmm.trr", "-o", "boxed.trr"]
    whole = ["-pbc", "whole", "-box", *box]
    environment.gmx()("trjconv", *files, *whole, folder=work, answer="0\n")
    flags = ["-rerun", work / "boxed.trr"]
    once = {"nstfout": 1, "nstxout": 1}
    exact = in_double(work, system, settings(LENNARD_JONES, reference.far_apart(), once), flags=flags)
    assert len(moving.frames) == len(exact.frames) == 67
    for ours, theirs in zip(moving.frames, exact.frames):
        assert force_error(ours.f, theirs.f) <= 1e-4
    height = [np.ptp(frame.x[:, 2]) for frame in moving.frames]
    assert height[-1] > 1.1 * height[0]


@needs_double
def test_forces_and_pressure_between_walls(work, film):
    """Walls are GROMACS's own; the pressure across them and along them is that of PME."""
    system = boxed(work, film, 3.2)
    walls = settings(mdp.ONE_STEP, LENNARD_JONES, WALLS, {"pbc": "xy"})
    vacuum = {**mdp.CONVERGED_PME, "ewald-geometry": "3dc", "wall-ewald-zfac": 5}
    exact = in_double(work, system, settings(walls, vacuum))
    run = simulate(work, "fmm", settings(walls, mdp.FMM, {"pbc": "xy"}, accuracy(1e-5)), system)
    assert force_error(run.forces, exact.forces) <= 1e-5
    for direction in ("XX", "YY", "ZZ", "XY", "XZ", "YZ"):
        ours, theirs = (r.energies[f"Pres-{direction}"][0] for r in (run, exact))
        assert ours == pytest.approx(theirs, abs=2), direction
    assert "Coulomb energies of energy groups" not in run.log


@pytest.mark.parametrize("height", [0, 0.5, 5])
def test_neither_the_box_nor_the_place_along_z_matters(work, film, height):
    """A film 64 nm below the origin, in boxes lower than it, beside one in a periodic box."""

    def change(s):
        s.box[2] = [0, 0, height]
        s.x[:, 2] -= 64

    own = changed(work, film, "own", change)
    run = simulate(work, "open", settings(mdp.ONE_STEP, mdp.SLAB, accuracy(1e-5)), own)
    alone = settings(mdp.ONE_STEP, mdp.SLAB, accuracy(1e-5))
    here = simulate(work, "here", alone, boxed(work, film))
    terms = [r.energies["LJ (SR)"][0] for r in (run, here)]
    assert terms[0] == pytest.approx(terms[1], rel=1e-6)
    assert force_error(run.forces, here.forces) < 2e-5
    wide = settings(mdp.ONE_STEP, mdp.FMM, accuracy(1e-5))
    periodic = simulate(work, "periodic", wide, boxed(work, film, 40))
    assert terms[0] == pytest.approx(periodic.energies["LJ (SR)"][0], rel=1e-6)


def test_energy_is_conserved(work, film):
    boundary_checks.expect_constant_energy(work, mdp.SLAB, film, tolerance=2)


def test_a_restart_continues_bit_by_bit(work, film):
    boundary_checks.expect_exact_restart(work, mdp.SLAB, film)


def test_pressure_along_walls_is_coupled(work, film):
    """The area follows a pressure, the distance of the walls stays."""
    coupling = {
        "pcoupl": "C-rescale",
        "pcoupltype": "semiisotropic",
        "tau-p": 1,
        "compressibility": "4.5e-4 0",
        "ref-p": "3000 1",
        "nsteps": 200,
        "tcoupl": "v-rescale",
        "tc-grps": "System",
        "tau-t": 0.1,
        "ref-t": 300,
        "gen-vel": "yes",
        "nstenergy": 50,
    }
    system = boxed(work, film, 3.2)
    entries = settings(mdp.FMM, WALLS, {"pbc": "xy"}, coupling)
    run = simulate(work, "run", entries, system)
    assert run.energies["Box-X"][-1] < 0.998 * run.energies["Box-X"][0]
    assert run.energies["Box-Z"][-1] == pytest.approx(3.2)


def test_a_net_charge_has_no_pressure_to_couple(work, film):
    """The energy of charged planes begins anywhere; a cation less."""
    system = boxed(work, film, 3.2)
    molecules = re.sub(
        r"^NA\s+(\d+)",
        lambda line: f"NA {int(line[1]) - 1}",
        film.top.read_text(),
        flags=re.MULTILINE,
    )
    (work / "topol.top").write_text(molecules)

    def change(s):
        names = [name.strip() for name in s.atoms]
        last = len(names) - 1 - names[::-1].index("NA")
        kept = np.arange(len(names)) != last
        s.x = s.x[kept]
        for key in ("residue_numbers", "residues", "atoms"):
            setattr(s, key, list(np.array(getattr(s, key))[kept]))

    charged = changed(work, system, "charged", change)
    coupling = {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic"}
    coupling |= {"compressibility": "4.5e-5 0", "ref-p": "1 1"}
    entries = settings(mdp.FMM, WALLS, {"pbc": "xy"})
    top = work / "topol.top"
    simulation.grompp(work, "alone", entries, charged.conf, top).ok()
    done = simulation.grompp(work, "coupled", settings(entries, coupling), charged.conf, top)
    assert done.status != 0
    assert "the pressure of a system with a net charge is not defined" in " ".join(done.text.split())


@pytest.mark.parametrize("height", [0, 0.5, 5])
def test_one_wall_stands_in_a_slab_without_a_height(work, film, height):
    """Forces are those beside a second wall far above; there is a wall, and no pressure."""

    def change(s):
        s.box[2] = [0, 0, height]
        s.x[:, 2] += np.round((0.2 - s.x[:, 2].min()) / systems.POSITION_GRID) * systems.POSITION_GRID

    both = settings(mdp.ONE_STEP, mdp.FMM, WALLS, {"pbc": "xy"}, accuracy(1e-5))
    one = settings(both, {"nwall": 1, "wall-atomtype": "OW", "wall-density": "33"})
    low = changed(work, film, "low", change)
    run = simulate(work, "one", one, low)
    high = changed(work, low, "high", lambda s: s.box.__setitem__(2, [0, 0, 40]))
    beside = simulate(work, "both", both, high)
    assert force_error(run.forces, beside.forces) < 2e-5
    without = simulate(work, "none", settings(mdp.ONE_STEP, mdp.SLAB, accuracy(1e-5)), low)
    walls = run.forces - without.forces
    assert np.abs(walls[:, 2]).max() > 10 * np.abs(walls[:, :2]).max()
    assert run.energies["Pressure"][0] == 0
    assert beside.energies["Pressure"][0] != 0


def test_walls_may_be_nearer_than_the_cut_off(work):
    """A layer of ions 0.6 nm high; grompp and mdrun know the density of what is in there."""
    s = systems.ions_above_water(work, 0, 9, 0, (0, 0, 0))
    layer = systems.read_gro(s.conf)
    layer.x = np.array([[0.4 * (i % 3), 0.4 * (i // 3), 0.3 + 0.02 * (i % 2)] for i in range(9)])
    layer.x = np.vstack([layer.x + [1.2 * a, 1.2 * b, 0] for a in range(2) for b in range(2)])
    for key in ("residue_numbers", "residues", "atoms"):
        setattr(layer, key, list(getattr(layer, key)) * 4)
    layer.box = np.diag([2.4, 2.4, 0.6])
    systems.write_gro(work / "slit.gro", systems.snap_to_grid(layer))
    molecules = s.top.read_text().split("[ molecules ]")
    (work / "slit.top").write_text("[ molecules ]".join([molecules[0], molecules[1] * 4]))
    slit = systems.System(work, work / "slit.gro", work / "slit.top", 36, 0)
    moving = {"gen-vel": "yes", "gen-temp": 300, "nsteps": 20, "dt": 0.001}
    run = simulate(work, "slit", settings(mdp.FMM, WALLS, {"pbc": "xy"}, moving), slit)
    assert np.isfinite(run.energies["Potential"]).all()


def test_a_structure_can_be_minimised(work, film):
    entries = settings(mdp.SLAB, {"integrator": "steep", "nsteps": 20})
    run = simulate(work, "steep", entries, film)
    assert run.energies["Potential"][-1] < run.energies["Potential"][0]


def test_the_log_says_where_boundaries_are_open(work, film):
    run = simulate(work, "fmm", settings(mdp.ONE_STEP, mdp.SLAB), film)
    assert "open along z (pbc = xy)" in run.log


def test_pme_can_not_be_set_in_such_a_file(work, film):
    boundary_checks.expect_no_way_to_pme(work, mdp.SLAB, film, "pbc = xy")
