# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the fastest settings of FMM and of PME that reach an accuracy: "farfield tune FILE.tpr"."""
