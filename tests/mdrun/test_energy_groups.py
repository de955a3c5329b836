# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies of energy groups: all of them, with periodic images, unlike those of PME."""

import numpy as np
import pytest

from tests.support.gmx import reference, simulation
from tests.support.gmx.limits import energy_limit
from tests.support.gmx.mdp import FMM, ONE_STEP, UNTUNED_FMM, settings


@pytest.mark.parametrize("box", ["salt_water", "charged_water"])
def test_groups_have_the_energies_of_their_charges(work, box, request):
    """Against Ewald sums over the charges of one group, and of both."""
    system = request.getfixturevalue(box)
    entries = settings(ONE_STEP, FMM, {"energygrps": "SOL Ion"})
    run = simulation.simulate(work, "groups", entries, system)
    own = {
        "SOL": reference.coulomb_energy(system, of=("OW", "HW")),
        "Ion": reference.coulomb_energy(system, of=("NA", "CL")),
        "all": reference.coulomb_energy(system),
    }
    expected = {
        "SOL-SOL": own["SOL"],
        "SOL-Ion": own["all"] - own["SOL"] - own["Ion"],
        "Ion-Ion": own["Ion"],
    }
    limit = energy_limit(system, own["all"])
    for pair, energy in expected.items():
        assert run.energies[f"Coul-SR:{pair}"][0] == pytest.approx(energy, abs=limit), pair
    assert run.coulomb()[0] == pytest.approx(own["all"], abs=limit)
    # what is left is rounding
    assert abs(run.energies["Coul. recip."][0]) <= 1e-6 * abs(own["all"])


def test_groups_change_nothing_else(work, salt_water):
    """At every step of a run, also those between steps with energies."""
    motion = {"nsteps": 6, "nstfout": 1, "nstcalcenergy": 3, "nstenergy": 3, "gen-vel": "yes"}
    runs = []
    for name, groups in (("one", {}), ("two", {"energygrps": "SOL Ion"})):
        entries = settings(UNTUNED_FMM, motion, groups)
        # GROMACS has no kernels for groups on a GPU
        runs.append(simulation.simulate(work, name, entries, salt_water, ["-nb", "cpu"]))
    for one, two in zip(runs[0].frames, runs[1].frames):
        assert simulation.force_error(two.f, one.f) <= 1e-5
    for term in ("Potential", "Pressure"):
        one, two = (np.array(run.energies[term]) for run in runs)
        assert len(one) == 3
        assert np.abs(two - one).max() <= 1e-5 * np.abs(one).max() + 1, term
