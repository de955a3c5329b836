# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ewald sums: energies of a periodic box with tin-foil surroundings."""

import itertools
import math

import numpy as np

COULOMB_CONSTANT = 138.935458

erfc = np.vectorize(math.erfc, otypes=[float])


def multiples(most):
    """All triples of integers of no more than these magnitudes."""
    return np.array(list(itertools.product(*(range(-n, n + 1) for n in np.ceil(most).astype(int)))))


def energy(q, x, box, excluded=()):
    """All pairs in all images, but for excluded minimum-image pairs; background of a net charge.

    For few charges; kJ/mol.
    """
    q, x, box = (np.asarray(values, dtype=float) for values in (q, x, box))
    volume = abs(np.linalg.det(box))
    alpha = 6.0 / volume ** (1 / 3)
    inverse = np.linalg.inv(box)
    reciprocal = 2 * np.pi * inverse.T
    # Whatever is within 6.5 / alpha of a displacement whose fractions are at most a half
    shifts = multiples(0.5 + 6.5 / alpha * np.linalg.norm(inverse.T, axis=1))

    def near_image(d):
        return d - np.round(d @ inverse) @ box

    total = 0.0
    for i in range(len(q)):
        for j in range(len(q)):
            r = np.linalg.norm(near_image(x[i] - x[j]) + shifts @ box, axis=1)
            r = r[r > 1e-12]
            total += 0.5 * q[i] * q[j] * sum(math.erfc(alpha * d) / d for d in r if alpha * d < 6.5)
    # Up to exp(-36), where k = 12 alpha
    waves = multiples(12 * alpha * np.linalg.norm(box, axis=1) / (2 * np.pi)) @ reciprocal
    k2 = np.sum(waves**2, axis=1)
    waves, k2 = waves[k2 > 0], k2[k2 > 0]
    structure = np.abs(q @ np.exp(1j * (x @ waves.T))) ** 2
    total += 2 * np.pi / volume * np.sum(np.exp(-k2 / (4 * alpha**2)) / k2 * structure)
    total -= alpha / math.sqrt(math.pi) * np.sum(q**2)
    total -= math.pi / (2 * volume * alpha**2) * np.sum(q) ** 2
    for i, j in excluded:
        near = np.linalg.norm(near_image(x[i] - x[j]) + shifts @ box, axis=1).min()
        total -= q[i] * q[j] / near
    return COULOMB_CONSTANT * total


def sums(q, x, box, splitting, reach, longest_wave, molecules):
    """The two sums of Ewald's method within cut-offs, without its other terms, in units of the Coulomb constant.

    For a thousand charges. Pairs of one molecule do not count at their minimum image.

    Args:
        splitting: charges are screened by Gaussians exp(-(splitting r)^2), 1/nm.
        reach: the distance up to which pairs count, nm; at most one and a half times the box's smallest height.
        longest_wave: the length up to which wave vectors count, 1/nm.
        molecules: the molecule of every charge, [n].
    """
    inverse = np.linalg.inv(box)
    i, j = np.triu_indices(len(q))
    # A charge and its own images count half
    products = q[i] * q[j] * np.where(i == j, 0.5, 1.0)
    d = x[i] - x[j]
    d -= np.round(d @ inverse) @ box
    pairs = 0.0
    for shift in itertools.product((-1, 0, 1), repeat=3):
        r = np.linalg.norm(d + shift @ box, axis=1)
        near = r < reach
        if not any(shift):
            near &= molecules[i] != molecules[j]
        pairs += products[near] @ (erfc(splitting * r[near]) / r[near])

    limits = (longest_wave * np.linalg.norm(box, axis=1) / (2 * np.pi)).astype(int) + 1
    waves = np.array(list(itertools.product(*[range(-n, n + 1) for n in limits]))) @ (2 * np.pi * inverse.T)
    # Half of them: k and -k have the same weight
    waves = waves[len(waves) // 2 + 1 :]
    k2 = np.sum(waves**2, axis=1)
    waves, k2 = waves[k2 < longest_wave**2], k2[k2 < longest_wave**2]
    blocks = np.array_split(waves, len(waves) // 500 + 1)
    structure = np.concatenate([np.abs(np.exp(1j * (block @ x.T)) @ q) ** 2 for block in blocks])
    weights = np.exp(-k2 / (4 * splitting**2)) / k2
    return float(pairs), float(4 * np.pi / abs(np.linalg.det(box)) * (weights @ structure))


def energy_of_many(q, x, box, molecules):
    """All pairs in all images, but for those of one molecule at their minimum image; background of a net charge.

    For some thousand charges in a box of 2.8 nm and more; kJ/mol, to 1e-9 of the energy.

    Args:
        molecules: the molecule of every charge, [n].
    """
    q, x, box, molecules = np.asarray(q, dtype=float), np.asarray(x), np.asarray(box), np.asarray(molecules)
    volume, splitting = abs(np.linalg.det(box)), 4.0
    # erfc(5.2) = 2e-13, exp(-5.5^2) = 7e-14
    total = sum(sums(q, x, box, splitting, 5.2 / splitting, 11 * splitting, molecules))
    total -= splitting / math.sqrt(math.pi) * np.sum(q**2)
    total -= math.pi / (2 * volume * splitting**2) * np.sum(q) ** 2
    # What the waves have of excluded pairs. Atoms of a molecule follow one another
    inverse = np.linalg.inv(box)
    for apart in range(1, np.unique(molecules, return_counts=True)[1].max()):
        i = np.flatnonzero(molecules[apart:] == molecules[:-apart])
        d = x[i + apart] - x[i]
        r = np.linalg.norm(d - np.round(d @ inverse) @ box, axis=1)
        total -= np.sum(q[i + apart] * q[i] * (1 - erfc(splitting * r)) / r)
    return COULOMB_CONSTANT * total
