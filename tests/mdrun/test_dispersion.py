# SPDX-License-Identifier: LGPL-2.1-or-later
"""vdwtype = FMM: dispersion of all pairs, beside Lennard-Jones PME and beside sums over all pairs."""

import dataclasses
import re

import numpy as np
import pytest

from tests.support.gmx import mdp, simulation, systems
from tests.support.gmx.boundary_checks import expect_constant_energy, expect_exact_restart, expect_no_way_to_pme
from tests.support.gmx.limits import ENERGY_LIMIT
from tests.support.gmx.mdp import settings

DISPERSION = {**mdp.FMM, "vdwtype": "FMM"}
# Coulomb interactions are the same in the runs that are compared
FIXED = {**mdp.FIXED_FMM, "vdwtype": "FMM", "vdw-modifier": "None"}
# Terms that differ: the energies of dispersion and of what is left of Lennard-Jones interactions
LENNARD_JONES = "LJ (SR)", "LJ recip."
OF_TOPOLOGY = {"lj-pme-comb-rule": "Lorentz-Berthelot"}


def evaluated(folder, name, system, *changes, **options):
    return simulation.simulate(folder, name, settings(mdp.ONE_STEP, FIXED, *changes), system, **options)


def lennard_jones(run):
    terms = run.energies
    return sum(float(terms[name][0]) for name in LENNARD_JONES if name in terms)


@pytest.mark.parametrize(
    "name, rule",
    [(name, {}) for name in ("water", "charmm_water", "salt_water", "protein")]
    + [(name, OF_TOPOLOGY) for name in ("charmm_water", "salt_water")],
)
def test_forces_energies_and_pressures_are_those_of_lennard_jones_pme(work, request, name, rule):
    system = request.getfixturevalue(name)
    tight = evaluated(work, "tight", system, mdp.TIGHT_LJ_PME, rule)
    usual = evaluated(work, "usual", system, rule)
    # At most a fifth of the accuracy, of dispersion forces; total forces are at least five times as large
    assert simulation.rms(usual.forces - tight.forces) < 0.2 * 3e-4 / 5 * simulation.rms(tight.forces)
    if name != "protein":  # of larger systems LJ-PME's energy has errors of single precision
        assert abs(lennard_jones(usual) - lennard_jones(tight)) < ENERGY_LIMIT * system.atoms
    assert np.abs(usual.pressure_tensor() - tight.pressure_tensor()).max() < 0.5
    assert "FMM dispersion (farfield)" in usual.log
    if name == "water":
        finest = evaluated(work, "finest", system, {"fmm-farfield-accuracy": 1e-5})
        assert simulation.rms(finest.forces - tight.forces) < 3e-6 * simulation.rms(tight.forces)
        short = evaluated(work, "short", system, {"rvdw": 0.75, "rcoulomb": 0.75})
        # What is left of the repulsion
        assert simulation.rms(short.forces - tight.forces) < 3e-5 * simulation.rms(tight.forces)


def test_forces_of_every_step_are_those_of_lennard_jones_pme(work, charmm_water):
    """Energies are computed at few steps, and the box changes its shape."""
    pressed = {**mdp.BAROSTAT, "pcoupltype": "semiisotropic", "compressibility": "2e-4 2e-4", "ref-p": "3000 -500"}
    moving = settings(
        {**mdp.MOTION, **mdp.THERMOSTAT, **pressed}, FIXED, {"nstcalcenergy": 20, "nstenergy": 20, "nsttcouple": 5}
    )
    run = simulation.simulate(work, "run", moving, charmm_water)
    entries = settings(mdp.MOTION, FIXED, mdp.TIGHT_LJ_PME)
    simulation.grompp(work, "rerun", entries, charmm_water.conf, charmm_water.top).ok()
    simulation.mdrun(work, "rerun", ["-rerun", "run.trr"]).ok()
    assert ("sites on the GPU" in run.log) == ("stay on the GPU" in run.log)
    frames, exact = run.frames, simulation.Run(work, "rerun").frames
    assert len(frames) == len(exact) == 41
    boxes = np.array([frame.box for frame in frames]).reshape(len(frames), -1)
    assert np.ptp(boxes[:, 0]) > 1e-3 and abs(boxes[-1, 0] / boxes[0, 0] - boxes[-1, -1] / boxes[0, -1]) > 1e-4
    for frame, other in zip(frames, exact):
        assert simulation.rms(frame.f - other.f) < 2e-5 * simulation.rms(other.f)


