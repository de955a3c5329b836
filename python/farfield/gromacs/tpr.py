# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run input files (.tpr): what they hold, changed copies of them, and short runs."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import log, mdp, trr
from .program import Gmx, GmxError, clean_environment

# mdrun evaluates forces in double precision at the highest order then
REFERENCE = {"GMX_FMM_REFERENCE": "1"}
# Options of mdrun that deal with ranks
OF_RANKS = {"-ntmpi", "-npme", "-ddorder", "-dd", "-rdd", "-rcon", "-dlb", "-dds", "-ntomp_pme", "-gputasks"}


def parameters(gmx, tpr):
    """{name: value} of the run parameters, as text, and "atoms"."""
    # The dump goes on with every position: what follows the topology's head is not waited for
    command = [str(gmx.program), "-quiet", "dump", "-s", str(tpr)]
    found: dict[str, str] = {}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # it is a pipe
        for line in process.stdout:
            row = re.match(r"\s+([\w-]+)\s*(?:\([^)]*\))?\s*[=:]\s*(.*\S)", line)
            if row:
                found.setdefault(row.group(1), row.group(2))
            if line.startswith("topology:"):
                break
        process.kill()
    if "coulombtype" not in found:
        raise GmxError(f"{tpr} is not a run input file that {gmx.program} reads")
    found["atoms"] = found.pop("natoms")
    return found


def one_rank(flags):
    """Options of mdrun without those of several ranks."""
    words, skipped = [], False
    for word in flags:
        if re.match("-[a-z]", word):
            skipped = word in OF_RANKS
            words += ["-ntmpi", "1"] if word == "-ntmpi" else []
        words += [] if skipped else [word]
    return tuple(words)


@dataclass
class RunInput:
    """A run input file in the hands of a gmx program; files go to the folder."""

    gmx: Gmx
    tpr: Path
    folder: Path
    flags: tuple = ()  # of mdrun

    def changed(self, name, changes, steps=None):
        """A copy, NAME.tpr in the folder, with other parameters; {} changes none."""
        mdp.write(self.folder / f"{name}.mdp", changes)
        files = ["-s", self.tpr.resolve(), "-f", f"{name}.mdp", "-o", f"{name}.tpr"]
        length = [] if steps is None else ["-nsteps", steps]
        self.gmx("convert-tpr", *files, *length, folder=self.folder)
        return self.folder / f"{name}.tpr"

    def run(self, name, flags=(), variables=None):
        """mdrun of NAME.tpr; returns the path of its log.

        Without -noconfout it leaves a checkpoint, also where it is ended by -maxh.
        """
        # Forces of reference are those of one rank
        own = one_rank(self.flags) if variables == REFERENCE else self.flags
        self.gmx(
            "mdrun",
            *("-s", f"{name}.tpr", "-deffnm", name, "-notunepme"),
            *own,
            *flags,
            folder=self.folder,
            variables=variables,
        )
        return self.folder / f"{name}.log"

    def single_point(self, name, changes, step=0, variables=None):
        """Evaluates the starting structure; NAME.trr, NAME.edr and NAME.log are left.

        Returns the last frame, with total forces in kJ/mol/nm, and the path of the log.
        """
        output = {"init-step": step, "nstxout": 1, "nstfout": 1}
        self.changed(name, {**changes, **output}, steps=0)
        path = self.run(name, ["-noconfout"], variables)
        *_, frame = trr.frames(self.folder / f"{name}.trr")
        return frame, path

    def reference(self, name="reference", step=0):
        """The starting structure with converged forces, and the RMS of their Coulomb part.

        Coulomb forces are those of the library in double precision at order 20, whose error is
        about 1e-12 of them.
        """
        fmm = {**mdp.FMM, "fmm-farfield-tune": "no"}
        frame, path = self.single_point(name, fmm, step, REFERENCE)
        found = re.search(r"RMS Coulomb force (\S+)", path.read_text(errors="replace"))
        if not found:
            raise GmxError(f"{self.gmx.program} evaluates no reference forces; see {path}")
        return frame, float(found.group(1))

    def speed(self, name, steps):
        """ns/day of NAME.tpr over the second half of so many steps."""
        return log.speed(self.run(name, ["-nsteps", steps, "-resethway", "-noconfout"]))
