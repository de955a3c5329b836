# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs gmx commands in a folder, with a time limit, and collects what they wrote.

Environment:
  GMX                          the patched program (default: build/bin/gmx of this tree)
  GMX_DOUBLE                   a double-precision GROMACS for converged references (default: gmx_d)
  GROMACS_SOURCE_DIR           GROMACS sources: structures and force fields
  GROMACS_REGRESSIONTESTS_DIR  GROMACS's own regression tests
  FARFIELD_TEST_THREADS        OpenMP threads of mdrun (default: all processors)
  FARFIELD_TEST_GPU            whether mdrun uses a GPU, 0 or 1 (default: if gmx and machine can)
"""

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gmxio

ROOT = Path(__file__).resolve().parents[2]
# kJ/mol/nm^3 in bar (CODATA 2018).
BAR = 16.6053906717


def gmx():
    """The patched program."""
    path = Path(os.environ.get("GMX", ROOT / "build" / "bin" / "gmx"))
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"no gmx at {path}: run quickstart.sh, or set GMX")
    return str(path)


def gmx_double():
    """A double-precision GROMACS without FMM, or None."""
    return shutil.which(os.environ.get("GMX_DOUBLE", "gmx_d"))


def folder_from_environment(name):
    """A folder that quickstart.sh exports; its absence is an error, not a reason to skip."""
    value = os.environ.get(name)
    if not value or not Path(value).is_dir():
        raise FileNotFoundError(f"{name} does not name a folder: run the tests by quickstart.sh")
    return Path(value)


def threads():
    return int(os.environ.get("FARFIELD_TEST_THREADS", 0)) or len(os.sched_getaffinity(0))


@functools.cache
def on_gpu():
    """Whether FMM and the non-bonded interactions are on a GPU where nothing else is asked for."""
    asked = os.environ.get("FARFIELD_TEST_GPU")
    if asked:
        return asked == "1"
    if not re.search(r"GPU support:\s+CUDA", call(["--version"], ".").text):
        return False
    try:
        found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return found.returncode == 0 and "GPU" in found.stdout


class GmxError(RuntimeError):
    """A gmx command failed where success was expected."""


@dataclass
class Done:
    """A finished command: exit status and both outputs together."""

    status: int
    text: str

    def ok(self):
        if self.status != 0:
            raise GmxError(f"exit status {self.status}\n{self.text[-4000:]}")
        return self


def call(arguments, folder, stdin="", timeout=300, program=None, variables=None):
    """Runs one gmx command; raises subprocess.TimeoutExpired when it hangs."""
    environment = dict(os.environ, GMX_MAXBACKUP="-1", GMX_NO_QUOTES="1", **(variables or {}))
    command = [program or gmx(), *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
    )
    return Done(done.returncode, done.stdout)


# One energy and force evaluation of a standard set-up; the tests change single entries.
STANDARD = {
    "integrator": "md",
    "dt": 0.002,
    "nsteps": 0,
    "cutoff-scheme": "Verlet",
    "coulombtype": "PME",
    "rcoulomb": 0.9,
    "rvdw": 0.9,
    "vdwtype": "cut-off",
    "fourierspacing": 0.12,
    "pme-order": 4,
    "constraints": "h-bonds",
    "nstxout": 0,
    "nstvout": 0,
    "nstfout": 0,
    "nstenergy": 1,
    "nstcalcenergy": 1,
    "nstlog": 100,
    "ld-seed": 1993,
    "gen-seed": 1993,
}

ONE_STEP = {"nsteps": 0, "nstxout": 1, "nstfout": 1, "nstlog": 1, "continuation": "yes"}

FMM = {"coulombtype": "FMM", "fmm-backend": "farfield"}

# One setting in every run: what timing on a GPU prefers may differ, within the accuracy.
UNTUNED_FMM = {**FMM, "fmm-farfield-tune": "no"}

# PME converged as far as mixed precision lets it, with an unchanged Lennard-Jones cut-off: 5e-6 to
# 7e-6 in the forces against double precision, and 0.1 bar in the pressure, for water and ions.
TIGHT_PME = {
    "coulombtype": "PME",
    "fourierspacing": 0.06,
    "pme-order": 8,
    "ewald-rtol": 1e-7,
}

# Another one as tight, with another splitting: what differs between the two is PME's own error.
OTHER_TIGHT_PME = {
    "coulombtype": "PME",
    "fourierspacing": 0.05,
    "pme-order": 8,
    "ewald-rtol": 1e-8,
}

# Converged in double precision: two such settings agree to 4e-7 in the forces.
CONVERGED_PME = {
    "coulombtype": "PME",
    "fourierspacing": 0.03,
    "pme-order": 12,
    "ewald-rtol": 1e-12,
}


def settings(*changes):
    """STANDARD with the changes applied one after another."""
    result = dict(STANDARD)
    for change in changes:
        result.update(change)
    return result


def write_mdp(path, entries):
    Path(path).write_text("".join(f"{key} = {value}\n" for key, value in entries.items()))


def normalised(key):
    """The form in which grompp compares mdp names: case, '-' and '_' do not count."""
    return re.sub(r"[-_]", "", key).lower()


def read_mdp(path):
    """Returns {name as written: value} of an mdp file."""
    entries = {}
    for line in Path(path).read_text(errors="replace").splitlines():
        key, equals, value = line.split(";")[0].partition("=")
        if equals:
            entries[key.strip()] = value.strip()
    return entries


def change_mdp(entries, changes):
    """Applies changes to entries, whatever spelling the names have."""
    wanted = {normalised(key) for key in changes}
    kept = {key: value for key, value in entries.items() if normalised(key) not in wanted}
    return {**kept, **changes}


@dataclass
class Run:
    """What a finished mdrun left: frames, energy terms, log."""

    folder: Path
    name: str
    text: str

    @property
    def frames(self):
        return gmxio.read_trr(self.folder / f"{self.name}.trr")

    @property
    def forces(self):
        return self.frames[0].f

    @property
    def energies(self):
        return gmxio.read_edr(self.folder / f"{self.name}.edr")

    @property
    def log(self):
        return (self.folder / f"{self.name}.log").read_text(errors="replace")

    def coulomb(self):
        """Coulomb energy without the 1-4 pairs, kJ/mol, per energy frame."""
        terms = self.energies
        total = np.array(terms["Coulomb (SR)"], dtype=float)
        if "Coul. recip." in terms:
            total = total + np.array(terms["Coul. recip."], dtype=float)
        return total

    def pressure_tensor(self):
        """Pressure tensor, bar, [frame][3][3]."""
        terms = self.energies
        return np.array([[terms[f"Pres-{a}{b}"] for b in "XYZ"] for a in "XYZ"]).transpose(2, 0, 1)


def grompp(folder, name, entries, conf, top, flags=(), program=None, timeout=120):
    """Writes NAME.mdp and makes NAME.tpr of it; returns the finished command, failed or not."""
    write_mdp(Path(folder) / f"{name}.mdp", entries)
    files = ["-f", f"{name}.mdp", "-c", conf, "-p", top]
    files += ["-o", f"{name}.tpr", "-po", f"{name}-out.mdp"]
    return call(["grompp", *files, *flags], folder, program=program, timeout=timeout)


def mdrun(
    folder, name, flags=(), program=None, timeout=300, ntmpi=1, ntomp=None, variables=None
):
    """Runs NAME.tpr; returns the finished command, failed or not."""
    parallel = ["-ntmpi", ntmpi, "-ntomp", ntomp or threads(), "-pin", "off"]
    if program is not None:
        # A build without thread-MPI knows no -ntmpi.
        parallel = parallel[2:]
    command = ["mdrun", "-deffnm", name, *parallel, *flags]
    return call(command, folder, program=program, timeout=timeout, variables=variables)


def reproducible_fmm():
    """FMM for runs with reproducible(): on the GPU if there is one, though non-bondeds are not."""
    return {**FMM, "fmm-farfield-device": "gpu"} if on_gpu() else FMM


def reproducible():
    """Flags for bitwise equal results: GROMACS's own kernels on a GPU do not give those."""
    return ["-reprod", "-nb", "cpu"] if on_gpu() else ["-reprod"]


def simulate(
    folder, name, entries, system, flags=(), warnings=0, grompp_flags=(), program=None, timeout=300
):
    """grompp and mdrun, both of which must succeed.

    So many warnings are allowed beside the system's own.
    """
    allowed = ["-maxwarn", system.warnings + warnings, *grompp_flags]
    grompp(folder, name, entries, system.conf, system.top, allowed, program=program).ok()
    done = mdrun(folder, name, flags, program=program, timeout=timeout).ok()
    return Run(Path(folder), name, done.text)


def rms(vectors):
    """Root mean square length of vectors[n][3]."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def force_error(forces, reference):
    """Relative RMS error of the total force."""
    return rms(forces - reference) / rms(reference)
