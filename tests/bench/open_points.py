# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images for the benchmarks of the library, sums over all pairs, and errors."""

import itertools

import numpy as np

KINDS = ("cube", "clusters")
THIN_KINDS = ("sheet", "line")
SEED = 5


def points(kind, count, random):
    """[n, 3] and charges of both signs, [n]: 100 points per nm^3 of a cube, nm^2 of a sheet, nm of a line.

    Single precision has all of them.
    """
    edge = (count / 100) ** (1 / 3)
    if kind == "cube":
        x = random.random((count, 3)) * edge
    elif kind == "clusters":
        # Gaussian clusters of 1000 about random points of a cube ten times as long
        centres = random.random((max(1, count // 1000), 3)) * 10 * edge
        x = centres[random.integers(len(centres), size=count)] + random.normal(size=(count, 3))
    else:
        # Of Gaussian thickness, 1 nm
        along = THIN_KINDS[::-1].index(kind) + 1
        x = random.normal(size=(count, 3))
        x[:, :along] = random.random((count, along)) * (count / 100) ** (1 / along)
    q = random.uniform(-1, 1, count)
    return x.astype(np.float32).astype(float), q.astype(np.float32).astype(float)


def sample(kind, count, targets):
    """Points, charges, and the indices of those whose errors are taken: the same at every call."""
    random = np.random.default_rng(SEED)
    x, q = points(kind, count, random)
    return x, q, random.choice(count, min(count, targets), replace=False)


def all_pairs(x, q, targets, module=np):
    """Potential and field at some of the points, [m], [m, 3]; module: numpy or cupy, which computes."""
    x, q = module.asarray(x), module.asarray(q)
    found = module.empty((len(targets), 4))
    for row, i in zip(found, targets.tolist()):
        d = x[i] - x
        r2 = (d**2).sum(axis=1)
        r2[i] = np.inf
        row[0] = (q / module.sqrt(r2)).sum()
        row[1:] = (q / r2**1.5) @ d
    found = found if module is np else found.get()
    return found[:, 0], found[:, 1:]


def relative(found, exact):
    """Error in the 2-norm."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def errors(found, exact, charges):
    """Relative errors of (potentials, fields) of points with these charges, and of their forces, q E."""
    (potentials, fields), (exact_potentials, exact_fields) = found, exact
    q = charges[:, None]
    return {
        "potential": relative(potentials, exact_potentials),
        "field": relative(fields, exact_fields),
        "force": relative(q * fields, q * exact_fields),
    }


def near_cells(x, setup):
    """Leaf cells that hold points, and ordered pairs of points in near cells, for floors.

    Edges of the box are in proportion to those of the points, and no less than a tenth of the longest:
    openBox() in src/plan/open_box.cpp. Where its corner is makes no difference to speak of.
    """
    widths = np.ptp(x, axis=0)
    edges = np.maximum(widths, 0.1 * widths.max()) / np.diag(setup["cells"])
    edges *= setup["cell_size"] / np.prod(edges) ** (1 / 3)
    reach = setup["direct_range"]
    index = np.floor((x - x.min(axis=0)) / edges).astype(np.int64) + reach
    lengths = index.max(axis=0) + 1 + reach
    strides = np.array([lengths[1] * lengths[2], lengths[2], 1])
    cells, members = np.unique(index @ strides, return_counts=True)
    pairs = -len(x)
    for offset in itertools.product(range(-reach, reach + 1), repeat=3):
        place = np.searchsorted(cells, cells + offset @ strides) % len(cells)
        near = cells[place] == cells + offset @ strides
        pairs += int(members[near] @ members[place[near]])
    return {"occupied_cells": len(cells), "near_pairs": pairs}
