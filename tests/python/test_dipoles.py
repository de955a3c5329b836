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
