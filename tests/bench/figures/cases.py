# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the files of results, and names what they hold."""

import sys
from collections import defaultdict

from tests.bench import results

# What tells cases of a benchmark apart.
IDENTITY = (
    *("system", "atoms", "box", "precision", "engine", "accuracy", "backend", "least_squares"),
    *("order", "wanted_order", "wanted_range", "cells_per_edge", "per_cell", "shape"),
    "reproducible",
)


def load(paths):
    """{benchmark: [cases]}, with the machine of a file in each of its cases.

    Of a case that several files hold, the last one counts. "mdrun" are the systems of each file of
    mdrun_gpu, "points" the records of those of points_gpu and open_speed, by their names.
    """
    found, systems, points = defaultdict(dict), [], {}
    for path in paths:
        content = results.read(path)
        if "systems" in content:
            systems.append(content["systems"])
            continue
        if "records" in content:
            points[path.stem] = content["records"]
            continue
        if not content["complete"]:
            print(f"{path}: stopped at its time limit; cases are missing", file=sys.stderr)
        for case in content["cases"]:
            if "error" in case:
                print(f"{path}: {case['error']}", file=sys.stderr)
                continue
            case["machine"] = content["machine"]
            case["farfield"] = content["farfield"]
            identity = tuple(str(case.get(key)) for key in IDENTITY)
            found[content["benchmark"]][identity] = case
    by_benchmark = {name: list(known.values()) for name, known in found.items()}
    return defaultdict(list, by_benchmark, mdrun=systems, points=points)


def setting(case):
    """The setting that was chosen, for a table."""
    setup = case["setup"]
    return f"p {setup['order']}, ws {setup['direct_range']}, {setup['cell_size']:.3f} nm"


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(entry) for entry in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
