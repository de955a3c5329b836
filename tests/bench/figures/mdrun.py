# SPDX-License-Identifier: LGPL-2.1-or-later
"""mdrun_gpu: speeds of mdrun."""

from tests.bench.figures import drawing


def draw(records, path):
    """Speed of FMM over that of PME as bars, each method at its best; speeds beside them, ns/day.

    records: {system: record} of mdrun_gpu. Raises ImportError without matplotlib.
    """
    plt = drawing.pyplot()
    figure, axes = plt.subplots(figsize=(8, 0.8 + 0.32 * len(records)), layout="constrained")
    shown = list(reversed(list(records.items())))
    ratios = [record["fmm_over_pme"] for _, record in shown]
    spreads = [record["fmm_over_pme_half_range"] for _, record in shown]
    axes.barh(range(len(shown)), ratios, 0.7, xerr=spreads, color="C0")
    for place, (_, record) in enumerate(shown):
        fmm, pme = (record["kinds"][record["best"][base]]["median"] for base in ("FMM", "PME"))
        text = f"{fmm:.0f} and {pme:.0f}"
        axes.annotate(text, (0, place), (4, 0), textcoords="offset points", va="center", color="white")
    axes.axvline(1, color="black", linewidth=0.8)
    titles = [f"{record.get('title', name)}, {record['atoms']} atoms" for name, record in shown]
    axes.set_yticks(range(len(shown)), titles)
    axes.margins(y=0.02)
    axes.set_xlabel("speed with FMM over speed with PME\n(in the bars: ns/day with FMM and with PME)")
    drawing.save(figure, path)
    plt.close(figure)
