# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches against solvers of the package, and what they do with wrong input."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import farfield

from .batch_systems import latent_ewald_summation

BOXES = np.array(
    [
        np.diag([2.0, 2.0, 2.0]),
        np.diag([1.6, 2.0, 2.4]),
        [[2.0, 0, 0], [0.5, 1.9, 0], [-0.6, 0.7, 1.8]],
    ]
)
OFFSETS = [0, 12, 42, 50]


def systems():
    random = np.random.default_rng(5)
    q = random.uniform(-1, 1, OFFSETS[-1])
    q[: OFFSETS[1]] -= q[: OFFSETS[1]].mean()  # the others have a net charge
    return random.uniform(-1, 3, (OFFSETS[-1], 3)), q


def batch(accuracy=1e-8, **options):
    return farfield.Batch(accuracy, threads=1, **{"device": "cpu", **options})


def solved(x, q, box, **options):
    solver = farfield.Solver(1e-6, device="cpu", threads=1, **options)
    solver.set_charges(q)
    return solver.evaluate(x, box, potentials=True, virial=True)


def test_each_system_is_that_of_a_solver():
    x, q = systems()
    result = batch()(x, q, OFFSETS, BOXES, potentials=True, virials=True)
    for s, box in enumerate(BOXES):
        own = slice(*OFFSETS[s : s + 2])
        expected = solved(x[own], q[own], box)
        scale = np.abs(expected.forces).max()
        assert result.energies[s] == pytest.approx(expected.energy, rel=1e-5)
        assert result.forces[own] == pytest.approx(expected.forces, abs=5e-6 * scale)
        assert result.potentials[own] == pytest.approx(expected.potentials, abs=5e-6 * scale)
        assert result.virials[s] == pytest.approx(expected.virial, abs=1e-5 * abs(expected.energy))


def test_an_index_is_as_good_as_offsets():
    x, q = systems()
    index = np.repeat(np.arange(3), np.diff(OFFSETS))
    by_index = batch()(x, q, index=index, boxes=BOXES[:, [0, 1, 2]])
    by_offsets = batch()(x, q, OFFSETS, BOXES)
    assert np.array_equal(by_index.energies, by_offsets.energies)
    assert np.array_equal(by_index.forces, by_offsets.forces)
    # systems without particles, in the middle and at the end
    sparse = batch()(x, q, index=2 * index, boxes=np.repeat(BOXES, 2, axis=0))
    assert np.array_equal(sparse.energies, [*np.stack((by_offsets.energies, np.zeros(3)), 1).ravel()])


def test_edges_of_rectangular_boxes_are_boxes():
    x, q = systems()
    edges = np.array([[2.0, 2.0, 2.0], [1.6, 2.0, 2.4], [2.0, 1.9, 1.8]])
    one, other = (batch()(x, q, OFFSETS, boxes) for boxes in (edges, [np.diag(e) for e in edges]))
    assert np.array_equal(one.energies, other.energies)


def test_slabs_are_those_of_a_solver():
    x, q = systems()
    x[:, 2] *= 0.3
    result = batch(boundary="slab")(x, q, OFFSETS, BOXES[:, :2], potentials=True, virials=True)
    for s, box in enumerate(BOXES):
        own = slice(*OFFSETS[s : s + 2])
        expected = solved(x[own], q[own], box, boundary="slab")
        scale = np.abs(expected.forces).max()
        assert result.energies[s] == pytest.approx(expected.energy, rel=1e-5)
        assert result.forces[own] == pytest.approx(expected.forces, abs=5e-6 * scale)
        assert result.potentials[own] == pytest.approx(expected.potentials, abs=5e-6 * scale)
        assert result.virials[s] == pytest.approx(expected.virial, abs=1e-5 * abs(expected.energy))
    edges = batch(boundary="slab")(x[:42], q[:42], OFFSETS[:3], [[2.0, 2.0], [1.6, 2.0]])
    assert np.array_equal(edges.energies, result.energies[:2])


def test_open_systems_need_no_boxes():
    x, q = systems()
    result = batch(boundary="open")(x, q, OFFSETS, potentials=True)
    expected = solved(x[12:42], q[12:42], None, boundary="open")
    assert result.energies[1] == pytest.approx(expected.energy, rel=1e-8)
    assert result.potentials[12:42] == pytest.approx(expected.potentials, rel=1e-6)


