# SPDX-License-Identifier: LGPL-2.1-or-later
"""Means, drifts and their uncertainties, of series that are correlated in time."""

from dataclasses import dataclass

import numpy as np

# A run is divided into so many
BLOCKS = 10
# Correlation of neighbouring blocks from which on they are not independent: 3 % of ten independent ones have it
CORRELATED = 0.4
# Part of a run that is left out at its start
DISCARDED = 0.1
# Standard errors that two numbers may differ by. With the 18 degrees of freedom of two times ten blocks
# one in 1200 differs by more by chance.
TOLERATED = 4.0


@dataclass
class Estimate:
    """A value with its standard error."""

    value: float
    error: float

    def __str__(self):
        return describe(self.value, self.error)


def describe(value, error):
    """With as many decimals as the error has two digits."""
    if not np.isfinite(error) or error <= 0:
        return f"{value:.5g}"
    decimals = 1 - int(np.floor(np.log10(error)))
    if (decimals > 6 and max(abs(value), error) < 0.01) or abs(value) >= 1e7:
        exponent = int(np.floor(np.log10(max(abs(value), error))))
        scale = 10.0**exponent
        inner = max(0, decimals + exponent)
        return f"({value / scale:.{inner}f} ± {error / scale:.{inner}f})e{exponent}"
    decimals = max(0, decimals)
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def equilibrated(values):
    """Without the start of the run."""
    return values[int(DISCARDED * len(values)) :]


def _blocks(values):
    """[BLOCKS, values of each]; a rest is left out."""
    length = len(values) // BLOCKS
    if length < 1:
        raise ValueError(f"a series of {len(values)} values is too short for {BLOCKS} blocks")
    return values[: length * BLOCKS].reshape(BLOCKS, length)


def _block_means(values):
    return _blocks(np.asarray(equilibrated(values), dtype=float)).mean(axis=1)


def mean(values):
    """The mean of a series, with its error from the means of blocks."""
    return of_blocks(_block_means(values))


def of_blocks(values):
    """The mean of values, with its error, which is larger where neighbours are alike.

    Blocks that are shorter than what they show has a memory of are not independent. Their correlation r is
    taken for that of a series with exponential memory, whose mean errs by sqrt((1 + r) / (1 - r)) times as much.
    """
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values))
    deviations = values - values.mean()
    square = deviations @ deviations
    r = deviations[1:] @ deviations[:-1] / square if square > 0 else 0.0
    if r > CORRELATED:
        error *= np.sqrt((1 + r) / (1 - r))
    return Estimate(float(values.mean()), float(error))


def fluctuation(values):
    """The mean square deviation of a series, or of vectors [n, 3], from its mean, with its error from blocks."""
    values = equilibrated(np.asarray(values, dtype=float).reshape(len(values), -1))
    return of_blocks(_blocks(((values - values.mean(axis=0)) ** 2).sum(axis=1)).mean(axis=1))


def slope(times, values):
    """The slope of a series over time, with its error from the means of blocks.

    Means may scatter about a line, which the residuals of a fit tell, or wander as sums of random steps do,
    which their steps tell: neighbouring steps of what scatters cancel. Both are counted. The error is twice
    that of a series that only scatters, and of walks at random one in thirty is beyond what is tolerated.
    """
    t, y = _block_means(times), _block_means(values)
    steps = np.diff(y)
    steps -= steps.mean()
    number = len(steps)
    variance = (steps @ steps + 2 * (steps[1:] @ steps[:-1])) / (number - 1)
    wandering = np.sqrt(number * max(variance, 0.0)) / (t[-1] - t[0])
    t = t - t.mean()
    fitted = float((t * y).sum() / (t * t).sum())
    residuals = y - y.mean() - fitted * t
    scattering = np.sqrt((residuals**2).sum() / (BLOCKS - 2) / (t * t).sum())
    return Estimate(fitted, float(np.hypot(wandering, scattering)))


def difference(a, b):
    """a less b, which are independent."""
    return Estimate(a.value - b.value, float(np.hypot(a.error, b.error)))
