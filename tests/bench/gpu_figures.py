#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures and tables from the JSON files of farfield_gpu_benchmark.

    gpu_figures.py gpu_m2l.json gpu_total.json --output docs/figures --tables -

draws what the files hold data for, as SVG, and prints the same as markdown tables. With --floors
alone it prints what each kernel has to do at least, and how long that takes on an H200.

Figure numbers in titles of functions are those of Kohnke et al., Int. J. High Perform. Comput.
Appl. 35, 97 (2021), doi:10.1177/1094342020964857, which has the same figures for its own code.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path

LANES = 128  # FP32 lanes of a multiprocessor
H200 = {"name": "NVIDIA H200", "multiprocessors": 132, "clock_hz": 1.98e9}
BANDWIDTH = 4.3e12  # bytes/s, a copy on an H200

ENGINES = {
    "naive": ("naive", "C0", "o"),
    "dynamic": ("dynamic", "C1", "v"),
    "symmetric": ("symmetric", "C2", "s"),
    "gemm": ("gemm", "C3", "D"),
    "fft": ("FFT over the leaves", "C4", "^"),
    "symmetric, sheared": ("symmetric, inversion only", "C8", "s"),
    "compute bound": ("compute-bound microkernel", "0.3", ""),
    "compute bound, shared": ("compute-bound microkernel, shared products", "C8", ""),
    "memory bound": ("memory-bound microkernel", "0.6", ""),
}
BOUNDS = ("compute bound", "compute bound, shared", "memory bound")


# ---- what the files say ----


# What tells cases of a benchmark apart.
IDENTITY = (
    "system atoms box precision engine accuracy backend least_squares order wanted_order "
    "wanted_range cells_per_edge per_cell shape reproducible"
).split()


def load(paths):
    """{benchmark: [cases]}, with the machine of a file in each of its cases.

    Of a case that several files hold, the last one counts."""
    cases = defaultdict(dict)
    for path in paths:
        content = json.loads(path.read_text())
        if not content["complete"]:
            print(f"{path}: stopped at its time limit; cases are missing", file=sys.stderr)
        for case in content["cases"]:
            if "error" in case:
                print(f"{path}: {case['error']}", file=sys.stderr)
                continue
            case["machine"] = content["machine"]
            case["farfield"] = content["farfield"]
            identity = tuple(str(case.get(key)) for key in IDENTITY)
            cases[content["benchmark"]][identity] = case
    return defaultdict(list, {name: list(known.values()) for name, known in cases.items()})


def lane_rate(gpu):
    """FP32 instructions of single lanes per second."""
    return gpu["multiprocessors"] * LANES * gpu["clock_hz"]


def engine_key(case):
    """Engine and, where it decides the operands, the accuracy."""
    sheared = case.get("shape") == "sheared"
    name = case["engine"] + (", sheared" if sheared else "")
    return (name, case["accuracy"] if name == "gemm" else None)


def label_of(key):
    name, accuracy = key
    text = ENGINES.get(name, (name,))[0]
    return text if accuracy is None else f"{text}, {accuracy:.0e}"


def style_of(key, keys):
    """Colour and marker; further accuracies of an engine are drawn with open markers."""
    _, colour, marker = ENGINES.get(key[0], (key[0], "k", "x"))
    first = next(k for k in keys if k[0] == key[0])
    style = {"color": colour, "marker": marker, "markersize": 4}
    if key != first:
        style["markerfacecolor"] = "none"
    if key[0] in BOUNDS:
        style.update(linestyle="--", marker="")
    return style


def m2l_curves(cases, precision, cells):
    """{engine key: [(order, case)]} in the order of ENGINES."""
    curves = defaultdict(list)
    for case in cases:
        if case["precision"] == precision and case["cells_per_edge"] == cells:
            curves[engine_key(case)].append((case["order"], case))
    names = list(ENGINES)
    keys = sorted(
        curves, key=lambda k: (names.index(k[0]) if k[0] in names else 99, -(k[1] or 0.0))
    )
    return {key: sorted(curves[key], key=lambda point: point[0]) for key in keys}


def list_seconds(case):
    """Time of the interaction lists alone, without the periodic M2L of the coarsest level."""
    return case.get("list_seconds", case["seconds"])


