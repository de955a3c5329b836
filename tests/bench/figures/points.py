# SPDX-License-Identifier: LGPL-2.1-or-later
"""points_gpu: speed against error without images, and what a cube of points takes at least."""

from tests.bench.figures import drawing
from tests.bench.figures.floors import H200, floor_seconds, floors

MARKERS = "os^Dv*P"  # one for each number of points


def floor_of(record):
    """Seconds that an evaluation of a full cube takes at least on an H200; other shapes: None."""
    if record["kind"] != "cube" or "setup" not in record:
        return None
    setup, count = record["setup"], record["count"]
    across = max(1, (count / 100) ** (1 / 3) / setup["cell_size"])  # occupied cells
    neighbours = ((1 + 2 * setup["direct_range"]) * across - 2) / across
    table = floors(
        count,
        [setup["cells"][k][k] for k in range(3)],
        setup["order"],
        setup["direct_range"],
        setup["levels"],
        count * (count / across**3 * neighbours**3 - 1),
        occupied=across**3,
        real=8 if record["method"].endswith("64") else 4,
        partners=0,
    )
    return sum(floor_seconds(operations, size, H200)[0] for _, _, operations, size in table)


def draw(records, path):
    """A plot for each shape. records: of points_gpu; raises ImportError without matplotlib."""
    found = [record for record in records if "error" not in record]
    if not found:
        return
    kinds = list(dict.fromkeys(record["kind"] for record in found))
    counts = sorted({record["count"] for record in found})
    engines = list(dict.fromkeys(map(engine_of, found)))
    plt = drawing.pyplot()
    figure, axes = drawing.row_of_axes(plt, len(kinds), 4.5)
    for axis, kind in zip(axes, kinds):
        for i, engine in enumerate(engines):
            for count, marker in zip(counts, MARKERS):
                chosen = sorted(
                    (record["field"], count / record["seconds"])
                    for record in found
                    if (record["kind"], record["count"], engine_of(record)) == (kind, count, engine)
                )
                if chosen:
                    label = f"{engine}, {count:.0e}".replace("e+0", "e")
                    axis.plot(*zip(*chosen), f"{marker}-", color=f"C{i}", label=label)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("relative error of the fields")
        axis.set_ylabel("points per second")
        axis.set_title(kind)
    drawing.add_legend(figure)
    drawing.save(figure, path, bbox_inches="tight")
    plt.close(figure)


def engine_of(record):
    """The name of a curve: of jaxFMM with its engine, of farfield whether orders were given."""
    asked = record["asked"]
    if record["method"].startswith("jaxFMM"):
        return f"{record['method']}, {asked.split()[0]}"
    return record["method"] + (", given p" if asked.startswith("p") else "")
