# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the machine and its environment offer.

GMX                          the patched program (default: build/bin/gmx of this tree)
GMX_MPI                      the same with an MPI library, for tests of several simulations at once
GMX_DOUBLE                   a double-precision GROMACS for converged references (default: gmx_d)
GROMACS_SOURCE_DIR           GROMACS sources: structures and force fields
GROMACS_REGRESSIONTESTS_DIR  GROMACS's own regression tests
FARFIELD_TEST_THREADS        OpenMP threads of mdrun (default: all processors)
FARFIELD_TEST_GPU            whether mdrun uses a GPU, 0 or 1 (default: if gmx and machine can)
"""

import functools
import os
import shutil
from pathlib import Path

from farfield.gromacs.machine import gpus, usable_cores
from farfield.gromacs.program import Gmx

ROOT = Path(__file__).resolve().parents[3]
# Of a test's command; what is known to take longer says so. Seconds.
TIME_LIMIT = 300


@functools.cache
def gmx():
    """The patched program."""
    return Gmx(os.environ.get("GMX", ROOT / "build/bin/gmx"), TIME_LIMIT)


def gmx_mpi():
    """The patched program with an MPI library whose mpirun is on PATH, or None."""
    program = os.environ.get("GMX_MPI")
    return Path(program).resolve() if program else None


@functools.cache
def gmx_double():
    """A double-precision GROMACS without FMM, of any version, or None."""
    program = shutil.which(os.environ.get("GMX_DOUBLE", "gmx_d"))
    return Gmx(program, TIME_LIMIT) if program else None


def folder_from_environment(name):
    """A folder that quickstart.sh exports; its absence is an error, not a reason to skip."""
    value = os.environ.get(name)
    if not value or not Path(value).is_dir():
        raise FileNotFoundError(f"{name} does not name a folder: run the tests by quickstart.sh")
    return Path(value)


def threads():
    """OpenMP threads of a test's mdrun."""
    return int(os.environ.get("FARFIELD_TEST_THREADS", "0")) or usable_cores()


def gpu_count():
    """GPUs that nvidia-smi lists; 0 without it."""
    return len(gpus())


@functools.cache
def on_gpu():
    """Whether FMM and the non-bonded interactions are on a GPU where nothing else is asked for."""
    asked = os.environ.get("FARFIELD_TEST_GPU")
    if asked:
        return asked == "1"
    return gmx().version().get("GPU support", "").startswith("CUDA") and gpu_count() > 0
