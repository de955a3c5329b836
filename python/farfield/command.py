# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program "farfield"."""

import argparse
import shlex
import sys

from .gromacs.program import GmxError


def main(words=None):
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="farfield", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    try:
        from .report import report
        from .tune import tune
    except ImportError as missing:
        print(f"farfield: {missing}; pip install '.[tools]' brings it", file=sys.stderr)
        return 1

    tune.add_parser(commands)
    report.add_parser(commands)
    arguments = parser.parse_args(words)
    # What pages and files of results say they were made by
    arguments.command = "farfield " + shlex.join(sys.argv[1:] if words is None else words)
    try:
        arguments.run(arguments)
    except GmxError as error:
        print(f"farfield: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
