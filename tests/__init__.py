# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests and benchmarks; Python runs them from the root: "python3 -m tests.bench.mdrun_speed"."""

import sys
from pathlib import Path

# The package farfield of this tree, unless one is installed: what runs gmx needs no library.
sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
