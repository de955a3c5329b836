# SPDX-License-Identifier: LGPL-2.1-or-later
"""Replica exchange in lambda, which needs an MPI library: see GMX_MPI in environment.py."""

import re

import numpy as np
import pytest

from farfield.gromacs import xvg
from tests.support.gmx import environment, simulation
from tests.support.gmx.limits import WATER_LIMIT
from tests.support.gmx.mdp import UNTUNED_FMM, settings

pytestmark = pytest.mark.skipif(environment.gmx_mpi() is None, reason="GMX_MPI is not set")

STATES = 3
INTERVAL = 4
STEPS = 40
TEMPERATURE = 300
GAS_CONSTANT = 0.0083144626  # kJ/mol/K

# All molecules lose a little of their charges.
ENTRIES = {
    "nsteps": STEPS,
    "nstxout": 1,
    "nstfout": 1,
    "nstcalcenergy": 1,
    "nstenergy": 1,
    "tcoupl": "v-rescale",
    "tc-grps": "System",
    "tau-t": 1,
    "ref-t": TEMPERATURE,
    "gen-vel": "yes",
    "gen-temp": TEMPERATURE,
    "free-energy": "yes",
    "couple-moltype": "SOL",
    "couple-lambda0": "vdw-q",
    "couple-lambda1": "vdw",
    "couple-intramol": "yes",
    "coul-lambdas": "0 0.01 0.02",
    "calc-lambda-neighbors": -1,
    "nstdhdl": 1,
    "sc-alpha": 0,
}


def replicas(work, system):
    """Folders with run.tpr, one per state."""
    folders = []
    for state in range(STATES):
        folder = work / f"replica{state}"
        folder.mkdir()
        own = {"init-lambda-state": state, "gen-seed": 5 + state, "ld-seed": 9 + state}
        entries = settings(ENTRIES, UNTUNED_FMM, own)
        flags = ["-maxwarn", system.warnings + 2]
        simulation.grompp(folder, "run", entries, system.conf, system.top, flags).ok()
        folders.append(folder)
    return folders


def exchange(folders):
    flags = ["-multidir", *folders, "-replex", INTERVAL, "-reseed", 3]
    simulation.mdrun_with_mpi(folders[0].parent, "run", len(folders), flags)


def differences(folder):
    """{time in ps: energies in all states relative to the own one, kJ/mol}"""
    table = xvg.columns(folder / "run.xvg")
    foreign = np.array([values for legend, values in table.items() if " to " in legend]).T
    assert foreign.shape[1] == STATES
    return {round(time, 6): row for time, row in zip(table["Time"], foreign)}


def attempts(folders):
    """Of all pairs of replicas: (step, first, second, difference of energies in kT)."""
    pattern = r"Replica exchange at step (\d+) time \S+\nRepl (\d) <-> (\d)  dE_term = *(\S+) \(kT\)"
    found = set()
    for folder in folders:
        found.update(re.findall(pattern, (folder / "run.log").read_text()))
    return [(int(step), int(one), int(two), float(term)) for step, one, two, term in found]


def test_replicas_exchange_as_their_energies_say(work, water):
    folders = replicas(work, water)
    exchange(folders)
    found = attempts(folders)
    assert len(found) == STEPS // INTERVAL - 1
    energies = [differences(folder) for folder in folders]
    for step, one, two, term in found:
        time = round(0.002 * step, 6)
        expected = energies[one][time][two] + energies[two][time][one]
        assert term == pytest.approx(expected / (GAS_CONSTANT * TEMPERATURE), abs=2e-2)
    # some are accepted
    assert re.search(r"Repl ex .*x", (folders[0] / "run.log").read_text())
    # positions that another replica had before are as good as others
    for state, folder in enumerate(folders):
        simulation.mdrun(folder, "run", ["-rerun", "run.trr", "-o", "again.trr"]).ok()
        run = simulation.read_trr(folder / "run.trr")
        again = simulation.read_trr(folder / "again.trr")
        assert len(run) == len(again) == STEPS + 1
        for frame, other in zip(run, again):
            assert simulation.force_error(frame.f, other.f) <= WATER_LIMIT, state
        assert np.isfinite([frame.x for frame in run]).all()
