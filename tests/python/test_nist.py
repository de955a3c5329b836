# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies that NIST has published for configurations of water (SRSW in docs/references.md).

The published energies are Ewald sums, term by term, that end at stated cut-offs. What lies beyond these is up to
4e-4 of the energy: pairs beyond 1 nm, and waves. It is summed here, after a check that the sums within the cut-offs
are the published ones.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import farfield

from . import ewald

# kJ/mol nm/e^2, from the constants of CODATA 2018, which FEASST, NIST's program, uses: e^2 N_A / (4 pi epsilon_0) with
# e = 1.602176634e-19 C, N_A = 6.02214076e23/mol, epsilon_0 = 8.8541878128e-12 F/m
COULOMB = 138.93545764438198
CHARGES = (-0.8476, 0.4238, 0.4238)  # O, H, H
CUTOFF = 1.0  # nm
# Half of the last digit of the energies below
DIGITS = 0.5e-5
ACCURACY = 1e-8
# Screened interactions of charges at a distance of 5 / splitting, and waves of length 10 splitting, have the weight
# exp(-25) = 1.4e-11
FAR, LONGEST = 5.0, 10.0


@dataclass
class Published:
    """Energies, kJ/mol, of sums with a splitting, 1/nm, and with wave vectors below a length, 1/nm."""

    splitting: float
    longest_wave: float
    real: float
    fourier: float
    self: float
    intra: float

    @property
    def energy(self):
        return self.real + self.fourier + self.self + self.intra


# FEASST includes what is below this length, by a hair: waves at the limit do not count
BELOW = 1 - 5e-8
ENERGIES = {
    # plugin/charge/test/ewald.cpp and charge_screened.cpp of FEASST, whose five digits are rounded from more; in
    # kelvin, with six digits, they are on NIST's page: -558889, 6270.09, -2844690, 2809990
    "cubic": Published(
        splitting=2.8,
        longest_wave=BELOW * math.sqrt(27) * 2 * math.pi / 2.0,
        real=-4646.86076,
        fourier=52.13246,
        self=-23652.08037,
        intra=23363.57374,
    ),
    # plugin/charge/test/ewald.cpp of FEASST, srsw_ref_config; waves up to seven times the longest 2 pi / edge
    "triclinic": Published(
        splitting=2.85,
        longest_wave=BELOW * 7 * 2 * math.pi / 2.897777478867205,
        real=-6046.43627,
        fourier=371.46525,
        self=-96297.75579,
        intra=95078.89447,
    ),
}


class Water:
    def __init__(self, name):
        rows = 0.1 * np.loadtxt(Path(__file__).parent / "data" / f"nist_spce_{name}.txt")
        self.box, self.x = rows[:3], rows[3:]
        self.molecules = np.arange(len(self.x)) // 3
        self.q = np.tile(CHARGES, len(self.x) // 3)
        first = np.arange(0, len(self.x), 3)
        self.excluded = np.concatenate([np.stack([first + i, first + j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))])

    def sums(self, splitting, reach, longest_wave):
        found = ewald.sums(self.q, self.x, self.box, splitting, reach, longest_wave, self.molecules)
        return COULOMB * np.array(found)

    def others(self, splitting):
        """The energy of the Gaussians with themselves, and the one within molecules, which does not count."""
        i, j = self.excluded.T
        r = np.linalg.norm(self.x[i] - self.x[j], axis=1)
        intra = np.sum(self.q[i] * self.q[j] * (1 - ewald.erfc(splitting * r)) / r)
        return -COULOMB * splitting / math.sqrt(math.pi) * np.sum(self.q**2), -COULOMB * intra


@pytest.fixture(scope="module", params=ENERGIES)
def case(request):
    return Water(request.param), ENERGIES[request.param]


def test_sums_within_the_cutoffs_are_the_published_terms(case):
    water, published = case
    real, fourier = water.sums(published.splitting, CUTOFF, published.longest_wave)
    own, intra = water.others(published.splitting)
    found = {"real": real, "fourier": fourier, "self": own, "intra": intra}
    assert found == pytest.approx({name: getattr(published, name) for name in found}, rel=0, abs=DIGITS)


def test_energy_is_the_published_one_and_what_lies_beyond_its_cutoffs(case):
    water, published = case
    splitting = published.splitting
    within = water.sums(splitting, CUTOFF, published.longest_wave)
    everything = water.sums(splitting, FAR / splitting, LONGEST * splitting)
    expected = published.energy + np.sum(everything - within)
    solver = farfield.Solver(accuracy=ACCURACY, coulomb_constant=COULOMB)
    solver.set_charges(water.q)
    solver.set_exclusions(water.excluded)
    # Four terms are rounded; errors of pairs of charges are independent, that of the energy is of the order of that of
    # the forces at most
    tolerance = 4 * DIGITS + ACCURACY * abs(expected)
    assert solver.evaluate(water.x, water.box).energy == pytest.approx(expected, rel=0, abs=tolerance)
