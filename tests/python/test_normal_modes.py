# SPDX-License-Identifier: LGPL-2.1-or-later
"""Normal modes of a peptide in water: Hessian-vector products beside differences of OpenMM's forces."""

import io

import numpy as np
import pytest

import farfield

openmm = pytest.importorskip("openmm")
app = pytest.importorskip("openmm.app")

COULOMB = 138.93545764438198  # OpenMM's, kJ/mol nm/e^2
# Alanine with both of its peptide bonds, as it is built from internal coordinates: Angstrom
ATOMS = """
ACE H1 2.000 1.000 0.000, ACE CH3 2.000 2.090 0.000, ACE H2 1.486 2.454 0.890, ACE H3 1.486 2.454 -0.890
ACE C 3.427 2.641 0.000, ACE O 4.391 1.877 0.000, ALA N 3.555 3.970 0.000, ALA H 2.733 4.556 0.000
ALA CA 4.853 4.614 0.000, ALA HA 5.408 4.316 0.890, ALA CB 5.661 4.221 -1.232, ALA HB1 5.123 4.521 -2.131
ALA HB2 6.630 4.719 -1.206, ALA HB3 5.809 3.141 -1.241, ALA C 4.713 6.129 0.000, ALA O 3.601 6.653 0.000
NME N 5.846 6.835 0.000, NME H 6.737 6.359 0.000, NME C 5.846 8.284 0.000, NME H1 4.819 8.648 0.000
NME H2 6.360 8.648 0.890, NME H3 6.360 8.648 -0.890
"""


def peptide():
    """Topology and positions, as OpenMM has them."""
    lines = []
    for atom in ATOMS.replace("\n", ",").split(","):
        if atom.strip():
            residue, name, *xyz = atom.split()
            number = ["ACE", "ALA", "NME"].index(residue) + 1
            coordinates = "".join(f"{float(value):8.3f}" for value in xyz)
            lines.append(
                f"ATOM  {len(lines) + 1:5d}  {name:<3s} {residue} A{number:4d}    {coordinates}  1.00  0.00"
                f"           {name[0]}"
            )
    pdb = app.PDBFile(io.StringIO("\n".join([*lines, "END"])))
    return pdb.topology, pdb.positions


def solvated():
    """The system with Ewald sums, without constraints, and its positions at a minimum, nm.

    A pair that crosses the cut-off between two positions of a difference changes the force by about the tolerance
    of the sums, and the difference by 1e5 times that. With 1e-7 the lowest frequencies were 0.03/cm off in one of
    ten structures. OpenMM does not come to the same minimum twice.
    """
    modeller = app.Modeller(*peptide())
    field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
    modeller.addSolvent(field, model="tip3p", boxSize=openmm.Vec3(1.9, 1.9, 1.9))
    system = field.createSystem(
        modeller.topology, nonbondedMethod=app.Ewald, nonbondedCutoff=0.9, rigidWater=False, ewaldErrorTolerance=1e-10
    )
    context = context_of(system, "CPU")
    context.setPositions(modeller.positions)
    openmm.LocalEnergyMinimizer.minimize(context, 1.0, 400)
    return system, positions_of(context)


def context_of(system, platform="Reference"):
    return openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatform(platform))


def positions_of(context):
    positions = context.getState(positions=True).getPositions(asNumpy=True)
    return positions.value_in_unit(openmm.unit.nanometer)


def differences(context, x, direction, step=1e-5):
    """The derivative of OpenMM's forces along a direction, kJ/mol/nm^2."""
    unit = openmm.unit.kilojoule_per_mole / openmm.unit.nanometer
    forces = []
    for sign in (1, -1):
        context.setPositions(x + sign * step * direction)
        forces.append(context.getState(forces=True).getForces(asNumpy=True).value_in_unit(unit))
    return (forces[0] - forces[1]) / (2 * step)


def frequencies(hessian, masses):
    """1/cm, of a Hessian in kJ/mol/nm^2 and masses in u; of directions that are unstable below zero."""
    weighted = hessian / np.sqrt(np.multiply.outer(masses, masses))
    squares = np.linalg.eigvalsh((weighted + weighted.T) / 2)
    return np.sign(squares) * np.sqrt(abs(squares)) * 1e12 / (2 * np.pi * 2.99792458e10)


def test_of_a_peptide_in_water_are_those_of_differences():
    """Those of the peptide with the water held, of the whole energy; OpenMM has all but the Coulomb part."""
    system, x = solvated()
    nonbonded = next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    n, atoms = system.getNumParticles(), 22
    charges = np.array([nonbonded.getParticleParameters(i)[0]._value for i in range(n)])
    solver = farfield.Solver(accuracy=1e-7, threads=1, device="cpu", coulomb_constant=COULOMB)
    solver.set_charges(charges)
    # pairs of which OpenMM has a part or nothing
    solver.set_exclusions([nonbonded.getExceptionParameters(k)[:2] for k in range(nonbonded.getNumExceptions())])
    box = [1.9, 1.9, 1.9]
    directions = np.zeros((3 * atoms, n, 3))
    directions.reshape(3 * atoms, -1)[np.arange(3 * atoms), np.arange(3 * atoms)] = 1
    coulomb = [-solver.tangent(x, box, dx=v).forces[:atoms].ravel() for v in directions]
    everything = context_of(system)
    expected = [-differences(everything, x, v)[:atoms].ravel() for v in directions]
    for i in range(n):
        nonbonded.setParticleParameters(i, 0.0, *nonbonded.getParticleParameters(i)[1:])
    nonbonded.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    nonbonded.setReactionFieldDielectric(1.0)
    others = context_of(system)
    found = np.array(coulomb) + [-differences(others, x, v)[:atoms].ravel() for v in directions]
    masses = np.repeat([system.getParticleMass(i)._value for i in range(atoms)], 3)
    own, other = frequencies(found, masses), frequencies(np.array(expected), masses)
    assert abs(own - other).max() < 1e-3
    assert 3000 < own[-1] < 4000
