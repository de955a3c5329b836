# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs of the tests: grompp and mdrun, and what they leave as numpy arrays."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyedr

from farfield.gromacs import program, trr

from . import mdp
from .environment import TIME_LIMIT, gmx, gmx_mpi, on_gpu, threads

# More processes than processors, and root.
OF_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
# kJ/mol/nm^3 in bar (CODATA 2018).
BAR = 16.6053906717


@dataclass
class Frame:
    """One frame of a trr file in double precision; x, v and f [n][3], or None if not there."""

    step: int
    time: float
    is_double: bool
    box: np.ndarray | None
    x: np.ndarray | None
    v: np.ndarray | None
    f: np.ndarray | None


def _vectors(values):
    return None if values is None else np.array(values, dtype=np.float64).reshape(-1, 3)


def read_trr(path):
    """All frames of a trr file."""
    return [
        Frame(f.step, f.time, f.is_double, *map(_vectors, (f.box, f.x, f.v, f.f)))
        for f in trr.frames(path)
    ]


def read_edr(path):
    """{term: array over frames} of an edr file; "Time" is one of the terms."""
    return pyedr.edr_to_dict(str(path))


@dataclass
class Run:
    """What a finished mdrun left: frames, energy terms, log."""

    folder: Path
    name: str

    @property
    def frames(self):
        return read_trr(self.folder / f"{self.name}.trr")

    @property
    def forces(self):
        return self.frames[0].f

    @property
    def energies(self):
        return read_edr(self.folder / f"{self.name}.edr")

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


def grompp(folder, name, entries, conf, top, flags=(), program=None):
    """Writes NAME.mdp and makes NAME.tpr of it; returns the finished command, failed or not.

    program: the patched gmx if there is none.
    """
    mdp.write(Path(folder) / f"{name}.mdp", entries)
    files = ["-f", f"{name}.mdp", "-c", conf, "-p", top]
    files += ["-o", f"{name}.tpr", "-po", f"{name}-out.mdp"]
    return (program or gmx()).attempt("grompp", *files, *flags, folder=folder)


def mdrun(
    folder, name, flags=(), program=None, time_limit=None, ntmpi=1, ntomp=None, variables=None
):
    """Runs NAME.tpr; returns the finished command, failed or not."""
    # A build without thread-MPI, as another program may be, knows no -ntmpi.
    ranks = [] if program else ["-ntmpi", ntmpi]
    parallel = [*ranks, "-ntomp", ntomp or threads(), "-pin", "off"]
    command = ["mdrun", "-deffnm", name, *parallel, *flags]
    program = program or gmx()
    return program.attempt(*command, folder=folder, variables=variables, time_limit=time_limit)


def start_with_mpi(folder, name, ranks, flags=()):
    """Starts NAME.tpr on ranks of an MPI library, processes of one thread each; returns mpirun.

    They may be more than there are processors. Messages go to its stdout.
    """
    command = ["mpirun", "-np", ranks, gmx_mpi(), "-nobackup"]
    command += ["mdrun", "-deffnm", name, "-ntomp", 1, "-pin", "off", *flags]
    return subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        env={**program.clean_environment(), **OF_OPEN_MPI},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def end_of(started, time_limit):
    """Status and messages of what start_with_mpi() returned; subprocess.TimeoutExpired ends it."""
    try:
        text, _ = started.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        started.terminate()  # mpirun ends the ranks
        started.communicate()
        raise
    return started.returncode, text


def mdrun_with_mpi(folder, name, ranks, flags=(), time_limit=TIME_LIMIT):
    """Runs NAME.tpr as start_with_mpi() does; it must succeed."""
    status, text = end_of(start_with_mpi(folder, name, ranks, flags), time_limit)
    if status != 0:
        raise program.GmxError(f"gmx_mpi mdrun failed:\n{text[-3000:]}")


def peak_memory(folder, name, flags=(), variables=None):
    """Largest resident set of an mdrun of NAME.tpr, bytes."""
    parallel = ["-ntmpi", "1", "-ntomp", str(threads()), "-pin", "off"]
    process = subprocess.Popen(
        [gmx().program, "-nobackup", "mdrun", "-deffnm", name, *parallel, *map(str, flags)],
        cwd=folder,
        env={**program.clean_environment(), **(variables or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise program.GmxError(f"gmx mdrun failed, see {name}.log in {folder}")
    return 1024 * usage.ru_maxrss


def reproducible_fmm():
    """FMM for runs with reproducible(): on the GPU if there is one, though non-bondeds are not."""
    return {**mdp.FMM, "fmm-farfield-device": "gpu"} if on_gpu() else mdp.FMM


def reproducible():
    """Flags for bitwise equal results: GROMACS's own kernels on a GPU do not give those."""
    return ["-reprod", "-nb", "cpu"] if on_gpu() else ["-reprod"]


def simulate(
    folder,
    name,
    entries,
    system,
    flags=(),
    warnings=0,
    grompp_flags=(),
    program=None,
    time_limit=None,
    variables=None,
    ranks=None,
):
    """grompp and mdrun, both of which must succeed.

    So many warnings are allowed beside the system's own. ranks: of thread-MPI, with one thread each;
    without it one rank has all threads.
    """
    allowed = ["-maxwarn", system.warnings + warnings, *grompp_flags]
    grompp(folder, name, entries, system.conf, system.top, allowed, program=program).ok()
    options = {"program": program, "time_limit": time_limit, "variables": variables}
    if ranks:
        options |= {"ntmpi": ranks, "ntomp": 1}
    mdrun(folder, name, flags, **options).ok()
    return Run(Path(folder), name)


def rms(vectors):
    """Root mean square length of vectors[n][3]."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def force_error(forces, reference):
    """Relative RMS error of the total force, of arrays [n][3]."""
    return trr.relative_rms(np.ravel(forces), np.ravel(reference))
