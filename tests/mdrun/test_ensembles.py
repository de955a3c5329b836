# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs with FMM sample what they should, by physical_validation, in short; tests/bench/ensembles.py at length.

test_check_phys.py has fluctuations of the energy against the time step in shorter runs.

Volumes at two pressures are there only: docs/report.md says why a short pair tells nothing.
"""

import numpy as np
import pytest

from tests.bench import ensembles
from tests.support.gmx import simulation

pv = pytest.importorskip("physical_validation")

# Standard errors that chance leaves once in 16 000 times; ensembles.py has 3 for those who look
BOUND = 4.0


@pytest.mark.long
def test_kinetic_and_potential_energies_have_the_distributions_of_their_temperature(work, water):
    runs = ensembles.Runs(pv, work, water, "FMM", length=100.0)
    for what, (value, _) in ensembles.at_constant_volume(runs).items():
        assert value <= BOUND, what


@pytest.mark.long
def test_fluctuations_of_the_energy_fall_with_the_square_of_the_time_step(work, water):
    runs = ensembles.Runs(pv, work, water, "FMM", length=0.0)
    (value, bound) = ensembles.at_constant_energy(runs)["integrator"]
    assert value <= bound


class Refused:
    """Runs of which the package refuses pairs that are shorter than a multiple of the length."""

    def __init__(self, enough):
        self.enough = enough
        self.method, self.length, self.asked = "FMM", 100.0, []
        self.pv = self.ensemble = self
        self.util = pv.util

    def at(self, temperature, times):
        self.asked.append((temperature, times))
        return times

    def check(self, one, _, **__):
        if one < self.enough:
            raise pv.util.error.InputError("traj1", "No overlap between trajectories.")
        return [0.5]


def test_pairs_that_are_too_short_go_on_and_the_others_are_judged():
    runs = Refused(2)
    assert ensembles.compare(runs, [(298.0,), (303.0,)]) == ([2, 2], 0.5)
    assert runs.asked == [(298.0, 1), (303.0, 1), (298.0, 2), (303.0, 2)]
    assert ensembles.compare(Refused(8), [(298.0,), (303.0,)]) == ([4, 4], None)


def test_a_run_that_goes_on_has_all_of_its_energies_once(work, water):
    runs = ensembles.Runs(pv, work, water, "FMM", length=1.0)
    runs.at(298.0, 1.0)
    runs.at(298.0, 1.0, times=2)
    times = simulation.Run(work, "298K-1bar-FMM").energies["Time"]
    assert times == pytest.approx(ensembles.INTERVAL * np.arange(round(2.0 / ensembles.INTERVAL) + 1))
