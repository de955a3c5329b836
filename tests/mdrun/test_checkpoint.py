# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checkpoints: order and cells of a run belong to its options, and go on with those only."""

import re

import numpy as np
import pytest

from farfield.gromacs import log
from tests.support.gmx import mdp, simulation
from tests.support.gmx.mdp import UNTUNED_FMM, settings

LENGTH = {"nsteps": 4, "gen-vel": "yes", "gen-temp": 300, "nstxout": 1, "nstfout": 1}

# What decides on results: options of the run, and those of the continuation.
OTHER = {
    "accuracy": ({"accuracy": 1e-2}, {"accuracy": 1e-3}),
    "order": ({"order": 5}, {"order": 6}),
    "order, no longer given": ({"order": 3}, {}),
    "direct-range": ({"direct-range": 1}, {"direct-range": 2}),
    "cell-size": ({"cell-size": 0.5}, {"cell-size": 0.7}),
    "m2l": ({"m2l": "hierarchy"}, {"m2l": "fft"}),
}
# What does not.
SAME = {
    "none": ({"accuracy": 1e-2}, {"accuracy": 1e-2}),
    "device": ({"device": "cpu"}, {"device": "auto"}),
    "tune": ({"tune": "no"}, {"tune": "yes"}),
}
NOT_USED = "The FMM cells of the checkpoint are not used."


def option(name):
    return f"fmm-farfield-{name}"


def make(work, name, system, options, flags=()):
    """NAME.tpr with options of the backend."""
    own = {option(key): value for key, value in options.items()}
    entries = settings(LENGTH, UNTUNED_FMM, own)
    simulation.grompp(work, name, entries, system.conf, system.top, flags).ok()


def begin(work, system, options):
    """Four steps, which leave run.cpt."""
    make(work, "run", system, options)
    simulation.mdrun(work, "run").ok()
    return simulation.Run(work, "run")


def go_on(work, name):
    """Four more steps by NAME.tpr."""
    flags = ["-s", f"{name}.tpr", "-cpi", "run.cpt", "-noappend", "-nsteps", 4]
    simulation.mdrun(work, "run", flags).ok()
    return simulation.Run(work, "run.part0002")


def words(run):
    return " ".join(run.log.split())


def discretisation(run):
    """The lines of the log on what has been chosen, but for its error."""
    chosen = ("multipole order", "direct range", "leaf cells", "levels", "M2L engine")
    lines = log.setup(run.folder / f"{run.name}.log")
    return [line for line in lines if line.strip().startswith(chosen)]


@pytest.mark.parametrize("case", OTHER)
def test_another_option_is_told_and_what_it_asks_for_is_chosen(work, water, case):
    before, after = OTHER[case]
    first = begin(work, water, before)
    make(work, "other", water, after)
    # Positions decide as well: those of the checkpoint, before the continuation writes its own
    make(work, "anew", water, after, ["-t", "run.cpt"])
    simulation.mdrun(work, "anew").ok()
    second = go_on(work, "other")
    told = re.search(rf"{NOT_USED} (.*?) New cells are chosen\.", words(second))
    assert told
    assert f"The option to change is {option(case.split(',')[0])}." in told.group(1)
    anew = discretisation(simulation.Run(work, "anew"))
    assert discretisation(second) == anew != discretisation(first)


@pytest.mark.parametrize("case", SAME)
def test_the_cells_stay_where_no_option_that_decides_on_results_differs(work, water, case):
    before, after = SAME[case]
    first = begin(work, water, before)
    make(work, "other", water, after)
    second = go_on(work, "other")
    assert NOT_USED not in words(second)
    assert discretisation(second) == discretisation(first)


def errors(work, system, run):
    """Relative errors of the forces of all frames, against tight PME."""
    entries = settings(mdp.ONE_STEP, mdp.TIGHT_PME)
    simulation.grompp(work, "pme", entries, system.conf, system.top).ok()
    simulation.mdrun(work, "pme", ["-rerun", f"{run.name}.trr"]).ok()
    exact = simulation.Run(work, "pme").frames
    return [simulation.force_error(a.f, b.f) for a, b in zip(run.frames, exact, strict=True)]


@pytest.mark.parametrize(
    "before",
    [{"accuracy": 1e-2}, {"order": 2, "cell-size": 0.7}, {"accuracy": 1e-2, "device": "cpu"}],
    ids=", ".join,
)
def test_forces_have_the_accuracy_that_the_continuation_asks_for(work, water, before):
    wanted = 1e-4
    first = begin(work, water, before)
    make(work, "other", water, {"accuracy": wanted})
    second = go_on(work, "other")
    # Otherwise the cells of the run would do as well.
    assert min(errors(work, water, first)) > 5 * wanted
    # A tenth for the error of PME, which is 7e-6 at most.
    assert np.mean(errors(work, water, second)) <= 1.1 * wanted
