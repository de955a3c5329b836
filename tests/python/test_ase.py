# SPDX-License-Identifier: LGPL-2.1-or-later
"""The calculator of ASE: Madelung constant, forces and stress by differences of energies."""

import copy
import pickle

import numpy as np
import pytest

ase = pytest.importorskip("ase")

from ase import Atoms, units  # noqa: E402
from ase.build import bulk  # noqa: E402
from ase.calculators.calculator import PropertyNotImplementedError  # noqa: E402

from farfield.ase import FarfieldCoulomb  # noqa: E402

COULOMB = 138.935458 * units.kJ / units.mol * 10  # eV Angstrom


def calculator(accuracy=1e-9, **options):
    return FarfieldCoulomb(accuracy=accuracy, threads=1, device="cpu", **options)


def test_rock_salt_has_its_madelung_constant():
    crystal = bulk("NaCl", "rocksalt", a=5.64)  # primitive: not a triangular cell
    crystal.set_initial_charges([1, -1])
    crystal.calc = calculator(1e-7)
    expected = -1.747564594633 * COULOMB / 2.82
    assert crystal.get_potential_energy() == pytest.approx(expected, rel=1e-8)
    assert np.abs(crystal.get_forces()).max() < 1e-6
    # the energy is proportional to 1/a
    pressure = -np.trace(crystal.get_stress(voigt=False)) / 3
    assert pressure == pytest.approx(expected / (3 * crystal.get_volume()), rel=1e-6)


@pytest.fixture
def atoms():
    random = np.random.default_rng(11)
    cell = random.uniform(-2, 2, (3, 3)) + 12 * np.eye(3)
    result = Atoms("H16", scaled_positions=random.random((16, 3)), cell=cell, pbc=True)
    charges = random.uniform(-1, 1, 16)
    result.set_initial_charges(charges - charges.mean())
    result.calc = calculator(exclusions=[(0, 1), (2, 3)])
    return result


def test_forces_are_slopes_of_the_energy(atoms):
    forces = atoms.get_forces()
    step = 1e-3
    for i, d in ((0, 0), (3, 1), (9, 2)):
        energies = []
        for sign in (-1, 1):
            moved = atoms.copy()
            moved.positions[i, d] += sign * step
            moved.calc = atoms.calc
            energies.append(moved.get_potential_energy())
        slope = (energies[1] - energies[0]) / (2 * step)
        assert forces[i, d] == pytest.approx(-slope, rel=1e-4, abs=1e-5)


def test_stress_is_the_slope_of_the_energy(atoms):
    stress = atoms.get_stress(voigt=False)
    step = 1e-4
    for a, b in ((0, 0), (1, 2), (2, 0)):
        energies = []
        for sign in (-1, 1):
            strain = np.eye(3)
            strain[a, b] += 0.5 * sign * step
            strain[b, a] += 0.5 * sign * step
            strained = atoms.copy()
            strained.set_cell(atoms.cell @ strain, scale_atoms=True)
            strained.calc = atoms.calc
            energies.append(strained.get_potential_energy())
        slope = (energies[1] - energies[0]) / (2 * step) / atoms.get_volume()
        assert stress[a, b] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_potentials_are_slopes_by_the_charges(atoms):
    charges = atoms.get_initial_charges()
    potentials = atoms.calc.get_property("potentials", atoms)
    energy = atoms.get_potential_energy()
    assert np.sum(charges * potentials) == pytest.approx(2 * energy, rel=1e-6)


def test_atoms_without_images_have_none(atoms):
    atoms.pbc = False
    charges = atoms.get_initial_charges()
    excluded = {(0, 1), (2, 3)}
    expected = sum(
        COULOMB * charges[i] * charges[j] / np.linalg.norm(atoms.positions[i] - atoms.positions[j])
        for i in range(16) for j in range(i + 1, 16) if (i, j) not in excluded
    )
    assert atoms.get_potential_energy() == pytest.approx(expected, rel=1e-8)
    test_forces_are_slopes_of_the_energy(atoms)
    with pytest.raises(PropertyNotImplementedError):
        atoms.get_stress()
    atoms.pbc = True
    assert atoms.get_potential_energy() != pytest.approx(expected, rel=1e-3)
    assert atoms.get_stress().shape == (6,)


@pytest.mark.parametrize("open_axis", range(3))
def test_slabs_are_the_limit_of_slabs_far_apart(atoms, open_axis):
    """A periodic box with five times as much vacuum, and its energy of a dipole taken away."""
    atoms.calc = calculator(1e-7)
    order = [axis for axis in range(3) if axis != open_axis] + [open_axis]
    vectors = np.zeros((3, 3))
    vectors[0, 0], vectors[1, :2], vectors[2, 2] = 9, (2, 8), 50
    turned = np.zeros((3, 3))
    for row, axis in enumerate(order):
        turned[axis] = vectors[row][np.argsort(order)]
    atoms.positions = atoms.positions % 6
    atoms.cell = turned
    atoms.pbc = True
    stacked = atoms.get_potential_energy(), atoms.get_forces()
    atoms.cell[open_axis] = 0  # not read
    atoms.pbc[open_axis] = False
    charges = atoms.get_initial_charges()
    net, middle = charges.sum(), atoms.positions[:, open_axis].mean()
    assert net == pytest.approx(0, abs=1e-9)
    field = 4 * np.pi / (9 * 8 * 50) * COULOMB * (charges @ (atoms.positions[:, open_axis] - middle))
    assert atoms.get_potential_energy() == pytest.approx(
        stacked[0] + field**2 * 9 * 8 * 50 / (8 * np.pi * COULOMB), rel=1e-6
    )
    expected = stacked[1].copy()
    expected[:, open_axis] -= field * charges
    np.testing.assert_allclose(atoms.get_forces(), expected, atol=1e-6 * np.abs(expected).max())
    with pytest.raises(PropertyNotImplementedError):  # there is no volume
        atoms.get_stress()


