# SPDX-License-Identifier: LGPL-2.1-or-later
"""What holds for runs without images along some axes or any, whichever they are."""

import numpy as np

from . import environment, mdp, simulation
from .mdp import settings


def expect_exact_restart(work, boundary, system):
    """Positions and forces of a run that was cut in two, bit for bit; a GPU's FMM, too."""
    times = {"gen-vel": "yes", "gen-temp": 400, "nstxout": 5, "nstfout": 5, "nsteps": 40}
    entries = settings({**simulation.reproducible_fmm(), **boundary}, times)
    flags = simulation.reproducible()
    whole = simulation.simulate(work, "whole", entries, system, flags=flags)
    simulation.grompp(work, "part", entries, system.conf, system.top).ok()
    simulation.mdrun(work, "part", [*flags, "-nsteps", 20]).ok()
    simulation.mdrun(work, "part", [*flags, "-cpi", "part.cpt", "-noappend", "-nsteps", 20]).ok()
    continued = simulation.Run(work, "part.part0002")
    assert np.array_equal(continued.frames[-1].f, whole.frames[-1].f)
    assert np.array_equal(continued.frames[-1].x, whole.frames[-1].x)


def expect_constant_energy(work, boundary, system, tolerance, flags=(), dt=0.001):
    """Over 1 ps, several lists; a pair that is missing or found late costs tens of kJ/mol."""
    steps = round(1 / dt)
    length = {"gen-vel": "yes", "gen-temp": 300, "nsteps": steps, "dt": dt, "nstenergy": 10}
    exact = {"verlet-buffer-tolerance": 1e-5, "fmm-farfield-accuracy": 1e-5}
    run = simulation.simulate(work, "run", settings(boundary, length, exact), system, flags=flags)
    energy = run.energies["Total Energy"]
    assert np.abs(energy - energy[0]).max() < tolerance


def expect_no_way_to_pme(work, boundary, system, name):
    """gmx convert-tpr refuses, and names the boundary."""
    entries = settings(mdp.ONE_STEP, boundary)
    simulation.grompp(work, "fmm", entries, system.conf, system.top).ok()
    mdp.write(work / "pme.mdp", {"coulombtype": "PME"})
    files = ["-s", "fmm.tpr", "-f", "pme.mdp", "-o", "pme.tpr"]
    done = environment.gmx().attempt("convert-tpr", *files, folder=work)
    assert done.status != 0
    assert name in done.text
    assert not (work / "pme.tpr").exists()
