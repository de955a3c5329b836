# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings of electrostatics, and what was measured of them."""

import math
import re
import statistics
from dataclasses import dataclass, field
from typing import NamedTuple

from ..gromacs.mdp import FMM

# The highest multipole order of the library
MAX_ORDER = 20


@dataclass
class Setting:
    """One setting: the lines of an .mdp file that make it, and what was measured of it."""

    name: str
    mdp: dict
    error: float = math.nan  # of the forces, relative to the RMS Coulomb force
    speeds: list = field(default_factory=list)  # ns/day, one per round

    @property
    def is_fmm(self):
        return self.mdp["coulombtype"] == "FMM"

    @property
    def speed(self):
        """Median, ns/day; 0 before it was timed."""
        return statistics.median(self.speeds) if self.speeds else 0.0

    @property
    def spread(self):
        """Half the distance of the extremes, ns/day."""
        return (max(self.speeds) - min(self.speeds)) / 2 if self.speeds else 0.0

    def describe(self):
        """One line for tables."""
        value = self.mdp.get
        if self.is_fmm:
            return (
                f"order {value('fmm-farfield-order')}, range {value('fmm-farfield-direct-range')}, "
                f"cells {value('fmm-farfield-cell-size'):.3f} nm, {value('fmm-farfield-m2l')}"
            )
        if "fourierspacing" not in self.mdp:
            return "grid and cut-off of the file"
        return (
            f"cut-off {value('rcoulomb'):.3g} nm, spacing {value('fourierspacing'):.3g} nm, "
            f"order {value('pme-order')}, rtol {value('ewald-rtol'):.0e}"
        )


def fmm(accuracy, direct_range, m2l, cell_size=0.0, order=-1):
    """The .mdp lines of a setting of FMM; what is 0 or -1 is left to the library.

    The library times nothing then: that is done here.
    """
    untimed = {"fmm-farfield-tune": "no"} if order < 0 or cell_size == 0 else {}
    return {
        **FMM,
        "fmm-farfield-accuracy": accuracy,
        "fmm-farfield-order": order,
        "fmm-farfield-direct-range": direct_range,
        "fmm-farfield-cell-size": cell_size,
        "fmm-farfield-m2l": m2l,
        **untimed,
    }


def pme(cutoff, spacing, order, rtol):
    """The .mdp lines of a setting of PME."""
    return {
        "coulombtype": "PME",
        "rcoulomb": cutoff,
        "fourierspacing": spacing,
        "pme-order": order,
        "ewald-rtol": rtol,
    }


class Chosen(NamedTuple):
    """What the library chose."""

    order: int
    size: float  # of the cells, nm
    cells: str  # their matrix
    direct_range: int


def chosen(log):
    """What the library chose, from the text of a log."""
    patterns = {
        "order": r"multipole order\s+(\d+)",
        "size": r"cell size (\S+) nm",
        "cells": r"H = \(([^)]*)\)",
        "direct_range": r"direct range \(ws\)\s+(\d+)",
    }
    values = []
    for name, kind in Chosen.__annotations__.items():
        found = re.search(patterns[name], log)
        if not found:
            raise ValueError("the log does not say which cells FMM uses")
        values.append(kind(found[1]))
    return Chosen(*values)
