# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sums of kernels beside sums over all pairs, and Ewald sums of NumPy with another splitting."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erfc, gammaincc

from farfield import Batch, Kernel, KernelSum

KERNELS = {
    "1/r": Kernel.inverse_power(1),
    "1/r^4": Kernel.inverse_power(4),
    "1/r^6": Kernel.inverse_power(6),
    "Yukawa": Kernel.yukawa(1.7),
    "a table": Kernel.of(lambda r: (r * r + 0.05) ** -0.5, lambda r: -r * (r * r + 0.05) ** -1.5, 0, 500, 400_000),
}


def value(name, r):
    """The functions once more, and their derivatives."""
    return {
        "1/r": (1 / r, -1 / r**2),
        "1/r^4": (r**-4.0, -4 * r**-5.0),
        "1/r^6": (r**-6.0, -6 * r**-7.0),
        "Yukawa": (np.exp(-1.7 * r) / r, -np.exp(-1.7 * r) * (1.7 * r + 1) / r**2),
        "a table": ((r * r + 0.05) ** -0.5, -r * (r * r + 0.05) ** -1.5),
    }[name]


def direct(name, x, q, some, at=None):
    """Potentials and fields of some points, by all pairs: of the charges, or of others."""
    potentials, fields = [], []
    for i in some:
        others = np.arange(len(x)) != i if at is None else np.ones(len(x), bool)
        d = (x if at is None else at)[i] - x[others]
        r = np.linalg.norm(d, axis=1)
        g, slope = value(name, r)
        potentials.append(g @ q[others])
        fields.append(-(slope / r * q[others]) @ d)
    return np.array(potentials), np.array(fields)


def points(kind, n, rng):
    x = rng.normal(size=(n, 3))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "cube":
        return 5 * rng.random((n, 3))
    if kind == "sphere":
        return 3 * unit
    if kind == "Plummer":
        return unit / np.sqrt((0.999 * rng.random((n, 1))) ** (-2 / 3) - 1)
    if kind == "sheet":
        return rng.random((n, 3)) * [12, 9, 0]
    if kind == "line":
        return rng.random((n, 1)) * [30, 20, 10]
    x = 5 * rng.random((n, 3))
    x[7] = [150, -80, 60]  # one far away
    return x


def error(found, expected):
    return np.sqrt(((found - expected) ** 2).sum() / (expected**2).sum())


def capped_error(found, expected):
    """The error that an accuracy is for: fields above ten times the median count as that."""
    size = np.linalg.norm(expected, axis=1)
    counted = np.minimum(size, 10 * np.median(size))
    differences = np.linalg.norm(found - expected, axis=1) * counted / size
    return np.sqrt((differences**2).sum() / (counted**2).sum())


@pytest.mark.parametrize("kind", ["cube", "sphere", "Plummer", "sheet", "line", "one far away"])
@pytest.mark.parametrize("name", KERNELS)
def test_open_sums_are_those_over_all_pairs(name, kind):
    rng = np.random.default_rng(4)
    n = 4000
    x, q = points(kind, n, rng), rng.choice([-1.0, 1.0], n)
    some = rng.permutation(n)[:400]
    potentials, fields = direct(name, x, q, some)
    if (name, kind) == ("1/r^6", "line"):
        x *= [1, 0, 0]
        x[:, 0] = 30 * (np.arange(n) + 0.5 * rng.random(n)) / n  # else nearest pairs are too large for float
        potentials, fields = direct(name, x, q, some)
    single = 2e-3 if kind == "line" else 1e-4  # neighbours are as near as a thousandth of a leaf
    for accuracy, dtype in ((1e-2, np.float64), (single, np.float32), (1e-6, np.float64)):
        kernel_sum = KernelSum(KERNELS[name], accuracy, dtype, threads=2)
        result = kernel_sum(x, q)
        assert capped_error(result.fields[some], fields) < accuracy
        assert error(result.potentials[some], potentials) < 5 * accuracy
        # a second call has what was chosen
        assert np.array_equal(result.fields, kernel_sum(x, q).fields)


