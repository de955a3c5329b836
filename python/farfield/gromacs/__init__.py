# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs gmx and reads what it leaves.

program, log, mdp, trr and tpr need nothing but Python. Units are those of GROMACS: nm, ps, kJ/mol.
"""
