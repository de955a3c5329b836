# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads an md.log."""

import re
from pathlib import Path

from .program import GmxError


def _text(log):
    return Path(log).read_text(errors="replace")


def speed(log):
    """Speed of the run, ns/day; of one that was continued, over all its parts."""
    parts = re.findall(
        r"^ +Time: +\S+ +(\S+).*\n(?:.*\n){1,3}?Performance: +(\S+)", _text(log), re.MULTILINE
    )
    if not parts:
        raise GmxError(f"{log} has no line with the performance; did mdrun finish?")
    times = [float(seconds) for seconds, _ in parts]
    if sum(times) == 0:
        return float(parts[-1][1])
    return sum(seconds * float(speed) for seconds, (_, speed) in zip(times, parts)) / sum(times)


def cycles(log):
    """The table of activities: {activity: seconds}."""
    rows = re.finditer(
        r"^ (\S.*?)  +\d+ +\d+ +\d+ +([\d.]+) +[\d.]+ +[\d.]+$", _text(log), re.MULTILINE
    )
    return {row.group(1): float(row.group(2)) for row in rows}


def gpu(log):
    """Name of the first GPU, or None."""
    found = re.search(r"^ *#0: (?:NVIDIA )?(.*?), compute cap", _text(log), re.MULTILINE)
    return found.group(1) if found else None


def stages(log):
    """farfield's stages: {name: milliseconds per call}, in their order."""
    found: dict[str, float] = {}
    inside = False
    for line in _text(log).splitlines():
        if re.match(r"FMM \(farfield\) (wall-clock|GPU) time per stage", line):
            found, inside = {}, True
        elif inside:
            row = re.match(r"\s+(\S.*?)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", line)
            if row:
                found[row.group(1)] = float(row.group(4))
            elif not line.strip():
                inside = False
    return found


def setup(log):
    """The lines of the paragraph in which farfield describes its discretisation."""
    found = []
    for line in _text(log).splitlines():
        if line.startswith("FMM electrostatics with farfield"):
            found = [line]
        elif found and line.startswith("  "):
            found.append(line)
        elif found:
            break
    return found
