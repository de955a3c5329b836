# SPDX-License-Identifier: LGPL-2.1-or-later
"""gmx convert-tpr -f: other electrostatics in a run input file, as if grompp had made it."""

import re

import numpy as np
import pytest

from farfield.gromacs import tpr
from tests.support.gmx import environment, mdp, simulation
from tests.support.gmx.mdp import FMM, STANDARD_PME, settings

THERMOSTAT = {"tcoupl": "v-rescale", "tc-grps": "System", "tau-t": 1, "ref-t": 300}
ONE_STEP = {**mdp.ONE_STEP, **THERMOSTAT, "rcoulomb": 0.9, "rvdw": 0.9}
# More than the defaults, to see that values arrive.
CHOSEN_FMM = {
    **FMM,
    "fmm-farfield-order": 7,
    "fmm-farfield-direct-range": 2,
    "fmm-farfield-cell-size": 0.6,
    "fmm-farfield-m2l": "fft",
    "fmm-farfield-accuracy": 1e-3,
}
CHOSEN_PME = {**STANDARD_PME, "fourierspacing": 0.1, "pme-order": 5, "ewald-rtol": 1e-6}


def made(work, water, name, changes, *more):
    """A run input file by grompp."""
    simulation.grompp(work, name, settings(ONE_STEP, changes, *more), water.conf, water.top).ok()
    return work / f"{name}.tpr"


def convert(work, source, name, changes, flags=()):
    """One by convert-tpr; returns the finished command."""
    mdp.write(work / f"{name}.mdp", changes)
    files = ["-s", source, "-f", f"{name}.mdp", "-o", f"{name}.tpr"]
    return environment.gmx().attempt("convert-tpr", *files, *flags, folder=work)


def forces(work, name):
    simulation.mdrun(work, name, simulation.reproducible()).ok()
    return simulation.Run(work, name).forces


@pytest.mark.parametrize(
    "before, after",
    [(STANDARD_PME, CHOSEN_FMM), (CHOSEN_FMM, CHOSEN_PME), (FMM, CHOSEN_FMM), (STANDARD_PME, CHOSEN_PME)],
    ids=["PME to FMM", "FMM to PME", "FMM", "PME"],
)
def test_a_changed_file_runs_as_one_that_grompp_made(work, water, before, after):
    source = made(work, water, "before", before)
    convert(work, source, "converted", after).ok()
    made(work, water, "after", after)
    np.testing.assert_array_equal(forces(work, "converted"), forces(work, "after"))
    # What distinguishes the two settings
    assert not np.array_equal(forces(work, "before"), forces(work, "after"))


def test_only_what_the_file_names_is_changed(work, water):
    source = made(work, water, "before", STANDARD_PME)
    changes = {"init-step": 5, "nstfout": 3, "nstenergy": 4, "ewald_rtol": 1e-6}
    convert(work, source, "after", changes, ["-nsteps", 7]).ok()
    before, after = (tpr.parameters(environment.gmx(), path) for path in (source, work / "after.tpr"))
    different = {name: after[name] for name in after if after[name] != before.get(name)}
    assert different == {"init-step": "5", "nstfout": "3", "nstenergy": "4", "ewald-rtol": "1e-06", "nsteps": "7"}
    assert set(before) == set(after)


def test_a_file_without_this_backend_has_none_of_its_options(work, water):
    """GROMACS without the patch reads it then."""
    source = made(work, water, "before", CHOSEN_FMM)
    assert b"farfield-" in source.read_bytes()
    convert(work, source, "after", CHOSEN_PME).ok()
    assert b"farfield-" not in (work / "after.tpr").read_bytes()


def test_a_longer_cutoff_has_a_longer_list(work, water):
    """Without a thermostat mdrun keeps the buffer of the file."""
    source = made(work, water, "before", STANDARD_PME, {"tcoupl": "no"})
    convert(work, source, "after", {"rcoulomb": 1.05}).ok()
    before, after = (tpr.parameters(environment.gmx(), path) for path in (source, work / "after.tpr"))
    buffers = [float(p["rlist"]) - float(p["rcoulomb"]) for p in (before, after)]
    # Six digits are printed
    assert buffers[1] == pytest.approx(buffers[0], abs=2e-6)


