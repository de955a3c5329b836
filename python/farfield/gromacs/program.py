# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs commands of a gmx program in a folder and collects their messages."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class GmxError(RuntimeError):
    """A gmx command failed; the text says which, and ends with its last messages."""


@dataclass
class Done:
    """A finished command: exit status (negative: the signal) and both outputs together."""

    command: str
    messages: Path
    status: int
    text: str

    def ok(self):
        """Returns itself, or raises GmxError if the command failed."""
        if self.status != 0:
            tail = "\n".join(self.text.splitlines()[-25:])
            raise GmxError(
                f"gmx {self.command} failed, exit status {self.status} "
                f"(messages in {self.messages}):\n{tail}"
            )
        return self


def clean_environment():
    """The environment without what would change results or speed behind the caller's back."""
    # Another force field; a number of threads beside mdrun's own, which is an error; threads that
    # sleep between two parallel regions, which makes the pair search slow; reference forces.
    unwanted = ("GMXLIB", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GMX_FMM_REFERENCE")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


class Gmx:
    """One gmx program, a path or a name on PATH; its commands end after time_limit seconds, if there is one."""

    def __init__(self, program, time_limit=None):
        self.program = Path(shutil.which(program) or program).resolve()
        self.time_limit = time_limit
        if not os.access(self.program, os.X_OK):
            raise GmxError(f"no program at {program}; ./quickstart.sh gmx builds one")

    def attempt(self, command, *arguments, folder, answer="", variables=None, time_limit=None):
        """Runs one command, which may fail; its messages also go to <command>.out in the folder.

        answer: what to type at its questions; variables: to add to the environment. Raises
        subprocess.TimeoutExpired when it takes longer than the time limit.
        """
        words = [str(self.program), "-quiet", "-nobackup", command, *map(str, arguments)]
        done = subprocess.run(
            words,
            cwd=folder,
            input=answer,
            env={**clean_environment(), **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=time_limit or self.time_limit,
            check=False,
        )
        messages = Path(folder) / f"{command}.out"
        messages.write_text(done.stdout)
        return Done(command, messages, done.returncode, done.stdout)

    def __call__(self, command, *arguments, **options):
        """Runs one command, which has to succeed, as attempt() does; returns its messages."""
        return self.attempt(command, *arguments, **options).ok().text

    def version(self):
        """The lines of "gmx -version" that matter for a comparison of speeds."""
        text = subprocess.run(
            [str(self.program), "-quiet", "-version"],
            text=True,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ).stdout
        wanted = (
            *("GROMACS version", "Precision", "SIMD instructions", "CPU FFT library"),
            *("GPU support", "C++ compiler"),
        )
        lines = (line.split(":", 1) for line in text.splitlines() if ":" in line)
        return {name.strip(): value.strip() for name, value in lines if name.strip() in wanted}
