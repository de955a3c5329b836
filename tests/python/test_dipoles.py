# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dipoles, derivatives of potentials and tangents: against sums over pairs, and differences of forces."""

import copy
import pickle

import numpy as np
import pytest

import farfield

N = 30
K = 138.935458


@pytest.fixture
def sites():
    """Positions, charges and dipoles."""
    random = np.random.default_rng(11)
    places = np.array(list(np.ndindex(4, 4, 2)))[:N]
    x = 0.3 * (places + random.uniform(-0.25, 0.25, (N, 3)))
    return x, random.uniform(-1, 1, N), random.normal(0, 0.03, (N, 3))


def solver(accuracy=1e-9, **options):
    return farfield.Solver(accuracy, threads=1, device="cpu", **options)


def by_pairs(x, q, mu):
    """Potentials, gradients and second derivatives of all others, with neither box nor images."""
    apart = x[:, None] - x[None]
    r = np.linalg.norm(apart, axis=2) + np.diag(np.full(len(x), np.inf))
    unit, eye = np.nan_to_num(apart / r[..., None]), np.eye(3)
    along = np.einsum("ijk,jk->ij", unit, mu)
    turned = np.einsum("jk,ijl->ijkl", mu, unit)
    potentials = q / r + along / r**2
    gradients = -(q / r**2)[..., None] * unit + (mu[None] - 3 * along[..., None] * unit) / r[..., None] ** 3
    outer = unit[..., :, None] * unit[..., None, :]
    second = (q / r**3)[..., None, None] * (3 * outer - eye)
    second = second + 3 / r[..., None, None] ** 4 * (
        5 * along[..., None, None] * outer - along[..., None, None] * eye - turned - turned.swapaxes(2, 3)
    )
    return K * potentials.sum(1), K * gradients.sum(1), K * second.sum(1)


