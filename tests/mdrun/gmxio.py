# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reading and writing of the GROMACS files that the tests need, with numpy only.

Units are those of GROMACS: nm, ps, kJ/mol.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyedr

# Boxes are on a grid of 2^-16 nm, positions halfway between its points: exact in single and in
# double precision alike (up to 128 nm), so that a mixed-precision and a double-precision gmx see the
# same coordinates. No position is on an edge of the box, where it would be in the first or in the
# last cell, depending on which periodic image GROMACS has chosen.
POSITION_GRID = 2.0**-16


@dataclass
class Frame:
    """One frame of a trr file; x, v and f are None where the frame has none."""

    step: int
    time: float
    box: np.ndarray
    x: np.ndarray | None
    v: np.ndarray | None
    f: np.ndarray | None
    is_double: bool


def read_trr(path):
    """Returns all frames of a trr file, arrays in double precision."""
    content = Path(path).read_bytes()
    frames = []
    at = 0

    def integers(count):
        nonlocal at
        values = struct.unpack_from(f">{count}i", content, at)
        at += 4 * count
        return values

    def vectors(size, real):
        nonlocal at
        values = np.frombuffer(content, dtype=real, count=size // real.itemsize, offset=at)
        at += size
        return values.astype(np.float64).reshape(-1, 3) if size else None

    while at < len(content):
        magic, _, length = integers(3)
        if magic != 1993:
            raise ValueError(f"{path}: not a trr file, or a damaged one, at byte {at}")
        at += (length + 3) // 4 * 4
        sizes = integers(10)
        (atom_count,) = integers(1)
        box_size, x_size, v_size, f_size = sizes[2], sizes[7], sizes[8], sizes[9]
        if box_size:
            width = box_size // 9
        else:
            width = max(x_size, v_size, f_size) // (3 * atom_count)
        real = np.dtype(">f4") if width == 4 else np.dtype(">f8")
        step, _ = integers(2)
        time = float(np.frombuffer(content, dtype=real, count=1, offset=at)[0])
        at += 2 * width
        box = vectors(box_size, real)
        at += sizes[3] + sizes[4]
        x = vectors(x_size, real)
        v = vectors(v_size, real)
        f = vectors(f_size, real)
        frames.append(Frame(step, time, box, x, v, f, width == 8))
    return frames


def read_edr(path):
    """Returns {term: array over frames} of an edr file; "Time" is one of the terms."""
    return pyedr.edr_to_dict(str(path))


@dataclass
class Structure:
    """A gro file: names are kept as text, positions as numbers."""

    title: str
    residue_numbers: list
    residues: list
    atoms: list
    x: np.ndarray
    box: np.ndarray


def read_gro(path):
    """Reads a gro file of any number of decimals; velocities are ignored."""
    lines = Path(path).read_text().splitlines()
    count = int(lines[1])
    rows = lines[2 : 2 + count]
    dots = [i for i, c in enumerate(rows[0][20:]) if c == "."]
    width = dots[1] - dots[0]
    x = [[float(r[20 + k * width : 20 + (k + 1) * width]) for k in range(3)] for r in rows]
    b = [float(w) for w in lines[2 + count].split()]
    b += [0.0] * (9 - len(b))
    box = np.array([[b[0], b[3], b[4]], [b[5], b[1], b[6]], [b[7], b[8], b[2]]])
    return Structure(
        lines[0],
        [int(r[0:5]) for r in rows],
        [r[5:10] for r in rows],
        [r[10:15] for r in rows],
        np.array(x),
        box,
    )


def write_gro(path, s, decimals=12):
    """Writes a gro file; 12 decimals keep, in single precision, what snap_to_grid() made."""
    width = decimals + 5
    with open(path, "w") as out:
        out.write(f"{s.title}\n{len(s.x):5d}\n")
        for i, (number, residue, atom, r) in enumerate(
            zip(s.residue_numbers, s.residues, s.atoms, s.x)
        ):
            out.write(f"{number % 100000:5d}{residue:<5}{atom:>5}{(i + 1) % 100000:5d}")
            out.write("".join(f"{c:{width}.{decimals}f}" for c in r) + "\n")
        b = s.box
        entries = [b[0, 0], b[1, 1], b[2, 2]]
        off_diagonal = [b[0, 1], b[0, 2], b[1, 0], b[1, 2], b[2, 0], b[2, 1]]
        if any(off_diagonal):
            entries += off_diagonal
        out.write(" ".join(f"{e:.{decimals}f}" for e in entries) + "\n")


def snap_to_grid(s):
    """Rounds positions and box as POSITION_GRID says."""
    s.x = (np.floor(s.x / POSITION_GRID) + 0.5) * POSITION_GRID
    s.box = np.round(s.box / POSITION_GRID) * POSITION_GRID
    return s
