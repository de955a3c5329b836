# SPDX-License-Identifier: LGPL-2.1-or-later
"""The learning curve of docs/tutorial-python.md, from what the page shows that the program prints.

    python3 -m tests.bench.figures.learning
"""

import re
from pathlib import Path

from tests.bench.figures import drawing

DOCS = Path(__file__).parents[3] / "docs"
ROUND = re.compile(r"^ +(\d+) +([\d.]+) +([\d.]+)$", re.MULTILINE)


def draw(page, path):
    """Raises ImportError without matplotlib."""
    _, printed = page.split("print(\"round  RMS error", maxsplit=1)
    rounds, known, unseen = zip(*[map(float, row) for row in ROUND.findall(printed)])
    figure, (axis,) = drawing.row_of_axes(drawing.pyplot(), 1, 5)
    for errors, marker, label in ((known, "o", "boxes of the training"), (unseen, "s", "unseen boxes")):
        axis.plot(rounds, errors, marker=marker, markerfacecolor="white", label=label)
    axis.set_yscale("log")
    axis.set_xlabel("round")
    axis.set_ylabel("RMS error of the forces, kJ/mol/nm")
    drawing.add_legend(figure)
    drawing.save(figure, path, bbox_inches="tight")


if __name__ == "__main__":
    draw((DOCS / "tutorial-python.md").read_text(), DOCS / "figures/charges_learned.svg")
