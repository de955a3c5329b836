# SPDX-License-Identifier: LGPL-2.1-or-later
"""Systems and runs for the tests, the benchmarks and the example, by farfield.gromacs.

environment, mdp, gro and energies need nothing but Python. simulation, systems, reference and
limits, for the tests, need the packages of regressiontests/requirements.txt.
Units are those of GROMACS: nm, ps, kJ/mol.
"""
