# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arguments that the commands share, and all that can be checked of arguments before anything is run."""

import argparse
import math
import os
import shlex
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .gromacs.program import GmxError

# Of mdrun: what the commands set themselves, what names other files than those that they read, and what makes
# other runs than one of FILE.tpr
TAKEN = {
    *("-s", "-deffnm", "-o", "-x", "-e", "-g", "-c", "-cpi", "-cpo", "-nsteps", "-rerun", "-multidir", "-replex"),
    *("-tunepme", "-notunepme", "-resethway", "-resetstep", "-confout", "-noconfout", "-append", "-noappend"),
}


def number(kind, least, most=math.inf, above=False):
    """A type for add_argument(): numbers from least, or only above it, to most."""

    def parse(text):
        value = kind(text)
        if not (least < value if above else least <= value) or not value <= most or value == math.inf:
            lower = f"above {least:g}" if above else f"at least {least:g}"
            upper = "" if most == math.inf else f", at most {most:g}"
            raise argparse.ArgumentTypeError(f"{text} is out of range: {lower}{upper}")
        return value

    parse.__name__ = kind.__name__  # which argparse names where the text is no number
    return parse


def mdrun_flags(text):
    """A type for add_argument(): options for mdrun as one text, of which none is the command's own."""
    words = shlex.split(text)
    if words and not words[0].startswith("-"):
        raise argparse.ArgumentTypeError(f"'{text}' does not begin with an option of mdrun")
    for word in words:
        if word in TAKEN:
            raise argparse.ArgumentTypeError(f"{word} is set by this command, leave it out")
    return text


def add_common(parser):
    """What both commands have."""
    # The limits of the library; what single precision cannot have is refused with the first forces
    accuracy = number(float, 1e-11, 0.1)
    parser.add_argument(
        "--accuracy",
        type=accuracy,
        default=3e-4,
        help="wanted of FMM: RMS error of the forces relative to the RMS Coulomb force (3e-4)",
    )
    parser.add_argument("--gmx", type=Path, default=Path("gmx"), help="the patched program (gmx)")
    parser.add_argument(
        "--mdrun", type=mdrun_flags, default="", metavar="FLAGS", help='of mdrun, as "-ntomp 8 -nb gpu"'
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep inputs, logs and trajectories")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--overwrite", action="store_true", help="write over files of an earlier command")


def check_files(run_inputs, outputs, keep, overwrite):
    """Raises GmxError where an input is missing, or an output cannot be written or is there already.

    outputs: {option: path, or None}; keep, overwrite: the options.
    """
    for path in run_inputs:
        if not path.is_file():
            raise GmxError(f"there is no file {path}")
        if sum(path.resolve() == other.resolve() for other in run_inputs) > 1:
            raise GmxError(f"{path} is given twice")
    outputs = {option: path for option, path in outputs.items() if path}
    for option, path in outputs.items():
        if not path.parent.is_dir():
            raise GmxError(f"{option} {path}: there is no folder {path.parent}; make it, or name another")
        if path.is_dir():
            raise GmxError(f"{option} {path} is a folder; name a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise GmxError(f"{option} {path} cannot be written; name another place")
        if path.is_file() and not overwrite:
            raise GmxError(f"{option} {path} is there already; name another file, or add --overwrite")
    if keep:
        there = next(path for path in (keep, *keep.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise GmxError(f"--keep {keep} is no folder that can be written to; name another")
    if len({path.resolve() for path in outputs.values()}) < len(outputs):
        raise GmxError(f"{' and '.join(outputs)} name one file; give each its own")


@contextmanager
def work_folder(keep, runs="", goes_on=""):
    """The folder of --keep, or a temporary one, which is left for a look where a command of gmx failed.

    runs: pattern of files that make the folder worth keeping when the user interrupts, too; goes_on: option
    that goes on with these.
    """
    folder = keep or Path(tempfile.mkdtemp(prefix="farfield-"))
    words = goes_on if keep else f"--keep {folder} {goes_on}"
    left = True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        left = False
    except KeyboardInterrupt as interruption:
        left = bool(runs and any(folder.rglob(runs)))
        if left:
            what = f"what was run is in {folder}, the same command with {words} goes on with it"
        else:
            what = f"logs are in {keep}" if keep else "nothing is kept"
        raise type(interruption)(what) from None
    except (GmxError, OSError) as error:
        left = any(path.is_file() for path in folder.rglob("*"))
        if left and not keep:
            going_on = f", the same command with {words} goes on with them" if runs and any(folder.rglob(runs)) else ""
            raise GmxError(f"{error}\nfarfield: files are kept in {folder}{going_on}") from error
        raise
    finally:
        if not left and not keep:
            shutil.rmtree(folder, ignore_errors=True)
