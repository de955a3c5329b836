# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the error of the forces and the speed of settings."""

import math
from operator import attrgetter

from ..gromacs.program import GmxError

# So many positions of the grid of cells, those of as many steps, show the error of FMM
POSITIONS = 4
# Steps of the run that tells how long a step takes
TRIAL_STEPS = 100


def rms_difference(a, b):
    """RMS over particles of the length of a - b, of flat arrays [3 n]."""
    return math.dist(a, b) / math.sqrt(len(a) / 3)


class Measure:
    """Errors and speeds of settings of one run input file.

    run_input: farfield.gromacs.tpr.RunInput; first_step: its init-step; dt: its time step, ps;
    seconds: length of a timed run.
    """

    def __init__(self, run_input, first_step, dt, seconds):
        self.input = run_input
        self.dt = dt
        self.seconds = seconds
        self.first_step = first_step
        self._references = {}
        self._steps = None

    def reference(self, step):
        """Converged forces at a step, and the RMS Coulomb force, kJ/mol/nm."""
        if step not in self._references:
            frame, rms_coulomb = self.input.reference(step=step)
            if not rms_coulomb > 0:
                raise GmxError("there are no Coulomb forces in this system, nothing is to be tuned")
            self._references[step] = frame.f, rms_coulomb
        return self._references[step]

    def error(self, changes):
        """Error of the forces relative to the RMS Coulomb force, and the text of the log.

        That of FMM depends on where its cells are, which the number of the step decides: it is the
        largest of several.
        """
        worst, text = 0.0, ""
        positions = POSITIONS if changes["coulombtype"] == "FMM" else 1
        for step in range(self.first_step, self.first_step + positions):
            frame, path = self.input.single_point("error", changes, step)
            exact, rms_coulomb = self.reference(step)
            worst = max(worst, rms_difference(frame.f, exact) / rms_coulomb)
            text = text or path.read_text(errors="replace")
        return worst, text

    def time(self, setting):
        """Times a setting once more; returns the speed, ns/day."""
        self.input.changed("speed", setting.mdp)
        if self._steps is None:
            trial = self.input.speed("speed", TRIAL_STEPS)
            seconds_per_step = 86.4 * self.dt / trial
            self._steps = max(TRIAL_STEPS, round(self.seconds / seconds_per_step / 10) * 10)
        setting.speeds.append(self.input.speed("speed", self._steps))
        return setting.speeds[-1]

    def time_in_turn(self, candidates, rounds, on_round=lambda setting: None):
        """Times all settings in turn, so that a change of the machine's speed meets all of them."""
        for _ in range(rounds):
            for setting in candidates:
                self.time(setting)
                on_round(setting)


def fastest(candidates):
    """The setting with the highest speed."""
    return max(candidates, key=attrgetter("speed"))