REFUSED = {
    "not of electrostatics": ({"dt": 0.001}, "dt cannot be changed"),
    "misspelt": ({"fmm-farfield-acuracy": 1e-4}, "fmm-farfield-acuracy cannot be changed"),
    "of another module": ({"density-guided-simulation-active": "yes"}, "cannot be changed"),
    "neither PME nor FMM": ({"coulombtype": "Reaction-Field"}, "only PME and FMM"),
    "no such type": ({"coulombtype": "Multigrid"}, "coulombtype"),
    "no backend": ({"coulombtype": "FMM"}, "fmm-backend"),
    "an option of FMM out of range": ({**FMM, "fmm-farfield-order": 30}, "fmm-farfield-order"),
    "order of PME": ({"pme-order": 2}, "pme-order"),
    "spacing": ({"fourierspacing": -0.1}, "fourierspacing"),
    "tolerance": ({"ewald-rtol": 0}, "ewald-rtol"),
    "not a number": ({"rcoulomb": "nan"}, "rcoulomb"),
    "shorter cut-off": ({"rcoulomb": 0.8}, "rcoulomb"),
    "cut-off beyond half the box": ({"rcoulomb": 1.45}, "too far for this box"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused(work, water, case):
    changes, word = REFUSED[case]
    source = made(work, water, "before", STANDARD_PME)
    done = convert(work, source, "after", changes)
    assert done.status != 0
    assert word in " ".join(done.text.split()), done.text[-2000:]
    assert not (work / "after.tpr").exists()


# With velocities: a buffer that grompp has made for a temperature
CONSTANT_ENERGY = {"tcoupl": "no", "continuation": "no", "gen-vel": "yes", "gen-temp": 300}
# What the run input file is, what is to be changed, and a word of the message
NOT_THERE = {
    "FMM has a shorter list": (
        {**FMM, **CONSTANT_ENERGY},
        CHOSEN_PME,
        "Without a thermostat",
    ),
    "energies at other steps": (
        {"nstcalcenergy": 10, "nstenergy": 100},
        {"nstenergy": 15},
        "nstenergy is 15, but must be a multiple of nstcalcenergy, 10",
    ),
    "less of PME beyond the cut-off": (
        {**STANDARD_PME, **CONSTANT_ENERGY},
        {"ewald-rtol": 1e-3},
        "Without a thermostat",
    ),
}


@pytest.mark.parametrize("case", NOT_THERE)
def test_what_only_grompp_can_make_is_refused(work, water, case):
    before, changes, word = NOT_THERE[case]
    source = made(work, water, "before", before)
    done = convert(work, source, "after", changes)
    assert done.status != 0
    assert word in " ".join(done.text.split()), done.text[-2000:]


def test_lennard_jones_on_a_grid_gets_the_grid_of_the_spacing(work, water):
    lj = {"vdwtype": "PME", "nstenergy": 10, "nstcalcenergy": 10}
    for name, method in (("pme", STANDARD_PME), ("fmm", FMM)):
        source = made(work, water, f"{name}-before", method, lj)
        convert(work, source, f"{name}-after", {"fourierspacing": 0.08}).ok()
        made(work, water, f"{name}-made", method, lj, {"fourierspacing": 0.08})
        np.testing.assert_array_equal(forces(work, f"{name}-after"), forces(work, f"{name}-made"))
        assert not np.array_equal(forces(work, f"{name}-after"), forces(work, f"{name}-before"))


@pytest.mark.parametrize("is_soft", [False, True])
def test_perturbed_states_that_fmm_refuses_are_refused_here(work, water, is_soft):
    """As by grompp: charges of atoms whose repulsion is gone, without a soft core of their own."""
    couple = {
        "free-energy": "yes",
        "couple-moltype": "SOL",
        "couple-lambda0": "vdw-q",
        "couple-lambda1": "none",
        "coul-lambdas": 0.5 if is_soft else 0,
        "vdw-lambdas": 0.5,
        "init-lambda-state": 0,
        "sc-alpha": 0.5,
        "sc-coul": "yes" if is_soft else "no",
    }
    source = made(work, water, "before", STANDARD_PME, couple)
    done = convert(work, source, "after", FMM)
    assert (done.status == 0) == is_soft, done.text[-2000:]
    assert is_soft or re.search(r"coul-lambdas", done.text), done.text[-2000:]
