# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lipids that the membrane of the benchmarks is built of."""

import math
import random

import pytest

from examples import membrane
from tests.support.gmx import environment


@pytest.fixture(scope="module")
def residue():
    """Atoms and neighbours."""
    return membrane.read_residue(membrane.residues_of(environment.gmx()), membrane.LIPID)


@pytest.fixture(params=range(5))
def lipid(request, residue):
    return membrane.upright(membrane.conformer(random.Random(request.param), residue[1]))


def test_every_atom_is_placed(residue, lipid):
    assert sorted(lipid) == sorted(residue[0])


def test_bonds_have_their_lengths(residue, lipid):
    for atom, bonded in residue[1].items():
        for other in bonded:
            length = membrane.BOND_LENGTHS["".join(sorted(atom[0] + other[0]))]
            assert math.dist(lipid[atom], lipid[other]) == pytest.approx(length)


def test_glycerol_is_the_natural_enantiomer(lipid):
    """R: O21, C1, C3, in the order of their priority, turn clockwise seen from opposite the H."""
    o21, c1, c3 = (membrane.minus(lipid[name], lipid["C2"]) for name in ("O21", "C1", "C3"))
    assert membrane.dot(o21, membrane.cross(c1, c3)) < 0


def test_double_bond_is_cis(lipid):
    """The ends are as close as two angles of 120 degrees make them."""
    bond = membrane.BOND_LENGTHS["CC"]
    assert math.dist(lipid["C28"], lipid["C211"]) == pytest.approx(2 * bond)
