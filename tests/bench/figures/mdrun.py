# SPDX-License-Identifier: LGPL-2.1-or-later
"""mdrun_gpu: speeds of mdrun."""

from tests.bench.figures import drawing


def draw(records, path):
    """Speeds of the best kinds as bars, the ratio above them.

    records: {system: record} of mdrun_gpu. Raises ImportError without matplotlib.
    """
    plt = drawing.pyplot()
    figure, axes = plt.subplots(figsize=(1.5 + 1.2 * len(records), 4), layout="constrained")
    for shift, base in enumerate(("PME", "FMM", "none")):
        for i, record in enumerate(records.values()):
            label = record["best"].get(base)
            if label:
                entry = record["kinds"][label]
                axes.bar(
                    i + 0.27 * (shift - 1),
                    entry["median"],
                    0.25,
                    color=f"C{shift}",
                    yerr=entry["half_range"],
                    label=base if i == 0 else None,
                )
                if base == "FMM":
                    axes.annotate(
                        f"{record['fmm_over_pme']:.2f}",
                        (i, entry["median"]),
                        (0, 5),
                        textcoords="offset points",
                        ha="center",
                    )
    axes.set_xticks(
        range(len(records)),
        [f"{name}\n{record['atoms']} atoms" for name, record in records.items()],
    )
    axes.set_yscale("log")
    axes.set_ylabel("ns/day, steps of 2 fs if the name does not say 4 fs")
    axes.set_title("mdrun; the numbers are FMM / PME")
    axes.legend(frameon=False)
    drawing.save(figure, path)
    plt.close(figure)
