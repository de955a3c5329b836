# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A calculator of the Atomic Simulation Environment, for Coulomb interactions alone."""

import numpy as np
from ase import units
from ase.calculators.calculator import Calculator, all_changes

from .solver import Solver

NM = 10 * units.Ang
KJ_PER_MOL = units.kJ / units.mol


class FarfieldCoulomb(Calculator):
    """Coulomb interactions of the initial charges of atoms that are periodic in all directions.

    Energies are in eV, lengths in Angstrom, stresses in eV/Angstrom^3, potentials (dE/dq) in V, as
    ASE has them. Options are those of farfield.Solver. Add it to a calculator of short-range
    interactions with ase.calculators.mixing.SumCalculator.
    """

    implemented_properties = ["energy", "free_energy", "forces", "stress", "potentials"]

    def __init__(self, exclusions=(), **options):
        """exclusions: pairs of atoms that do not interact, [m, 2]."""
        super().__init__()
        self._solver = Solver(**options)
        self._exclusions = np.asarray(exclusions, dtype=int).reshape(-1, 2)

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        atoms = self.atoms
        if not atoms.pbc.all():
            raise ValueError("FarfieldCoulomb needs atoms that are periodic in all three directions.")
        self._solver.set_charges(atoms.get_initial_charges())
        self._solver.set_exclusions(self._exclusions)
        # rows of a lower triangular box: r = q l, turned by q
        cell, turned = atoms.cell.standard_form()
        x = atoms.positions @ turned.T / NM
        result = self._solver.evaluate(x, np.array(cell) / NM, virial=True, potentials=True)
        force = KJ_PER_MOL / NM
        stress = turned.T @ (2 * result.virial) @ turned * KJ_PER_MOL / atoms.get_volume()
        self.results = {
            "energy": result.energy * KJ_PER_MOL,
            "free_energy": result.energy * KJ_PER_MOL,
            "forces": result.forces @ turned * force,
            "stress": stress[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]],
            "potentials": result.potentials * KJ_PER_MOL,
        }
