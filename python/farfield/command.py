# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program "farfield"."""

import argparse
import errno
import shlex
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from .gromacs.program import GmxError, gathered

# What the machine, not this program, is the cause of
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class Ended(KeyboardInterrupt):
    """SIGTERM, by which batch systems end a job: as an interruption."""


def end(*_):
    raise Ended


def main(words=None):
    """Runs a command; returns the exit status."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, end) if in_main else None
    try:
        run(words)
    except GmxError as error:
        print(f"farfield: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in OF_THE_MACHINE:
            raise
        print(f"farfield: {error.strerror}: {error.filename or 'writing results'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interruption:
        print("; ".join(["farfield: interrupted", *map(str, interruption.args)]), file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(interruption, Ended) else signal.SIGINT)
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)
    return 0


def run(words):
    """Parses the words, those of the command line if None, and runs the command."""
    parser = argparse.ArgumentParser(prog="farfield", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    try:
        from .report import report
        from .tune import tune
    except ImportError as missing:
        raise GmxError(f"{missing}; pip install '.[tools]' brings it") from None

    tune.add_parser(commands)
    report.add_parser(commands)
    arguments = parser.parse_args(words)
    # What pages and files of results say they were made by
    arguments.command = "farfield " + shlex.join(sys.argv[1:] if words is None else words)
    # Interruptions reach the thread that waits, and never one that is starting gmx
    with ThreadPoolExecutor(1) as pool:
        gathered(pool, [partial(arguments.run, arguments)])


if __name__ == "__main__":
    sys.exit(main())
