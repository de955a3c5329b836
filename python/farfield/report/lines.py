# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lines of the report: one quantity with both methods, how far they are apart, the bound, the verdict."""

import math
import re
from dataclasses import dataclass

from . import series

# What the bound of each kind of line is on, and why it is what it is
BOUNDS = {
    "force error": (
        "FMM",
        "Errors of forces: that of FMM is at most what was asked of it. They are measured at one structure, "
        "so they have no standard error, and PME, with the settings of the file, has no bound.",
    ),
    "average": (
        "|FMM - PME|",
        f"Averages: the two differ by at most {series.TOLERATED:g} standard errors of the difference, which chance "
        "alone exceeds in one of about a thousand lines.",
    ),
    "energy": (
        "|FMM - PME|",
        f"Energies and pressures: beside {series.TOLERATED:g} standard errors they may differ by what they differ by "
        "at the starting structure, since that stays in averages; the table of errors there says which method is off.",
    ),
    "drift": (
        "|FMM|",
        "Drifts: the size of FMM's is at most that of PME's and "
        f"{series.TOLERATED:g} standard errors of the difference, since it is the size that spoils a run. Errors of "
        "opposite signs cancel in it, and a line may pass though the methods differ by many standard errors: their "
        "number and sign tell.",
    ),
}

# The difference of a quantity that would matter: pattern of titles, the first counts; so much, or such a share of
# the value with PME, whichever is more; in words
MATTERS = (
    ("^drift", 0.2, 1.0, "of drifts 0.2 kT/ns per atom, or that of PME"),
    ("fluctuation", 0.0, 0.25, "of fluctuations and what follows from them a quarter"),
    ("^pressure", 50.0, 0.0, "of pressures 50 bar"),
    ("energy$", 0.1, 0.0, "of energies 0.1 kJ/mol per atom"),
    ("^diffusion|height$", 0.0, 0.1, "of diffusion and heights of peaks a tenth"),
    ("^box", 0.05, 0.01, "of the box 0.05 nm or 1 %"),
    ("", 0.0, 0.01, "of the rest 1 %"),
)
TOO_SHORT = "too short to tell"
WHY_TOO_SHORT = (
    f"“{TOO_SHORT[0].upper()}{TOO_SHORT[1:]}”: {series.TOLERATED:g} standard errors of the difference are more than "
    "what would matter, so that a line within its bound says nothing. "
    f"What would matter: {'; '.join(m[3] for m in MATTERS)}."
)


@dataclass
class Line:
    """One quantity with both methods, and what is demanded of it.

    kind: of BOUNDS; known: by which the methods differ on one structure (energies); wanted: the bound (errors
    of forces).
    """

    title: str
    unit: str
    pme: series.Estimate
    fmm: series.Estimate
    kind: str = "average"
    known: float = 0.0
    wanted: float = 0.0

    @property
    def difference(self):
        """FMM less PME."""
        return series.difference(self.fmm, self.pme)

    @property
    def sigmas(self):
        """The difference in its standard errors, with its sign; None of numbers that have none."""
        return self.difference.value / self.difference.error if self.difference.error > 0 else None

    @property
    def bound_on(self):
        return BOUNDS[self.kind][0]

    @property
    def bound(self):
        """The largest legal value of what bound_on names."""
        if self.kind == "force error":
            return self.wanted
        return self.chance + (abs(self.pme.value) if self.kind == "drift" else self.known)

    @property
    def chance(self):
        """By which the methods may differ by chance."""
        return series.TOLERATED * self.difference.error

    @property
    def matters(self):
        """The difference that would matter."""
        _, least, share, _ = next(row for row in MATTERS if re.search(row[0], self.title))
        return max(least, share * abs(self.pme.value))

    @property
    def longer(self):
        """How many times longer runs would tell, whose errors fall with the square root; at most 1: these do."""
        if not self.chance > 0:
            return 0.0
        return (self.chance / self.matters) ** 2 if self.matters > 0 else math.inf

    @property
    def passes(self):
        value = {
            "FMM": self.fmm.value,
            "|FMM|": abs(self.fmm.value),
            "|FMM - PME|": abs(self.difference.value),
        }
        return bool(value[self.bound_on] <= self.bound)

    @property
    def verdict(self):
        if not self.passes:
            return "beyond"
        return "within" if self.longer <= 1 else TOO_SHORT

    def record(self):
        """For the JSON file; values with their standard errors."""
        return {
            "title": self.title,
            "unit": self.unit,
            "kind": self.kind,
            **{
                name: [float(estimate.value), float(estimate.error)]
                for name, estimate in (("PME", self.pme), ("FMM", self.fmm), ("FMM - PME", self.difference))
            },
            "standard_errors_apart": None if self.sigmas is None else round(float(self.sigmas), 2),
            **({"known": float(self.known)} if self.kind == "energy" else {}),
            "bound_on": self.bound_on,
            "bound": float(self.bound),
            **({"matters": float(self.matters)} if self.kind != "force error" else {}),
            "verdict": self.verdict,
        }
