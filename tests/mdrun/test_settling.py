# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs whose start says little about the forces that follow: ions in contact, and ions at their sites."""

import re

from tests.support.gmx import reference, systems
from tests.support.gmx.mdp import FMM, settings
from tests.support.gmx.simulation import rms, simulate

ACCURACY = 3e-4  # the default
MINIMISE = {"integrator": "steep", "nsteps": 80, "emstep": 0.01, "emtol": 1, "nstxout": 80, "nstfout": 80}


def estimates(log):
    """What the log says of the error, in the order in which it says it."""
    return [float(value) for value in re.findall(r"estimated error (?:is now )? *(\d\S*e-\d+)", log)]


def test_the_accuracy_is_met_once_ions_have_parted(work):
    """More than 20 000 of them, so far from their sites that some are in contact."""
    salt = systems.ion_crystal(work, cells=14, displacement=0.06)
    run = simulate(work, "run", settings({"rvdw": 0.9}, MINIMISE, FMM), salt, time_limit=600)
    last = ["-rerun", "run.trr", "-e", "last.edr"]
    exact, half = (
        simulate(work, name, settings(reference.single_point(0.9), FMM, {"epsilon-r": epsilon}), salt, last,
                 variables={"GMX_FMM_REFERENCE": "1"}, time_limit=600).frames[-1].f
        for name, epsilon in (("exact", 1), ("half", 2))
    )
    error = rms(run.frames[-1].f - exact) / rms(2 * (exact - half))
    told = estimates(run.log)
    print(f"error {error:.1e}, estimates {told}")
    assert len(told) > 1  # forces have become others
    assert error <= ACCURACY
    assert told[-1] / 2 < error < 2 * told[-1]


def test_a_crystal_at_its_sites_is_accepted(work):
    """All forces cancel: what rounding leaves is not asked for."""
    crystal = systems.ion_crystal(work, cells=3, constant=0.5, displacement=0)
    entries = settings(reference.single_point(0.68), FMM, {"fmm-farfield-accuracy": 1e-5})  # between two shells
    run = simulate(work, "run", entries, crystal)
    between_neighbours = 138.935458 / 0.25**2
    assert rms(run.forces) < 1e-5 * between_neighbours
