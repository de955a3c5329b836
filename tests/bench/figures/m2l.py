# SPDX-License-Identifier: LGPL-2.1-or-later
"""farfield_gpu_benchmark m2l: the engines, and the microkernels that bound them."""

from collections import defaultdict

from tests.bench.figures.cases import markdown
from tests.bench.figures.drawing import row_of_axes
from tests.bench.figures.floors import lane_rate

ENGINES = {
    "symmetric": ("symmetric", "C2", "s"),
    "gemm": ("gemm", "C3", "D"),
    "fft": ("FFT over the leaves", "C4", "^"),
    "symmetric, sheared": ("symmetric, inversion only", "C8", "s"),
    "compute bound": ("compute-bound microkernel", "0.3", ""),
    "compute bound, shared": ("compute-bound microkernel, shared products", "C8", ""),
    "memory bound": ("memory-bound microkernel", "0.6", ""),
}
BOUNDS = ("compute bound", "compute bound, shared", "memory bound")


def engine_key(case):
    """Engine and, where it decides the operands, the accuracy."""
    sheared = case.get("shape") == "sheared"
    name = case["engine"] + (", sheared" if sheared else "")
    return (name, case["accuracy"] if name == "gemm" else None)


def label_of(key):
    name, accuracy = key
    text = ENGINES[name][0]
    return text if accuracy is None else f"{text}, {accuracy:.0e}"


def style_of(key, keys):
    """Colour and marker; further accuracies of an engine are drawn with open markers."""
    _, colour, marker = ENGINES[key[0]]
    first = next(k for k in keys if k[0] == key[0])
    style = {"color": colour, "marker": marker, "markersize": 4}
    if key != first:
        style["markerfacecolor"] = "none"
    if key[0] in BOUNDS:
        style.update(linestyle="--", marker="")
    return style


def curves_of(cases, precision, cells):
    """{engine key: [(order, case)]} of ENGINES, in their order; files have engines that are no more."""
    curves = defaultdict(list)
    for case in cases:
        key = engine_key(case)
        if key[0] in ENGINES and case["precision"] == precision and case["cells_per_edge"] == cells:
            curves[key].append((case["order"], case))
    names = list(ENGINES)
    keys = sorted(curves, key=lambda k: (names.index(k[0]), -(k[1] or 0.0)))
    return {key: sorted(curves[key], key=lambda point: point[0]) for key in keys}


def list_seconds(case):
    """Time of the interaction lists alone, without the periodic M2L of the coarsest level."""
    return case.get("list_seconds", case["seconds"])


def tables(cases):
    """Times of all engines by order."""
    for precision in sorted({c["precision"] for c in cases}, reverse=True):
        for cells in sorted({c["cells_per_edge"] for c in cases}):
            curves = curves_of(cases, precision, cells)
            orders = sorted({p for points in curves.values() for p, _ in points})
            times = {k: {p: f"{1e6 * c['seconds']:.1f}" for p, c in v} for k, v in curves.items()}
            rows = [[p, *(times[k].get(p, "") for k in curves)] for p in orders]
            if rows:
                yield (
                    f"M2L, {cells}^3 cells, {precision}, us",
                    markdown(["p", *map(label_of, curves)], rows),
                )


def panels(plt, cases):
    """A row of axes for the sizes of grid, each with its curves."""
    chosen = sorted({(c["precision"], c["cells_per_edge"]) for c in cases}, reverse=True)
    chosen.sort(key=lambda panel: (panel[0] != "float", panel[1]))
    _, axes = row_of_axes(plt, len(chosen), 4.6)
    for axis, (precision, cells) in zip(axes, chosen):
        axis.set_title(f"{cells}$^3$ cells, {precision}")
        axis.set_xlabel("multipole order p")
        axis.set_xticks(range(0, 21, 4))
        yield axis, curves_of(cases, precision, cells)


def draw(plt, cases, label, points_of):
    """A figure of all panels, or None if no curve has points.

    points_of(key, points, curves): [(order, value)] of the curve of an engine.
    """
    figure = None
    for axis, curves in panels(plt, cases):
        for key, points in curves.items():
            line = points_of(key, points, curves)
            if line:
                figure = axis.figure
                axis.plot(*zip(*line), label=label_of(key), **style_of(key, list(curves)))
        axis.set_ylabel(label)
    return figure


def draw_time(plt, cases):
    """Figs. 15, 16: time against the order, with the bounds."""

    def times(_key, points, _curves):
        return [(p, 1e6 * c["seconds"]) for p, c in points]

    figure = draw(plt, cases, "M2L, µs", times)
    for axis in figure.axes:
        axis.set_yscale("log")
    return figure


def draw_rates(plt, cases):
    """Figs. 18, 19: useful multiply-adds of the interaction lists per second, as FLOP."""

    def rates(_key, points, _curves):
        return [
            (p, 2e-12 * c["list_fma"] / list_seconds(c))
            for p, c in points
            if c.get("list_fma") and list_seconds(c) > 0
        ]

    figure = draw(plt, cases, "useful TFLOP/s (dense operators)", rates)
    peak = 2e-12 * lane_rate(cases[0]["machine"]["gpu"])
    for axis in figure.axes:
        if "float" in axis.get_title():
            axis.axhline(peak, color="k", linewidth=0.8, linestyle=":", label="FP32 peak")
            axis.set_yscale("log")
    return figure


def draw_share(plt, cases):
    """Fig. 22: how much of the FP32 issue slots multiply-adds of M2L fill."""

    def shares(_key, points, _curves):
        return [
            (p, 100 * c["executed_fma"] / (list_seconds(c) * lane_rate(c["machine"]["gpu"])))
            for p, c in points
            if c["precision"] == "float" and c.get("executed_fma") and list_seconds(c) > 0
        ]

    figure = draw(plt, cases, "multiply-adds, % of FP32 issue slots", shares)
    for axis in figure.axes:
        axis.set_ylim(0, 105)
    return figure


def draw_ratio(plt, cases):
    """Fig. 23: time of the compute-bound microkernel over that of the interaction lists."""

    def ratios(key, points, curves):
        bound = {p: c["seconds"] for p, c in curves.get(("compute bound", None), [])}
        return [
            (p, 100 * bound[p] / list_seconds(c))
            for p, c in points
            if p in bound and key[0] not in (*BOUNDS, "fft") and list_seconds(c) > 0
        ]

    return draw(plt, cases, "% of the compute-bound microkernel", ratios)
