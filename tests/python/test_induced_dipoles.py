# SPDX-License-Identifier: LGPL-2.1-or-later
"""Induced dipoles, against matrices that NumPy solves, slopes of energies, and OpenMM."""

import numpy as np
import pytest

import farfield

N = 24
COULOMB = 138.935458
EXCLUSIONS = [(0, 1), (2, 3), (0, 5)]


def solver(accuracy=1e-9, **options):
    return farfield.Solver(accuracy=accuracy, threads=1, device="cpu", coulomb_constant=COULOMB, **options)


@pytest.fixture
def ions():
    """Positions 0.3 nm apart, charges that do not add up to zero, polarisabilities, some of them 0."""
    random = np.random.default_rng(4)
    x = 0.6 * np.array(list(np.ndindex(3, 3, 3)))[:N] + random.uniform(-0.15, 0.15, (N, 3))
    alpha = random.uniform(0.0005, 0.004, N)
    alpha[[3, 8]] = 0
    return x, random.uniform(-1, 1, N), alpha


def interactions(x, exclusions):
    """Minus the second derivatives of 1/r of all pairs, [n, 3, n, 3], and its gradients, [n, 3, n], of plain sums."""
    d = x[:, None] - x[None]
    r = np.linalg.norm(d, axis=2)
    left_out = np.eye(len(x), dtype=bool)
    for i, j in exclusions:
        left_out[i, j] = left_out[j, i] = True
    r[left_out] = np.inf
    tensor = np.eye(3) / r[..., None, None] ** 3 - 3 * d[..., None] * d[..., None, :] / r[..., None, None] ** 5
    return tensor.swapaxes(1, 2), (-d / r[..., None] ** 3).swapaxes(1, 2)


def test_without_images_they_solve_the_equations_of_all_pairs(ions):
    x, q, alpha = ions
    own = solver(boundary="open")
    own.set_charges(q)
    own.set_exclusions(EXCLUSIONS)
    found = own.induced_dipoles(x, polarisabilities=alpha, tolerance=1e-10)
    tensor, gradient = interactions(x, EXCLUSIONS)
    has = np.repeat(alpha > 0, 3)
    matrix = tensor.reshape(3 * N, 3 * N)[has][:, has] + np.diag(1 / np.repeat(alpha, 3)[has])
    expected = np.zeros(3 * N)
    expected[has] = np.linalg.solve(matrix, -(gradient @ q).reshape(-1)[has])
    assert np.linalg.norm(found.dipoles.reshape(-1) - expected) < 1e-8 * np.linalg.norm(expected)
    cost = COULOMB / 2 * (expected[has] ** 2 / np.repeat(alpha, 3)[has]).sum()
    assert found.self_energy == pytest.approx(cost, rel=1e-7)
    assert found.residual <= 1e-10 and 2 < found.iterations < 40


CELLS = {"periodic": [[2.0, 0, 0], [0.3, 1.9, 0], [-0.4, 0.2, 2.1]], "slab": [2.0, 1.9, 2.1], "open": None}


@pytest.mark.parametrize("boundary", CELLS)
def test_forces_are_slopes_of_the_energy_with_dipoles_that_follow(ions, boundary):
    """With permanent dipoles beside them, in an energy that is stationary in the induced ones."""
    x, q, alpha = ions
    box = CELLS[boundary]
    permanent = 0.01 * np.random.default_rng(2).normal(size=(N, 3))
    own = solver(boundary=boundary)
    own.set_charges(q)
    own.set_exclusions(EXCLUSIONS)

    def evaluate(x):
        own.set_dipoles(permanent)
        found = own.induced_dipoles(x, box, polarisabilities=alpha, tolerance=1e-10)
        own.set_dipoles(permanent + found.dipoles)
        result = own.evaluate(x, box, gradients=True)
        return result.energy + found.self_energy, result, found.dipoles

    _, result, dipoles = evaluate(x)
    scale = np.sqrt((dipoles**2).mean())
    assert abs(dipoles + alpha[:, None] * result.gradients / COULOMB).max() < 1e-8 * scale
    direction = np.random.default_rng(3).normal(size=x.shape)
    after, before = (evaluate(x + step * direction)[0] for step in (1e-5, -1e-5))
    assert (after - before) / 2e-5 == pytest.approx(-(result.forces * direction).sum(), rel=1e-6)


def test_they_are_those_of_openmm(ions):
    """Its multipoles with mutual polarisation, in a box, without damping."""
    openmm = pytest.importorskip("openmm")
    x, q, alpha = ions
    q = q - q.mean()
    box = np.diag([2.0, 1.9, 2.1])
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*box)
    force = openmm.AmoebaMultipoleForce()
    force.setNonbondedMethod(openmm.AmoebaMultipoleForce.PME)
    force.setPolarizationType(openmm.AmoebaMultipoleForce.Mutual)
    force.setCutoffDistance(0.94)
    force.setAEwald(4.5)
    force.setPmeGridDimensions([108, 108, 108])
    force.setMutualInducedTargetEpsilon(1e-9)
    force.setMutualInducedMaxIterations(200)
    kind = openmm.AmoebaMultipoleForce
    for i in range(N):
        system.addParticle(1.0)
        # neither axes nor damping
        force.addMultipole(q[i], [0.0] * 3, [0.0] * 9, kind.NoAxisType, -1, -1, -1, 0, 0, alpha[i])
        force.setCovalentMap(i, kind.PolarizationCovalent11, [i])
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatform("Reference"))
    context.setPositions(x)
    expected = np.array(force.getInducedDipoles(context))
    state = context.getState(energy=True, forces=True)
    unit = openmm.unit
    forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer)
    own = solver()
    own.set_charges(q)
    found = own.induced_dipoles(x, box, polarisabilities=alpha, tolerance=1e-9)
    own.set_dipoles(found.dipoles)
    result = own.evaluate(x, box)
    assert np.linalg.norm(found.dipoles - expected) < 3e-6 * np.linalg.norm(expected)
    assert np.linalg.norm(result.forces - forces) < 3e-6 * np.linalg.norm(forces)
    energy = state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
    assert result.energy + found.self_energy == pytest.approx(energy, rel=3e-6)


