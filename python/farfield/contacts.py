# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Charges at one place: their energy is infinite, and what the library computes instead has no meaning."""

import itertools

import numpy as np
from numpy.typing import NDArray


def _of_equal_rows(rows: NDArray) -> NDArray:
    """Indices of rows that have an equal one, and of few others: by one number of each, which is soon sorted.

    No product of matrices: equal rows must have equal numbers, bit by bit.
    """
    numbers = rows[:, 0] + np.sqrt(2) * rows[:, 1] + np.sqrt(3) * rows[:, 2]
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[which] > 1)


def groups_at_one_place(x: NDArray, box: NDArray, periodic: int, distance: float) -> list[NDArray]:
    """Particles that are nearer to each other than some distance, nm, or little more, in each direction.

    Args:
        x: positions, nm, [n, 3].
        box: rows, nm, lower triangular, [3, 3].
        periodic: how many of the rows have images.
    """
    cell = np.eye(3)
    cell[:periodic] = box[:periodic]
    cells = np.round(np.diag(cell) / distance)
    groups = []
    for shift in (0.0, 0.3):  # what lies on the border of a cell of one grid does not on that of the other
        places = np.round(np.asarray(x, dtype=float) @ np.linalg.inv(cell) * cells + shift)
        places[:, :periodic] %= cells[:periodic]
        near = _of_equal_rows(places)
        _, which, counts = np.unique(places[near], axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.cumsum(counts)
        groups += [near[order[end - count : end]] for end, count in zip(ends, counts) if count > 1]
    return groups


def pair_at_one_place(x, box, periodic, distance, matters, excluded):
    """Two particles at one place, or None, as groups_at_one_place().

    Args:
        matters: function of two particles: whether there is something between them.
        excluded: function of two particles.
    """
    for group in groups_at_one_place(x, box, periodic, distance):
        for i, j in itertools.combinations(group.tolist(), 2):
            if matters(i, j) and not excluded(i, j):
                return i, j
    return None
