# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of results, as farfield.results writes them; the benchmarks in C++ write the same form (bench_report.cpp).

Each file, or each of its tables, names the date, the revision of the program, the machine and the command.
"""

import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

from farfield.gromacs import machine
from farfield.results import write

__all__ = ["conditions", "median_and_spread", "read", "write"]

FOLDER = Path(__file__).parent / "results"


def read(path):
    return json.loads(Path(path).read_text())


def revision():
    """FARFIELD_REVISION, for a copy without history, or that of the tree."""
    if "FARFIELD_REVISION" in os.environ:
        return os.environ["FARFIELD_REVISION"]
    command = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def conditions():
    """What a file of results begins with."""
    module = f"tests.bench.{Path(sys.argv[0]).stem}"
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "revision": revision(),
        "machine": machine.describe(),
        "command": shlex.join(["python3", "-m", module, *sys.argv[1:]]),
    }


def median_and_spread(values):
    """Median, and half the distance between the extremes."""
    return statistics.median(values), (max(values) - min(values)) / 2