def test_channels_have_potentials_of_their_own():
    x, q = systems()
    both = np.stack((q, np.cos(7 * q)), axis=1)
    result = batch(channels=2)(x, both, OFFSETS, BOXES, potentials=True)
    single = [batch()(x, both[:, c], OFFSETS, BOXES, potentials=True) for c in range(2)]
    assert result.energies == pytest.approx(sum(r.energies for r in single), rel=1e-7)
    assert result.potentials == pytest.approx(np.stack([r.potentials for r in single], 1), abs=1e-4)


def test_gaussian_charges_have_the_sum_over_waves():
    x, q = systems()
    width, longest = 0.1, 31.4
    options = {"smearing": width, "wave_cutoff": longest}
    expected = []
    for s, box in enumerate(BOXES):
        own = slice(*OFFSETS[s : s + 2])
        numbers = np.stack(np.meshgrid(*[np.arange(-14, 15)] * 3), -1).reshape(-1, 3)
        waves = 2 * np.pi * numbers @ np.linalg.inv(box).T
        k2 = np.sum(waves**2, axis=1)
        waves, k2 = waves[(k2 > 0) & (k2 <= longest**2)], k2[(k2 > 0) & (k2 <= longest**2)]
        structure = np.abs(np.exp(1j * x[own] @ waves.T).T @ q[own]) ** 2
        total = 2 * np.pi / np.linalg.det(box) * np.sum(np.exp(-(width**2) * k2 / 2) / k2 * structure)
        expected.append(138.935458 * (total - np.sum(q[own] ** 2) / (width * np.sqrt(2 * np.pi))))
    assert batch(**options)(x, q, OFFSETS, BOXES).energies == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name, own", [("without_self", False), ("with_self", True)])
def test_energies_are_those_of_latent_ewald_summation(name, own):
    """Of its own code. In the last cell waves lie at the cut-off."""
    data = latent_ewald_summation()
    options = {"smearing": 1.0, "wave_cutoff": 2 * np.pi / 2.0, "self_energy": own, "channels": 2}
    function = batch(coulomb_constant=90.4756 / (2 * np.pi), **options)  # Angstrom, eV
    q = np.array(data["features"]) @ np.array(data["weights"])
    result = function(data["x"], q, index=np.repeat(range(3), data["sizes"]), boxes=data["cells"])
    assert result.energies == pytest.approx(data[name]["energies"], rel=1e-12)


def test_tangents_are_differences_along_a_direction():
    x, q = systems()
    random = np.random.default_rng(6)
    dx, dq, dboxes = (0.1 * random.normal(size=np.shape(a)) for a in (x, q, BOXES))
    result = batch(1e-10)(x, q, OFFSETS, BOXES)
    direction = {"dx": dx, "dcharges": dq, "dboxes": dboxes}
    found = batch(1e-10).tangent(x, q, OFFSETS, BOXES, **direction, errors=result.errors, virials=True)
    step = 1e-5
    after, before = (
        batch(1e-10)(x + t * dx, q + t * dq, OFFSETS, BOXES + t * dboxes, potentials=True, virials=True)
        for t in (step, -step)
    )
    for name in ("forces", "potentials", "virials"):
        slope = (getattr(after, name) - getattr(before, name)) / (2 * step)
        assert np.linalg.norm(getattr(found, name) - slope) < 1e-6 * np.linalg.norm(slope)
    # without a direction, and with sums that are as long as possible
    assert not batch().tangent(x, q, OFFSETS, BOXES).forces.any()
    longest = batch().tangent(x, q, OFFSETS, BOXES, **direction)
    assert np.linalg.norm(longest.forces - found.forces) < 1e-8 * np.linalg.norm(found.forces)
    with pytest.raises(ValueError, match="dx"):
        batch().tangent(x, q, OFFSETS, BOXES, dx=dx[1:])