# ---- floors ----


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
    x, y, z = (length / 2 ** (levels - 1) for length in lengths)
    waves = y * z * (x // 2 + 1)
    operators = waves / 4 if mirrored else waves
    vector = 4 * real
    table = [
        ("Sort", "bin", 40 * atoms, atoms * (4 * real + vector + 8)),
        ("Sort", "scan", 2 * leaf_cells, 8 * leaf_cells),
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
        ("P2P", "P2P", 13 * pairs, atoms * 3 * vector + 4 * leaf_cells),
        ("P2M", "P2M", 3 * n * atoms, atoms * vector + leaf_cells * n * real),
    ]
    inner = sum((occupied or leaf_cells) / 8**k for k in range(levels - 1))  # with parents
    if levels > 1:
        table.append(("M2M", "M2M", inner * n * n, 1.125 * inner * n * real))
    table += [
        (
            "M2L",
            "closure FFT",
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
            atoms * (2 * vector + 8 + 9 * real) + leaf_cells * n * real,
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
    memory = size / BANDWIDTH
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


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(entry) for entry in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


# ---- tables ----


def microseconds(statistics):
    """Median with the quartiles, us."""
    return "{:.1f} ({:.1f}-{:.1f})".format(
        *(1e6 * statistics[k] for k in ("median", "lower_quartile", "upper_quartile"))
    )


def m2l_table(cases):
    for precision in sorted({c["precision"] for c in cases}, reverse=True):
        for cells in sorted({c["cells_per_edge"] for c in cases}):
            curves = m2l_curves(cases, precision, cells)
            orders = sorted({p for points in curves.values() for p, _ in points})
            times = {k: {p: f"{1e6 * c['seconds']:.1f}" for p, c in v} for k, v in curves.items()}
            rows = [[p, *(times[k].get(p, "") for k in curves)] for p in orders]
            if rows:
                yield f"M2L, {cells}^3 cells, {precision}, us", markdown(
                    ["p", *map(label_of, curves)], rows
                )


def total_table(cases):
    rows = []
    for case in cases:
        setup = case["setup"]
        row = [
            case["system"],
            case["atoms"],
            f"{case['box']:.1f}",
            case["precision"],
            case["cells_per_edge"] or "automatic",
            f"{setup['engine']}, p {setup['order']}, ws {setup['direct_range']}, "
            f"{setup['cell_size']:.3f} nm",
        ]
        for request in ("forces", "with_totals"):
            for launch in ("plain", "graph"):
                found = case.get(request, {}).get(launch)
                row.append(microseconds(found) if found else "")
        rows.append(row)
    if rows:
        yield "Whole evaluations, us: median (quartiles)", markdown(
            [
                *("system", "atoms", "box, nm", "precision", "cells per edge", "setting"),
                *("forces", "forces, graph", "with totals", "with totals, graph"),
            ],
            rows,
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


def p2p_table(cases):
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
        yield "Near field", markdown(
            [
                *("atoms", "atoms per cell", "precision", "forces, us", "1e12 useful pairs/s"),
                *("with totals, us", "1e12 useful pairs/s"),
            ],
            rows,
        )


def accuracy_table(cases):
    rows = [
        [
            case["system"],
            case["backend"],
            case["precision"],
            case["engine"],
            "default" if case["wanted_order"] < 0 else case["wanted_order"],
            "yes" if case["least_squares"] else "no",
            f"p {case['setup']['order']}, ws {case['setup']['direct_range']}, "
            f"{case['setup']['cell_size']:.3f} nm, {case['setup']['engine']}",
            f"{case['force_error']:.2e}",
            f"{case['energy_error_per_atom']:.1e}",
            f"{case['virial_error_per_atom']:.1e}",
            case["relative_to"],
        ]
        for case in cases
    ]
    if rows:
        yield "Errors; energy and virial in kJ/mol per atom", markdown(
            [
                *("system", "backend", "precision", "engine", "order", "least squares", "setting"),
                *("force", "energy", "virial", "force relative to"),
            ],
            rows,
        )


def tables(cases):
    evaluations = cases["total"] + cases["droplets"]
    yield from m2l_table(cases["m2l"])
    yield from total_table(evaluations)
    yield from stage_tables(evaluations)
    yield from p2p_table(cases["p2p"])
    yield from accuracy_table(cases["accuracy"])


# ---- figures ----


def panels(plt, cases):
    """A row of axes for the sizes of grid, each with its precision and number of cells."""
    chosen = sorted({(c["precision"], c["cells_per_edge"]) for c in cases}, reverse=True)
    chosen.sort(key=lambda panel: (panel[0] != "float", panel[1]))
    figure, axes = plt.subplots(1, len(chosen), figsize=(4.6 * len(chosen), 4), squeeze=False)
    for axis, (precision, cells) in zip(axes[0], chosen):
        axis.set_title(f"{cells}$^3$ cells, {precision}")
        axis.set_xlabel("multipole order p")
        axis.set_xticks(range(0, 21, 4))
        axis.grid(alpha=0.3)
        yield figure, axis, m2l_curves(cases, precision, cells)


def draw_m2l_time(plt, cases):
    """Figs. 15, 16: time against the order, with the bounds."""
    for figure, axis, curves in panels(plt, cases):
        for key, points in curves.items():
            axis.plot(
                [p for p, _ in points],
                [1e6 * c["seconds"] for _, c in points],
                label=label_of(key),
                **style_of(key, list(curves)),
            )
        axis.set_yscale("log")
        axis.set_ylabel("M2L, µs")
    return figure


def draw_rates(plt, cases):
    """Figs. 18, 19: useful multiply-adds of the interaction lists per second, as FLOP."""
    for figure, axis, curves in panels(plt, cases):
        gpu = None
        for key, points in curves.items():
            rate = [
                (p, 2e-12 * c["list_fma"] / list_seconds(c))
                for p, c in points
                if c.get("list_fma") and list_seconds(c) > 0
            ]
            if rate:
                gpu = points[0][1]["machine"]["gpu"]
                axis.plot(*zip(*rate), label=label_of(key), **style_of(key, list(curves)))
        if gpu and "float" in axis.get_title():
            peak = 2e-12 * lane_rate(gpu)
            axis.axhline(peak, color="k", linewidth=0.8, linestyle=":", label="FP32 peak")
            axis.set_yscale("log")
        axis.set_ylabel("useful TFLOP/s (dense operators)")
    return figure


def draw_share(plt, cases):
    """Fig. 22: how much of the FP32 issue slots multiply-adds of M2L fill."""
    for figure, axis, curves in panels(plt, cases):
        for key, points in curves.items():
            share = [
                (p, 100 * c["executed_fma"] / (list_seconds(c) * lane_rate(c["machine"]["gpu"])))
                for p, c in points
                if c["precision"] == "float" and c.get("executed_fma") and list_seconds(c) > 0
            ]
            if share:
                axis.plot(*zip(*share), label=label_of(key), **style_of(key, list(curves)))
        axis.set_ylim(0, 105)
        axis.set_ylabel("multiply-adds, % of FP32 issue slots")
    return figure


def draw_speedup(plt, cases):
    """Fig. 21: speed-up over single displacements of the naive engine.

    The symmetric engine groups them by reflections (up to 8) and, in a sheared box, by the
    inversion alone (2).
    """
    found = False
    for figure, axis, curves in panels(plt, cases):
        naive = {p: list_seconds(c) for p, c in curves.get(("naive", None), [])}
        for key, points in curves.items():
            ratio = [
                (p, naive[p] / list_seconds(c))
                for p, c in points
                if p in naive and list_seconds(c) > 0 and key[0] not in BOUNDS
            ]
            if ratio:
                found = True
                axis.plot(*zip(*ratio), label=label_of(key), **style_of(key, list(curves)))
        axis.set_yscale("log")
        axis.set_ylabel("speed-up over naive")
    return figure if found else None


def draw_ratio(plt, cases):
    """Fig. 23: time of the compute-bound microkernel over that of the interaction lists."""
    found = False
    for figure, axis, curves in panels(plt, cases):
        bound = {p: c["seconds"] for p, c in curves.get(("compute bound", None), [])}
        for key, points in curves.items():
            ratio = [
                (p, 100 * bound[p] / list_seconds(c))
                for p, c in points
                if p in bound and key[0] not in BOUNDS + ("fft",) and list_seconds(c) > 0
            ]
            if ratio:
                found = True
                axis.plot(*zip(*ratio), label=label_of(key), **style_of(key, list(curves)))
        axis.set_ylabel("% of the compute-bound microkernel")
    return figure if found else None


def draw_total(plt, cases):
    """Fig. 14: time against the number of atoms for fixed grids and for the automatic choice."""
    cases = [c for c in cases if c["precision"] == "float" and "forces" in c]
    names = sorted({c["system"] for c in cases}, reverse=True)
    figure, axes = plt.subplots(1, len(names), figsize=(4.8 * len(names), 4), squeeze=False)
    for axis, name in zip(axes[0], names):
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
        axis.grid(alpha=0.3)
    return figure


def draw_stages(plt, cases):
    """Stacked times of the stages, one after the other, beside the overlapped evaluation."""
    cases = [
        c
        for c in cases
        if c["precision"] == "float" and c["cells_per_edge"] == 0 and "forces" in c
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


def draw_p2p(plt, cases):
    """Useful pairs per second against atoms per cell."""
    figure, axis = plt.subplots(figsize=(5, 4))
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
    axis.grid(alpha=0.3)
    return figure


def add_legend(figure):
    """One legend for all axes, below them: curves fill the axes."""
    entries = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    figure.legend(entries.values(), entries.keys(), loc="upper center", bbox_to_anchor=(0.5, 0),
                  ncols=min(4, len(entries)), fontsize=7)


def draw_all(cases, folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "farfield"  # the same file for the same data
    folder.mkdir(parents=True, exist_ok=True)
    evaluations = cases["total"] + cases["droplets"]
    for name, draw, data in (
        ("m2l_time", draw_m2l_time, cases["m2l"]),
        ("m2l_flops", draw_rates, cases["m2l"]),
        ("m2l_share", draw_share, [c for c in cases["m2l"] if "executed_fma" in c]),
        ("m2l_speedup", draw_speedup, cases["m2l"]),
        ("m2l_ratio", draw_ratio, cases["m2l"]),
        ("total_time", draw_total, cases["total"]),
        ("stages", draw_stages, evaluations),
        ("p2p", draw_p2p, cases["p2p"]),
    ):
        figure = draw(plt, data) if data else None
        if figure is not None:
            figure.tight_layout()
            add_legend(figure)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
        plt.close("all")


def print_floors(out):
    """Floors of cubic water boxes at the default setting."""
    for atoms, cells in ((23262, 12), (93237, 20), (372948, 30), (1118844, 45)):
        pairs = atoms * (27 * atoms / cells**3 - 1)
        table = floors(atoms, [cells] * 3, 8, 1, 1, pairs)
        out.write(
            f"\n{atoms} atoms, {cells}^3 cells, order 8: {pairs:.2e} pairs of near cells\n\n"
        )
        out.write(
            markdown(
                ["stage", "kernel", "lane instructions", "bytes", "floor, us", "set by"],
                floor_rows(table, H200),
            )
        )
        total = sum(floor_seconds(o, b, H200)[0] for _, _, o, b in table)
        out.write(f"\nSum of the floors: {1e6 * total:.1f} us.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="JSON of farfield_gpu_benchmark")
    parser.add_argument("--output", type=Path, help="folder for the figures")
    parser.add_argument("--tables", help="markdown file for the tables, - for the terminal")
    parser.add_argument("--floors", action="store_true", help="print predicted floors for water")
    arguments = parser.parse_args()
    if not (arguments.floors or (arguments.files and (arguments.output or arguments.tables))):
        parser.error("give files and --output or --tables, or --floors")

    if arguments.floors:
        print_floors(sys.stdout)
    cases = load(arguments.files)
    if arguments.tables:
        text = "\n".join(f"### {title}\n\n{body}" for title, body in tables(cases))
        if arguments.tables == "-":
            print(text)
        else:
            Path(arguments.tables).write_text(text)
    if arguments.output:
        draw_all(cases, arguments.output)


if __name__ == "__main__":
    main()
