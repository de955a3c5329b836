# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings of PME that reach an accuracy, to compare FMM with at equal error."""

import math

from ..gromacs.program import GmxError
from . import settings

# Cut-offs, in those of Lennard-Jones interactions
CUTOFFS = (1.0, 1.15, 1.3)
# The splitting between short and long range, from the cheapest
TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7)
# Error of the short range that leaves room for that of the grid, in that wanted
SHARE_OF_SHORT_RANGE = 0.8
FINE_SPACING, FINE_ORDER = 0.06, 8
SPACINGS = tuple(0.24 * 0.94**i for i in range(28))


class PmeSearch:
    """Settings of PME that reach an accuracy.

    measure: farfield.tune.measure.Measure; accuracy: as for FmmSearch; cutoff: that of
    Lennard-Jones interactions, nm; orders: of interpolation; say: takes lines of progress.
    """

    def __init__(self, measure, accuracy, cutoff, orders, say):
        self.measure = measure
        self.accuracy = accuracy
        self.cutoff = cutoff
        self.orders = orders
        self.say = say

    def error(self, *parameters):
        """That of a setting; infinite if the box or the run input file does not allow it."""
        try:
            return self.measure.error(settings.pme(*parameters))[0]
        except GmxError:
            return math.inf

    def tolerances(self, cutoff):
        """The two largest tolerances whose short range is accurate enough at a cut-off."""
        target = SHARE_OF_SHORT_RANGE * self.accuracy
        for i, rtol in enumerate(TOLERANCES):
            if self.error(cutoff, FINE_SPACING, FINE_ORDER, rtol) <= target:
                return TOLERANCES[i : i + 2]
        return ()

    def coarsest(self, cutoff, order, rtol):
        """The setting with the coarsest grid that reaches the accuracy, or None.

        The error falls with the spacing but for what grids of good sizes round: bisection.
        """
        low, high = 0, len(SPACINGS) - 1
        error = self.error(cutoff, SPACINGS[high], order, rtol)
        if error > self.accuracy:
            return None
        while low < high:
            middle = (low + high) // 2
            middle_error = self.error(cutoff, SPACINGS[middle], order, rtol)
            if middle_error <= self.accuracy:
                high, error = middle, middle_error
            else:
                low = middle + 1
        return settings.Setting("PME", settings.pme(cutoff, SPACINGS[high], order, rtol), error)

    def candidates(self):
        """Settings that suffice."""
        for factor in CUTOFFS:
            cutoff = round(self.cutoff * factor, 3)
            tolerances = self.tolerances(cutoff)
            if not tolerances:
                self.say(f"PME with a cut-off of {cutoff:g} nm: refused, or not accurate enough")
            for rtol in tolerances:
                for order in self.orders:
                    setting = self.coarsest(cutoff, order, rtol)
                    if setting:
                        yield setting

    def run(self):
        """Returns candidates, each timed once."""
        found = []
        for setting in self.candidates():
            self.measure.time(setting)
            self.say(f"PME {setting.describe()}: {setting.speed:.1f} ns/day, error {setting.error:.1e}")
            found.append(setting)
        return found
