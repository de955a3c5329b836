# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forces and energies against OpenMM's reference platform, an independent code in double precision.

The kinds of systems are those of OpenMM's own tests of Ewald summation (TestEwald, TestNonbondedForce):
a crystal, a cloud of charges, charges in triclinic boxes and far outside of them, exclusions; and
systems that its package brings: models of water, a protein in salt water.
"""

from pathlib import Path

import numpy as np
import pytest

import farfield

openmm = pytest.importorskip("openmm")
app = pytest.importorskip("openmm.app")

# OpenMM's value, kJ/mol nm/e^2
COULOMB = 138.93545764438198
# Rows; the two of TestEwald
CUBE = np.diag([3.0, 3.0, 3.0])
TRICLINIC = np.array([[2.5, 0, 0], [0.5, 3.0, 0], [0.7, 0.9, 3.5]])
VERY_TRICLINIC = np.array([[3.2, 0, 0], [-1.1, 3.1, 0], [-1.1, -1.5, 2.7]])
# Wide, as OpenMM 8.6 loses pairs in a dodecahedron that is less than three cut-offs wide: forces on 1000 charges in one
# of 3.2 nm are off by 5e-5 with a cut-off of 1.0 nm, where a plain Ewald sum agrees with FMM to 1e-9.
DODECAHEDRON = 6.0 * np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, np.sqrt(0.5)]])
# An Ewald sum of tolerance 1e-10 takes time with the number of particles squared; beyond this, PME
MAX_EWALD = 1500
EWALD_TOLERANCE = 1e-10
# PME of order 5: the short range ends where its splitting leaves 1e-9; with this spacing (nm), and a cut-off of
# 1.3 nm, forces differ from those of Ewald sums by at most 2.5e-7 (8, 51 and 1000 charges in CUBE). Larger boxes
# have no more points; forces in dense systems are larger.
PME_SPLITTING_TIMES_CUTOFF, PME_SPACING, MAX_POINTS = 4.3, 0.015, 256
PME_ERROR = 1e-6
MAX_CUTOFF = 1.3
# Cut-off in shortest edges, at most
WIDTH = 0.45
ACCURACY = 1e-9


def uses_ewald(q, box):
    """Whether OpenMM sums in full: in rectangular boxes."""
    return len(q) <= MAX_EWALD and np.count_nonzero(box) == 3


def by_openmm(x, q, box, excluded):
    """Coulomb energy and forces; excluded: pairs."""
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*box)
    force = openmm.NonbondedForce()
    for charge in q:
        system.addParticle(1.0)
        force.addParticle(charge, 1.0, 0.0)
    for i, j in excluded:
        force.addException(int(i), int(j), 0.0, 1.0, 0.0)
    cutoff = min(MAX_CUTOFF, WIDTH * np.diag(box).min())
    force.setCutoffDistance(cutoff)
    if uses_ewald(q, box):
        force.setNonbondedMethod(openmm.NonbondedForce.Ewald)
        force.setEwaldErrorTolerance(EWALD_TOLERANCE)
    else:
        force.setNonbondedMethod(openmm.NonbondedForce.PME)
        grid = np.minimum(MAX_POINTS, np.ceil(np.diag(box) / PME_SPACING))
        force.setPMEParameters(PME_SPLITTING_TIMES_CUTOFF / cutoff, *grid.astype(int).tolist())
    system.addForce(force)
    context = openmm.Context(
        system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatform("Reference")
    )
    context.setPositions(x)
    state = context.getState(forces=True, energy=True)
    unit = openmm.unit
    forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer)
    return state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole), forces


def compare(x, q, box, excluded=()):
    """FMM against OpenMM."""
    solver = farfield.Solver(accuracy=ACCURACY, coulomb_constant=COULOMB)
    solver.set_charges(q)
    solver.set_exclusions(excluded)
    found = solver.evaluate(x, box)
    energy, forces = by_openmm(x, q, box, excluded)
    error = ACCURACY + (10 * EWALD_TOLERANCE if uses_ewald(q, box) else PME_ERROR)
    scale = np.sqrt(np.mean(np.sum(forces**2, axis=1)))
    assert np.sqrt(np.mean(np.sum((found.forces - forces) ** 2, axis=1))) <= error * scale
    # Errors of pairs of charges are independent: that of the energy is of this order at most
    assert found.energy == pytest.approx(energy, rel=error)
    return energy


def random_charges(n):
    q = np.linspace(-1.0, 1.0, n)
    return q - q.mean()


def test_rock_salt_has_its_madelung_constant():
    """1000 ions in a cube of 2.82 nm, moved off the faces of cells."""
    corners = np.array(list(np.ndindex(10, 10, 10)))
    q = np.where(corners.sum(axis=1) % 2 == 0, 1.0, -1.0)
    x = 0.282 * corners + 0.05
    solver = farfield.Solver(accuracy=ACCURACY, coulomb_constant=COULOMB)
    solver.set_charges(q)
    energy = solver.evaluate(x, np.diag([2.82] * 3)).energy
    # Madelung constant of rock salt: OEIS A085469
    assert energy == pytest.approx(-1.74756459463318 * COULOMB * 1000 / (2 * 0.282), rel=1e-9)


@pytest.mark.parametrize("box", [CUBE, TRICLINIC, VERY_TRICLINIC], ids=["cube", "triclinic", "very"])
@pytest.mark.parametrize("n", [2, 8, 51, 1000])
def test_clouds_of_charges(box, n):
    x = np.random.default_rng(n).random((n, 3)) @ box
    compare(x, random_charges(n), box)


def test_charges_far_outside_of_the_box():
    x = np.random.default_rng(5).random((1000, 3)) * 10 - 2
    compare(x, np.tile([-1.0, 1.0], 500), VERY_TRICLINIC)


def test_chains_of_excluded_pairs():
    x = np.random.default_rng(6).random((894, 3)) * 3.00646
    excluded = [(i, i + 1) for i in range(893) if np.linalg.norm(x[i] - x[i + 1]) < 0.6]
    assert len(excluded) > 20
    compare(x, np.tile([-1.0, 1.0], 447), np.diag([3.00646] * 3), excluded)


def particles(topology, positions, force_field):
    """Positions, charges, box and excluded pairs, as compare() takes them."""
    unit = openmm.unit
    system = force_field.createSystem(topology, nonbondedMethod=app.PME, nonbondedCutoff=0.9)
    force = next(f for f in system.getForces() if isinstance(f, openmm.NonbondedForce))
    charges = (force.getParticleParameters(i)[0] for i in range(force.getNumParticles()))
    exceptions = (force.getExceptionParameters(i) for i in range(force.getNumExceptions()))
    return (
        np.array(positions.value_in_unit(unit.nanometer)),
        np.array([charge / unit.elementary_charge for charge in charges]),
        np.array(topology.getPeriodicBoxVectors().value_in_unit(unit.nanometer)),
        [tuple(sorted(parameters[:2])) for parameters in exceptions],
    )


AMBER = ("amber14-all.xml", "amber14/tip3p.xml")
# Structures of OpenMM's package, and their force fields
PACKAGED = {
    "tip3p": ("tip3p.xml",),
    "tip4pew": ("tip4pew.xml",),  # a site without mass or Lennard-Jones interactions
    "tip5p": ("tip5p.xml",),
    "swm4ndp": ("swm4ndp.xml",),  # Drude particles: charges beside each other
    "test": AMBER,  # a protein in water
    "POPC": AMBER,  # a membrane in water
}


@pytest.mark.parametrize("name", PACKAGED)
def test_structures_of_the_package(name):
    pdb = app.PDBFile(str(Path(app.__file__).parent / "data" / f"{name}.pdb"))
    compare(*particles(pdb.topology, pdb.positions, app.ForceField(*PACKAGED[name])))


def test_salt_water_in_a_dodecahedron():
    force_field = app.ForceField(*AMBER)
    modeller = app.Modeller(app.Topology(), [] * openmm.unit.nanometer)
    modeller.addSolvent(
        force_field,
        boxVectors=[openmm.Vec3(*row) * openmm.unit.nanometer for row in DODECAHEDRON],
        ionicStrength=1.0 * openmm.unit.molar,
    )
    x, q, box, excluded = particles(modeller.topology, modeller.positions, force_field)
    np.testing.assert_allclose(box, DODECAHEDRON)
    assert len(q) > 10000
    assert np.sum(np.abs(q) == 1.0) > 10
    compare(x, q, box, excluded)


@pytest.mark.parametrize("name", ["tip4pew", "POPC"])
def test_slabs_are_the_limit_of_slabs_far_apart(name):
    """A film of water and a membrane, beside ones with three widths of vacuum and a correction.

    The periodic sum is that of the tests above; nothing in it knows of slabs. The correction is that for a
    dipole and, as charges of a force field add up to 1e-4 e, for a net charge: Ballenegger, Arnold and
    Cerda, J. Chem. Phys. 131, 094107 (2009).
    """
    pdb = app.PDBFile(str(Path(app.__file__).parent / "data" / f"{name}.pdb"))
    x, q, box, excluded = particles(pdb.topology, pdb.positions, app.ForceField(*PACKAGED[name]))
    assert max(np.ptp(x[list(pair)], axis=0).max() for pair in excluded) < 1, "whole molecules"
    tall = box.copy()
    tall[2] = [0, 0, np.ptp(x[:, 2]) + 3 * np.diag(box)[:2].max()]
    stacked = farfield.Solver(accuracy=1e-8)
    stacked.set_charges(q)
    stacked.set_exclusions(excluded)
    found = stacked.evaluate(x, tall)
    factor = 2 * np.pi / np.prod(np.diag(tall)) * 138.935458
    z = x[:, 2] - x[:, 2].mean()
    net, dipole = q.sum(), q @ z
    energy = found.energy + factor * (dipole**2 - net * (q @ z**2) - (net * tall[2, 2]) ** 2 / 12)
    forces = found.forces - 2 * factor * np.outer(q * (dipole - net * z), [0, 0, 1])
    scale = np.sqrt(np.mean(np.sum(forces**2, axis=1)))
    for accuracy in (3e-4, 1e-7):
        slab = farfield.Solver(accuracy=accuracy, boundary="slab", device="cpu")
        slab.set_charges(q)
        slab.set_exclusions(excluded)
        result = slab.evaluate(x, box)
        assert np.sqrt(np.mean(np.sum((result.forces - forces) ** 2, axis=1))) <= accuracy * scale
        assert result.energy == pytest.approx(energy, rel=accuracy)