BOXES = {
    "cube": 2.6 * np.eye(3),
    "brick": np.diag([2.1, 3.6, 2.7]),
    "triclinic": np.array([[2.6, 0, 0], [0.9, 2.4, 0], [-0.8, 1.0, 2.5]]),
}


def images(box, radius):
    most = int(np.ceil(radius / min(1 / np.linalg.norm(np.linalg.inv(box), axis=0)))) + 1
    return np.array(list(np.ndindex(*[2 * most + 1] * 3))) - most


def periodic(name, x, q, box, some):
    """Ewald sums with a splitting of its own; of Yukawa a plain sum over images."""
    n = {"1/r^4": 4, "1/r^6": 6}.get(name)
    b, volume = 3.1, abs(np.linalg.det(box))
    shifts = images(box, 9 if n is None else 2.0) @ box
    potentials, fields = np.zeros(len(some)), np.zeros((len(some), 3))
    for k, i in enumerate(some):
        d = (x[i] - x)[:, None] - shifts
        r = np.linalg.norm(d, axis=2)
        sources = np.broadcast_to(q[:, None], r.shape)[r > 0]
        d, r = d[r > 0], r[r > 0]
        if n is None:
            g, slope = value(name, r)
        else:
            t = (b * r) ** 2
            g = gammaincc(n / 2, t) / r**n
            slope = -n * g / r - 2 * b**n * np.exp(-t) / r / (1 if n == 4 else 2)
        potentials[k], fields[k] = g @ sources, -(slope / r * sources) @ d
    if n is None:
        return potentials, fields
    waves = 2 * np.pi * images(np.linalg.inv(box).T * 2 * np.pi, 12 * b) @ np.linalg.inv(box).T
    s = np.linalg.norm(waves, axis=1) / (2 * b)
    waves, s = waves[s < 6.2], s[s < 6.2]
    if n == 4:
        weights = 2 * np.pi**1.5 * b * (np.exp(-s * s) - np.sqrt(np.pi) * s * erfc(s))
    else:
        weights = np.pi**1.5 * b**3 / 3 * ((1 - 2 * s * s) * np.exp(-s * s) + 2 * np.sqrt(np.pi) * s**3 * erfc(s))
    factors = weights / volume * (np.exp(-1j * waves @ x.T) @ q)
    terms = factors * np.exp(1j * x[some] @ waves.T)
    own = b**n / (2 if n == 4 else 6)  # the smooth part of a charge at its own place
    return potentials + terms.real.sum(1) - own * q[some], fields + (terms[:, :, None] * waves).imag.sum(1)


@pytest.mark.parametrize("shape", BOXES)
@pytest.mark.parametrize("name", ["Yukawa", "1/r^4", "1/r^6"])
def test_periodic_sums_are_those_over_all_images(name, shape):
    rng = np.random.default_rng(5)
    n, box = 150, BOXES[shape]
    x = rng.random((n, 3)) @ box
    q = rng.random(n) + 0.3  # of one sign: the wave vector 0 counts
    some = np.arange(n)
    potentials, fields = periodic(name, x, q, box, some)
    x += np.array([3, -5, 2]) @ box  # any image
    for accuracy, dtype in ((1e-2, np.float64), (1e-4, np.float32), (1e-5, np.float64)):
        result = KernelSum(KERNELS[name], accuracy, dtype, boundary="periodic", threads=2)(x, q, box)
        assert capped_error(result.fields[some], fields) < accuracy
        assert error(result.potentials[some], potentials) < accuracy


