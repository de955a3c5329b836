# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python package against an Ewald sum of its own, and what it does with wrong input."""

from pathlib import Path

import numpy as np
import pytest

import farfield

from . import ewald

BOXES = {
    "cube": np.diag([2.0, 2.0, 2.0]),
    "rectangular": np.diag([1.6, 2.0, 2.4]),
    "triclinic": np.array([[2.0, 0, 0], [0.5, 1.9, 0], [-0.6, 0.7, 1.8]]),
}
EXCLUDED = [(0, 1), (2, 3), (2, 4)]


def charges(count=12, net=0.0):
    random = np.random.default_rng(3)
    q = random.uniform(-1, 1, count)
    return q + (net - q.sum()) / count, random.uniform(-1, 3, (count, 3))


def solver(q, accuracy=1e-8, pairs=(), **options):
    result = farfield.Solver(accuracy, threads=1, device="cpu", **options)
    result.set_charges(q)
    result.set_exclusions(pairs)
    return result


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("net", [0.0, 1.5])
def test_energy_and_forces_are_those_of_an_ewald_sum(box, net):
    q, x = charges(net=net)
    cell = BOXES[box]
    result = solver(q, pairs=EXCLUDED).evaluate(x, cell, potentials=True, virial=True)
    expected = ewald.energy(q, x, cell, EXCLUDED)
    scale = np.abs(expected)
    assert result.energy == pytest.approx(expected, abs=1e-7 * scale)
    assert np.sum(q * result.potentials) == pytest.approx(2 * result.energy, abs=1e-7 * scale)
    assert np.trace(result.virial) == pytest.approx(-0.5 * result.energy, abs=1e-6 * scale)
    step = 1e-4
    for i, d in ((0, 0), (5, 1), (11, 2)):
        moved = [x.copy(), x.copy()]
        moved[0][i, d] -= step
        moved[1][i, d] += step
        down, up = (ewald.energy(q, y, cell, EXCLUDED) for y in moved)
        # the central difference errs by a sixth of step^2 times third derivatives
        assert result.forces[i, d] == pytest.approx((down - up) / (2 * step), rel=1e-4, abs=1e-2)


def test_charges_without_images_have_the_energy_of_their_pairs():
    q, x = charges(60, net=2.0)
    result = solver(q, boundary="open").evaluate(x, virial=True, potentials=True)
    distances = np.linalg.norm(x[:, None] - x[None, :], axis=-1) + np.diag(np.full(60, np.inf))
    potentials = 138.935458 * (q / distances).sum(axis=1)
    energy = 0.5 * q @ potentials
    assert result.energy == pytest.approx(energy, rel=1e-8)
    assert result.potentials == pytest.approx(potentials, abs=1e-6 * np.abs(potentials).max())
    pulls = 138.935458 * (q[:, None] * q / distances**3)[..., None] * (x[:, None] - x)
    assert result.forces == pytest.approx(pulls.sum(axis=1), abs=1e-6 * np.abs(pulls).max())
    assert result.virial == pytest.approx(-0.5 * x.T @ result.forces, abs=1e-5 * abs(energy))


def test_single_precision_meets_its_accuracy():
    q, x = charges(400)
    box = np.diag([3.0, 3.0, 3.0])
    exact = solver(q, 1e-9).evaluate(x, box).forces
    forces = solver(q, 1e-4, dtype=np.float32).evaluate(x, box).forces
    assert forces.dtype == np.float32
    error = np.sqrt(np.mean((forces - exact) ** 2) / np.mean(exact**2))
    assert 1e-8 < error <= 1e-4


def test_the_example_of_the_documentation_runs(capsys):
    page = Path(__file__).parents[2] / "docs/python.md"
    section = page.read_text().split("\n## ")[0]
    code = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    program = code[code.index("import numpy"):]
    exec(program, {})
    assert np.isfinite(float(capsys.readouterr().out.split()[0]))


def test_edges_of_a_rectangular_box_are_a_box():
    q, x = charges()
    one = solver(q).evaluate(x, [1.6, 2.0, 2.4])
    other = solver(q).evaluate(x, BOXES["rectangular"])
    assert one.energy == other.energy
    assert np.array_equal(one.forces, other.forces)


