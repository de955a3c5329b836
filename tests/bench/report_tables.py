# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of docs/report.md, from what "farfield report --json" has written.

    python3 -m tests.bench.report_tables tests/bench/results/large_report.json --systems membrane-npt

Systems stand side by side: values with standard errors, and in standard errors by how much FMM is above
PME. A line that is not within its bound says so. Errors of forces, which have none, are left out.
"""

import argparse
import sys
from pathlib import Path

from farfield.report.series import describe
from tests.bench import results


def cells(line):
    """Of one line of the file: PME, FMM, and how far they are apart."""
    verdict = "" if line["verdict"] == "within" else f" ({line['verdict']})"
    return [describe(*line["PME"]), describe(*line["FMM"]), f"{line['standard_errors_apart']:+.1f}{verdict}"]


def table(lines, systems):
    """Text of a table in Markdown; lines: of the file."""
    titles = {}
    for line in lines:
        if line["system"] in systems and line["kind"] != "force error":
            titles.setdefault((line["title"], line["unit"]), {})[line["system"]] = cells(line)
    head = [f"{name}, PME | FMM | apart" for name in systems]
    rows = [f"| | | {' | '.join(head)} |", "|---" * (2 + 3 * len(systems)) + "|"]
    for (title, unit), found in titles.items():
        of_systems = [cell for name in systems for cell in found.get(name, [""] * 3)]
        rows.append(f"| {' | '.join([title, unit, *of_systems])} |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("json", type=Path)
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="some of them (all)")
    arguments = parser.parse_args()
    found = results.read(arguments.json)
    unknown = set(arguments.systems or ()) - found["systems"].keys()
    if unknown:
        parser.error(f"{arguments.json} has no {', '.join(sorted(unknown))}, but {', '.join(found['systems'])}")
    print(table(found["lines"], arguments.systems or list(found["systems"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
