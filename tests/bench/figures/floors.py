# SPDX-License-Identifier: LGPL-2.1-or-later
"""What each kernel has to do at least, and how long that takes."""

import math

from tests.bench.figures.cases import markdown

LANES = 128  # FP32 lanes of a multiprocessor
H200 = {"name": "NVIDIA H200", "multiprocessors": 132, "clock_hz": 1.98e9}
BANDWIDTH = 4.3e12  # bytes/s, a copy on an H200
# What a copy has of 3.35e12 bytes/s, in proportion to that of an H200, which has 4.3e12 of 4.8e12
H100 = {**H200, "name": "NVIDIA H100", "bandwidth": BANDWIDTH * 3.35 / 4.8}


def lane_rate(gpu):
    """FP32 instructions of single lanes per second."""
    return gpu["multiprocessors"] * LANES * gpu["clock_hz"]


def floors(
    atoms, lengths, order, ws, levels, pairs, occupied=None, real=4, mirrored=True, partners=2
):
    """What each kernel has to do: [(stage, kernel, lane instructions, bytes)].

    A multiply-add is one instruction of a lane. Bytes are the compulsory ones: every operand is
    read once and every result written once. Of a tree, occupied leaf cells count, and their
    interaction lists as if they were full.
    """
    n = (order + 1) ** 2
    leaf_cells = math.prod(lengths)
    coarse = leaf_cells / 8 ** (levels - 1)
    held = occupied if levels > 1 and occupied else leaf_cells  # a tree leaves the others out
    x, y, z = (length / 2 ** (levels - 1) for length in lengths)
    waves = y * z * (x // 2 + 1)
    operators = waves / 4 if mirrored else waves
    vector = 4 * real
    table = [
        ("Sort", "bin", 40 * atoms, atoms * (4 * real + vector + 8)),
        ("Sort", "scan", 2 * held, 8 * held),
        ("Sort", "scatter", 10 * atoms, atoms * (2 * vector + 8 + 12)),
    ]
    if levels > 1:
        occupied = occupied or leaf_cells
        parents = sum(occupied / 8**k for k in range(1, levels))
        table.append(("Sort", "families", 100 * parents, parents * 4 * ((2 * ws + 1) ** 3 + 20)))
    table += [
        (
            "Exclusions",
            "exclusions",
            30 * partners * atoms,
            atoms * (4 * real + 8 + partners * (4 + 4 * real) + vector),
        ),
        ("P2P", "P2P", 13 * pairs, atoms * 3 * vector + 4 * held),
        ("P2M", "P2M", 3 * n * atoms, atoms * vector + held * n * real),
    ]
    inner = sum((occupied or leaf_cells) / 8**k for k in range(levels - 1))  # with parents
    if levels > 1:
        table.append(("M2M", "M2M", inner * n * n, 1.125 * inner * n * real))
    table += [
        (
            "M2L",
            "periodic FFT",
            2 * n * 1.25 * coarse * math.log2(max(coarse, 2)),
            2 * n * (coarse * real + waves * 2 * real),
        ),
        (
            "M2L",
            "multiply",
            2 * n * n * waves,
            operators * n * (n + 1) / 2 * real + 2 * waves * n * 2 * real,
        ),
    ]
    if levels > 1:
        w = 2 * ws + 1
        displacements = (2 * w + 1) ** 3 - w**3
        table.append(
            (
                "M2L",
                "lists, dense",
                7 * w**3 * inner * n * n,
                displacements * n * n * real + 2 * inner * n * real,
            )
        )
        table.append(("L2L", "L2L", inner * n * n, 1.125 * inner * n * real))
    table += [
        (
            "L2P",
            "L2P and the sum of all forces",
            (5 * n + 24) * atoms,
            atoms * (2 * vector + 8 + 9 * real) + held * n * real,
        ),
    ]
    return table


def floors_of(case):
    """Floors at the setting of a case."""
    setup = case["setup"]
    cells = setup["cells"]
    mirrored = all(cells[i][j] == 0 for i in range(3) for j in range(i))
    return floors(
        case["atoms"],
        [cells[k][k] for k in range(3)],
        setup["order"],
        setup["direct_range"],
        setup["levels"],
        case["near_pairs"],
        occupied=case["occupied_cells"],
        real=8 if case["precision"] == "double" else 4,
        mirrored=mirrored,
        partners=0 if case["system"] == "random" else 2,
    )


def floor_seconds(operations, size, gpu):
    """The larger of both times, and which it is."""
    compute = operations / lane_rate(gpu)
    memory = size / gpu.get("bandwidth", BANDWIDTH)
    return max(compute, memory), "operations" if compute >= memory else "bytes"


def floor_rows(table, gpu, stages=None):
    """Lines of a markdown table; stages: measured seconds by stage."""
    shown = set()
    for stage, kernel, operations, size in table:
        seconds, bound = floor_seconds(operations, size, gpu)
        row = [stage, kernel, f"{operations:.2e}", f"{size:.2e}", f"{1e6 * seconds:.2f}", bound]
        if stages is not None:
            # a stage of several kernels is measured as a whole
            total = sum(floor_seconds(o, b, gpu)[0] for s, _, o, b in table if s == stage)
            measured = stages.get(stage)
            known = measured is not None and stage not in shown
            row.append(f"{1e6 * measured:.1f}" if known else "")
            row.append(f"{100 * total / measured:.0f} %" if known and measured > 0 else "")
            shown.add(stage)
        yield row


def print_floors(out):
    """Floors of cubic water boxes at the default setting."""
    for atoms, cells in ((23262, 12), (93237, 20), (372948, 30), (1118844, 45)):
        pairs = atoms * (27 * atoms / cells**3 - 1)
        table = floors(atoms, [cells] * 3, 8, 1, 1, pairs)
        out.write(f"\n{atoms} atoms, {cells}^3 cells, order 8: {pairs:.2e} pairs of near cells\n\n")
        out.write(
            markdown(
                ["stage", "kernel", "lane instructions", "bytes", "floor, us", "set by"],
                floor_rows(table, H200),
            )
        )
        total = sum(floor_seconds(o, b, H200)[0] for _, _, o, b in table)
        out.write(f"\nSum of the floors: {1e6 * total:.1f} us.\n")
