# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What farfield_accuracy_suite prints, as a file of results; and the table of docs/accuracy.md.

    build/bin/farfield_accuracy_suite > accuracy.txt
    python3 -m tests.accuracy.summary accuracy.txt --output accuracy_suite.json
"""

import argparse
import re
import statistics
import sys
from pathlib import Path

from tests.bench import results

LINE = re.compile(r"^(?P<system>.+?)\s+(?P<particles>\d+) (?P<box>[\d.]+(?:x[\d.]+)+)\s+"
                  r"(?P<precision>float|double)\s+(?P<request>\S+) +(?P<result>.*)$")
TITLES = ("system", "particles", "box, nm", "precision", "error / request", "estimate / error", "refused", "missed")


def read(path):
    """The cases of the suite's output."""
    for line in path.read_text().splitlines():
        if found := LINE.match(line):
            case = found.groupdict()
            values = case.pop("result").split()
            if values[0].startswith("refused"):
                yield {**case, "verdict": "refused"}
            else:
                verdict = " ".join(word for word in values if word.isalpha()) or "unknown"
                yield {**case, "error": float(values[2]), "estimate_over_error": float(values[4]), "verdict": verdict}


def counted(cases):
    """A sentence of how many cases there are."""
    verdicts = [case["verdict"].split()[0] for case in cases]  # "met idle": by more than was asked
    met, refused = verdicts.count("met"), verdicts.count("refused")
    return f"{len(cases)} cases: {met} met, {refused} refused, {len(cases) - met - refused} missed."


def row(cases):
    """Of a system in one precision."""
    known = [case for case in cases if "error" in case]
    ratio = estimate = ""
    if known:
        ratios = [case["error"] / float(case["request"]) for case in known]
        estimates = [case["estimate_over_error"] for case in known]
        ratio = f"{statistics.median(ratios):.2g}, {max(ratios):.2g}"
        estimate = f"{min(estimates):.2g} to {max(estimates):.2g}"
    refused = ", ".join(case["request"] for case in cases if case["verdict"] == "refused")
    worse = [case for case in known if not case["verdict"].startswith("met")]
    missed = ", ".join(f"{case['request']} ({case['verdict']})" for case in worse)
    first = cases[0]
    return [first["system"], first["particles"], first["box"], first["precision"], ratio, estimate, refused, missed]


def rows(cases):
    found = {}
    for case in cases:
        found.setdefault((case["system"], case["precision"]), []).append(case)
    return [row(of_system) for of_system in found.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output_of_the_suite", type=Path)
    parser.add_argument("--output", type=Path, default=Path("accuracy_suite.json"))
    arguments = parser.parse_args()
    cases = list(read(arguments.output_of_the_suite))
    if not cases:
        sys.exit("summary.py: no case in that file")
    command = {"command": "build/bin/farfield_accuracy_suite"}
    results.write(arguments.output, {**results.conditions(), **command, "cases": cases})
    print(counted(cases))


if __name__ == "__main__":
    main()
