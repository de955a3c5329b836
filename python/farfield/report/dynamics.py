# SPDX-License-Identifier: LGPL-2.1-or-later
"""Averages over runs: energies, densities, structure and motion of water and of ions."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyedr

from ..gromacs import trr, xvg
from ..gromacs.machine import usable_cores
from ..gromacs.program import Gmx, gathered
from . import series
from .drift import KB, per_ns
from .forces import coulomb_energy

BAR = 16.6053906717  # kJ/mol/nm^3 (CODATA 2018)
DEBYE = 0.0208194  # e nm
COULOMB = 138.935458  # kJ/mol nm/e^2
WATERS = ("SOL", "HOH", "WAT", "TIP3", "TIP4")
OXYGEN = f"resname {' '.join(WATERS)} and name OW OH2 O"
WATER = f"resname {' '.join(WATERS)}"
# Selections whose pairs show the structure, where a system has both
PAIRS = {
    "oxygen of water": (OXYGEN, OXYGEN),
    "sodium and chloride": ("resname NA and name NA", "resname CL and name CL"),
}
TENSOR = ("xx", "yy", "zz", "xy", "xz", "yz")
# Averages of the energy file: title, unit, per atom
TERMS = {
    "Potential": ("potential energy", "kJ/mol per atom", True),
    "Temperature": ("temperature", "K", False),
    "Pressure": ("pressure", "bar", False),
    **{f"Pres-{ab.upper()}": (f"pressure, {ab}", "bar", False) for ab in TENSOR},
    "Density": ("density", "kg/m³", False),
}
# Of the box: a barostat that shears writes all elements of its vectors, others the diagonal
BOX = {
    **{f"Box-{a.upper()}": f"box, {a}" for a in "xyz"},
    **{f"Box-{ab.upper()}": f"box, {ab}" for ab in ("xx", "yy", "zz", "yx", "zx", "zy")},
}
# Lipids with one phosphorus each
PHOSPHORUS = "resname POPC POPE POPG POPS DPPC DOPC DMPC DLPC DSPC and name P"
AREA = 602.214076  # m/N in nm^2 mol/kJ


@dataclass
class Trajectory:
    """What a run left, and what it is a run of."""

    gmx: Gmx
    folder: Path
    name: str
    atoms: int
    temperature: float
    length: float  # ps
    interval: float  # of its frames, ps
    coupling: str  # pcoupltype, in small letters
    terms: dict = field(default_factory=dict, init=False)
    # What measure() sets
    averages: dict = field(default_factory=dict, init=False)
    curves: dict = field(default_factory=dict, init=False)
    of_water: dict = field(default_factory=dict, init=False)

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

    def measure(self):
        """Sets averages, {title and unit: Estimate}, curves, {title: g(r)}, and what is known of water."""
        lipids = self.count(PHOSPHORUS) if self.coupling == "semiisotropic" else 0
        self.averages = {**self.energies(), **of_box(self.terms, self.coupling, self.temperature, lipids)}
        self.curves = {
            title: self.rdf(*selections) for title, selections in PAIRS.items() if all(map(self.count, selections))
        }
        if self.count(OXYGEN):
            self.of_water["diffusion of water", "1e-5 cm²/s"] = self.diffusion(OXYGEN)
            if self.count(WATER) == self.atoms:
                title = "dielectric constant, from dipole fluctuations"
                self.of_water[title, ""] = self.dielectric_constant()

    def count(self, selection):
        """Number of atoms that are selected."""
        words = ("-s", f"{self.name}.tpr", "-select", selection, "-os", f"{self.name}-size.xvg")
        done = self.gmx.attempt("select", *words, folder=self.folder)
        if "never matches any atoms" in " ".join(done.text.split()):
            return 0
        done.ok()
        return int(float((self.folder / f"{self.name}-size.xvg").read_text().split()[-1]))

    def volume(self):
        """The mean of the run, nm^3."""
        if "Volume" in self.terms:
            return series.mean(self.terms["Volume"]).value
        frame = next(iter(trr.frames(self.folder / f"{self.name}.trr")))
        return abs(np.linalg.det(np.array(frame.box).reshape(3, 3)))

    def energies(self):
        """{title and unit: Estimate} of the energy file; what does not vary is left out."""
        found = {}
        for term, (title, unit, per_atom) in TERMS.items():
            if term in self.terms and np.ptp(self.terms[term]) > 0:
                values = np.array(self.terms[term]) / (self.atoms if per_atom else 1)
                found[title, unit] = series.mean(values)
        coulomb = coulomb_energy(self.terms) / self.atoms
        found["Coulomb energy", "kJ/mol per atom"] = series.mean(coulomb)
        if "Volume" in self.terms:
            fluctuation = series.fluctuation(self.terms["Volume"])
            factor = 1e5 / (BAR * KB * self.temperature * self.volume())
            title = "compressibility, from fluctuations of the volume"
            found[title, "1e-5/bar"] = series.Estimate(factor * fluctuation.value, factor * fluctuation.error)
        return found

    @property
    def conserved(self):
        """The conserved energy, kJ/mol; at constant energy the file has the total energy alone."""
        return np.array(self.terms.get("Conserved En.", self.terms["Total Energy"]), dtype=float)

    def drift(self):
        """Of the conserved energy, kT/ns per atom."""
        return series.slope(self.terms["Time"], per_ns(self.conserved / self.atoms, self.temperature))

    def of_blocks(self, command, *words):
        """The first two columns of what an analysis of each block writes; blocks go side by side."""

        def analyse(number, begin, end):
            output = f"{self.name}-{command}-{number}.xvg"
            self.gmx(command, *self.files, "-b", begin, "-e", end, *words, "-o", output, folder=self.folder)
            return list(xvg.columns(self.folder / output).values())[:2]

        with ThreadPoolExecutor(usable_cores()) as pool:
            return gathered(pool, [partial(analyse, i, *block) for i, block in enumerate(self.blocks())])

    def rdf(self, reference, selection):
        """Radii, nm, and g(r) of each block [series.BLOCKS, radii]."""
        words = ("-bin", 0.005, "-rmax", 0.9, "-ref", reference, "-sel", selection)
        columns = self.of_blocks("rdf", *words)
        return columns[0][0], np.array([values for _, values in columns])

    def diffusion(self, selection):
        """Of atoms, 1e-5 cm^2/s: mean square displacements over 10 to 60 % of each block, by Einstein."""
        columns = self.of_blocks("msd", "-sel", selection, "-trestart", f"{2 * self.interval:.6g}")
        values = []
        for (begin, end), (times, squares) in zip(self.blocks(), columns):
            fitted = (times >= 0.1 * (end - begin)) & (times <= 0.6 * (end - begin))
            slope = np.polyfit(times[fitted], squares[fitted], 1)[0]
            values.append(1000 * slope / 6)  # of nm^2/ps
        return series.of_blocks(values)

    def dielectric_constant(self):
        """1 + (<M^2> - <M>^2) / (3 eps0 V kT), with its error from blocks of the fluctuation."""
        self.gmx(
            "dipoles", *self.files, "-temp", self.temperature, "-o", f"{self.name}-dipole.xvg",
            "-eps", f"{self.name}-eps.xvg", "-a", f"{self.name}-aver.xvg", "-d", f"{self.name}-dist.xvg",
            folder=self.folder, answer="0\n",
        )  # fmt: skip
        columns = list(xvg.columns(self.folder / f"{self.name}-dipole.xvg").values())
        fluctuation = series.fluctuation(np.array(columns[1:4]).T * DEBYE)
        factor = 4 * np.pi * COULOMB / (3 * self.volume() * KB * self.temperature)
        return series.Estimate(1 + factor * fluctuation.value, factor * fluctuation.error)


def of_box(terms, coupling, temperature, lipids):
    """{title and unit: Estimate} of the elements of the box that vary, and of how much they do.

    Under isotropic coupling all vary as the volume, whose fluctuation Trajectory.energies() has. terms: of the
    energy file; coupling: pcoupltype; temperature: K; lipids: of both leaflets of a membrane.
    """
    found = {}
    varying = {title: np.array(terms[term]) for term, title in BOX.items() if term in terms and np.ptp(terms[term]) > 0}
    for title, values in varying.items():
        found[title, "nm"] = series.mean(values)
        if coupling != "isotropic":
            found[f"{title}: mean square fluctuation", "1e-6 nm²"] = series.fluctuation(1000 * values)
    if coupling == "semiisotropic" and {"box, x", "box, y"} <= varying.keys():
        area = varying["box, x"] * varying["box, y"]
        found["area of the box, xy", "nm²"] = series.mean(area)
        if lipids:
            found["area per lipid", "nm²"] = series.mean(2 * area / lipids)
        fluctuation = series.fluctuation(area)
        factor = AREA / (KB * temperature * area.mean())
        title = "compressibility of the area, from its fluctuations"
        found[title, "m/N"] = series.Estimate(factor * fluctuation.value, factor * fluctuation.error)
    return found


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
    kinds: the peak is not symmetric. None if a block has no pairs there: they are too few for an error.
    """
    mean = np.mean([rows.mean(axis=0) for _, rows in curves.values()], axis=0)
    radii = next(iter(curves.values()))[0]
    # Between contact and the second shell
    at = int(mean[: np.searchsorted(radii, 0.42)].argmax())
    near = slice(max(0, at - 3), at + 4)
    if not all((rows[:, near] > 0).any(axis=1).all() for _, rows in curves.values()):
        return None
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