def test_two_states_are_mixed():
    a, x = charges()
    b = a.copy()
    b[4], b[7] = 0.0, 1.0
    box = BOXES["triclinic"]
    perturbed = solver(a)
    perturbed.set_perturbed_charges(a, b)
    result = perturbed.evaluate(x, box, lambda_=0.3, slope=True)
    energies = [ewald.energy(q, x, box) for q in (a, b)]
    assert result.energy == pytest.approx(0.7 * energies[0] + 0.3 * energies[1], rel=1e-6)
    assert result.slope == pytest.approx(energies[1] - energies[0], rel=1e-6)


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_potentials_without_a_charge_are_slopes_of_the_energy(boundary, dtype):
    """The energy is a quadratic form of the charges: central differences are exact. In excluded pairs, too."""
    q, x = charges(40, net=0.5)
    q[[0, 5, 9]] = 0
    pairs = [(0, 1), (5, 9), (2, 3)]
    box = BOXES["triclinic"]
    accuracy = 1e-7 if dtype == np.float64 else 1e-5
    own = solver(q, accuracy, pairs, boundary=boundary, dtype=dtype)
    reference = solver(q, 1e-7, pairs, boundary=boundary)
    without = own.evaluate(x, box)
    result = own.evaluate(x, box, potentials=True)
    scale = float(np.abs(result.potentials).max())
    assert result.energy == pytest.approx(without.energy, rel=accuracy, abs=accuracy * scale)
    assert not result.forces[[0, 5, 9]].any()
    for i in (0, 5, 9, 20):
        energies = []
        for step in (1, -1):
            other = q.copy()
            other[i] += step
            reference.set_charges(other)
            energies.append(reference.evaluate(x, box).energy)
        slope = (energies[0] - energies[1]) / 2
        assert result.potentials[i] == pytest.approx(slope, abs=3 * accuracy * scale)


def test_potentials_are_zero_where_all_charges_are():
    x = charges()[1]
    result = solver(np.zeros(12), pairs=EXCLUDED).evaluate(x, BOXES["cube"], potentials=True)
    assert result.energy == 0 and not result.potentials.any() and not result.forces.any()


def test_groups_have_their_energies():
    q, x = charges()
    box = BOXES["triclinic"]
    group = np.arange(len(q)) % 3
    own = solver(q)
    energies = own.group_energies(x, box, group)
    assert energies.shape == (3, 3)
    assert energies.sum() == pytest.approx(own.evaluate(x, box).energy, rel=1e-9)
    alone = [ewald.energy(np.where(group == g, q, 0), x, box) for g in range(3)]
    both = ewald.energy(np.where(group != 1, q, 0), x, box)
    assert energies[1, 1] == pytest.approx(alone[1], rel=1e-6)
    assert energies[0, 2] == pytest.approx(both - alone[0] - alone[2], rel=1e-5)


def test_lists_are_arrays_and_inputs_are_left_alone():
    q, x = charges()
    box = BOXES["cube"]
    before = x.copy()
    expected = solver(q).evaluate(x, box)
    result = solver(list(q)).evaluate(x.tolist(), box.tolist())
    assert np.array_equal(result.forces, expected.forces)
    assert np.array_equal(x, before)
    assert result.virial is None and result.potentials is None and result.slope is None
    # as does an array that is not contiguous
    wide = np.zeros((len(q), 6))
    wide[:, ::2] = x
    assert np.array_equal(solver(q).evaluate(wide[:, ::2], box).forces, expected.forces)


def test_what_was_chosen_can_be_read():
    q, x = charges(100)
    own = solver(q, 1e-5, order=8)
    own.evaluate(x, [3.0, 3.0, 3.0])
    assert own.setup["order"] == 8
    assert own.setup["device"] == "cpu"
    assert sum(own.timings.values()) > 0
    assert "P2P" in own.timings


WRONG = {
    "accuracy": (dict(accuracy=2.0), "accuracy"),
    "order": (dict(order=21), "order"),
    "m2l": (dict(m2l="quick"), "m2l has no value 'quick', but must be one of 'auto', 'hierarchy', "),
    "device": (dict(device="tpu"), "device has no value 'tpu', but must be one of 'auto', 'cpu', 'gpu'"),
    "dtype": (dict(dtype=np.float16), "dtype"),
}


@pytest.mark.parametrize("option", WRONG)
def test_wrong_options_are_refused(option):
    options, text = WRONG[option]
    with pytest.raises(ValueError, match=text):
        farfield.Solver(**options)


