# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images: speed against error, times at equal errors, and what they are at least."""

from collections import defaultdict

from tests.bench.figures import drawing
from tests.bench.figures.cases import markdown
from tests.bench.figures.equal_error import time_at_error
from tests.bench.figures.floors import H100, H200, floor_seconds, floors

MARKERS = "os^Dv*P"  # one for each number of points
EQUAL_ERRORS = (1e-3, 1e-4)
# farfield beside what runs on the same device, in the same precision where there are two
RIVALS = {
    "farfield float32, GPU": ("jaxFMM float32",),
    "farfield float64, GPU": ("jaxFMM float64",),
    "farfield float32, CPU": ("FMM3D",),
    "farfield float64, CPU": ("FMM3D",),
}


def card_of(record):
    """The GPU of a record of farfield, if its speed is known."""
    name = record.get("setup", {}).get("device_name", "")
    return next((card for card in (H100, H200) if card["name"] in name), None)


def floor_of(record):
    """Seconds that an evaluation takes at least on its GPU; None for what was on none."""
    card = card_of(record)
    if card is None or "near_pairs" not in record:
        return None
    setup = record["setup"]
    table = floors(
        record["count"],
        [setup["cells"][k][k] for k in range(3)],
        setup["order"],
        setup["direct_range"],
        setup["levels"],
        record["near_pairs"],
        occupied=record["occupied_cells"],
        real=8 if "float64" in record["method"] else 4,
        partners=0,
    )
    return sum(floor_seconds(operations, size, card)[0] for _, _, operations, size in table)


def measured(records):
    """Those that came to an end."""
    return [record for record in records if "error" not in record]


def keys_of(records, *names):
    """All combinations of values of these entries, in the order in which they come."""
    return list(dict.fromkeys(tuple(record[name] for name in names) for record in records))


def comparisons(records, which):
    """Rows of times at equal errors; which: entry of the records with the errors."""
    def curve(kind, count, method, seconds):
        return [
            (record[which], seconds(record))
            for record in records
            if (record["kind"], record["count"], record["method"]) == (kind, count, method)
        ]

    def both(record):
        return record["seconds"]

    def alone(record):
        return record["fields_alone"][0]

    for kind, count in keys_of(records, "kind", "count"):
        for error in EQUAL_ERRORS:
            for method, rivals in RIVALS.items():
                own = time_at_error(curve(kind, count, method, both), error)
                ways = [(rival, rival, both) for rival in rivals]
                ways += [(f"{rival}, fields alone", rival, alone) for rival in rivals if "jax" in rival]
                for title, rival, seconds in ways:
                    other = time_at_error(curve(kind, count, rival, seconds), error)
                    if own and other:
                        yield [kind, f"{count:.0e}", f"{error:.0e}", method, f"{1e3 * own:.3g}",
                               title, f"{1e3 * other:.3g}", f"{other / own:.3g}"]


def tables(records):
    """(title, table) of times at equal errors of forces and of fields."""
    found = measured(records)
    for which in ("force", "field"):
        known = [record for record in found if which in record]
        rows = list(comparisons(known, which))
        if rows:
            header = ["points", "number", "error", "farfield", "ms", "beside", "ms", "ratio"]
            yield f"Times at equal errors of the {which}s", markdown(header, rows)


def floor_curves(records):
    """{GPU: [(error, points per second)]} of what evaluations take at least."""
    curves = defaultdict(list)
    for record in records:
        floor = floor_of(record)
        if floor:
            curves[card_of(record)["name"]].append((record["field"], record["count"] / floor))
    return curves


def draw(records, path):
    """A plot for each shape. records: of points_gpu or open_speed; raises ImportError without matplotlib.

    Dashed lines are what the GPU of a curve needs at least.
    """
    found = measured(records)
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
                    (record for record in found
                     if (record["kind"], record["count"], engine_of(record)) == (kind, count, engine)),
                    key=lambda record: record["field"],
                )
                if not chosen:
                    continue
                label = f"{engine}, {count:.0e}".replace("e+0", "e")
                x, y = zip(*((record["field"], count / record["seconds"]) for record in chosen))
                axis.plot(x, y, f"{marker}-", color=f"C{i}", label=label)
                for name, floor in floor_curves(chosen).items():
                    axis.plot(*zip(*floor), f"{marker}--", color=f"C{i}", markersize=3, linewidth=0.8,
                              label=f"{label}, floor of {name}")
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
