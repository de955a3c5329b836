# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two molecules of polarisable water: the energy of the hydrogen bond against its length, as a picture.

    pip install . matplotlib
    python3 examples/polarisable_water.py

The model is that of L. X. Dang and T.-M. Chang, J. Chem. Phys. 106, 8149 (1997), doi:10.1063/1.473820: charges, and
a polarisable site on the bisector of each molecule. Its lowest energy is published as -4.69 kcal/mol, at 0.287 nm.
"""

import argparse
from pathlib import Path

import numpy as np

import farfield

KCAL, DEBYE = 4.184, 0.0208194  # kJ/mol, e nm
BOND, ANGLE, SITE = 0.09572, np.deg2rad(104.52), 0.0215  # nm; of O to H, and of O to the site
CHARGES = 0.519 * np.array([0, 1, 1, -2])  # e; of O, H, H and the site
POLARISABILITIES = np.array([0, 0, 0, 1.444e-3])  # nm^3
SIGMA, EPSILON = 0.3234, 0.1825 * KCAL  # of oxygens
# atoms of one molecule do not feel each other
PAIRS = [(4 * k + i, 4 * k + j) for k in range(2) for i in range(4) for j in range(i)]


def molecule(oxygen, first, second):
    """Positions of O, H, H and the site, [4, 3]; first, second: the directions of the bonds."""
    middle = (first + second) / np.linalg.norm(first + second)
    return oxygen + np.array([0 * first, BOND * first, BOND * second, SITE * middle])


def dimer(distance, donor, acceptor):
    """A bond along z. Angles, radians: of the bond O-H of the donor, and of the bisector of the acceptor, to z."""

    def turned(angle):
        return np.array([np.sin(angle), 0, np.cos(angle)])

    across = np.array([0, np.sin(ANGLE / 2), 0])
    along = np.cos(ANGLE / 2) * turned(acceptor)
    giving = molecule(np.zeros(3), turned(donor), turned(donor - ANGLE))
    return np.vstack((giving, molecule(np.array([0, 0, distance]), along + across, along - across)))


class Water:
    def __init__(self, induces=True):
        self.solver = farfield.Solver(accuracy=1e-7, boundary="open")
        self.solver.set_charges(np.tile(CHARGES, 2))
        self.solver.set_exclusions(PAIRS)
        self.polarisabilities = np.tile(POLARISABILITIES, 2) * induces

    def energy(self, x):
        """kJ/mol, and the dipoles of both molecules, e nm, [2, 3]."""
        self.solver.set_dipoles(None)
        found = self.solver.induced_dipoles(x, polarisabilities=self.polarisabilities, tolerance=1e-8)
        self.solver.set_dipoles(found.dipoles)
        sixth = (SIGMA / np.linalg.norm(x[4] - x[0])) ** 6
        repulsion = 4 * EPSILON * (sixth**2 - sixth)
        of_atoms = np.tile(CHARGES, 2)[:, None] * x + found.dipoles
        return self.solver.evaluate(x).energy + found.self_energy + repulsion, of_atoms.reshape(2, 4, 3).sum(1)

    def lowest(self, distance, angles):
        """The energy at a distance, kJ/mol, and the angles there, by Newton's method with differences."""
        step = 1e-3 * np.eye(2)

        def at(change):
            return self.energy(dimer(distance, *(angles + change)))[0]

        for _ in range(8):
            middle, up, down = at(0), [at(s) for s in step], [at(-s) for s in step]
            slope = (np.array(up) - down) / 2e-3
            own = (np.array(up) + down - 2 * middle) / 1e-6
            mixed = (at(step[0] + step[1]) - up[0] - up[1] + middle) / 1e-6
            curvature = np.array([[own[0], mixed], [mixed, own[1]]])
            angles = angles - np.clip(np.linalg.solve(curvature, slope), -0.2, 0.2)
        return at(0), angles


def bond(water, distances):
    """Lowest energies at the distances, kJ/mol, and the distance, the energy and the angles of the lowest of all."""
    angles, energies, turns = np.array([0.0, 1.0]), [], []
    for distance in distances:
        energy, angles = water.lowest(distance, angles)
        energies.append(energy)
        turns.append(angles)
    k = int(np.clip(np.argmin(energies), 1, len(energies) - 2))
    around = np.polynomial.Polynomial.fit(distances[k - 1 : k + 2], energies[k - 1 : k + 2], 2)
    best = float(around.deriv().roots()[0])
    return np.array(energies), best, *water.lowest(best, turns[k])


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=31, help="of each curve")
    parser.add_argument("--output", type=Path, default=Path("polarisable_water.png"))
    arguments = parser.parse_args(words)

    distances = np.linspace(0.27, 0.42, arguments.points)
    water = Water()
    energies, best, lowest, angles = bond(water, distances)
    fixed = bond(Water(induces=False), distances)[0]
    single = np.linalg.norm((CHARGES[:, None] * dimer(1, 0, 0)[:4]).sum(0)) / DEBYE
    dipoles = np.linalg.norm(water.energy(dimer(best, *angles))[1], axis=1) / DEBYE
    print(f"bond: {lowest / KCAL:.2f} kcal/mol at {best:.3f} nm")
    print(f"dipoles: {single:.2f} D alone, {dipoles[0]:.2f} D of the donor, {dipoles[1]:.2f} D of the acceptor")

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(distances, energies / KCAL, label="with induced dipoles")
    axes.plot(distances, fixed / KCAL, "--", label="charges alone")
    axes.plot([best], [lowest / KCAL], "o", color="C0")
    axes.set_xlabel("distance of the oxygens, nm")
    axes.set_ylabel("energy, kcal/mol")
    axes.legend()
    figure.savefig(arguments.output, dpi=150, bbox_inches="tight")
    print(arguments.output)
    return lowest / KCAL, best, dipoles


if __name__ == "__main__":
    main()
