# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drift of the total energy at constant energy, against the multipole order and the time step."""

from dataclasses import dataclass

import numpy as np

from ..gromacs.program import GmxError
from .lines import Line

KB = 0.0083144626  # kJ/mol/K


def per_ns(slope, temperature):
    """kT/ns of a slope in kJ/mol/ps, for atoms of a temperature, K; numbers or arrays."""
    return slope * 1000 / (KB * temperature)


def fitted(times, energies):
    """Slope of energies, by least squares, and their RMS scatter about the line."""
    line = np.polyfit(times, energies, 1)
    return float(line[0]), float(np.std(energies - np.polyval(line, times)))


def of_order(base, order, cell_size, direct_range=1):
    """The lines of base, .mdp settings of FMM, with an order, whatever its error, and cells (nm) of all orders."""
    return {
        **base,
        "fmm-farfield-order": order,
        "fmm-farfield-cell-size": cell_size,
        "fmm-farfield-direct-range": direct_range,
    }


@dataclass
class Row:
    """FMM of one order beside PME on one run input file."""

    order: int
    error: float  # of the forces, RMS, relative
    line: Line
    judged: bool  # whether the order is as accurate as was asked for

    @property
    def verdict(self):
        return self.line.verdict if self.judged else "not asked for"

    def record(self):
        return {"order": self.order, "force_error": self.error, **self.line.record(), "verdict": self.verdict}


def is_at_constant_energy(parameters):
    """Whether neither thermostat nor barostat exchanges energy with the system."""
    return parameters["integrator"].startswith("md") and all(
        parameters.get(coupling, "no").lower() == "no" for coupling in ("tcoupl", "pcoupl")
    )


def check(comparisons, orders):
    """Raises GmxError where orders are asked for twice, or no system is at constant energy."""
    if len(set(orders)) < len(orders):
        raise GmxError(f"--orders {' '.join(map(str, orders))} has an order twice")
    if orders and not any(is_at_constant_energy(c.parameters) for c in comparisons):
        raise GmxError(
            "--orders tells how the energy drifts at constant energy: no run input file has tcoupl = no and pcoupl = no"
        )


def row(order, error, drifts, accuracy):
    """A row from the drifts of both methods, {"PME": Estimate, "FMM": Estimate}."""
    line = Line(f"drift, order {order}", "kT/ns per atom", drifts["PME"], drifts["FMM"], "drift")
    return Row(order, error, line, error <= accuracy)