def test_single_precision_meets_its_accuracy():
    x, q = systems()
    exact = batch()(x.astype(np.float32), q.astype(np.float32), OFFSETS, BOXES).forces
    single = farfield.Batch(1e-4, np.float32, threads=1, device="cpu")
    forces = single(x, q, OFFSETS, BOXES).forces
    assert forces.dtype == np.float32
    assert np.linalg.norm(forces - exact) <= 1e-4 * np.linalg.norm(exact)
    assert 0 < single.setup["measured_error"] <= 1e-4
    assert single.setup["tightening"] == 1


def test_asynchronous_batches_wait_on_the_cpu():
    x, q = systems()
    one = batch(asynchronous=True)
    assert np.array_equal(one(x, q, OFFSETS, BOXES).forces, batch()(x, q, OFFSETS, BOXES).forces)
    x[4, 2] = np.nan
    with pytest.raises(ValueError, match="System 0 has a position"):
        one(x, q, OFFSETS, BOXES)
    one.finish()


def test_nothing_is_a_batch():
    result = batch()(np.empty((0, 3)), [], [0], np.empty((0, 3)), virials=True)
    assert result.energies.shape == (0,) and result.virials.shape == (0, 3, 3)


def test_copies_and_children_give_the_same():
    x, q = systems()
    own = farfield.Batch(1e-5, threads=2, device="cpu")
    expected = own(x, q, OFFSETS, BOXES).energies
    assert np.array_equal(pickle.loads(pickle.dumps(own))(x, q, OFFSETS, BOXES).energies, expected)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(own(x, q, OFFSETS, BOXES).energies, expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


REFUSED = {
    "a position that is not finite": (lambda x, q: (np.where(x == x[20], np.inf, x), q, OFFSETS, BOXES), "System 1"),
    "a charge whose square is too large": (lambda x, q: (x, np.where(q == q[20], 1e13, q), OFFSETS, BOXES), "System 1"),
    "no volume": (lambda x, q: (x, q, OFFSETS, BOXES * [[[1]], [[1]], [[0]]]), "System 2"),
    "two charges at one place": (lambda x, q: (np.where(x == x[13], x[15], x), q, OFFSETS, BOXES), "particles 1 and 3"),
    "offsets that end early": (lambda x, q: (x, q, [0, 12], BOXES[:1]), "offsets"),
    "offsets that descend": (lambda x, q: (x, q, [0, 42, 12, 50], BOXES), "System 1"),
    "too few boxes": (lambda x, q: (x, q, OFFSETS, BOXES[:2]), "3 systems"),
    "no boxes": (lambda x, q: (x, q, OFFSETS), "boxes"),
    "no offsets": (lambda x, q: (x, q, None, BOXES), "index"),
    "charges of others": (lambda x, q: (x, q[1:], OFFSETS, BOXES), "charges"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_answer_is_refused(what):
    arguments, word = REFUSED[what]
    with pytest.raises(ValueError, match=word):
        batch()(*arguments(*systems()))


def test_an_index_that_does_not_ascend_is_refused():
    x, q = systems()
    for index in (np.repeat([1, 0, 2], np.diff(OFFSETS)), np.repeat([0, 1, 3], np.diff(OFFSETS))):
        with pytest.raises(ValueError, match="index must ascend"):
            batch()(x, q, index=index, boxes=BOXES)


@pytest.mark.parametrize(
    "error, options",
    [
        (RuntimeError, {"device": "gpu", "device_id": 999}),
        (TypeError, {"device_id": 0.5}),
        (RuntimeError, {"boundary": "slab", "smearing": 0.1}),
        (RuntimeError, {"boundary": "open", "smearing": 0.1}),
        (ValueError, {"channels": 0}),
        (ValueError, {"wave_cutoff": 30.0}),
        (ValueError, {"accuracy": 1.0}),
        (TypeError, {"smearing": "0.1"}),
        (TypeError, {"channels": 1.5}),
        (TypeError, {"asynchronous": 1}),
    ],
)
def test_options_are_checked(error, options):
    with pytest.raises(error):
        farfield.Batch(**options)


def test_the_example_of_the_documentation_runs(capsys):
    page = Path(__file__).parents[2] / "docs/batches.md"
    program = page.read_text().split("```python\n")[1].split("```")[0]
    exec(program, {})
    numbers = capsys.readouterr().out.replace("[", " ").replace("]", " ").split()
    assert len(numbers) == 2 + 3 + 9 and np.isfinite(np.array(numbers, float)).all()
