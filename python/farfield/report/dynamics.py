# SPDX-License-Identifier: LGPL-2.1-or-later
"""Averages over runs: energies, densities, structure and motion of water and of ions."""

from dataclasses import dataclass, field

import numpy as np
import pyedr

from ..gromacs import xvg
from . import series
from .forces import coulomb_energy

KB = 0.0083144626  # kJ/mol/K
BAR = 16.6053906717  # kJ/mol/nm^3 (CODATA 2018)
DEBYE = 0.0208194  # e nm
COULOMB = 138.935458  # kJ/mol nm/e^2
WATERS = ("SOL", "HOH", "WAT", "TIP3", "TIP4")
OXYGENS = "OW OH2 O"
# Averages of the energy file: title, unit, per atom
TERMS = {
    "Potential": ("potential energy", "kJ/mol per atom", True),
    "Temperature": ("temperature", "K", False),
    "Pressure": ("pressure", "bar", False),
    "Density": ("density", "kg/m³", False),
    "Box-X": ("box, x", "nm", False),
    "Box-Z": ("box, z", "nm", False),
}


@dataclass
class Line:
    """One quantity with both methods."""

    title: str
    unit: str
    pme: series.Estimate
    fmm: series.Estimate
    # Whether its size counts, and may be smaller with FMM
    is_error: bool = False

    @property
    def apart(self):
        """Standard errors between the two; of errors, by which that with FMM is larger."""
        if self.is_error:
            pme, fmm = (series.Estimate(abs(e.value), e.error) for e in (self.pme, self.fmm))
            return series.differ(pme, fmm) if fmm.value > pme.value else 0.0
        return series.differ(self.pme, self.fmm)

    @property
    def passes(self):
        return self.apart <= series.TOLERATED


@dataclass
class Trajectory:
    """What a run left, and what it is a run of."""

    gmx: object
    folder: object
    name: str
    atoms: int
    temperature: float
    length: float  # ps
    interval: float  # of its frames, ps
    terms: dict = field(default_factory=dict)

    def __post_init__(self):
        self.terms = pyedr.edr_to_dict(str(self.folder / f"{self.name}.edr"))

    @property
    def files(self):
        return ("-f", f"{self.name}.trr", "-s", f"{self.name}.tpr")

    def blocks(self):
        """Begin and end of parts of the run, ps, without its start."""
        begin = self.terms["Time"][0] + series.DISCARDED * self.length
        end = self.terms["Time"][-1]
        edges = np.linspace(begin, end, series.BLOCKS + 1)
        return list(zip(edges[:-1], edges[1:]))

    def averages(self):
        """{title and unit: Estimate} of the energy file; what does not vary is left out."""
        found = {}
        for term, (title, unit, per_atom) in TERMS.items():
            if term in self.terms and np.ptp(self.terms[term]) > 0:
                values = np.array(self.terms[term]) / (self.atoms if per_atom else 1)
                found[title, unit] = series.mean(values)
        coulomb = coulomb_energy(self.terms) / self.atoms
        found["Coulomb energy", "kJ/mol per atom"] = series.mean(coulomb)
        return found

    @property
    def conserved(self):
        """The conserved energy, kJ/mol; at constant energy the file has the total energy alone."""
        return np.array(self.terms.get("Conserved En.", self.terms["Total Energy"]), dtype=float)

    def drift(self):
        """Of the conserved energy, kT/ns per atom."""
        scale = 1000 / (KB * self.temperature * self.atoms)
        return series.slope(self.terms["Time"], self.conserved * scale)

    def rdf(self, reference, selection):
        """Radii, nm, and g(r) of each block [series.BLOCKS, radii]."""
        rows = []
        for begin, end in self.blocks():
            self.gmx(
                "rdf", *self.files, "-b", begin, "-e", end, "-bin", 0.005, "-rmax", 0.9,
                "-ref", reference, "-sel", selection, "-o", "rdf.xvg", folder=self.folder,
            )  # fmt: skip
            radii, values = list(xvg.columns(self.folder / "rdf.xvg").values())[:2]
            rows.append(values)
        return radii, np.array(rows)

    def diffusion(self, selection):
        """Of atoms, 1e-5 cm^2/s: mean square displacements over 10 to 60 % of each block, by Einstein."""
        values = []
        for begin, end in self.blocks():
            self.gmx(
                "msd", *self.files, "-b", begin, "-e", end, "-sel", selection, "-o", "msd.xvg",
                "-trestart", f"{2 * self.interval:.6g}", folder=self.folder,
            )  # fmt: skip
            times, squares = list(xvg.columns(self.folder / "msd.xvg").values())[:2]
            fitted = (times >= 0.1 * (end - begin)) & (times <= 0.6 * (end - begin))
            slope = np.polyfit(times[fitted], squares[fitted], 1)[0]
            values.append(1000 * slope / 6)  # of nm^2/ps
        return series.of_blocks(values)

    def dielectric_constant(self, volume):
        """1 + (<M^2> - <M>^2) / (3 eps0 V kT), with its error from blocks of the fluctuation."""
        self.gmx(
            "dipoles", *self.files, "-temp", self.temperature, "-o", "dipole.xvg", "-eps", "eps.xvg",
            "-a", "aver.xvg", "-d", "dist.xvg", folder=self.folder, answer="0\n",
        )  # fmt: skip
        columns = list(xvg.columns(self.folder / "dipole.xvg").values())
        moments = series.equilibrated(np.array(columns[1:4]).T) * DEBYE
        deviations = ((moments - moments.mean(axis=0)) ** 2).sum(axis=1)
        factor = 4 * np.pi * COULOMB / (3 * volume * KB * self.temperature)
        length = len(deviations) // series.BLOCKS
        parts = deviations[: length * series.BLOCKS].reshape(series.BLOCKS, length).mean(axis=1)
        fluctuation = series.of_blocks(parts)
        return series.Estimate(1 + factor * fluctuation.value, factor * fluctuation.error)


def duration(path):
    """Of the run that has written an energy file, ps; 0 if there is nothing in it yet."""
    try:
        times = pyedr.edr_to_dict(str(path))["Time"]
    except (EOFError, FileNotFoundError, KeyError):
        return 0.0
    return times[-1] - times[0] if len(times) else 0.0


def first_peak(curves):
    """Position, nm, and height of the first peak of g(r), with errors from its blocks, of each kind.

    curves: {kind: (radii, rows)}. A parabola through the points about the highest one, the same points for all
    kinds: the peak is not symmetric.
    """
    mean = np.mean([rows.mean(axis=0) for _, rows in curves.values()], axis=0)
    radii = next(iter(curves.values()))[0]
    # Between contact and the second shell
    at = int(mean[: np.searchsorted(radii, 0.42)].argmax())
    near = slice(max(0, at - 3), at + 4)
    found = {}
    for kind, (_, rows) in curves.items():
        positions, heights = [], []
        for row in rows:
            # Few pairs may leave no peak in a block
            a, b, c = np.polyfit(radii[near] - radii[at], row[near], 2)
            shift = -b / (2 * a) if a < 0 else 0.0
            positions.append(radii[at] + shift)
            heights.append(c + b * shift / 2)
        found[kind] = series.of_blocks(positions), series.of_blocks(heights)
    return found
