# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads tables that GROMACS writes for plots."""

import re

import numpy as np


def columns(path):
    """{legend: values} of an xvg file."""
    legends, rows = ["Time"], []
    for line in path.read_text().splitlines():
        found = re.match(r'@ s\d+ legend "(.*)"', line)
        if found:
            legends.append(found.group(1))
        elif line[:1] not in "@#":
            rows.append([float(value) for value in line.split()])
    return dict(zip(legends, np.array(rows).T))
