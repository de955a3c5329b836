# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures and tables from the JSON files of farfield_gpu_benchmark, mdrun_gpu, points_gpu and open_speed.

    python3 -m tests.bench.figures tests/bench/results/*.json --output docs/figures --tables -

draws what the files hold data for, as SVG, and prints the same as markdown tables. With --floors
alone it prints what each kernel has to do at least, and how long that takes on an H200. Figures
need matplotlib.
"""

import argparse
import sys
from pathlib import Path

from tests.bench.figures import (
    accuracy,
    cases,
    drawing,
    evaluations,
    floors,
    m2l,
    mdrun,
    near_field,
    points,
)


def tables(found):
    """(title, table) of all benchmarks."""
    whole = found["total"] + found["droplets"]
    yield from m2l.tables(found["m2l"])
    yield from evaluations.total_table(whole)
    yield from evaluations.stage_tables(whole)
    yield from near_field.table(found["p2p"])
    yield from accuracy.table(found["accuracy"])
    for name, records in found["points"].items():
        yield from ((f"{title}, {name}", body) for title, body in points.tables(records))


def draw_all(found, folder):
    """Writes the figures that there are cases for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw, chosen in (
        ("m2l_time", m2l.draw_time, found["m2l"]),
        ("m2l_flops", m2l.draw_rates, found["m2l"]),
        ("m2l_share", m2l.draw_share, [c for c in found["m2l"] if "executed_fma" in c]),
        ("m2l_ratio", m2l.draw_ratio, found["m2l"]),
        ("total_time", evaluations.draw_total, found["total"]),
        ("stages", evaluations.draw_stages, found["total"] + found["droplets"]),
        ("p2p", near_field.draw, found["p2p"]),
    ):
        plt = drawing.pyplot()
        figure = draw(plt, chosen) if chosen else None
        if figure is not None:
            drawing.add_legend(figure)
            drawing.save(figure, folder / f"{name}.svg", bbox_inches="tight")
        plt.close("all")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", help="JSON of the benchmarks")
    parser.add_argument("--output", type=Path, help="folder for the figures")
    parser.add_argument("--tables", help="markdown file for the tables, - for the terminal")
    parser.add_argument("--floors", action="store_true", help="print predicted floors for water")
    arguments = parser.parse_args()
    if not (arguments.floors or (arguments.files and (arguments.output or arguments.tables))):
        parser.error("give files and --output or --tables, or --floors")

    if arguments.floors:
        floors.print_floors(sys.stdout)
    found = cases.load(arguments.files)
    if arguments.tables:
        text = "# Performance of the CUDA backend: all tables\n\n" + "\n".join(
            f"## {title}\n\n{body}" for title, body in tables(found))
        if arguments.tables == "-":
            print(text)
        else:
            Path(arguments.tables).write_text(text)
    if arguments.output:
        draw_all(found, arguments.output)
        for systems in found["mdrun"]:
            mdrun.draw(systems, arguments.output / "mdrun_gpu.svg")
        for name, records in found["points"].items():
            points.draw(records, arguments.output / f"{name}.svg")


if __name__ == "__main__":
    main()