@pytest.mark.parametrize("open_axis", range(3))
def test_stress_of_a_slab_is_the_slope_in_its_plane(atoms, open_axis):
    """Any cell: the plane is not one of two axes."""
    atoms.calc = calculator(1e-7)
    atoms.pbc[open_axis] = False
    own = atoms.cell.array[atoms.pbc]
    normal = np.cross(*own) / np.linalg.norm(np.cross(*own))
    in_plane = np.eye(3) - np.outer(normal, normal)
    stress = atoms.get_stress(voigt=False)
    np.testing.assert_allclose(stress @ normal, 0, atol=1e-12 * np.abs(stress).max())
    random = np.random.default_rng(open_axis)
    step = 1e-3
    for _ in range(2):
        strain = random.uniform(-1, 1, (3, 3))
        strain = in_plane @ (strain + strain.T) @ in_plane
        energies = []
        for sign in (-1, 1):
            strained = atoms.copy()
            strained.set_cell(atoms.cell @ (np.eye(3) + sign * step * strain), scale_atoms=True)
            strained.calc = atoms.calc
            energies.append(strained.get_potential_energy())
        slope = (energies[1] - energies[0]) / (2 * step) / atoms.get_volume()
        assert np.sum(stress * strain) == pytest.approx(slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("pbc", [(True, True, True), (True, True, False), (False, True, True)])
@pytest.mark.parametrize("change", ["swapped", "mirrored"])
def test_left_handed_cells_are_cells(atoms, pbc, change):
    atoms.calc, atoms.pbc = calculator(1e-6), pbc
    energy, forces, stress = atoms.get_potential_energy(), atoms.get_forces(), atoms.get_stress(voigt=False)
    other, turn = atoms.copy(), np.eye(3)
    if change == "swapped":
        first, second = np.flatnonzero(pbc)[:2]
        swapped = np.arange(3)
        swapped[[first, second]] = second, first
        other.set_cell(atoms.cell[swapped])
    else:
        turn = np.diag([1.0, -1.0, 1.0])
        other.set_cell(atoms.cell @ turn)
        other.positions = atoms.positions @ turn
    assert np.linalg.det(other.cell) < 0
    other.calc = atoms.calc
    # Twice the accuracy, and the largest force is larger than the usual one
    bound = 4e-6
    assert other.get_potential_energy() == pytest.approx(energy, rel=bound)
    np.testing.assert_allclose(other.get_forces(), forces @ turn, atol=bound * np.abs(forces).max())
    np.testing.assert_allclose(
        other.get_stress(voigt=False), turn @ stress @ turn, atol=bound * np.abs(stress).max()
    )


@pytest.mark.parametrize(
    "cell, pbc, word",
    [
        ([0, 0, 0], True, "volume"),
        ([[9, 0, 0], [0, 9, 0], [9, 9, 0]], True, "volume"),
        ([[9, 0, 0], [18, 0, 0], [0, 0, 9]], (True, True, False), "area"),
        ([[9, 0, 0], [0, 9, 0], [0, 0, np.nan]], True, "volume"),
    ],
)
def test_cells_without_volume_are_refused(atoms, cell, pbc, word):
    atoms.cell, atoms.pbc = cell, pbc
    with pytest.raises(ValueError, match=f"no {word}"):
        atoms.get_potential_energy()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])
def test_calculators_can_be_copied_and_pickled(atoms, copied):
    atoms.calc = calculator(1e-5)
    energy = atoms.get_potential_energy()
    other = atoms.copy()
    other.calc = copied(atoms.calc)
    assert other.get_potential_energy() == energy
    # each has solvers of its own
    other.set_initial_charges(2 * atoms.get_initial_charges())
    other.positions[0] += 0.1
    other.get_potential_energy()
    assert atoms.calc.get_potential_energy(atoms) == energy
    atoms.positions[1] += 0.0
    atoms.calc.reset()
    assert atoms.get_potential_energy() == pytest.approx(energy, rel=1e-12)


def test_potentials_of_atoms_without_a_charge_are_slopes(atoms):
    atoms.calc = calculator(1e-7, exclusions=[(0, 1), (2, 3)])
    charges = atoms.get_initial_charges()
    charges[[0, 5]] = 0  # 0 has an excluded partner
    energies = {}
    for step in (-1, 1):
        for i in (0, 5):
            changed = charges.copy()
            changed[i] = step
            atoms.set_initial_charges(changed)
            energies[i, step] = atoms.get_potential_energy()
    atoms.set_initial_charges(charges)
    potentials = atoms.calc.get_property("potentials", atoms)
    for i in (0, 5):
        slope = (energies[i, 1] - energies[i, -1]) / 2
        assert potentials[i] == pytest.approx(slope, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("options", [{"boundary": "open"}, {"exclusions": [(0.5, 1)]}, {"exclusions": [0, 1]}])
def test_options_that_can_not_be_meant_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        FarfieldCoulomb(**options)


def test_atoms_periodic_in_one_direction_are_refused(atoms):
    atoms.pbc = (True, False, False)
    with pytest.raises(ValueError, match="all three directions, in two or in none"):
        atoms.get_potential_energy()
