# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures and tables from the JSON files of the benchmarks; see __main__.py for the command.

cases reads the files, floors knows what each kernel has to do at least, drawing holds the style of
all figures. m2l, evaluations, near_field, accuracy, mdrun, energy and points have those of one
benchmark each.

Figure numbers in titles of functions are those of Kohnke2021 (docs/references.md), which has the
same figures for its own code.
"""