def test_those_of_the_last_step_are_a_good_start(ions):
    x, q, alpha = ions
    own = solver(1e-5, boundary="open", dtype=np.float32)
    own.set_charges(q)
    first = own.induced_dipoles(x, polarisabilities=alpha)
    assert first.dipoles.dtype == np.float32
    again = own.induced_dipoles(x, polarisabilities=alpha, start=first.dipoles)
    assert again.iterations <= 1
    with pytest.raises(ValueError, match="1e-06 and 1 in this precision"):
        own.induced_dipoles(x, polarisabilities=alpha, tolerance=1e-7)
    step = 1e-4 * np.random.default_rng(1).normal(size=x.shape)
    moved = own.induced_dipoles(x + step, polarisabilities=alpha, start=first.dipoles)
    assert 0 < moved.iterations < first.iterations
    change = np.linalg.norm(moved.dipoles - first.dipoles)
    assert 1e-4 < change / np.linalg.norm(first.dipoles) < 1e-2


def test_nothing_is_induced_where_nothing_can_be(ions):
    x, q, alpha = ions
    own = solver(1e-4, boundary="open")
    own.set_charges(q)
    assert not own.induced_dipoles(x, polarisabilities=0 * alpha).dipoles.any()
    own.set_charges(0 * q)
    found = own.induced_dipoles(x, polarisabilities=alpha)
    assert not found.dipoles.any() and found.self_energy == found.residual == found.iterations == 0
    own.set_charges([])
    assert own.induced_dipoles(np.zeros((0, 3)), polarisabilities=[]).dipoles.shape == (0, 3)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"polarisabilities": -1e-3 * np.ones(N)}, ["polarisability of particle 0", "not negative"]),
        ({"polarisabilities": np.full(N, np.nan)}, ["polarisability of particle 0"]),
        ({"polarisabilities": np.ones(N)}, ["do not converge", "smaller polarisabilities"]),
        ({"polarisabilities": np.ones(N - 1)}, ["polarisabilities", f"[{N}]"]),
        ({"start": np.ones((N, 2))}, ["start"]),
        ({"tolerance": 1e-14}, ["tolerance", "1e-13"]),
    ],
)
def test_what_can_not_be_meant_is_refused(ions, given, words):
    x, q, alpha = ions
    own = solver(1e-4, boundary="open")
    own.set_charges(q)
    with pytest.raises((TypeError, ValueError)) as error:
        own.induced_dipoles(x, **{"polarisabilities": alpha, **given})
    for word in words:
        assert word in str(error.value)
    assert own.induced_dipoles(x, polarisabilities=alpha).dipoles.any()


def test_particles_at_one_place_are_named(ions):
    """Polarisable ones without charges, too."""
    x, q, alpha = ions
    own = solver(1e-4, boundary="open")
    own.set_charges(np.where(np.arange(N) < 5, q, 0))
    x[9] = x[10]
    with pytest.raises(ValueError, match="Particles 9 and 10 are at one place"):
        own.induced_dipoles(x, polarisabilities=alpha)


def test_damping_keeps_close_dipoles_finite(ions):
    """They diverge without; with it they are those of the damped matrix."""
    x, q, alpha = ions
    x[1] = x[0] + [0.11, 0, 0]
    alpha[:2] = 0.002
    own = solver(boundary="open")
    own.set_charges(q)
    with pytest.raises(ValueError, match="do not converge"):
        own.induced_dipoles(x, polarisabilities=alpha)
    widths = alpha ** (1 / 3) / 2.4
    own.set_near_function("thole", widths)
    found = own.induced_dipoles(x, polarisabilities=alpha, tolerance=1e-10)
    d = x[:, None] - x[None]
    r = np.linalg.norm(d, axis=2) + np.diag(np.full(N, np.inf))
    s = r / np.maximum(np.sqrt(np.multiply.outer(widths, widths)), 1e-3)
    decay = np.exp(-np.minimum(s, 700))
    third = 1 - (1 + s + s**2 / 2) * decay
    fifth = np.nan_to_num(third - s**3 / 6 * decay, nan=0.0)
    third = np.nan_to_num(third, nan=0.0)
    tensor = (third / r**3)[..., None, None] * np.eye(3)
    tensor = tensor - 3 * (fifth / r**5)[..., None, None] * d[..., None] * d[..., None, :]
    gradient = -(third / r**3)[..., None] * d
    has = np.repeat(alpha > 0, 3)
    matrix = tensor.swapaxes(1, 2).reshape(3 * N, 3 * N)[has][:, has] + np.diag(1 / np.repeat(alpha, 3)[has])
    field = -np.einsum("ijk,j->ik", gradient, q).reshape(-1)[has]
    expected = np.zeros(3 * N)
    expected[has] = np.linalg.solve(matrix, field)
    assert np.linalg.norm(found.dipoles.reshape(-1) - expected) < 1e-7 * np.linalg.norm(expected)
