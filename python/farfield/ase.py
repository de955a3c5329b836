# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A calculator of the Atomic Simulation Environment, for Coulomb interactions alone."""

import numpy as np
from ase import units
from ase.calculators.calculator import Calculator, all_changes
from ase.cell import Cell

from .solver import Solver

NM = 10 * units.Ang
KJ_PER_MOL = units.kJ / units.mol


class FarfieldCoulomb(Calculator):
    """Coulomb interactions of the initial charges of atoms, periodic in all directions, in two or in none.

    Energies are in eV, lengths in Angstrom, stresses in eV/Angstrom^3, potentials (dE/dq) in V, as
    ASE has them; stress needs atoms periodic in all directions. Those periodic in two are slabs,
    whatever the third vector of the cell is. Options are those of farfield.Solver, but for
    the boundary, which is that of the atoms. Add it to a calculator of short-range
    interactions with ase.calculators.mixing.SumCalculator.
    """

    implemented_properties = ["energy", "free_energy", "forces", "stress", "potentials"]

    def __init__(self, exclusions=(), **options):
        """exclusions: pairs of atoms that do not interact, [m, 2]."""
        super().__init__()
        self._options = options
        self._solvers = {"periodic": Solver(**options)}
        self._exclusions = np.asarray(exclusions, dtype=int).reshape(-1, 2)

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        atoms = self.atoms
        if sum(atoms.pbc) == 1:
            raise ValueError(
                "FarfieldCoulomb needs atoms periodic in all three directions, in two or in none."
            )
        periodic = bool(atoms.pbc.all())
        boundary = "periodic" if periodic else "slab" if atoms.pbc.any() else "open"
        solver = self._solver_of(boundary)
        solver.set_charges(atoms.get_initial_charges())
        solver.set_exclusions(self._exclusions)
        cell, turned = None, np.eye(3)
        if boundary != "open":
            # rows of a lower triangular box: r = q l, turned by q; the open direction comes last
            own = sorted(range(3), key=lambda axis: not atoms.pbc[axis])
            vectors = atoms.cell.array[own]
            if boundary == "slab":
                vectors[2] = np.cross(vectors[0], vectors[1])
            lower, turned = Cell(vectors).standard_form()
            cell = np.array(lower) / NM
        x = atoms.positions @ turned.T / NM
        result = solver.evaluate(x, cell, virial=periodic, potentials=True)
        self.results = {
            "energy": result.energy * KJ_PER_MOL,
            "free_energy": result.energy * KJ_PER_MOL,
            "forces": result.forces @ turned * KJ_PER_MOL / NM,
            "potentials": result.potentials * KJ_PER_MOL,
        }
        if periodic:
            stress = turned.T @ (2 * result.virial) @ turned * KJ_PER_MOL / atoms.get_volume()
            self.results["stress"] = stress[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]]

    def _solver_of(self, boundary):
        if boundary not in self._solvers:
            self._solvers[boundary] = Solver(boundary=boundary, **self._options)
        return self._solvers[boundary]