def test_wrong_arrays_are_refused():
    q, x = charges()
    own = solver(q)
    with pytest.raises(ValueError, match="11 positions"):
        own.evaluate(x[:-1], BOXES["cube"])
    with pytest.raises(ValueError, match="lower triangular"):
        own.evaluate(x, BOXES["triclinic"].T)
    with pytest.raises(ValueError, match="range 0 to 11"):
        own.set_exclusions([(0, 12)])
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="3"):
        own.evaluate(x, BOXES["cube"])
    with pytest.raises(TypeError):
        own.evaluate(x[:, :2], BOXES["cube"])


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_potentials_at_points_are_those_of_a_probe(boundary):
    """The energy is a quadratic form of the charges: differences with a probe of 1 e and -1 e are exact."""
    q, x = charges(40, net=1.0)
    points = np.random.default_rng(4).uniform(-1, 3, (5, 3))
    cell = BOXES["triclinic"]
    potentials, fields = solver(q, boundary=boundary).evaluate_at(x, cell, points)

    def potential(point):
        if boundary == "open":
            return 138.935458 * (q / np.linalg.norm(x - point, axis=1)).sum()
        energies = [ewald.energy(np.append(q, probe), np.vstack((x, point)), cell, []) for probe in (1, -1)]
        return 0.5 * (energies[0] - energies[1])

    step = 1e-4
    for point, value, field in zip(points, potentials, fields):
        assert value == pytest.approx(potential(point), rel=1e-6, abs=1e-4)
        for d in range(3):
            shift = step * np.eye(3)[d]
            slope = (potential(point + shift) - potential(point - shift)) / (2 * step)
            assert field[d] == pytest.approx(-slope, rel=1e-4, abs=1e-2)
    # As many as one likes, none as well
    assert solver(q, boundary=boundary).evaluate_at(x, cell, np.empty((0, 3)))[0].shape == (0,)
    with pytest.raises(ValueError, match="point 1 "):
        solver(q, boundary=boundary).evaluate_at(x, cell, [[0, 0, 0], [0, np.nan, 0]])


def test_potentials_at_points_of_a_slab_are_those_of_slabs_far_apart():
    """Differences between two points, by a probe of 1 e at one and of -1 e at the other: no net charge.

    Stacked with vacuum, with the energy of the dipole along z taken away; what is left of the other slabs
    decays with it as exp(-2 pi 8 nm / 2 nm) = 1e-11.
    """
    q, x = charges(40)
    points = np.random.default_rng(4).uniform(-1, 3, (3, 3))
    plane = np.array([[2.0, 0, 0], [0.5, 1.9, 0]])
    slab = np.vstack((plane, [0, 0, -1]))  # the third is not read
    stacked = np.vstack((plane, [0, 0, 12.0]))  # for charges within 4 nm
    potentials, fields = solver(q, boundary="slab").evaluate_at(x, slab, points)

    def difference(a, b):
        where, energies = np.vstack((x, a, b)), []
        for probe in (1, -1):
            both = np.append(q, (probe, -probe))
            dipole = both @ where[:, 2]
            correction = 138.935458 * 2 * np.pi / np.linalg.det(stacked) * dipole**2
            energies.append(ewald.energy(both, where, stacked) + correction)
        return 0.5 * (energies[0] - energies[1])

    expected = [difference(point, points[0]) for point in points[1:]]
    assert potentials[1:] - potentials[0] == pytest.approx(expected, rel=1e-6, abs=1e-4)
    step = 1e-4
    for d in range(3):
        shift = step * np.eye(3)[d]
        slope = difference(points[1] + shift, points[1] - shift) / (2 * step)
        assert fields[1, d] == pytest.approx(-slope, rel=1e-4, abs=1e-2)


def test_an_accuracy_that_is_not_met_is_told_with_an_error_above_it():
    """Two charges nearly coincide: single precision does not resolve their force any better."""
    random = np.random.default_rng(8)
    x = random.uniform(0, 3, (4, 3)).astype(np.float32)
    x[1] = x[0] + np.float32([2**-12, 0, 0])
    own = farfield.Solver(1e-5, dtype=np.float32, threads=1, device="cpu")
    own.set_charges([-1.0, 1.0, -1.0, 1.0])
    with pytest.warns(RuntimeWarning, match="accuracy is not reached") as told:
        own.evaluate(x, np.diag([3.0, 3.0, 3.0]))
    assert own.setup["is_best_effort"]
    assert own.setup["largest_error"] > 1e-5
    assert f"{own.setup['largest_error']:.1e}" in str(told[0].message)
