# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that pairs have in place of 1/r, against sums over pairs."""

import copy
import math

import numpy as np
import pytest

import farfield

from . import ewald

BOX = np.array([[2.0, 0, 0], [0.5, 1.9, 0], [-0.6, 0.7, 1.8]])
EXCLUDED = [(0, 1), (2, 3)]
FUNCTIONS = {
    "gaussian": lambda r, b: math.erf(r / b) / r,
    "thole": lambda r, b: (1 - (1 + r / (2 * b)) * math.exp(-r / b)) / r,
    "soft-core": lambda r, b: (b**6 + r**6) ** (-1 / 6),
}
AT_ZERO = {"gaussian": 2 / math.sqrt(math.pi), "thole": 0.5, "soft-core": 1.0}
RULES = {"root-sum-square": math.hypot, "geometric-mean": lambda v, w: math.sqrt(v * w), "larger": max}
DEFAULT = {"gaussian": "root-sum-square", "thole": "geometric-mean", "soft-core": "larger"}


def system(width):
    """Charges, positions and widths: of a third 0, and two pairs with a width nearly or exactly at one place."""
    random = np.random.default_rng(7)
    q, x = random.uniform(-1, 1, 30), random.uniform(0, 1.8, (30, 3))
    w = np.where(np.arange(30) % 3, width * random.uniform(0.5, 1, 30), 0.0)
    x[5], x[8] = x[4], x[7] + 1e-5
    return q - q.mean(), x, w


def loaded(q, **options):
    solver = farfield.Solver(1e-8, device="cpu", threads=1, **options)
    solver.set_charges(q)
    solver.set_exclusions(EXCLUDED)
    return solver


def pair_energy(q, x, w, name, rule, images, is_whole):
    """Of the nearest images of pairs with a width: f where is_whole(r, b), else f - 1/r; and the former pairs."""
    energy, whole = 0.0, []
    for i in range(len(q)):
        for j in range(i):
            b = RULES[rule](w[i], w[j])
            if b > 0 and (j, i) not in EXCLUDED:
                r = np.linalg.norm(x[i] - x[j] + images, axis=1).min()
                f = FUNCTIONS[name](r, b) if r > 0 else AT_ZERO[name] / b
                whole += [(j, i)] if is_whole(r, b) else []
                energy += 138.935458 * q[i] * q[j] * (f if is_whole(r, b) else f - 1 / r)
    return energy, whole


def open_energy(q, x, w, name, rule):
    energy, whole = pair_energy(q, x, w, name, rule, np.zeros((1, 3)), lambda r, b: True)
    left = {(j, i) for i in range(len(q)) for j in range(i)} - {*whole, *EXCLUDED}
    return energy + sum(138.935458 * q[i] * q[j] / np.linalg.norm(x[i] - x[j]) for j, i in left)


def apart(x):
    """The same without particles at one place."""
    return x + 0.01 * np.arange(len(x))[:, None]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rule", [None, *RULES])
def test_energies_without_images_are_sums_over_pairs(name, rule):
    q, x, w = system(0.1)
    solver = loaded(q, boundary="open")
    solver.set_near_function(name, w, rule)
    rule = rule or DEFAULT[name]
    # a soft core ends at its range
    tolerance = 1e-7 * 138.9 * np.sum(q**2) / 0.1
    result = solver.evaluate(x, potentials=True)
    assert result.energy == pytest.approx(open_energy(q, x, w, name, rule), abs=tolerance)
    assert q @ result.potentials == pytest.approx(2 * result.energy, abs=tolerance)


def test_forces_are_slopes_of_the_energy():
    q, x, w = system(0.1)
    solver = loaded(q, boundary="open")
    solver.set_near_function("gaussian", w)
    forces, step = solver.evaluate(x).forces, 1e-4
    for i, d in ((4, 0), (7, 1), (11, 2), (12, 0)):
        moved = [x.copy(), x.copy()]
        moved[0][i, d] -= step
        moved[1][i, d] += step
        down, up = (open_energy(q, y, w, "gaussian", "root-sum-square") for y in moved)
        assert forces[i, d] == pytest.approx((down - up) / (2 * step), rel=1e-4, abs=1e-2)


def test_energies_of_a_box_are_ewald_sums_with_pairs():
    q, x, w = system(0.08)
    x[5] += 1e-3  # or there is no Ewald sum
    solver = loaded(q)
    solver.set_near_function("gaussian", w)
    images = ewald.multiples(np.ones(3)) @ BOX
    energy, whole = pair_energy(q, x, w, "gaussian", "root-sum-square", images, lambda r, b: r < b)
    expected = energy + ewald.energy(q, x, BOX, EXCLUDED + whole)
    assert (4, 5) in whole
    assert solver.evaluate(x, BOX).energy == pytest.approx(expected, rel=1e-7)


def test_copies_have_the_function_and_another_number_of_charges_has_none():
    q, x, w = system(0.1)
    plain = loaded(q[:20], boundary="open").evaluate(apart(x[:20])).energy
    solver = loaded(q, boundary="open")
    solver.set_near_function("thole", w)
    expected = solver.evaluate(x).energy
    assert copy.deepcopy(solver).evaluate(x).energy == expected
    solver.set_charges(q[:20])
    solver.set_exclusions(EXCLUDED)
    assert solver.evaluate(apart(x[:20])).energy == pytest.approx(plain, rel=1e-9)


def test_the_function_can_be_taken_back():
    q, x, w = system(0.1)
    solver = loaded(q, boundary="open")
    expected = solver.evaluate(apart(x)).energy
    solver.set_near_function("gaussian", w)
    assert solver.evaluate(apart(x)).energy != pytest.approx(expected, rel=1e-6)
    solver.set_near_function("coulomb")
    assert solver.evaluate(apart(x)).energy == pytest.approx(expected, rel=1e-9)


def test_particles_at_one_place_need_widths():
    q, x, _ = system(0.1)
    solver = loaded(q, boundary="open")
    with pytest.raises(ValueError, match="are at one place"):
        solver.evaluate(x)
    solver.set_near_function("gaussian", np.where(np.arange(30) == 4, 0.1, 0))
    solver.evaluate(x)  # one of them has a width
    solver.set_near_function("gaussian", np.where(np.arange(30) == 4, 0.1, 0), "geometric-mean")
    with pytest.raises(ValueError, match="Particles 4 and 5 are at one place"):
        solver.evaluate(x)


def test_wrong_functions_are_refused():
    q, x, w = system(0.1)
    solver = loaded(q)
    for arguments, words in (
        (("yukawa", w), "name has no value 'yukawa', but must be one of 'gaussian', "),
        (("gaussian", w, "mean"), "rule has no value 'mean', but must be one of 'root-sum-square', "),
        (("gaussian",), "widths must be given"),
        (("gaussian", w[:-1]), "29 widths"),
        (("gaussian", -w), "must be finite and not negative"),
        (("gaussian", [["a"]]), "widths must be"),
    ):
        with pytest.raises(ValueError, match=words):
            solver.set_near_function(*arguments)
    solver.set_near_function("gaussian", 3 * w)
    with pytest.raises(ValueError, match="more than half of the smallest distance"):
        solver.evaluate(x, BOX)
