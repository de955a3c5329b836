# SPDX-License-Identifier: LGPL-2.1-or-later
"""farfield_gpu_benchmark total and droplets: whole evaluations and their stages."""

from collections import defaultdict

from tests.bench.figures.cases import markdown, setting
from tests.bench.figures.drawing import row_of_axes
from tests.bench.figures.floors import floor_rows, floors_of


def microseconds(statistics):
    """Median with the quartiles, us."""
    return "{:.1f} ({:.1f}-{:.1f})".format(
        *(1e6 * statistics[k] for k in ("median", "lower_quartile", "upper_quartile"))
    )


def total_table(cases):
    rows = []
    for case in cases:
        row = [
            case["system"],
            case["atoms"],
            f"{case['box']:.1f}",
            case["precision"],
            case["cells_per_edge"] or "automatic",
            f"{case['setup']['engine']}, {setting(case)}",
        ]
        for request in ("forces", "with_totals"):
            for launch in ("plain", "graph"):
                found = case.get(request, {}).get(launch)
                row.append(microseconds(found) if found else "")
        rows.append(row)
    if rows:
        yield (
            "Whole evaluations, us: median (quartiles)",
            markdown(
                [
                    *("system", "atoms", "box, nm", "precision", "cells per edge", "setting"),
                    *("forces", "forces, graph", "with totals", "with totals, graph"),
                ],
                rows,
            ),
        )


def stage_tables(cases):
    for case in cases:
        if case["cells_per_edge"] == 0 and case["precision"] == "float":
            stages = {s["name"]: s["median"] for s in case["forces"]["stages"]}
            gpu = case["machine"]["gpu"]
            rows = list(floor_rows(floors_of(case), gpu, stages))
            known = {row[0] for row in rows}
            rows += [
                [name, "", "", "", "", "", f"{1e6 * t:.1f}", ""]
                for name, t in stages.items()
                if name not in known
            ]
            yield (
                f"{case['system']}, {case['atoms']} atoms, box {case['box']:.1f} nm, "
                f"{case['setup']['engine']}, forces only",
                markdown(
                    [
                        *("stage", "kernel", "lane instructions", "bytes", "floor, us", "set by"),
                        *("stage measured, us", "floor / measured"),
                    ],
                    rows,
                ),
            )


def draw_total(plt, cases):
    """Fig. 14: time against the number of atoms for fixed grids and for the automatic choice."""
    cases = [c for c in cases if c["precision"] == "float" and "forces" in c]
    names = sorted({c["system"] for c in cases}, reverse=True)
    figure, axes = row_of_axes(plt, len(names), 4.8)
    for axis, name in zip(axes, names):
        curves = defaultdict(list)
        for case in cases:
            if case["system"] == name:
                time = 1e6 * case["forces"]["graph"]["median"]
                curves[case["cells_per_edge"], case["engine"]].append((case["atoms"], time))
        for (cells, engine), points in sorted(curves.items(), reverse=True):
            label = f"{cells}$^3$ cells" if cells else "automatic"
            label += "" if engine == "auto" else f", {engine}"
            style = {"linewidth": 1, "alpha": 0.8} if cells else {"color": "k", "linewidth": 2}
            axis.plot(*zip(*sorted(points)), marker="o", markersize=4, label=label, **style)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(name)
        axis.set_xlabel("atoms")
        axis.set_ylabel("forces, µs (graph)")
    return figure


def draw_stages(plt, cases):
    """Stacked times of the stages, one after the other, beside the overlapped evaluation."""
    cases = [
        c for c in cases if c["precision"] == "float" and c["cells_per_edge"] == 0 and "forces" in c
    ]
    if not cases:
        return None
    names = []
    for case in cases:
        for stage in case["forces"]["stages"]:
            if stage["name"] not in names:
                names.append(stage["name"])
    figure, axis = plt.subplots(figsize=(1.5 + 0.9 * len(cases), 4.2))
    bottom = [0.0] * len(cases)
    totals = [sum(s["median"] for s in c["forces"]["stages"]) for c in cases]
    for k, name in enumerate(names):
        share = []
        for case, total in zip(cases, totals):
            time = sum(s["median"] for s in case["forces"]["stages"] if s["name"] == name)
            share.append(100 * time / total)
        axis.bar(range(len(cases)), share, bottom=bottom, label=name, color=f"C{k}", width=0.7)
        bottom = [b + s for b, s in zip(bottom, share)]
    for k, (case, total) in enumerate(zip(cases, totals)):
        graph = case["forces"]["graph"]["median"]
        axis.text(k, 101, f"{1e6 * total:.0f}\n({1e6 * graph:.0f})", ha="center", fontsize=7)
    axis.set_xticks(
        range(len(cases)),
        [f"{c['system']}\n{c['atoms']}\n{c['box']:.0f} nm\n{c['engine']}" for c in cases],
        fontsize=7,
    )
    axis.set_ylim(0, 115)
    axis.set_ylabel("% of the sum of the stages")
    axis.set_title("sum in µs (overlapped, as a graph)", fontsize=9)
    return figure
