# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pair list holds atoms with Lennard-Jones interactions alone, and nothing else changes."""

import re

import numpy as np
import pytest

from farfield.gromacs.program import GmxError
from tests.support.gmx import environment, mdp, simulation, systems
from tests.support.gmx.mdp import FIXED_FMM, settings

ALL_ATOMS = {"GMX_NBNXM_SEARCH_ALL_ATOMS": "1"}
# The same terms in single precision, added in another order.
ROUNDING = 2e-6
# What the log says of the atoms in the list.
LISTED = re.compile(r"(\d+) of (\d+) atoms have Lennard-Jones interactions: the pair\s+list (.*)")


def both(work, system, *changes, flags=(), variables=None, warnings=0):
    """The same run with the pair list of sites and with that of all atoms."""
    entries = settings(*changes)
    allowed = ["-maxwarn", system.warnings + warnings]
    runs = []
    for name, more in (("sites", {}), ("all", ALL_ATOMS)):
        simulation.grompp(work, name, entries, system.conf, system.top, allowed).ok()
        simulation.mdrun(work, name, flags, variables={**(variables or {}), **more}).ok()
        runs.append(simulation.Run(work, name))
    return runs


def listed(run):
    """(atoms with Lennard-Jones interactions, all atoms, whether these alone are listed)."""
    found = LISTED.search(run.log)
    return int(found.group(1)), int(found.group(2)), "these alone" in found.group(3)


def expect_the_same(sites, everything, steps=1):
    """Forces of the frames, energies and pressure are equal up to rounding.

    The pressure, of which a pair in contact is tens of bar, is rounded at 0.05 bar: in single
    precision its two parts are sums of x f over all atoms. The surface tension is a difference of
    pressures times the height of the box.
    """
    for one, other in zip(sites.frames[:steps], everything.frames[:steps], strict=True):
        assert simulation.force_error(one.f, other.f) < ROUNDING
    one, other = sites.energies, everything.energies
    scale = np.abs(other["Potential"][0]) + np.abs(other["LJ (SR)"][0])
    pressure = 0.3
    bounds = {"Pres": pressure, "#Sur": pressure * everything.frames[0].box[2][2]}
    for term in other:
        bound = bounds.get(term[:4], 3e-6 * scale)
        assert one[term][0] == pytest.approx(other[term][0], abs=bound), term


