# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests.bench.energy_conservation: drift of the energy against the error of the forces, and the time step."""

from tests.bench.figures import drawing

LINES = {"rigid, mixed": "-", "rigid, double": ":", "equal, rigid, mixed": "--", "equal, rigid, double": "-."}
STYLES = {"FMM": ("C0", "o"), "PME": ("C1", "s")}


def heating(cases, section):
    """{method: (force errors, drift beyond that of the most accurate setting, its errors)}, kT/ns per atom."""
    found = {}
    for method in STYLES:
        chosen = [c for c in cases if c["section"] == section and c["method"] == method]
        if not chosen:
            continue
        best = min(chosen, key=lambda case: case["force_error"])
        rows = [
            (
                case["force_error"],
                case["drift_kT_per_ns_atom"] - best["drift_kT_per_ns_atom"],
                (case["drift_error"] ** 2 + best["drift_error"] ** 2) ** 0.5,
            )
            for case in chosen
            if case is not best
        ]
        found[method] = list(zip(*sorted(rows)))
    return found


def draw(cases, path):
    """Two plots. cases: records of energy_conservation; raises ImportError without matplotlib."""
    plt = drawing.pyplot()
    figure, (left, right) = drawing.row_of_axes(plt, 2, 4.5)
    for section, filled in (("error, 1 fs", False), ("error, 2 fs", True)):
        for method, (errors, drifts, spreads) in heating(cases, section).items():
            color, marker = STYLES[method]
            left.errorbar(
                errors,
                drifts,
                spreads,
                color=color,
                marker=marker,
                markerfacecolor=color if filled else "white",
                linestyle="none",
                label=f"{method}, {section.split(', ')[1]}",
            )
    left.set_xscale("log")
    left.set_yscale("symlog", linthresh=1e-2)
    left.set_ylim(-0.1, 100)
    left.set_xlabel("relative RMS error of the forces")
    left.set_ylabel("drift due to it, $kT$/ns per atom")
    for section, line in LINES.items():
        for method, (color, marker) in STYLES.items():
            chosen = [c for c in cases if c["section"] == section and c["method"] == method]
            if chosen:
                right.errorbar(
                    [1000 * case["dt"] for case in chosen],
                    [case["drift_kT_per_ns_atom"] for case in chosen],
                    [case["drift_error"] for case in chosen],
                    color=color,
                    marker=marker,
                    linestyle=line,
                    label=f"{method}, {section.replace('rigid, ', '')} precision",
                )
    right.axhline(0, color="black", linewidth=0.5)
    right.set_xlabel("time step, fs")
    right.set_ylabel("drift, $kT$/ns per atom")
    drawing.add_legend(figure)
    drawing.save(figure, path, bbox_inches="tight")
    plt.close(figure)
