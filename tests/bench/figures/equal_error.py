# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times of methods at one error, from curves of error against time."""

import math


def time_at_error(curve, error):
    """Seconds to an error: straight lines of logarithms between the best of the measured points.

    A point that is no faster than a more accurate one is left out. What is always more accurate takes the
    time of its fastest setting; None if nothing is accurate enough.

    curve: [(error, seconds)]
    """
    best = []
    for point in sorted(curve):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    if not best or error < best[0][0]:
        return None
    if error >= best[-1][0]:
        return best[-1][1]
    for (low, slow), (high, fast) in zip(best, best[1:]):
        if error < high:
            share = math.log(error / low) / math.log(high / low)
            return slow * (fast / slow) ** share
    raise AssertionError("an error beyond the last of the points was told before")
