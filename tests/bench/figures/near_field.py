# SPDX-License-Identifier: LGPL-2.1-or-later
"""farfield_gpu_benchmark p2p: the near field."""

from collections import defaultdict

from tests.bench.figures.cases import markdown
from tests.bench.figures.drawing import row_of_axes


def table(cases):
    rows = [
        [
            case["atoms"],
            f"{case['per_cell']:.1f}",
            case["precision"] + (", reproducible" if case["reproducible"] else ""),
            *(
                value
                for request in ("forces", "with_totals")
                for value in (
                    f"{1e6 * case[request]['seconds']:.1f}",
                    f"{1e-12 * case[request]['pairs_per_second']:.2f}",
                )
            ),
        ]
        for case in cases
    ]
    if rows:
        yield (
            "Near field",
            markdown(
                [
                    *("atoms", "atoms per cell", "precision", "forces, us", "1e12 useful pairs/s"),
                    *("with totals, us", "1e12 useful pairs/s"),
                ],
                rows,
            ),
        )


def draw(plt, cases):
    """Useful pairs per second against atoms per cell."""
    figure, (axis,) = row_of_axes(plt, 1, 5)
    curves = defaultdict(list)
    for case in cases:
        for request in ("forces", "with_totals"):
            key = (case["atoms"], case["precision"], case["reproducible"], request)
            curves[key].append((case["per_cell"], 1e-12 * case[request]["pairs_per_second"]))
    for (atoms, precision, reproducible, request), points in sorted(curves.items()):
        label = f"{atoms} atoms, {precision}, " + request.replace("_", " ")
        label += ", reproducible" if reproducible else ""
        axis.plot(*zip(*sorted(points)), marker="o", markersize=4, label=label)
    axis.set_xlabel("atoms per cell")
    axis.set_ylabel("1e12 useful pairs/s")
    axis.set_ylim(bottom=0)
    return figure