def test_a_table_that_ends_is_summed_over_images():
    # a function that is smooth at its end
    kernel = Kernel.of(lambda r: (1 - r / 3) ** 6, lambda r: -2 * (1 - r / 3) ** 5, 0, 3)
    rng = np.random.default_rng(6)
    box = BOXES["triclinic"]
    x, q = rng.random((300, 3)) @ box, rng.normal(size=300)
    result = KernelSum(kernel, 1e-4, boundary="periodic", threads=2)(x, q, box)
    some = range(0, 300, 13)
    expected = []
    for i in some:
        d = (x[i] - x)[:, None] - images(box, 3) @ box
        r = np.linalg.norm(d, axis=2)
        inside = (r > 0) & (r < 3)
        expected.append(((1 - r[inside] / 3) ** 6) @ np.broadcast_to(q[:, None], r.shape)[inside])
    assert error(result.potentials[some], np.array(expected)) < 1e-4


def test_boxes_that_scale_need_no_new_operators():
    rng = np.random.default_rng(7)
    x, q = rng.random((500, 3)) * 3, rng.normal(size=500)
    kernel_sum = KernelSum(Kernel.inverse_power(6), 1e-4, boundary="periodic", threads=1)
    first = kernel_sum(x, q, [3, 3, 3])
    second = kernel_sum(1.05 * x, q, [3.15, 3.15, 3.15])
    assert error(second.potentials * 1.05**6, first.potentials) < 1e-12
    assert error(second.fields * 1.05**7, first.fields) < 1e-12


def strained(sums, x, q, box, e, **options):
    """The energy after a strain."""
    f = np.eye(3) + e
    return 0.5 * q @ sums(x @ f, q, None if box is None else box @ f, **options).potentials


@pytest.mark.parametrize("shape", [*BOXES, None])
@pytest.mark.parametrize("name", ["Yukawa", "1/r^4", "1/r^6", "1/r"])
def test_virials_are_derivatives_by_strains(name, shape):
    if name == "1/r" and shape is not None:
        pytest.skip("has no sum over images")
    rng = np.random.default_rng(17)
    box = None if shape is None else BOXES[shape]
    n, x = 120, rng.random((120, 3)) @ (2.5 * np.eye(3) if shape is None else box)
    q = rng.normal(size=n)
    exclusions = [[i, i + 1] for i in range(0, n, 3)] + [[5, 70], [0, 119]]
    boundary = "open" if shape is None else "periodic"
    sums, without = (KernelSum(KERNELS[name], 1e-3, boundary=boundary) for _ in range(2))
    found = sums(x, q, box, exclusions=exclusions, virials=True)
    assert np.allclose(found.virials, found.virials.T)
    # places in cells stay as they are: however rough it is, the energy is a smooth function of the strain
    h, expected = 3e-4, np.zeros((3, 3))
    without(x, q, box, exclusions=exclusions)
    assert without.setup["degree"] == sums.setup["degree"]
    for a, b in zip(*np.triu_indices(3)):
        e = np.zeros((3, 3))
        e[a, b] = h
        up, down = (strained(without, x, q, box, sign * e, exclusions=exclusions) for sign in (1, -1))
        expected[a, b] = expected[b, a] = (up - down) / (4 * h)
    assert error(found.virials, expected) < (1e-3 if shape is None else 3e-6)


def test_virials_of_sets_and_of_single_precision():
    rng = np.random.default_rng(3)
    box = BOXES["triclinic"]
    x, q = rng.random((400, 3)) @ box, rng.normal(size=(400, 5))
    exact = KernelSum(KERNELS["1/r^6"], 1e-5, boundary="periodic")
    single = KernelSum(KERNELS["1/r^6"], 1e-3, np.float32, boundary="periodic")
    together = exact(x, q, box, virials=True).virials
    assert together.shape == (5, 3, 3)
    one = KernelSum(KERNELS["1/r^6"], 1e-5, boundary="periodic")
    assert error(one(x, q[:, 3], box, virials=True).virials, together[3]) < 1e-5
    assert error(single(x, q, box, virials=True).virials, together) < 1e-3


