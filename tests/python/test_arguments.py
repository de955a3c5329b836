# SPDX-License-Identifier: LGPL-2.1-or-later
"""What cannot be meant is refused, naming the argument, what it must be, and what came."""

import numpy as np
import pytest

import farfield
from farfield import contacts

Q = np.array([1.0, -1.0, 1.0, -1.0])
X = np.random.default_rng(1).random((4, 3))
BOX = [1.0, 1.0, 1.0]


def solver(**options):
    own = farfield.Solver(1e-4, device="cpu", threads=1, **options)
    own.set_charges(Q)
    return own


OPTIONS = {
    "accuracy": ["1e-4", None, 1e-4j, [1e-4]],
    "order": [4.5, "4", 4.0],
    "direct_range": [1.5],
    "cell_size": ["1 nm"],
    "m2l": [3, None],
    "boundary": [None, 2],
    "device": [0],
    "device_id": ["0"],
    "threads": [1.5, "all"],
    "reproducible": ["no", 2],
    "tune": ["no", None],
    "coulomb_constant": [1j],
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_another_type_are_refused(option):
    for value in OPTIONS[option]:
        with pytest.raises(TypeError) as error:
            farfield.Solver(**{option: value})
        assert str(error.value).startswith(f"{option} must be") and repr(value) in str(error.value)


def test_numbers_of_any_package_are_numbers():
    own = farfield.Solver(np.float32(1e-4), order=np.int64(8), tune=np.bool_(False), device="cpu", threads=np.array(1))
    own.set_charges(Q)
    own.evaluate(X, BOX, lambda_=np.float64(0))
    assert own.setup["order"] == 8


ARRAYS = {
    "complex positions": (lambda s: s.evaluate(X.astype(complex), BOX), ["x", "[n, 3]", "complex128", "[4, 3]"]),
    "positions in a plane": (lambda s: s.evaluate(X[:, :2], BOX), ["x", "[n, 3]", "[4, 2]"]),
    "flat positions": (lambda s: s.evaluate(X.ravel(), BOX), ["x", "[n, 3]", "[12]"]),
    "ragged positions": (lambda s: s.evaluate([[0, 0, 0], [1, 1]], BOX), ["x", "[n, 3]"]),
    "positions that are words": (lambda s: s.prepare([["a", "b", "c"]], BOX), ["x", "[n, 3]"]),
    "one charge": (lambda s: s.set_charges(1.0), ["charges", "[n]", "[]"]),
    "charges in a column": (lambda s: s.set_charges(Q[:, None]), ["charges", "[n]", "[4, 1]"]),
    "complex charges": (lambda s: s.set_charges(Q * 1j), ["charges", "complex128"]),
    "charges that are truths": (lambda s: s.set_charges(Q > 0), ["charges", "bool"]),
    "another number in the second state": (lambda s: s.set_perturbed_charges(Q, Q[:3]), ["charges_b", "[4]", "[3]"]),
    "exclusions that are no integers": (lambda s: s.set_exclusions([(0.5, 1)]), ["pairs", "integers", "float64"]),
    "flat exclusions": (lambda s: s.set_exclusions([0, 1, 2, 3]), ["pairs", "[m, 2]", "[4]"]),
    "two edges": (lambda s: s.evaluate(X, [1.0, 1.0]), ["box", "[3]", "[2]"]),
    "two vectors": (lambda s: s.evaluate(X, np.eye(3)[:2]), ["box", "[3, 3]", "[2, 3]"]),
    "a box of words": (lambda s: s.evaluate(X, ["1", "1", "1"]), ["box", "[3]"]),
    "a point": (lambda s: s.evaluate_at(X, BOX, X[0]), ["points", "[m, 3]", "[3]"]),
    "groups that are no integers": (lambda s: s.group_energies(X, BOX, Q), ["group", "integers", "float64"]),
    "an offset in a plane": (lambda s: s.evaluate(X, BOX, grid_offset=(0, 0)), ["grid_offset", "[3]", "[2]"]),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_of_another_type_or_shape_are_refused(case):
    call, words = ARRAYS[case]
    with pytest.raises((TypeError, ValueError)) as error:
        call(solver())
    assert str(error.value).startswith(f"{words[0]} must be")
    for word in words[1:]:
        assert word in str(error.value)


def test_what_is_refused_changes_nothing():
    own = solver()
    expected = own.evaluate(X, BOX).energy
    for wrong in (lambda: own.set_charges([1, 2, np.nan]), lambda: own.set_exclusions([(0, 7)])):
        with pytest.raises(ValueError):
            wrong()
    assert own.evaluate(X, BOX).energy == expected


def test_other_numbers_are_refused():
    own = solver()
    with pytest.raises(TypeError, match="lambda_"):
        own.evaluate(X, BOX, lambda_="0")
    with pytest.raises(ValueError, match="group"):
        own.group_energies(X, BOX, [-1, 0, 0, 0])
    with pytest.raises(ValueError, match="between"):
        own.set_exclusions([(0, 2**40)])


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_charges_at_one_place_are_refused(boundary, dtype):
    random = np.random.default_rng(2)
    q, x = np.where(np.arange(40) % 2, 0.5, -1.0), random.random((40, 3))
    # as is, and as an image where there are some
    x[31] = x[7] + (0 if boundary == "open" else np.array([1, -2, 0]))
    own = farfield.Solver(1e-3, dtype, boundary=boundary, device="cpu", threads=1)
    own.set_charges(q)
    with pytest.raises(ValueError, match="Particles 7 and 31 are at one place"):
        own.evaluate(x, BOX)
    with pytest.raises(ValueError, match="Particles 7 and 31 are at one place"):
        own.group_energies(x, BOX, np.arange(40) % 2)
    own.set_exclusions([(31, 7)])
    assert abs(own.evaluate(x, BOX).energy) < 1e6
    # one of them without a charge has no energy, but a potential
    own.set_exclusions([])
    q[7] = 0
    own.set_charges(q)
    assert abs(own.evaluate(x, BOX).energy) < 1e6
    with pytest.raises(ValueError, match="Particles 7 and 31 are at one place"):
        own.evaluate(x, BOX, potentials=True)


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_charges_at_one_place_are_refused_where_their_energies_cancel(boundary, dtype):
    """Two pairs, of like and of unlike charges: nothing large is left of their sum."""
    x = np.random.default_rng(2).random((40, 3))
    x[31], x[12] = x[7], x[9]
    own = farfield.Solver(1e-3, dtype, boundary=boundary, device="cpu", threads=1)
    own.set_charges(np.where(np.arange(40) % 2, 1.0, -1.0))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Particles (7 and 31|9 and 12) are at one place"):
            own.evaluate(x, BOX)
    with pytest.raises(ValueError, match="are at one place"):
        own.group_energies(x, BOX, np.zeros(40, int))
    own.set_exclusions([(31, 7), (9, 12)])
    assert abs(own.evaluate(x, BOX).energy) < 1e6
    # what was accepted with exclusions, and with widths, is not without
    own.set_exclusions([])
    with pytest.raises(ValueError, match="are at one place"):
        own.evaluate(x, BOX)
    own.set_near_function("thole", np.full(40, 0.005))
    assert abs(own.evaluate(x, BOX).energy) < 1e6
    own.set_near_function("coulomb")
    with pytest.raises(ValueError, match="are at one place"):
        own.evaluate(x, BOX)


def test_evaluations_after_the_first_do_not_search_for_such_charges(monkeypatch):
    searches = []
    monkeypatch.setattr(contacts, "groups_at_one_place", lambda *given: searches.append(given) or [])
    own = solver(boundary="open")
    for others, expected in ((Q, 1), (2 * Q, 1), (Q[:3], 2)):
        own.set_charges(others)
        for _ in range(3):
            own.evaluate(X[: len(others)])
        assert len(searches) == expected


def test_charges_near_each_other_are_not_at_one_place():
    x = X.copy()
    x[1] = x[0] + [1e-6, 0, 0]
    own = solver(boundary="open")
    assert own.evaluate(x).energy == pytest.approx(-138.935458 / 1e-6, rel=1e-5)


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_the_potential_at_a_charge_is_infinite(boundary):
    """And the field is that of the others."""
    own = solver(boundary=boundary)
    points = np.vstack((X[:2], [0.5, 0.5, 0.5]))
    potentials, fields = own.evaluate_at(X, BOX, points)
    assert potentials[0] == np.inf and potentials[1] == -np.inf and np.isfinite(potentials[2])
    expected = own.evaluate(X, BOX).forces[0] / Q[0]
    if boundary == "open":
        np.testing.assert_allclose(fields[0], expected, rtol=1e-6)
    assert np.isfinite(fields).all()
