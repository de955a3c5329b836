# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests and benchmarks; Python runs them from the root: "python3 -m tests.bench.mdrun_speed"."""
