# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lines of the report: one quantity with both methods, how far they are apart, the bound, the verdict."""

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
        f"Energies and pressures: beside {series.TOLERATED:g} standard errors they may differ by what they differ by at "
        "the starting structure, since that stays in averages; the table of errors there says which method is off.",
    ),
    "drift": (
        "|FMM|",
        "Drifts: the size of FMM's is at most that of PME's and "
        f"{series.TOLERATED:g} standard errors of the difference, since it is the size that spoils a run. Errors of "
        "opposite signs cancel in it, and a line may pass though the methods differ by many standard errors: their "
        "number and sign tell.",
    ),
}


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
        chance = series.TOLERATED * self.difference.error
        return chance + (abs(self.pme.value) if self.kind == "drift" else self.known)

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
        return "within" if self.passes else "beyond"

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
            "verdict": self.verdict,
        }
