# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads .trr files, and compares the forces that they hold."""

import array
import math
import struct
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Frame:
    """One frame; arrays are flat, x0 y0 z0 x1 ..., or None where the frame has none."""

    step: int
    time: float
    is_double: bool
    box: array.array | None
    x: array.array | None
    v: array.array | None
    f: array.array | None


def _reals(content, is_double):
    """Big-endian reals in this machine's order; None for none."""
    if not content:
        return None
    values = array.array("d" if is_double else "f", content)
    if sys.byteorder == "little":
        values.byteswap()
    return values


def frames(path):
    """All frames of a file, one by one.

    A frame is a header of big-endian integers (XDR) that gives the size of each block in bytes,
    then the blocks.
    """
    content = Path(path).read_bytes()
    at = 0

    def integers(count):
        nonlocal at
        at += 4 * count
        return struct.unpack_from(f">{count}i", content, at - 4 * count)

    def block(size):
        nonlocal at
        at += size
        return content[at - size : at]

    while at < len(content):
        magic, _, length = integers(3)
        if magic != 1993:
            raise ValueError(f"{path}: not a trr file, or a damaged one, at byte {at}")
        block((length + 3) // 4 * 4)
        input_record, energies, box, virial, pressure, topology, symbols, x, v, f = integers(10)
        atoms, step, _ = integers(3)
        # The precision shows in the size of any block that is present.
        is_double = (box // 9 if box else max(x, v, f) // (3 * atoms)) == 8
        time = _reals(block(16 if is_double else 8), is_double)[0]
        block(input_record + energies)
        box = _reals(block(box), is_double)
        block(virial + pressure + topology + symbols)
        vectors = [_reals(block(size), is_double) for size in (x, v, f)]
        yield Frame(step, time, is_double, box, *vectors)


def forces(path):
    """The forces of the last frame that has some, kJ/mol/nm, as a flat array."""
    found = None
    for frame in frames(path):
        found = frame.f or found
    if found is None:
        raise ValueError(f"{path} holds no forces")
    return found


def relative_rms(values, reference):
    """sqrt(sum |a - b|^2 / sum |b|^2) of two flat sequences."""
    if len(values) != len(reference):
        raise ValueError("the numbers of atoms differ")
    return math.dist(values, reference) / math.hypot(*reference)
