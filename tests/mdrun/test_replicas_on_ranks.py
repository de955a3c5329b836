# SPDX-License-Identifier: LGPL-2.1-or-later
"""Replicas of several ranks each exchange temperatures, which needs an MPI library: see GMX_MPI."""

import re

import pytest

from tests.mdrun.test_ranks import MOTION, ROUNDING
from tests.support.gmx import environment, simulation
from tests.support.gmx.mdp import FIXED_FMM, settings

pytestmark = [
    pytest.mark.whole_machine,
    pytest.mark.skipif(environment.gmx_mpi() is None, reason="GMX_MPI is not set"),
]

RANKS = 2  # of each replica
INTERVAL = 5
# Two thousand atoms of water exchange often: their energies overlap.
TEMPERATURES = (300, 301)


def test_forces_after_exchanges_are_those_of_one_rank(work, water):
    folders = [work / f"replica{i}" for i in range(len(TEMPERATURES))]
    for i, (folder, temperature) in enumerate(zip(folders, TEMPERATURES)):
        folder.mkdir()
        bath = {"tcoupl": "v-rescale", "tc-grps": "System", "tau-t": 0.5, "ref-t": temperature}
        start = {"gen-temp": temperature, "gen-seed": 5 + i, "ld-seed": 9 + i}
        entries = settings(MOTION, FIXED_FMM, bath, start)
        simulation.grompp(folder, "run", entries, water.conf, water.top, ["-maxwarn", 1]).ok()
    flags = ["-nb", "cpu", "-multidir", *folders, "-replex", INTERVAL, "-reseed", 3]
    simulation.mdrun_with_mpi(work, "run", RANKS * len(folders), flags)
    accepted = re.findall(r"^Repl ex .*x", (folders[0] / "run.log").read_text(), re.MULTILINE)
    assert accepted
    for folder in folders:
        assert f"ranks                    {RANKS}" in (folder / "run.log").read_text()
        simulation.mdrun(folder, "run", ["-nb", "cpu", "-rerun", "run.trr", "-o", "one.trr"]).ok()
        several = simulation.read_trr(folder / "run.trr")
        one = simulation.read_trr(folder / "one.trr")
        assert len(several) == len(one) == MOTION["nsteps"] + 1
        errors = [simulation.force_error(a.f, b.f) for a, b in zip(several, one)]
        assert max(errors) < ROUNDING
