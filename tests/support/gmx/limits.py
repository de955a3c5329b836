# SPDX-License-Identifier: LGPL-2.1-or-later
"""What errors are allowed, in one place.

They are those of the project's specification: no larger error than standard PME (1.0 nm, 0.12 nm,
order 4, 1e-5) has on the same kind of system, and 2e-4 kJ/mol per atom in the Coulomb energy.
"""

import numpy as np

from .simulation import BAR

# Relative RMS error of the total force: standard PME on 23 262 atoms of water, and on a protein in
# a dodecahedron.
WATER_LIMIT = 3.65e-4
PROTEIN_LIMIT = 5.1e-4
# kJ/mol per atom.
ENERGY_LIMIT = 2e-4
# Truncation error at p = 12 that the specification allows.
ORDER_12_LIMIT = 3e-5


def energy_limit(system, exact):
    """Largest error of the Coulomb energy, kJ/mol.

    ENERGY_LIMIT is for water, with its 15.3 kJ/mol per atom; ions have more, and the error of a
    truncated expansion is proportional to it.
    """
    return max(ENERGY_LIMIT * system.atoms, ENERGY_LIMIT / 15.3 * abs(exact))


def pressure_scatter(system, force, error, distance):
    """Standard deviation of a pressure component, bar, from random errors of the forces.

    P_ab = sum r_a f_b / V. Errors of relative size error in forces of RMS size force, at positions
    spread evenly over distance: sqrt(N) * (distance / sqrt(12)) * (error * force / sqrt(3)) / V.
    """
    return np.sqrt(system.atoms) * distance * error * force / 6 / system.volume * BAR


def pressure_limits(system, force, exact, force_limit=WATER_LIMIT):
    """Largest errors of the components of the pressure tensor and of the pressure, bar.

    Components: three standard deviations of the force error that is allowed, over the box. For the
    trace, P = E / 3V + ... leaves the error of the energy; mixed precision's rounding, 1e-5; and
    the part that constraints pass on, over the length of a bond, 0.1 nm.
    """
    edge = system.volume ** (1 / 3)
    component = 3 * pressure_scatter(system, force, force_limit, edge)
    rounding = pressure_scatter(system, force, 1e-5, edge)
    bonds = pressure_scatter(system, force, force_limit, 0.1)
    trace = energy_limit(system, exact) / (3 * system.volume) * BAR
    return component, trace + 3 * rounding + 3 * bonds