def test_c6_of_the_topology_is_that_of_any_rule(work, once):
    """Beyond rvdw, of pairs whose C6 is of no rule, without images."""
    system = once("dispersion-vacuum_protein", systems.vacuum_protein)
    open_box = {"pbc": "no", "comm-mode": "angular", "rvdw": 1.2, "rcoulomb": 1.2}
    everything = {**open_box, "rvdw": 9, "rcoulomb": 9}
    # Pairs of carbon and oxygen atoms attract each other twice as much as by rule
    pairs = "[ nonbond_params ]\nCT O 1 3.3e-1 1.6\nCT OH 1 3.2e-1 1.8\n"
    text = system.top.read_text()
    changed = dataclasses.replace(system, top=work / "changed.top")
    changed.top.write_text(re.sub(r"(?=\[ moleculetype \])", pairs, text, count=1))
    whole = evaluated(work, "whole", changed, everything, {"vdwtype": "Cut-off"})
    found = evaluated(work, "found", changed, open_box, OF_TOPOLOGY)
    geometric = evaluated(work, "geometric", changed, open_box)
    limit = 1.2e-5 * simulation.rms(whole.forces)
    assert simulation.rms(found.forces - whole.forces) < limit < simulation.rms(geometric.forces - whole.forces)
    assert abs(lennard_jones(found) - lennard_jones(whole)) < ENERGY_LIMIT * changed.atoms


@pytest.mark.parametrize("kind", ["droplet", "vacuum_protein"])
def test_without_images_dispersion_is_that_of_all_pairs(work, once, kind):
    """Of AMBER's protein C6 is not of the geometric rule."""
    system = once(f"dispersion-{kind}", getattr(systems, kind))
    everything = {"pbc": "no", "comm-mode": "angular", "rvdw": 9, "rcoulomb": 9}
    whole = evaluated(work, "whole", system, everything, {"vdwtype": "Cut-off"})
    found = evaluated(work, "found", system, everything)
    assert simulation.rms(found.forces - whole.forces) < 1e-5 * simulation.rms(whole.forces)
    assert abs(lennard_jones(found) - lennard_jones(whole)) < ENERGY_LIMIT * system.atoms


@pytest.mark.parametrize("name, rule", [("water", {}), ("charmm_water", OF_TOPOLOGY)])
def test_a_restart_continues_bit_for_bit(work, request, name, rule):
    expect_exact_restart(work, {**DISPERSION, **rule}, request.getfixturevalue(name))


def test_energy_is_conserved(work, water):
    expect_constant_energy(work, {**DISPERSION, "tcoupl": "no"}, water, tolerance=2.0)


def test_mdrun_takes_one_rank_and_refuses_several(work, water):
    simulation.grompp(work, "run", settings(mdp.ONE_STEP, DISPERSION), water.conf, water.top).ok()
    done = simulation.mdrun(work, "run", ntmpi=2, ntomp=1)
    assert done.status != 0
    assert "with vdwtype = FMM" in done.text


REFUSED = {
    "PME": {"coulombtype": "PME"},
    "a dispersion correction": {"DispCorr": "EnerPres"},
    "a switch": {"vdw-modifier": "Force-switch", "rvdw-switch": 0.7},
    "a slab": {"pbc": "xy"},
    "walls": {"pbc": "xy", "nwall": 2, "wall-type": "9-3", "wall-atomtype": "OW OW", "wall-density": "33 33"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_dispersion_cannot_be_used_with_is_refused(work, water, case):
    done = simulation.grompp(work, "run", settings(DISPERSION, REFUSED[case]), water.conf, water.top)
    assert done.status != 0
    assert "vdwtype = FMM needs" in done.text


def test_convert_tpr_does_not_take_its_electrostatics_away(work, water):
    expect_no_way_to_pme(work, DISPERSION, water, "vdwtype = FMM needs coulombtype = FMM")


@pytest.mark.parametrize(
    "name, rule, says", [("charmm_water", {}, True), ("charmm_water", OF_TOPOLOGY, False), ("water", {}, False)]
)
def test_grompp_says_how_far_the_geometric_rule_is_off(work, request, name, rule, says):
    system = request.getfixturevalue(name)
    done = simulation.grompp(work, "run", settings(DISPERSION, rule), system.conf, system.top).ok()
    assert ("C6 of the geometric rule is up to" in " ".join(done.text.split())) == says


def test_perturbed_atom_types_are_refused(work, water):
    decoupled = {
        "free-energy": "yes",
        "couple-moltype": "SOL",
        "couple-lambda0": "vdw",
        "couple-lambda1": "none",
        "init-lambda": 0.5,
        "sc-alpha": 0.5,
    }
    done = simulation.grompp(work, "run", settings(DISPERSION, decoupled), water.conf, water.top)
    assert done.status != 0
    assert "vdwtype = FMM does not support perturbed atom types" in done.text
