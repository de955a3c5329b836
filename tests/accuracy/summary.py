# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A table, a line for each system, of what farfield_accuracy_suite prints.

    build/bin/farfield_accuracy_suite > accuracy.txt
    python3 tests/accuracy/summary.py accuracy.txt > docs/accuracy.md
"""

import argparse
import re
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

LINE = re.compile(r"^(?P<system>.+?)\s+(?P<count>\d+) (?P<box>[\d.]+(?:x[\d.]+)+)\s+"
                  r"(?P<precision>float|double)\s+(?P<request>\S+) +(?P<result>.*)$")
HEAD = """# Accuracy asked for and accuracy measured

One line a system and precision of what `farfield_accuracy_suite` measures (its `--help` explains the
columns), at requests of 1e-2, 1e-3, 3e-4, 1e-5, and in double precision 1e-7, 1e-9, 1e-11 as well: RMS
force errors against an Ewald sum, at 4 to 240 positions of the grid, more the fewer particles there are.

    build/bin/farfield_accuracy_suite > accuracy.txt
    python3 tests/accuracy/summary.py accuracy.txt > docs/accuracy.md

*error / request*: median over the requests, and the largest, of the worst position of the grid; above 1 a
request would be missed. *estimate / error*: the range of what the log tells over what is measured.
*refused*: requests that the library says it cannot meet.
"""


@dataclass
class Row:
    """The cases of a system in one precision."""

    particles: str
    box: str
    ratios: list = field(default_factory=list)  # worst error over the request
    estimates: list = field(default_factory=list)  # estimate over the error
    refused: list = field(default_factory=list)  # requests
    missed: list = field(default_factory=list)  # requests, with the verdict


def read(path):
    """{(system, precision): row}, and the number of cases."""
    rows, cases = {}, 0
    for line in path.read_text().splitlines():
        found = LINE.match(line)
        if not found:
            continue
        cases += 1
        row = rows.setdefault((found["system"], found["precision"]),
                              Row(found["count"], found["box"]))
        result = found["result"]
        if result.startswith("refused"):
            row.refused.append(found["request"])
            continue
        values = result.split()
        verdicts = [word for word in values if word.isalpha()]
        if not verdicts or verdicts[0] != "met":
            row.missed.append(f"{found['request']} ({' '.join(verdicts)})")
        row.ratios.append(float(values[2]) / float(found["request"]))
        row.estimates.append(float(values[4]))
    return rows, cases


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output_of_the_suite", type=Path)
    rows, cases = read(parser.parse_args().output_of_the_suite)
    if not rows:
        sys.exit("summary.py: no case in that file")
    refused = sum(len(row.refused) for row in rows.values())
    missed = sum(len(row.missed) for row in rows.values())
    print(f"{HEAD}\n{cases} cases: {cases - refused - missed} met, {refused} refused, "
          f"{missed} missed.\n")
    print("| system | particles | box, nm | precision | error / request | estimate / error | refused "
          "| missed |\n|---|---|---|---|---|---|---|---|")
    for (system, precision), row in rows.items():
        ratio = estimate = ""
        if row.ratios:
            ratio = f"{statistics.median(row.ratios):.2g}, {max(row.ratios):.2g}"
            estimate = f"{min(row.estimates):.2g} to {max(row.estimates):.2g}"
        print(f"| {system} | {row.particles} | {row.box} | {precision} | {ratio} | {estimate} | "
              f"{', '.join(row.refused)} | {', '.join(row.missed)} |")


if __name__ == "__main__":
    main()
