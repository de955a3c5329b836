# SPDX-License-Identifier: LGPL-2.1-or-later
"""The fastest setting of FMM that reaches an accuracy."""

from ..gromacs.program import GmxError
from . import settings
from .measure import fastest

ENGINES = ("fft", "hierarchy")
RANGES = (1, 2)
# Ratio of neighbouring cell sizes
STEP = 1.12
MAX_STEPS = 8
# Starts, and the next cell size, are followed if they are at least so fast as the best
WORTH_STARTING, WORTH_FOLLOWING = 0.75, 0.95
# Cell sizes of an exhaustive search, nm
SMALLEST, LARGEST = 0.3, 1.6


class FmmSearch:
    """Settings of FMM that reach an accuracy, each timed once.

    measure: farfield.tune.measure.Measure; accuracy: wanted error of the forces, relative to the
    RMS Coulomb force; say: takes lines of progress.
    """

    def __init__(self, measure, accuracy, say):
        self.measure = measure
        self.accuracy = accuracy
        self.say = say
        self.found = {}  # {(range, engine, cells): Setting, or None where the accuracy is missed}

    def candidate(self, direct_range, m2l, cell_size=0.0):
        """The setting with the lowest order that suffices for cells of about this size, or None."""
        open_order = settings.fmm(self.accuracy, direct_range, m2l, cell_size)
        try:
            error, log = self.measure.error(open_order)
        except GmxError:
            if cell_size == 0.0 and direct_range == RANGES[0] and m2l == ENGINES[0]:
                raise  # what the library refuses of the simplest setting, it refuses of all
            self.say(f"FMM with range {direct_range}, {m2l}, cells of {cell_size:.2f} nm: refused")
            return None
        order, size, cells, _ = settings.chosen(log)
        key = (direct_range, m2l, cells)
        if key in self.found:
            return self.found[key]
        setting = self.lowest_order(direct_range, m2l, size, order, error)
        self.found[key] = setting
        if setting:
            self.measure.time(setting)
            self.say(f"FMM {setting.describe()}: {setting.speed:.1f} ns/day, error {setting.error:.1e}")
        return setting

    def lowest_order(self, direct_range, m2l, size, order, error):
        """The lowest order that suffices, from that which the library has taken; or None.

        The library takes one by what it can tell of the error, here it is known.
        """
        best = None
        step = -1 if error <= self.accuracy else 1
        while True:
            if error <= self.accuracy:
                lines = settings.fmm(self.accuracy, direct_range, m2l, size, order)
                best = settings.Setting("FMM", lines, error)
            order += step
            if (error <= self.accuracy) != (step < 0) or not 0 <= order <= settings.MAX_ORDER:
                return best
            error, _ = self.measure.error(
                settings.fmm(self.accuracy, direct_range, m2l, size, order)
            )

    def climb(self, start):
        """Follows smaller and larger cells from a setting while they are not clearly slower."""
        direct_range, m2l = (start.mdp[f"fmm-farfield-{key}"] for key in ("direct-range", "m2l"))
        for factor in (1 / STEP, STEP):
            size, best = start.mdp["fmm-farfield-cell-size"], start
            for _ in range(MAX_STEPS):
                size *= factor
                setting = self.candidate(direct_range, m2l, size)
                if setting is None or setting.speed < WORTH_FOLLOWING * best.speed:
                    break
                best = fastest([best, setting])

    def all_that_suffice(self):
        return [setting for setting in self.found.values() if setting]

    def run(self):
        """Starts from what the library takes for each engine and range; returns all candidates."""
        starts = [self.candidate(ws, m2l) for ws in RANGES for m2l in ENGINES]
        starts = [setting for setting in starts if setting]
        if starts:
            top = fastest(starts).speed
            for setting in starts:
                if setting.speed >= WORTH_STARTING * top:
                    self.climb(setting)
        return self.all_that_suffice()

    def run_exhaustively(self):
        """All cell sizes for each engine and range; returns all candidates."""
        for direct_range in RANGES:
            for m2l in ENGINES:
                size = SMALLEST
                while size <= LARGEST:
                    self.candidate(direct_range, m2l, size)
                    size *= STEP
        return self.all_that_suffice()
