# SPDX-License-Identifier: LGPL-2.1-or-later
"""One way to run gmx and to read what it leaves, for the tests, the benchmarks and the example.

program, environment, mdp, log, trr, gro and energies need nothing but Python. simulation, systems,
reference and limits, for the tests, need the packages of regressiontests/requirements.txt.
Units are those of GROMACS: nm, ps, kJ/mol.
"""
