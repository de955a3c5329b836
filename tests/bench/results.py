# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of results, as farfield.results writes them; the benchmarks in C++ write the same form (bench_report.cpp)."""

import json
import statistics
from pathlib import Path

from farfield.results import write

__all__ = ["median_and_spread", "read", "write"]


def read(path):
    return json.loads(Path(path).read_text())


def median_and_spread(values):
    """Median, and half the distance between the extremes."""
    return statistics.median(values), (max(values) - min(values)) / 2
