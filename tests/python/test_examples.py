# SPDX-License-Identifier: LGPL-2.1-or-later
"""The examples in Python, with few particles: they run, and what they show is right."""

import numpy as np
import pytest

from examples import coulomb_explosion, polarisable_water, potential_map

from . import ewald


def test_ions_explode_as_a_uniform_ball_of_charge(tmp_path):
    output = tmp_path / "explosion.png"
    words = ["--ions", "600", "--steps", "100", "--dt", "0.001", "--output", str(output)]
    radii, expected, energies = coulomb_explosion.main(words)
    assert radii[-1] > 1.5 * radii[0]
    # Repulsion of neighbours is left out of the uniform ball: some n^(-2/3) of the energy
    assert radii == pytest.approx(expected, rel=600 ** (-2 / 3))
    assert energies == pytest.approx(energies[0], rel=1e-4)
    assert output.read_bytes().startswith(b"\x89PNG")


def test_the_map_has_the_potential_of_a_vacancy(tmp_path):
    output = tmp_path / "map.png"
    potential_map.main(["--cells", "2", "--points", "20", "--output", str(output)])
    assert output.read_bytes().startswith(b"\x89PNG")
    x, q, vacancy, edge = potential_map.crystal(2)
    assert q.sum() == 1 and len(x) == 63
    # At the vacancy: that of the crystal without the charge, by Madelung's constant
    probe = np.append(q, -1.0), np.vstack((x, vacancy)), edge * np.eye(3)
    distance = potential_map.CONSTANT / 2
    assert ewald.energy(*probe, []) == pytest.approx(-32 * 138.935458 * 1.7475645946 / distance, rel=1e-6)


def test_polarisable_water_has_the_published_bond(tmp_path):
    output = tmp_path / "water.png"
    energy, distance, dipoles = polarisable_water.main(["--points", "16", "--output", str(output)])
    assert energy == pytest.approx(-4.69, abs=0.005) and distance == pytest.approx(0.287, abs=0.0005)
    assert all(1.9 < dipole < 2.2 for dipole in dipoles)  # D, of 1.85 alone
    assert output.read_bytes().startswith(b"\x89PNG")
