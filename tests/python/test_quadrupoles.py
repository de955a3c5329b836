# SPDX-License-Identifier: LGPL-2.1-or-later
"""Quadrupoles and torques: beside OpenMM's AMOEBA, which has charges, dipoles and quadrupoles as well."""

import copy
import pickle

import numpy as np
import pytest

import farfield

N = 40
EDGE = 1.6  # nm


@pytest.fixture
def sites():
    """Positions, charges, dipoles and quadrupoles, no two particles nearer than 0.15 nm."""
    random = np.random.default_rng(5)
    places = 0.4 * np.array(list(np.ndindex(4, 4, 4)))[:N]
    x = places + random.uniform(-0.1, 0.1, (N, 3))
    quadrupoles = 1e-3 * random.normal(size=(N, 3, 3))
    quadrupoles += quadrupoles.transpose(0, 2, 1)
    quadrupoles -= np.trace(quadrupoles, axis1=1, axis2=2)[:, None, None] * np.eye(3) / 3
    return x, random.uniform(-1, 1, N), 0.02 * random.normal(size=(N, 3)), quadrupoles


def solver(sites, accuracy=1e-8, **options):
    _, q, mu, quadrupoles = sites
    own = farfield.Solver(accuracy=accuracy, device="cpu", **{"threads": 1, **options})
    own.set_charges(q)
    own.set_dipoles(mu)
    own.set_quadrupoles(quadrupoles)
    return own


def by_openmm(openmm, x, q, mu, quadrupoles):
    """Energy and forces without images; torques stay with the particles, whose axes are those of the box."""
    force = openmm.AmoebaMultipoleForce()
    force.setNonbondedMethod(openmm.AmoebaMultipoleForce.NoCutoff)
    force.setPolarizationType(openmm.AmoebaMultipoleForce.Direct)
    system = openmm.System()
    for i in range(len(x)):
        system.addParticle(1)
        # AMOEBA stores a third of the quadrupole
        moments = mu[i].tolist(), (quadrupoles[i] / 3).ravel().tolist()
        force.addMultipole(q[i], *moments, openmm.AmoebaMultipoleForce.NoAxisType, -1, -1, -1, 0.39, 0.0, 0.0)
    system.addForce(force)
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)
    context.setPositions(x)
    state = context.getState(getEnergy=True, getForces=True)
    return state.getPotentialEnergy()._value, np.array(state.getForces(asNumpy=True)._value)


def test_energies_and_forces_are_those_of_amoeba(sites):
    openmm = pytest.importorskip("openmm")
    result = solver(sites, boundary="open").evaluate(sites[0])
    energy, forces = by_openmm(openmm, *sites)
    assert result.energy == pytest.approx(energy, rel=1e-6)
    assert np.linalg.norm(result.forces - forces) < 1e-6 * np.linalg.norm(forces)


@pytest.mark.parametrize("boundary", ["open", "slab", "periodic"])
def test_torques_are_slopes_of_the_energy(sites, boundary):
    x, _, mu, quadrupoles = sites
    box = None if boundary == "open" else [EDGE, EDGE, EDGE]
    own = solver(sites, 1e-3, boundary=boundary)
    torques = own.evaluate(x, box, torques=True).torques
    step = 1e-4
    for axis, turn in enumerate(np.eye(3)):
        # all at once turn by the same angle: the sum of the torques
        energies = []
        for angle in (step, -step):
            generator = angle * np.cross(np.eye(3), turn)  # times r: angle turn x r
            rotation = np.eye(3) + generator + generator @ generator / 2
            own.set_dipoles(mu @ rotation.T)
            own.set_quadrupoles(rotation @ quadrupoles @ rotation.T)
            energies.append(own.evaluate(x, box).energy)
        slope = (energies[0] - energies[1]) / (2 * step)
        assert torques.sum(0)[axis] == pytest.approx(-slope, rel=1e-4, abs=1e-3)


def test_single_precision_has_them(sites):
    x = sites[0]
    double = solver(sites, boundary="open").evaluate(x, torques=True)
    single = solver(sites, 1e-4, boundary="open", dtype=np.float32).evaluate(x, torques=True)
    assert np.linalg.norm(single.forces - double.forces) < 1e-4 * np.linalg.norm(double.forces)
    assert np.linalg.norm(single.torques - double.torques) < 1e-4 * np.linalg.norm(double.torques)


def test_they_induce_dipoles(sites):
    """In equilibrium the energy is stationary, so that forces are its slopes."""
    x, _, mu, _ = sites
    alpha = np.full(N, 1e-4)
    own = solver(sites, boundary="open")

    def at(x):
        own.set_dipoles(mu)
        found = own.induced_dipoles(x, polarisabilities=alpha, tolerance=1e-10)
        own.set_dipoles(mu + found.dipoles)
        result = own.evaluate(x)
        return result.energy + found.self_energy, result.forces

    step = np.zeros_like(x)
    step[7, 1] = 1e-5
    slope = (at(x + step)[0] - at(x - step)[0]) / 2e-5
    assert at(x)[1][7, 1] == pytest.approx(-slope, rel=1e-5)


def test_a_copy_has_the_quadrupoles(sites):
    x, q, mu, _ = sites
    own = solver(sites, boundary="open")
    energy = own.evaluate(x).energy
    assert copy.deepcopy(own).evaluate(x).energy == energy
    assert pickle.loads(pickle.dumps(own)).evaluate(x).energy == energy
    own.set_quadrupoles(None)
    without = own.evaluate(x).energy
    assert abs(without - energy) > 1e-3 * abs(energy)
    own.set_charges(q[:-1])
    own.set_dipoles(mu[:-1])
    assert own.evaluate(x[:-1]).energy != without


def test_what_is_wrong_is_said(sites):
    x, _, _, quadrupoles = sites
    own = solver(sites, boundary="open")
    with pytest.raises(ValueError, match="quadrupoles"):
        own.set_quadrupoles(quadrupoles[:, :2])
    with pytest.raises(ValueError, match=f"{N - 1} quadrupoles"):
        own.set_quadrupoles(quadrupoles[:-1])
    wrong = quadrupoles.copy()
    wrong[3, 0, 1] *= 1.5
    with pytest.raises(ValueError, match="particle 3 is not symmetric"):
        own.set_quadrupoles(wrong)
    wrong = quadrupoles + 1e-3 * np.eye(3)
    with pytest.raises(ValueError, match=r"particle 0 has the trace 0\.003"):
        own.set_quadrupoles(wrong)
    own.set_near_function("thole", np.full(N, 0.05))
    for call in (own.evaluate, lambda x: own.induced_dipoles(x, polarisabilities=np.full(N, 1e-4))):
        with pytest.raises(RuntimeError, match="Quadrupoles do not go with near functions"):
            call(x)
    own.set_near_function("coulomb")
    with pytest.raises(RuntimeError, match="quadrupoles"):
        own.tangent(x, dx=x)
    x[5] = x[4]
    with pytest.raises(ValueError, match="at one place"):
        own.evaluate(x)
