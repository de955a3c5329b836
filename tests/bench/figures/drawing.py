# SPDX-License-Identifier: LGPL-2.1-or-later
"""The style that all figures share."""


def pyplot():
    """matplotlib's pyplot without a screen, which writes the same file for the same data."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "farfield"
    import matplotlib.pyplot as plt

    return plt


def row_of_axes(plt, count, width):
    """A figure with so many axes side by side, each so wide (inches)."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, 4), squeeze=False)
    for axis in axes[0]:
        axis.grid(alpha=0.3)
    return figure, axes[0]


def add_legend(figure):
    """One legend for all axes, below them: curves fill the axes."""
    figure.tight_layout()
    entries = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=min(4, len(entries)),
        fontsize=7,
    )


def save(figure, path, **options):
    """Writes an SVG without its date; options: of savefig()."""
    figure.savefig(path, metadata={"Date": None}, **options)
