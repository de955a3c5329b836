# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures of the report, as SVG to put into a page."""

import io

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of the backend

COLOURS = {"PME": "#8c510a", "FMM": "#01665e"}
SIZE = (4.6, 2.9)  # inches


def _figure(xlabel, ylabel):
    figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure):
    text = io.StringIO()
    # Without a date, so that equal results make equal pages
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def error_distribution(errors):
    """Part of the particles whose error is larger; errors: {kind: Errors}."""
    figure, axes = _figure("error of the force / RMS Coulomb force", "part of the particles above")
    for kind, error in errors.items():
        lengths = np.sort(error.lengths)
        above = 1.0 - np.arange(len(lengths)) / len(lengths)
        axes.loglog(lengths, above, color=COLOURS[kind], label=kind)
        axes.axvline(error.rms, color=COLOURS[kind], linewidth=0.8, linestyle=":")
    axes.set_xlim(left=max(1e-7, min(np.quantile(e.lengths, 0.01) for e in errors.values())))
    axes.legend(frameon=False, title="RMS dotted", title_fontsize="small")
    return _svg(figure)


def error_by_distance(error, bins=10):
    """RMS error of FMM by the distance to a face of a particle's cell."""
    figure, axes = _figure("distance to a face of the cell, in cells", "RMS error")
    lengths = np.sqrt((error.vectors[0] ** 2).sum(axis=1))
    edges = np.linspace(0, 0.5, bins + 1)
    which = np.digitize(error.to_faces, edges) - 1
    # Few particles are near the middle of a cell
    rows = [(edges[i : i + 2].mean(), lengths[which == i]) for i in range(bins)]
    rows = [(at, np.sqrt(np.mean(part**2))) for at, part in rows if len(part) >= 20]
    axes.plot(*zip(*rows), "o-", color=COLOURS["FMM"], markersize=4)
    axes.axhline(error.rms, color="grey", linewidth=0.8, linestyle=":")
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(axis="y", scilimits=(0, 0), useMathText=True)
    return _svg(figure)


def conserved_energy(runs):
    """Conserved energy from its start, per atom; runs: {kind: Trajectory}."""
    figure, axes = _figure("time, ps", "change, kJ/mol per atom")
    for kind, run in runs.items():
        values = (run.conserved - run.conserved[0]) / run.atoms
        axes.plot(run.terms["Time"], values, color=COLOURS[kind], label=kind, linewidth=1)
    axes.legend(frameon=False)
    return _svg(figure)


def radial_distribution(title, curves):
    """g(r) of both, and below the difference with two standard errors; curves: {kind: (radii, rows)}."""
    figure, (axes, below) = plt.subplots(
        2, figsize=SIZE, sharex=True, height_ratios=(3, 1.2), layout="constrained"
    )
    for kind, (radii, rows) in curves.items():
        style = "-" if kind == "PME" else "--"
        axes.plot(radii, rows.mean(axis=0), style, color=COLOURS[kind], label=kind, linewidth=1.2)
    means = {kind: rows.mean(axis=0) for kind, (_, rows) in curves.items()}
    error = np.sqrt(sum(rows.var(axis=0, ddof=1) / len(rows) for _, rows in curves.values()))
    below.fill_between(radii, -2 * error, 2 * error, color="0.85", linewidth=0)
    below.plot(radii, means["FMM"] - means["PME"], color=COLOURS["FMM"], linewidth=0.8)
    axes.set_ylabel(f"g(r), {title}")
    below.set_ylabel("FMM - PME")
    below.set_xlabel("r, nm")
    for part in (axes, below):
        part.spines[["top", "right"]].set_visible(False)
    figure.align_ylabels()
    axes.legend(frameon=False)
    return _svg(figure)