def test_virials_of_deep_trees():
    # clusters far apart: levels beyond the coarsest ones
    rng = np.random.default_rng(9)
    x = np.concatenate([c + 0.1 * rng.normal(size=(150, 3)) for c in 20 * rng.random((20, 3))])
    q = rng.choice([-1.0, 1.0], len(x))
    for name in "1/r", "1/r^4":
        sums = KernelSum(KERNELS[name], 1e-5)
        found = sums(x, q, virials=True)
        assert sums.setup["levels"] > 3
        d = x[:, None] - x
        r = np.linalg.norm(d, axis=2) + np.eye(len(x))
        slope = value(name, r)[1] * (1 - np.eye(len(x)))
        expected = 0.25 * np.einsum("i,j,ij,ija,ijb->ab", q, q, slope / r, d, d, optimize=True)
        # what errors of the forces, as large as asked for, may add up to
        most = 1e-5 * np.linalg.norm(x - x.mean(0)) * np.linalg.norm(q[:, None] * found.fields)
        assert np.abs(found.virials - expected).max() < most, name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [*BOXES, None])
def test_excluded_pairs_do_not_act_on_each_other(shape, dtype):
    rng = np.random.default_rng(21)
    box = None if shape is None else BOXES[shape]
    n = 200
    x = rng.random((n, 3)) @ (2.6 * np.eye(3) if shape is None else box)
    x[1::4] = x[::4] + 1e-3 * rng.normal(size=(n // 4, 3))  # bonded atoms, a thousand times as near as others
    x[3] = x[2]
    q = 1 + rng.random(n)
    pairs = [[i, i + 1] for i in range(0, n, 4)] + [[2, 3], [17, 103], [103, 17], [8, 190]]
    sums = KernelSum(KERNELS["1/r^6"], 1e-4, dtype, boundary="open" if shape is None else "periodic")
    moved = x if box is None else x + rng.integers(-2, 3, (n, 3)) @ box
    found = sums(moved, q, box, exclusions=pairs)
    shifts = np.zeros((1, 3)) if box is None else images(box, 6) @ box
    potentials, fields = np.zeros(n), np.zeros((n, 3))
    left_out = {tuple(p) for p in pairs} | {tuple(p[::-1]) for p in pairs}
    for i in range(n):
        d = (x[i] - x)[:, None] - shifts
        r = np.linalg.norm(d, axis=2)
        r[i, r[i] < 1e-9] = np.inf
        for a, j in left_out:
            if a == i:
                r[j, np.argmin(r[j])] = np.inf
        potentials[i] = (q[:, None] * r**-6.0).sum()
        fields[i] = 6 * np.einsum("j,js,jsa->a", q, r**-8.0, d)
    if box is not None:  # beyond the images
        potentials += 4 * np.pi / 3 * q.sum() / abs(np.linalg.det(box)) / 7.0**3
    assert capped_error(found.fields, fields) < 1e-4
    assert error(found.potentials, potentials) < 1e-3
    again = sums(moved, q, box, exclusions=pairs, virials=True)
    assert np.array_equal(again.fields, found.fields)


@pytest.mark.parametrize("shape", ["brick", "triclinic"])
def test_boxes_that_change_shape_by_little_keep_their_accuracy(shape):
    rng = np.random.default_rng(6)
    x, q, box = rng.random((500, 3)), rng.normal(size=500), 2 * BOXES[shape]
    sums = KernelSum(KERNELS["1/r^6"], 1e-3, boundary="periodic")
    sums(x @ box, q, box, virials=True)
    for _ in range(6):
        box = box * (1 + 1e-3 * np.array([1, -0.5, 0.7]) * rng.random(3))
        found = sums(x @ box, q, box, virials=True)
        fine = KernelSum(KERNELS["1/r^6"], 1e-5, boundary="periodic")(x @ box, q, box, virials=True)
        assert capped_error(found.fields, fine.fields) < 1e-3
        assert error(found.virials, fine.virials) < 1e-4


def test_what_is_wrong_with_exclusions_and_virials_is_named():
    x, q = np.random.default_rng(1).random((5, 3)), np.ones(5)
    sums = KernelSum(KERNELS["1/r"])
    with pytest.raises(ValueError, match="outside the range 0 to 4"):
        sums(x, q, exclusions=[[0, 5]])
    with pytest.raises(ValueError, match="Virials are those of charges"):
        sums(x, q, at=x + 1, virials=True)
    # exclusions are those of a call
    left_out = sums(x, q, exclusions=[[0, 1]]).potentials
    assert not np.allclose(left_out, sums(x, q).potentials)
    assert np.allclose(sums(x, q, at=x[:1] + 1).potentials, KernelSum(KERNELS["1/r"])(x, q, at=x[:1] + 1).potentials)


@pytest.mark.parametrize("name", KERNELS)
def test_points_have_what_all_charges_make(name):
    rng = np.random.default_rng(8)
    x, q, at = points("cube", 4000, rng), rng.normal(size=4000), points("Plummer", 300, rng)
    result = KernelSum(KERNELS[name], 1e-5, threads=2)(x, q, at=at)
    potentials, fields = direct(name, x, q, range(300), at)
    assert error(result.potentials, potentials) < 1e-4
    assert capped_error(result.fields, fields) < 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sets_of_charges_do_not_act_on_each_other(dtype):
    rng = np.random.default_rng(9)
    x, q = points("cube", 3000, rng), rng.normal(size=(3000, 6))
    together = KernelSum(KERNELS["Yukawa"], 1e-4, dtype, threads=2)
    result = together(x, q)
    assert result.potentials.shape == (3000, 6) and result.fields.shape == (3000, 6, 3)
    for k in range(6):
        others = rng.normal(size=q.shape)
        others[:, k] = q[:, k]
        again = together(x, others)  # the same cells
        assert error(again.potentials[:, k], result.potentials[:, k]) < 20 * np.finfo(dtype).eps
        assert error(again.fields[:, k], result.fields[:, k]) < 20 * np.finfo(dtype).eps
        alone = KernelSum(KERNELS["Yukawa"], 1e-4, dtype, threads=2)(x, q[:, k])
        assert capped_error(result.fields[:, k], alone.fields) < 2e-4


def test_forces_of_all_sets_count_together():
    """Charges of both signs need a higher degree, but not where they make little."""
    rng = np.random.default_rng(10)
    x = points("cube", 8000, rng)
    strong, weak = rng.uniform(0.5, 1.5, 8000), 1e-4 * rng.choice([-1.0, 1.0], 8000)
    of_strong, of_weak, together = (
        KernelSum(KERNELS["1/r"], 1e-4, of_forces=True, threads=2) for _ in range(3)
    )
    q = np.stack([strong, weak], axis=1)
    of_strong(x, strong)
    of_weak(x, weak)
    fields = together(x, q).fields
    assert together.setup["degree"] == of_strong.setup["degree"] < of_weak.setup["degree"]
    some = rng.choice(8000, 300, replace=False)
    exact = np.stack([direct("1/r", x, q[:, k], some)[1] for k in range(2)], axis=1)
    assert error(q[some, :, None] * fields[some], q[some, :, None] * exact) < 1e-4


def test_fields_are_slopes_of_the_energy():
    """Of all charges together: what cells hand up and down is the same polynomial."""
    rng = np.random.default_rng(10)
    x, q = points("cube", 3000, rng), rng.normal(size=3000)
    kernel_sum = KernelSum(KERNELS["Yukawa"], 1e-3, threads=2)
    fields = kernel_sum(x, q).fields
    move = rng.normal(size=x.shape)
    step = 1e-5
    low, high = (0.5 * q @ kernel_sum(x + s * step * move, q).potentials for s in (-1, 1))
    force = q[:, None] * fields
    # up to particles that change cells, whose energy changes by the error
    assert -(high - low) / (2 * step) == pytest.approx((force * move).sum(), rel=2e-2)


def test_results_do_not_depend_on_threads_or_the_order_of_points():
    rng = np.random.default_rng(11)
    x, q = points("Plummer", 5000, rng), rng.normal(size=5000)
    one, two = (KernelSum(KERNELS["1/r"], 1e-3, threads=k)(x, q) for k in (1, 2))
    assert np.array_equal(one.potentials, two.potentials) and np.array_equal(one.fields, two.fields)
    order = rng.permutation(5000)
    other = KernelSum(KERNELS["1/r"], 1e-3, threads=2)(x[order], q[order])
    assert error(other.fields, one.fields[order]) < 1e-3


def test_a_system_that_changes_has_its_accuracy():
    rng = np.random.default_rng(12)
    kernel_sum = KernelSum(KERNELS["1/r"], 1e-4, threads=2)
    for n, kind in ((3000, "cube"), (6000, "cube"), (6000, "Plummer"), (50, "sheet"), (1, "line"), (6000, "sphere")):
        x, q = points(kind, n, rng) if n > 1 else np.ones((1, 3)), rng.choice([-1.0, 1.0], n)
        result = kernel_sum(x, q)
        if n == 1:
            assert not result.potentials.any() and not result.fields.any()
            continue
        some = rng.permutation(n)[:300]
        _, fields = direct("1/r", x, q, some)
        assert capped_error(result.fields[some], fields) < 1e-4


def test_without_charges_there_is_no_potential():
    at = np.random.default_rng(17).random((40, 3))
    result = KernelSum(KERNELS["1/r"], threads=1)(np.empty((0, 3)), np.empty(0), at=at)
    assert not result.potentials.any() and not result.fields.any() and len(result.fields) == 40
    empty = KernelSum(KERNELS["Yukawa"], boundary="periodic", threads=1)(np.empty((0, 3)), np.empty((0, 2)), [1, 1, 1])
    assert empty.potentials.shape == (0, 2) and empty.fields.shape == (0, 2, 3)
    origin = KernelSum(KERNELS["1/r"], threads=1)(np.zeros((1, 3)), [1.0])
    assert not origin.potentials.any() and not origin.fields.any()
    alone = KernelSum(KERNELS["1/r^6"], 1e-4, boundary="periodic", threads=1)(np.ones((1, 3)), [2.0], [1, 1, 1])
    assert alone.potentials[0] == pytest.approx(2 * 8.40192397482754, rel=1e-4)  # of the cubic lattice
    assert abs(alone.fields).max() < 1e-5 * alone.potentials[0]  # what cancels is relative to the potential


def test_a_box_of_another_shape_is_another_choice():
    rng = np.random.default_rng(19)
    kernel_sum = KernelSum(KERNELS["1/r^6"], 1e-2, boundary="periodic", threads=2)
    f, q = rng.random((400, 3)), rng.normal(size=400)
    kernel_sum(f * 3, q, [3, 3, 3])
    long = kernel_sum(f * [1, 2, 13.5], q, [1, 2, 13.5])  # of the same volume
    fresh = KernelSum(KERNELS["1/r^6"], 1e-4, boundary="periodic", threads=2)(f * [1, 2, 13.5], q, [1, 2, 13.5])
    assert capped_error(long.fields, fresh.fields) < 1e-2


def test_charges_that_are_all_zero_at_first_leave_no_choice_behind():
    rng = np.random.default_rng(20)
    x, q = points("cube", 4000, rng), rng.choice([-1.0, 1.0], 4000)
    kernel_sum = KernelSum(KERNELS["1/r"], 1e-6, threads=2)
    assert not kernel_sum(x, 0 * q).fields.any()
    some = np.arange(0, 4000, 11)
    assert capped_error(kernel_sum(x, q).fields[some], direct("1/r", x, q, some)[1]) < 1e-6


def test_a_crystal_has_no_fields():
    places = np.array(list(np.ndindex(4, 4, 4))) * 0.5
    result = KernelSum(KERNELS["1/r^6"], 1e-4, boundary="periodic", threads=2)(places, np.ones(64), [2, 2, 2])
    assert result.potentials == pytest.approx(8.40192397482754 / 0.5**6, rel=1e-4)
    assert abs(result.fields).max() < 1e-5 * result.potentials[0] / 0.5


def test_a_refusal_leaves_no_choice_behind():
    rng = np.random.default_rng(18)
    kernel_sum = KernelSum(KERNELS["1/r"], 1e-4, threads=2)
    x, q = points("cube", 4000, rng), rng.normal(size=4000)
    before = kernel_sum(x, q)
    with refused(ValueError, "same place"):
        kernel_sum(np.concatenate([x, x]), np.concatenate([q, q]))
    assert error(kernel_sum(x, q).fields, before.fields) < 1e-4


def test_lengths_have_any_unit():
    """Those of atoms in metres, and of galaxies in metres, in single precision."""
    rng = np.random.default_rng(13)
    x, q = points("Plummer", 3000, rng), rng.normal(size=3000)
    expected = KernelSum(KERNELS["1/r"], 1e-4, np.float32, threads=2)(x, q)
    for unit in (1e-10, 1e20):
        result = KernelSum(KERNELS["1/r"], 1e-4, np.float32, threads=2)(unit * x, q)
        assert error(np.float64(result.potentials) * unit, expected.potentials) < 1e-4


def test_kernels_and_sums_can_be_pickled():
    rng = np.random.default_rng(14)
    x, q = points("cube", 500, rng), rng.normal(size=500)
    for kernel in (KERNELS["Yukawa"], KERNELS["1/r^6"], Kernel.table(0, 99, [1, 0.5, 0.25], [0, 0, 0])):
        kernel_sum = KernelSum(kernel, 1e-3, np.float32, device="cpu", threads=1)
        copy = pickle.loads(pickle.dumps(kernel_sum))
        assert copy.__getstate__()["options"] == kernel_sum.__getstate__()["options"]
        assert np.array_equal(copy(x, q).fields, kernel_sum(x, q).fields)
        assert repr(copy.kernel) == repr(kernel)
        assert copy.kernel.value(1.5) == kernel.value(1.5) and copy.kernel.slope(1.5) == kernel.slope(1.5)


def test_the_cpu_is_the_device_that_is_taken_by_itself():
    for options in ({}, {"device": "auto"}, {"device": "cpu"}, {"device": "cpu", "device_id": 1}):
        assert KernelSum(KERNELS["1/r"], threads=1, **options).setup["device"] == "cpu"


@pytest.mark.parametrize(
    "kind, options",
    [
        (TypeError, {"device": 0}),
        (TypeError, {"device": None}),
        (ValueError, {"device": "tpu"}),
        (TypeError, {"device_id": "0"}),
        (TypeError, {"device_id": 0.5}),
        (ValueError, {"device_id": -5}),
        (RuntimeError, {"device": "gpu", "device_id": 999}),
        (RuntimeError, {"device": "gpu"}),
    ],
)
def test_devices_are_refused_as_those_of_a_batch(kind, options):
    if options == {"device": "gpu"} and shutil.which("nvidia-smi"):
        pytest.skip("there may be a GPU")
    with pytest.raises(kind) as of_batch:
        Batch(**options)
    with pytest.raises(kind) as of_sum:
        KernelSum(KERNELS["1/r"], **options)
    assert str(of_sum.value) == str(of_batch.value)


def refused(kind, text):
    return pytest.raises(kind, match=text)


def test_what_is_wrong_is_named():
    x, q = np.random.default_rng(15).random((50, 3)), np.ones(50)
    with refused(ValueError, "must be finite and above 0. For 1/r use inversePower"):
        Kernel.yukawa(0)
    with refused(ValueError, "exponent 13 is outside its range, 1 to 12"):
        Kernel.inverse_power(13)
    with refused(ValueError, "2 values and 3 slopes"):
        Kernel.table(0, 1, [1, 2], [1, 2, 3])
    with refused(ValueError, "a slope that is not finite"):
        Kernel.table(0, 1, [1, 2, 3], [1, np.inf, 3])
    with refused(ValueError, "from 2 to 1 must begin"):
        Kernel.table(2, 1, [1, 2, 3], [1, 2, 3])
    with refused(ValueError, "accuracy = 1 is outside"):
        KernelSum(KERNELS["1/r"], 1)
    with refused(ValueError, "accuracy = 1e-08 is outside"):
        KernelSum(KERNELS["1/r"], 1e-8, np.float32)
    with refused(RuntimeError, "no slabs"):
        KernelSum(KERNELS["1/r"], boundary="slab")
    with refused(RuntimeError, "1/r has no sum over periodic images"):
        KernelSum(KERNELS["1/r"], boundary="periodic")
    with refused(TypeError, "kernel must be a Kernel"):
        KernelSum("1/r")
    open_sum = KernelSum(KERNELS["1/r"], threads=1)
    with refused(ValueError, "position of particle 3 .* is not finite.$"):
        open_sum(np.where(np.arange(150).reshape(50, 3) == 9, np.nan, x), q)
    with refused(ValueError, "charge of particle 4 is not finite"):
        open_sum(x, np.where(np.arange(50) == 4, np.inf, q))
    with refused(ValueError, "another charge is at the same place"):
        open_sum(np.concatenate([x, x[:1]]), np.ones(51))
    with refused(ValueError, "charges must be"):
        open_sum(x, q[:-1])
    with refused(ValueError, "needs a box"):
        KernelSum(KERNELS["Yukawa"], boundary="periodic", threads=1)(x, q)
    with refused(ValueError, "has no volume"):
        KernelSum(KERNELS["Yukawa"], boundary="periodic", threads=1)(x, q, [1, 1, 0])
    with refused(ValueError, "A box is given, but the boundary is open"):
        open_sum(x, q, [1, 1, 1])
    with refused(ValueError, "more than 1000 times as long as it is high"):
        KernelSum(KERNELS["Yukawa"], boundary="periodic", threads=1)(x, q, [1, 1, 2000])
    for kernel_sum in (KernelSum(Kernel.table(0.5, 9, [3, 2, 1], [-1, -1, -1]), threads=1), open_sum):
        with refused(ValueError, "same place"):
            kernel_sum(np.ones((2, 3)), np.ones(2))
    with refused(ValueError, "beyond this precision: take another unit .* or double precision"):
        KernelSum(KERNELS["1/r^6"], 1e-3, np.float32, threads=1)(1e-10 * x, q)
    with refused(ValueError, "the table is off by"):
        Kernel.of(lambda r: 1 / r, lambda r: -1 / r**2, 0.01, 100)
    with refused(ValueError, "ends too early: points fill a cube of"):
        KernelSum(Kernel.table(0, 1, [3, 2, 1], [-2, -2, -2]), threads=1)(x, q)
    with refused(ValueError, "a distance is outside of the table"):
        KernelSum(Kernel.table(0.5, 9, [3, 2, 1], [-1, -1, -1]), threads=1)(x, q)
    line = points("line", 3000, np.random.default_rng(16))
    rounded = KernelSum(KERNELS["1/r"], 2e-6, np.float32, threads=2)
    with refused(RuntimeError, "accuracy 2e-06 cannot be reached for the kernel 1/r .* best is .* double precision"):
        rounded(line, np.where(np.arange(3000) % 2, 1.0, -1.0))
    far = KernelSum(Kernel.table(0, 40, [1, 0.5, 0], [0, 0, 0]), 1e-4, boundary="periodic", threads=1)
    with refused(RuntimeError, "ends at 40, which is too far for a box with an edge of 1"):
        far(x, q, [1, 1, 1])


def test_the_example_of_the_documentation_runs(capsys):
    page = Path(__file__).parents[2] / "docs/kernels.md"
    exec(page.read_text().split("```python\n")[1].split("```")[0], {})
    numbers = capsys.readouterr().out.replace("[", " ").replace("]", " ").split()
    assert len(numbers) == 1 + 3 + 1 and np.isfinite(np.array(numbers, float)).all()
