# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs with FMM sample what they should, by physical_validation, in short; tests/bench/ensembles.py at length."""

import pytest

from tests.bench import ensembles

pv = pytest.importorskip("physical_validation")

# Standard errors that chance leaves once in 16 000 times; ensembles.py has 3 for those who look
BOUND = 4.0


def test_kinetic_and_potential_energies_have_the_distributions_of_their_temperature(work, water):
    runs = ensembles.Runs(pv, work, water, "FMM", length=100.0)
    for what, (value, _) in ensembles.at_constant_volume(runs).items():
        assert value <= BOUND, what


def test_fluctuations_of_the_energy_fall_with_the_square_of_the_time_step(work, water):
    runs = ensembles.Runs(pv, work, water, "FMM", length=0.0)
    (value, bound) = ensembles.at_constant_energy(runs)["integrator"]
    assert value <= bound
