# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors of forces, energies and pressures at the starting structure."""

from dataclasses import dataclass

import numpy as np
import pyedr

from ..tune import settings
from ..tune.measure import POSITIONS

STEPS = range(POSITIONS)
PRESSURES = [f"Pres-{a}{b}" for a in "XYZ" for b in "XYZ"]


@dataclass
class Errors:
    """Of one kind of electrostatics; vectors relative to the RMS Coulomb force."""

    vectors: np.ndarray  # [positions of the grid, n, 3]
    coulomb: float  # difference of the Coulomb energy to the reference, kJ/mol per atom
    pressure: np.ndarray  # difference of the pressure tensor, bar, [3, 3]
    to_faces: np.ndarray | None = None  # [n], distance of particles to a face of their cell, in cells
    log: str = ""

    @property
    def lengths(self):
        """Of all particles and positions of the grid."""
        return np.sqrt((self.vectors**2).sum(axis=-1)).ravel()

    @property
    def rms(self):
        return float(np.sqrt(np.mean(self.lengths**2)))

    @property
    def components(self):
        """RMS along x, y and z."""
        return np.sqrt(np.mean(self.vectors**2, axis=(0, 1)))


def coulomb_energy(terms):
    """Coulomb energy without 1-4 pairs of a dictionary of energy terms, kJ/mol, per frame."""
    names = ("Coulomb (SR)", "Coul. recip.")
    return sum(np.array(terms[name], dtype=float) for name in names if name in terms)


def pressure_tensor(terms):
    """Of the first frame, bar."""
    return np.array([terms[name][0] for name in PRESSURES], dtype=float).reshape(3, 3)


def distance_to_faces(x, box, cells):
    """Distance to the nearest face of a leaf cell, in cells, of positions [n, 3] at step 0.

    cells: the integer matrix H, rows; the box is H times the vectors of a cell.
    """
    inverse = np.linalg.inv(np.linalg.solve(cells.astype(float), box))
    inside = (x @ inverse) % 1.0
    return np.minimum(inside, 1.0 - inside).min(axis=1)


def _as_matrix(text):
    return np.array([[int(word) for word in row.split()] for row in text.split("/")])


def vectors(flat):
    return np.array(flat, dtype=float).reshape(-1, 3)


class References:
    """Converged forces, energies and pressures at the starting structure of a run input file."""

    def __init__(self, run_input, steps):
        self.run_input = run_input
        self.forces, self.scale, self.terms = [], 0.0, None
        for step in steps:
            frame, self.scale = run_input.reference(step=step)
            self.forces.append(vectors(frame.f))
            # Of the first step, as those of settings: kinetic energies may differ between steps
            if self.terms is None:
                self.terms = pyedr.edr_to_dict(str(run_input.folder / "reference.edr"))

    def errors(self, changes, steps, name="error"):
        """Errors of a setting at the same steps; name: of the files."""
        found, terms, to_faces, text = [], None, None, ""
        for step, exact in zip(steps, self.forces):
            frame, path = self.run_input.single_point(name, changes, step)
            found.append((vectors(frame.f) - exact) / self.scale)
            if not text:
                text = path.read_text(errors="replace")
                terms = pyedr.edr_to_dict(str(self.run_input.folder / f"{name}.edr"))
                if changes["coulombtype"] == "FMM" and step == 0:
                    cells = _as_matrix(settings.chosen(text).cells)
                    to_faces = distance_to_faces(
                        vectors(frame.x), np.array(frame.box).reshape(3, 3), cells
                    )
        atoms = len(found[0])
        energy = (coulomb_energy(terms)[0] - coulomb_energy(self.terms)[0]) / atoms
        pressure = pressure_tensor(terms) - pressure_tensor(self.terms)
        return Errors(np.array(found), float(energy), pressure, to_faces, text)
