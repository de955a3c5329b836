# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads and writes .gro files of any number of decimals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Structure:
    """Names are kept as text, in the width of their columns; positions [n][3] and box [3][3]."""

    title: str
    residue_numbers: Sequence[int]
    residues: Sequence[str]
    atoms: Sequence[str]
    x: Sequence[Sequence[float]]
    box: Sequence[Sequence[float]]


def atom_count(path):
    with open(path, encoding="utf-8") as file:
        next(file)
        return int(next(file))


def read(path):
    """A structure with lists of numbers; velocities are ignored."""
    lines = Path(path).read_text().splitlines()
    count = int(lines[1])
    rows = lines[2 : 2 + count]
    dots = [i for i, c in enumerate(rows[0][20:]) if c == "."]
    width = dots[1] - dots[0]
    x = [[float(r[20 + k * width : 20 + (k + 1) * width]) for k in range(3)] for r in rows]
    b = [float(w) for w in lines[2 + count].split()]
    b += [0.0] * (9 - len(b))
    return Structure(
        lines[0],
        [int(r[0:5]) for r in rows],
        [r[5:10] for r in rows],
        [r[10:15] for r in rows],
        x,
        [[b[0], b[3], b[4]], [b[5], b[1], b[6]], [b[7], b[8], b[2]]],
    )


def write(path, s, decimals):
    """Writes a structure; so many decimals of nm in positions and box."""
    width = decimals + 5
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"{s.title}\n{len(s.x):5d}\n")
        for i, (number, residue, atom, r) in enumerate(
            zip(s.residue_numbers, s.residues, s.atoms, s.x)
        ):
            out.write(f"{number % 100000:5d}{residue:<5}{atom:>5}{(i + 1) % 100000:5d}")
            out.write("".join(f"{c:{width}.{decimals}f}" for c in r) + "\n")
        b = s.box
        entries = [b[0][0], b[1][1], b[2][2]]
        off_diagonal = [b[0][1], b[0][2], b[1][0], b[1][2], b[2][0], b[2][1]]
        if any(off_diagonal):
            entries += off_diagonal
        out.write(" ".join(f"{e:.{decimals}f}" for e in entries) + "\n")
