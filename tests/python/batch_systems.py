# SPDX-License-Identifier: LGPL-2.1-or-later
"""Small systems of one call, for the derivatives of batches."""

import json
from pathlib import Path

import numpy as np

SIZES = [5, 1, 0, 7]
INDEX = np.repeat(np.arange(4), SIZES)


def some_systems():
    """Positions, charges that do not add up to zero, one of them 0, and cells turned in space, one left-handed."""
    random = np.random.default_rng(5)
    cells = 0.6 * np.eye(3) + random.uniform(-0.1, 0.1, (4, 3, 3))
    cells[3] = cells[3][[1, 0, 2]]
    sites = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), 1) / 2
    fractions = np.concatenate([sites[:n] + random.uniform(0, 0.3, (n, 3)) for n in SIZES])
    x = np.einsum("na,nab->nb", fractions + random.integers(-2, 3, fractions.shape), cells[INDEX])
    q = random.uniform(-1, 1, len(x))
    q[3] = 0
    return x, q, cells


def latent_ewald_summation():
    """Three systems of Gaussian charges in two channels, and what the code of that method has for them."""
    return json.loads((Path(__file__).parent / "data/les.json").read_text())
