# SPDX-License-Identifier: LGPL-2.1-or-later
"""Energies and forces that others have published."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import farfield

# Madelung constants of cubic crystals, referred to the distance of nearest neighbours: OEIS A085469, A181152, A182566
CRYSTALS = {
    "rock salt": ([(0, 0, 0)], [(0.5, 0, 0)], "F", (1, -1), 0.5, 1.74756459463318),
    "caesium chloride": ([(0, 0, 0)], [(0.5, 0.5, 0.5)], "P", (1, -1), np.sqrt(0.75), 1.76267477307099),
    "sphalerite": ([(0, 0, 0)], [(0.25, 0.25, 0.25)], "F", (1, -1), np.sqrt(3) / 4, 1.63805505338879),
}
CENTRINGS = {"P": [(0, 0, 0)], "F": [(0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)]}


@pytest.mark.parametrize("name", CRYSTALS)
@pytest.mark.parametrize("cells", [1, 3])
def test_crystals_have_their_madelung_constants(name, cells):
    first, second, centring, charges, nearest, constant = CRYSTALS[name]
    lattice = list(itertools.product(range(cells), repeat=3))
    x, q = [], []
    for sites, charge in zip((first, second), charges):
        for site, shift, cell in itertools.product(sites, CENTRINGS[centring], lattice):
            x.append(np.add(np.add(site, shift), cell))
            q.append(charge)
    edge = 0.6  # nm
    solver = farfield.Solver(accuracy=1e-8, coulomb_constant=1.0)
    solver.set_charges(q)
    energy = solver.evaluate(edge * np.array(x), [cells * edge] * 3).energy
    pairs = len(q) / 2
    assert energy == pytest.approx(-constant * pairs / (nearest * edge), rel=1e-8)


# Eight ions in a triclinic box, with the energy and forces that GROMACS gave for them: from the tests of OpenMM
# (TestEwald, testTriclinic). Lennard-Jones interactions end at 1.0 nm.
BOX = np.array([[2.5, 0, 0], [0.5, 3.0, 0], [0.7, 0.9, 3.5]])
IONS = np.array(
    [
        [1.744, 2.788, 3.162],
        [1.048, 0.762, 2.340],
        [2.489, 1.570, 2.817],
        [1.027, 1.893, 3.271],
        [0.937, 0.825, 0.009],
        [2.290, 1.887, 3.352],
        [1.266, 1.111, 2.894],
        [0.933, 1.862, 3.490],
    ]
)
CHARGES = np.repeat([-1.0, 1.0], 4)
SIGMA = np.repeat([0.440104, 0.332840], 4)  # nm
EPSILON = np.repeat([0.4184, 0.0115897], 4)  # kJ/mol
ENERGY = -963.370
FORCES = np.array(
    [
        [42.5253, -123.503, 122.139],
        [97.4752, 168.213, 193.169],
        [-150.348, 129.165, 370.435],
        [918.644, -3.52571, -1347.72],
        [-161.193, 90.1528, -71.2904],
        [282.630, 27.8029, -372.864],
        [-147.454, -214.448, -355.789],
        [-882.195, -73.9132, 1462.02],
    ]
)


def lennard_jones(cutoff):
    """Energy and forces of all pairs of ions within a cut-off."""
    shifts = np.array(list(itertools.product((-1, 0, 1), repeat=3))) @ BOX
    energy, forces = 0.0, np.zeros_like(IONS)
    for i, j in itertools.permutations(range(8), 2):
        d = IONS[i] - IONS[j] + shifts
        r = np.linalg.norm(d, axis=1)
        d, r = d[r < cutoff], r[r < cutoff]
        s6 = ((SIGMA[i] + SIGMA[j]) / 2 / r) ** 6
        depth = np.sqrt(EPSILON[i] * EPSILON[j])
        energy += 0.5 * np.sum(4 * depth * (s6**2 - s6))
        forces[i] += (24 * depth * (2 * s6**2 - s6) / r**2) @ d
    return energy, forces


def test_ions_in_a_triclinic_box():
    solver = farfield.Solver(accuracy=1e-9)
    solver.set_charges(CHARGES)
    coulomb = solver.evaluate(IONS, BOX)
    energy, forces = lennard_jones(1.0)
    # Six digits are published, of an evaluation in single precision by PME
    assert coulomb.energy + energy == pytest.approx(ENERGY, rel=1e-4)
    np.testing.assert_allclose(coulomb.forces + forces, FORCES, atol=1e-4 * np.abs(FORCES).max())


def test_amorphous_salt():
    # TestEwald of OpenMM, testEwaldPME: the energy that GROMACS gave, with six digits; OpenMM, too, compares to 1e-5.
    # An Ewald sum in double precision gives -382047.42.
    x = np.loadtxt(Path(__file__).parent / "data" / "openmm_nacl.txt")
    solver = farfield.Solver(accuracy=1e-7)
    solver.set_charges(np.repeat([1.0, -1.0], len(x) // 2))
    assert solver.evaluate(x, [3.00646] * 3).energy == pytest.approx(-3.82047e5, rel=1e-5)