@pytest.mark.parametrize(
    "name", ["water", "four_site_water", "salt_water", "protein", "ion_crystal"]
)
def test_atoms_without_lennard_jones_interactions_do_not_matter(work, request, name):
    system = request.getfixturevalue(name)
    sites, everything = both(work, system, mdp.ONE_STEP, FIXED_FMM)
    expect_the_same(sites, everything)
    count, atoms, alone = listed(sites)
    assert atoms == system.atoms
    # one site in a molecule of water; every ion has Lennard-Jones interactions
    expected = {"water": atoms // 3, "four_site_water": atoms // 4, "ion_crystal": atoms}
    assert count == expected.get(name, count) and count > atoms // 5
    assert alone == (name != "ion_crystal")
    assert listed(everything) == (count, atoms, False)


@pytest.mark.parametrize("waters, ions, gap", [(1, 10, 5), (1, 40, 3), (15, 10, 3), (40, 30, 4)])
@pytest.mark.parametrize(
    "box, boundary", [((4, 4, 12), {}), ((0, 0, 0), mdp.VACUUM), ((0.5, 0.5, 0.5), mdp.VACUUM)]
)
def test_ions_above_water_are_found(work, waters, ions, gap, box, boundary):
    """Atoms that are not in the list may be far below those that are, in the same column."""
    system = systems.ions_above_water(work, waters, ions, gap, box)
    sites, everything = both(work, system, mdp.ONE_STEP, FIXED_FMM, boundary)
    assert listed(sites) == (waters + ions, 3 * waters + ions, True)
    assert simulation.force_error(sites.forces, everything.forces) < ROUNDING
    energies = (run.energies["LJ (SR)"][0] for run in (sites, everything))
    assert next(energies) == pytest.approx(next(energies), rel=1e-5)


def test_a_force_field_with_lennard_jones_on_hydrogen_drops_nothing(work, charmm_water):
    sites, everything = both(work, charmm_water, mdp.ONE_STEP, FIXED_FMM)
    assert listed(sites) == (charmm_water.atoms, charmm_water.atoms, False)
    assert "the pair list holds all atoms." in " ".join(sites.log.split())
    expect_the_same(sites, everything)


def test_pme_needs_all_atoms(work, water):
    simulation.simulate(work, "pme", settings(mdp.ONE_STEP), water)
    assert LISTED.search(simulation.Run(work, "pme").log) is None


@pytest.mark.parametrize(
    "variables",
    [
        {"GMX_NBNXN_PLAINC_1X1": "1"},
        {"GMX_NBNXN_SIMD_2XNN": "1"},
        {"GMX_NBNXN_SIMD_4XN": "1"},
        {"GMX_DISABLE_SIMD_KERNELS": "1"},
        {"GMX_DD_SINGLE_RANK": "0"},
        {"GMX_DD_SINGLE_RANK": "1"},
        {"GMX_FILLERS_IN_LOCAL_STATE": "1"},
    ],
    ids=lambda variables: " ".join("=".join(entry) for entry in variables.items()),
)
def test_layouts_of_clusters_and_orders_of_atoms(work, salt_water, variables):
    """All layouts that this build has, with and without domain decomposition's order of atoms."""
    layout = next(iter(variables))
    flags = ["-nb", "cpu"] if environment.on_gpu() and "DD" not in layout else []
    try:
        sites, everything = both(
            work, salt_water, mdp.ONE_STEP, FIXED_FMM, flags=flags, variables=variables
        )
    except GmxError as error:
        if "SIMD" in layout and "SIMD" in str(error):
            pytest.skip("this build has no such kernels")
        raise
    expect_the_same(sites, everything)
    assert listed(sites)[2]


@pytest.mark.parametrize(
    "kind",
    [
        {"vdwtype": "PME", "lj-pme-comb-rule": "Geometric"},
        {"vdw-modifier": "Force-switch", "rvdw-switch": 0.7},
        {"DispCorr": "EnerPres"},
    ],
    ids=lambda kind: " ".join(map(str, kind.values())),
)
def test_kinds_of_lennard_jones_interactions(work, salt_water, kind):
    expect_the_same(*both(work, salt_water, mdp.ONE_STEP, FIXED_FMM, kind))


def test_energy_groups_have_their_terms(work, salt_water):
    groups = {"energygrps": "Water Ion"}
    sites, everything = both(
        work, salt_water, mdp.ONE_STEP, FIXED_FMM, groups, warnings=1, flags=["-nb", "cpu"]
    )
    expect_the_same(sites, everything)
    assert abs(everything.energies["LJ-SR:Water-Ion"][0]) > 1
    for term in ("LJ-SR:Water-Water", "LJ-SR:Water-Ion", "LJ-SR:Ion-Ion"):
        assert sites.energies[term][0] == pytest.approx(everything.energies[term][0], abs=0.05)


def test_lists_are_right_after_atoms_have_moved(work, four_site_water):
    """Ten lists along a hot run: forces of a moving run are those that a list of all atoms gives.

    Virtual sites, constraints and the box move as well.
    """
    moving = {"nsteps": 100, "nstlist": 10, "nstxout": 10, "nstfout": 10, "gen-vel": "yes"}
    moving |= {"gen-temp": 500, "verlet-buffer-tolerance": -1, "rlist": 1.05}
    coupling = {"pcoupl": "C-rescale", "tau-p": 2.0, "compressibility": "4.5e-5", "ref-p": "-2000"}
    coupling |= {"tcoupl": "v-rescale", "tc-grps": "System", "tau-t": 0.5, "ref-t": 500}
    entries = settings(moving, coupling, FIXED_FMM)
    simulation.simulate(work, "sites", entries, four_site_water)
    simulation.mdrun(
        work, "again", ["-s", "sites.tpr", "-rerun", "sites.trr"], variables=ALL_ATOMS
    ).ok()
    run, again = simulation.Run(work, "sites"), simulation.Run(work, "again")
    assert listed(run)[2] and not listed(again)[2]
    for one, other in zip(run.frames, again.frames, strict=True):
        assert simulation.force_error(one.f, other.f) < 1e-5, one.step


def test_lists_last_for_the_longest_interval_of_mdrun(work, salt_water):
    """200 steps: what is missing at their end costs no more than verlet-buffer-tolerance allows."""
    interval, tolerance, dt = 200, 0.005, 0.002
    motion = {"gen-vel": "yes", "gen-temp": 300, "tcoupl": "v-rescale", "tc-grps": "System"}
    motion |= {"tau-t": 0.5, "ref-t": 300, "dt": dt, "nsteps": interval - 1, "rvdw": 0.5}
    last = {"nstxout": interval - 1, "nstfout": interval - 1, "nstenergy": interval - 1}
    entries = settings(motion, last, FIXED_FMM, {"verlet-buffer-tolerance": tolerance})
    run = simulation.simulate(work, "run", entries, salt_water, ["-nstlist", interval])
    rerun = ["-s", "run.tpr", "-rerun", "run.trr"]
    simulation.mdrun(work, "again", rerun, variables=ALL_ATOMS).ok()
    again = simulation.Run(work, "again")
    assert re.search(rf"nstlist +from +\d+ +to +{interval}", " ".join(run.log.split())), run.log
    # a pair at the cut-off is 4e-5 of the forces, and one of neighbours 2e-3
    assert simulation.force_error(run.frames[-1].f, again.frames[-1].f) < 2e-4
    allowed = tolerance * salt_water.atoms * interval * dt
    assert abs(run.energies["LJ (SR)"][-1] - again.energies["LJ (SR)"][-1]) <= allowed
