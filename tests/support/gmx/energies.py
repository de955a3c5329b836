# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads .edr files by "gmx energy", which needs no packages; simulation.Run reads whole files."""

import re
from pathlib import Path


def first_frame(gmx, folder, name, terms):
    """{term: value} of the first frame of <name>.edr; a term that the file lacks is left out.

    Terms are asked for as gmx energy writes them, with "-" for blanks.
    """
    files = ("-f", f"{name}.edr", "-o", f"{name}.xvg")
    answer = "\n".join(terms) + "\n\n"
    gmx("energy", *files, "-b", 0, "-e", 0, "-dp", folder=folder, answer=answer)
    legends, values = [], None
    for line in (Path(folder) / f"{name}.xvg").read_text().splitlines():
        legend = re.match(r'@ s\d+ legend "(.*)"', line)
        if legend:
            legends.append(legend.group(1).replace(" ", "-"))
        elif line and line[0] not in "#@" and values is None:
            values = [float(word) for word in line.split()[1:]]
    return dict(zip(legends, values))