def test_all_is_that_of_pairs(sites):
    x, q, mu = sites
    own = solver(boundary="open")
    own.set_charges(q)
    own.set_dipoles(mu)
    result = own.evaluate(x, potentials=True, gradients=True, hessians=True)
    potentials, gradients, hessians = by_pairs(x, q, mu)
    np.testing.assert_allclose(result.potentials, potentials, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(result.gradients, gradients, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(result.hessians, hessians, rtol=1e-9, atol=1e-6)
    assert result.energy == pytest.approx(0.5 * (q @ potentials + np.sum(mu * gradients)), rel=1e-12)
    forces = -(q[:, None] * gradients + np.einsum("ikl,il->ik", hessians, mu))
    np.testing.assert_allclose(result.forces, forces, rtol=1e-9, atol=1e-6)


def test_energies_have_forces_and_virials_as_slopes(sites):
    x, q, mu = sites
    box = np.array([[1.3, 0, 0], [0.2, 1.4, 0], [-0.3, 0.1, 0.9]])
    own = solver(1e-5)
    own.set_charges(q)
    own.set_dipoles(mu)
    result = own.evaluate(x, box, virial=True)
    step = 1e-4

    def slope(moved):
        return (own.evaluate(*moved(step)).energy - own.evaluate(*moved(-step)).energy) / (2 * step)

    for i, axis in ((0, 0), (7, 1), (29, 2)):
        place = np.zeros_like(x)
        place[i, axis] = 1
        assert slope(lambda s, place=place: (x + s * place, box)) == pytest.approx(-result.forces[i, axis], rel=1e-3)
    for a, b in ((0, 0), (1, 1), (2, 2), (1, 0), (2, 0), (2, 1)):
        strain = np.zeros((3, 3))
        strain[a, b] += 0.5
        strain[b, a] += 0.5

        # the box stays lower triangular by a turn, which dipoles follow
        def strained(s, strain=strain):
            moved = np.eye(3) + s * strain
            turn, lower = np.linalg.qr((box @ moved).T)
            turn = turn * np.sign(np.diag(lower))
            own.set_dipoles(mu @ turn)
            return x @ moved @ turn, np.tril(box @ moved @ turn)

        assert slope(strained) == pytest.approx(2 * result.virial[a, b], rel=1e-3, abs=1)


def test_tangents_are_differences_of_forces(sites):
    x, q, _ = sites
    box = [1.3, 1.4, 0.9]
    random = np.random.default_rng(12)
    dx, dq = random.normal(size=(N, 3)), random.normal(size=N)
    own = solver()
    own.set_charges(q)
    tangent = own.tangent(x, box, dx=dx, dcharges=dq)
    step, forces, potentials = 1e-5, 0, 0
    for sign in (1, -1):
        own.set_charges(q + sign * step * dq)
        result = own.evaluate(x + sign * step * dx, box, potentials=True)
        forces = forces + sign * result.forces / (2 * step)
        potentials = potentials + sign * result.potentials / (2 * step)
    assert np.linalg.norm(tangent.forces - forces) < 1e-6 * np.linalg.norm(forces)
    assert np.linalg.norm(tangent.potentials - potentials) < 1e-6 * np.linalg.norm(potentials)


def test_a_copy_has_the_dipoles(sites):
    x, q, mu = sites
    own = solver(boundary="open")
    own.set_charges(q)
    own.set_dipoles(mu)
    energy = own.evaluate(x).energy
    assert copy.deepcopy(own).evaluate(x).energy == energy
    assert pickle.loads(pickle.dumps(own)).evaluate(x).energy == energy
    own.set_dipoles(None)
    without = own.evaluate(x).energy
    assert without == pytest.approx(0.5 * q @ by_pairs(x, q, 0 * mu)[0], rel=1e-12)
    own.set_dipoles(mu)
    own.set_charges(q[:-1])
    assert own.evaluate(x[:-1]).energy == pytest.approx(0.5 * q[:-1] @ by_pairs(x[:-1], q[:-1], 0 * mu[:-1])[0])


def test_what_is_wrong_is_said(sites):
    x, q, mu = sites
    own = solver(boundary="open")
    own.set_charges(q)
    with pytest.raises(ValueError, match="dipoles"):
        own.set_dipoles(mu[:, :2])
    with pytest.raises(ValueError, match="29 dipoles"):
        own.set_dipoles(mu[:-1])
    mu[3, 1] = np.nan
    with pytest.raises(ValueError, match="particle 3"):
        own.set_dipoles(mu)
    with pytest.raises(ValueError, match="dx"):
        own.tangent(x, dx=x[:-1])
    mu[3, 1] = 0
    own.set_dipoles(mu)
    with pytest.raises(RuntimeError, match="dipoles"):
        own.tangent(x, dx=x)
    own.set_charges(0 * q)
    x[5] = x[4]
    with pytest.raises(ValueError, match="at one place"):
        own.evaluate(x)


def of_close_charges(x, q, dipoles, widths, function, rule, box, boundary, exclusions, delta):
    """Energy, forces, and fields along the dipoles, of each site as a charge and two more, 2 delta apart."""
    n, length = len(q), np.linalg.norm(dipoles, axis=1)
    along = delta * dipoles / length[:, None]
    parts = np.stack((x, x + along, x - along), axis=1).reshape(-1, 3)
    charges = np.stack((q, length / (2 * delta), -length / (2 * delta)), axis=1).reshape(-1)
    sites = 3 * np.arange(n)[:, None, None]
    pairs = [(sites + [(0, 1), (0, 2), (1, 2)]).reshape(-1, 2)]
    pairs += [[(3 * i + a, 3 * j + b) for a in range(3) for b in range(3)] for i, j in exclusions]
    own = solver(boundary=boundary)
    own.set_charges(charges)
    own.set_near_function(function, np.repeat(widths, 3), rule)
    own.set_exclusions(np.concatenate(pairs))
    result = own.evaluate(parts, box)
    forces = result.forces.reshape(n, 3, 3)
    fields = ((forces[:, 1] - forces[:, 2]) * delta / length[:, None] * dipoles).sum(1)
    return result.energy, forces.sum(1), fields


@pytest.mark.parametrize(
    "function, rule, width",
    [("gaussian", "root-sum-square", 0.08), ("thole", "geometric-mean", 0.05), ("thole", "larger", 0.02)],
)
@pytest.mark.parametrize("boundary", ["open", "periodic", "slab"])
def test_dipoles_have_near_functions(function, rule, width, boundary):
    """As charges that are close to each other have them; near and beyond near cells; some have no width."""
    random = np.random.default_rng(9)
    n, edge = 60, 4.1 if width == 0.05 else 2.2
    x = edge * random.random((n, 3))
    q, dipoles = random.uniform(-1, 1, n), 0.03 * random.normal(size=(n, 3))
    widths = width * random.uniform(0.5, 1, n) * (random.random(n) < 0.8)
    x[1::2] = x[::2] + 0.05 * random.normal(size=(n // 2, 3))
    exclusions = [(0, 1), (2, 3), (5, 9)]
    box = None if boundary == "open" else [edge, edge, edge]
    given = x, q, dipoles, widths, function, rule, box, boundary, exclusions
    near, far = of_close_charges(*given, 2.5e-4), of_close_charges(*given, 5e-4)
    energy, forces, fields = ((4 * a - b) / 3 for a, b in zip(near, far))
    own = solver(boundary=boundary, order=10, cell_size=0.6)
    own.set_charges(q)
    own.set_dipoles(dipoles)
    own.set_near_function(function, widths, rule)
    own.set_exclusions(exclusions)
    own.prepare(x, box)
    result = own.evaluate(x, box, gradients=True)
    assert np.linalg.norm(result.forces - forces) < 1e-5 * np.linalg.norm(forces)
    assert np.linalg.norm((result.gradients * dipoles).sum(1) + fields) < 1e-5 * np.linalg.norm(fields)
    assert result.energy == pytest.approx(energy, rel=1e-5)
    single = farfield.Solver(dtype=np.float32, threads=1, device="cpu", boundary=boundary, order=10, cell_size=0.6)
    single.set_charges(q)
    single.set_dipoles(dipoles)
    single.set_near_function(function, widths, rule)
    single.set_exclusions(exclusions)
    assert np.linalg.norm(single.evaluate(x, box).forces - result.forces) < 1e-5 * np.linalg.norm(forces)
    with pytest.raises(RuntimeError, match="with near functions have no virial"):
        own.evaluate(x, box, virial=True)


def test_tangents_have_near_functions(sites):
    x, q, _ = sites
    own = solver(1e-6, boundary="open")
    own.set_charges(q)
    own.set_near_function("gaussian", np.full(N, 0.07))
    dx, dq = np.cos(7 * x), np.sin(5 * q)
    found = own.tangent(x, dx=dx, dcharges=dq)

    def at(step):
        own.set_charges(q + step * dq)
        return own.evaluate(x + step * dx, potentials=True)

    after, before = at(1e-5), at(-1e-5)
    assert np.linalg.norm(found.forces - (after.forces - before.forces) / 2e-5) < 1e-7 * np.linalg.norm(found.forces)
    potentials = (after.potentials - before.potentials) / 2e-5
    assert np.linalg.norm(found.potentials - potentials) < 1e-7 * np.linalg.norm(potentials)


def test_at_one_place_near_functions_are_finite(sites):
    """As close to it."""
    x, q, mu = sites
    found = []
    for shift in (0, 1e-6):
        own = solver(1e-6, boundary="open")
        own.set_charges(q)
        own.set_dipoles(mu)
        own.set_near_function("gaussian", np.full(N, 0.1))
        x[1] = x[0] + [0, shift, 0]
        found.append(own.evaluate(x, potentials=True, gradients=True))
    for name in ("forces", "potentials", "gradients"):
        one, other = (getattr(result, name) for result in found)
        assert abs(one - other).max() < 1e-4 * abs(one).max()


def test_soft_cores_are_refused(sites):
    x, q, mu = sites
    own = solver(1e-3, boundary="open")
    own.set_charges(q)
    own.set_dipoles(mu)
    own.set_near_function("soft-core", np.full(N, 0.1))
    with pytest.raises(RuntimeError, match="do not go with soft cores"):
        own.evaluate(x)
