# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A calculator of the Atomic Simulation Environment, for Coulomb interactions alone."""

import copy

import numpy as np
from ase import units
from ase.calculators.calculator import Calculator, all_changes

from . import arguments
from .cells import lower_triangular
from .solver import Solver

NM = 10 * units.Ang
KJ_PER_MOL = units.kJ / units.mol


class FarfieldCoulomb(Calculator):
    """Coulomb interactions of the initial charges of atoms, periodic in all directions, in two or in none.

    Energies are in eV, lengths in Angstrom, stresses in eV/Angstrom^3, potentials (dE/dq) in V, as
    ASE has them. Cells may have any orientation, left-handed ones as well. Atoms periodic in two directions are
    slabs, whatever the third vector of the cell is; their stress is that in the plane of the two, the other
    components are 0, and it refers to the volume of the cell. There is no stress without a volume. Options
    are those of farfield.Solver, but for the boundary, which is that of the atoms. Add it to a calculator of
    short-range interactions with ase.calculators.mixing.SumCalculator. A copy has solvers of its own.
    """

    implemented_properties = ["energy", "free_energy", "forces", "stress", "potentials"]

    def __init__(self, exclusions=(), **options):
        """exclusions: pairs of atoms that do not interact, [m, 2]."""
        super().__init__()
        if "boundary" in options:
            raise ValueError("boundary follows from the periodic directions of the atoms, leave it out.")
        self._options = options
        self._solvers = {"periodic": Solver(**options)}
        self._exclusions = arguments.pairs("exclusions", exclusions)

    def __getstate__(self):
        return {**self.__dict__, "_solvers": {name: copy.copy(own) for name, own in self._solvers.items()}}

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        atoms = self.atoms
        if sum(atoms.pbc) == 1:
            raise ValueError(
                "FarfieldCoulomb needs atoms periodic in all three directions, in two or in none."
            )
        boundary = {0: "open", 2: "slab", 3: "periodic"}[sum(atoms.pbc)]
        solver = self._solver_of(boundary)
        cell, turned = None, np.eye(3)
        if boundary != "open":
            cell, turned = lower_triangular(atoms.cell.array[atoms.pbc] / NM)
        volume = abs(np.linalg.det(atoms.cell.array))
        has_stress = boundary != "open" and volume > 0
        with solver.alone():
            solver.set_charges(atoms.get_initial_charges())
            solver.set_exclusions(self._exclusions)
            x = atoms.positions @ turned.T / NM
            result = solver.evaluate(x, cell, virial=has_stress, potentials=True)
        self.results = {
            "energy": result.energy * KJ_PER_MOL,
            "free_energy": result.energy * KJ_PER_MOL,
            "forces": result.forces @ turned * KJ_PER_MOL / NM,
            "potentials": result.potentials * KJ_PER_MOL,
        }
        if has_stress:
            # in the frame of the box, where a slab lies across z
            strained = 2 * result.virial
            if boundary == "slab":
                strained[2] = strained[:, 2] = 0
            stress = turned.T @ strained @ turned * KJ_PER_MOL / volume
            self.results["stress"] = stress[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]]

    def _solver_of(self, boundary):
        if boundary not in self._solvers:
            self._solvers[boundary] = Solver(boundary=boundary, **self._options)
        return self._solvers[boundary]
