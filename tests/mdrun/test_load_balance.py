# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dynamic load balancing moves the borders of domains to where the FMM's work is."""

import re

import pytest

from tests.mdrun.test_gpu_sparse import placed
from tests.mdrun.test_ranks import TREE
from tests.support.gmx import simulation, systems
from tests.support.gmx.mdp import FIXED_FMM, settings

ENTRIES = {
    "nsteps": 300,
    "nstlist": 5,
    "nstlog": 50,
    "nstcalcenergy": 100,
    "nstenergy": 100,
    "gen-vel": "yes",
    "gen-temp": 300,
    "fmm-farfield-device": "cpu",
}


def imbalances(log):
    """Of the load, % over the mean, at the steps that the log has."""
    return [float(f) for f in re.findall(r"load imb\.: force +([\d.]+)%", log)]


@pytest.mark.whole_machine
def test_borders_move_to_the_film(work):
    """All but a twentieth of a film of 2.8 nm is in the lower half of a box of 16 nm.

    The border has to go 1.3 nm down: the lower domain then has 0.84 of an even volume. How even loads
    become, which is printed, depends on what else a machine does. What is balanced has to be a good part
    of a step; of Lennard-Jones interactions and bonds alone it was 1 to 3 %.
    """
    (work / "water").mkdir()
    film = placed(work, systems.water(work / "water", 2.8, steps=200), (1, 1, 1), 2, 16)
    entries = settings(FIXED_FMM, TREE, ENTRIES)
    logs = {}
    for balance in ("no", "yes"):
        flags = ["-nb", "cpu", "-dd", 1, 1, 2, "-dlb", balance, "-nstlist", 5]
        run = simulation.simulate(work, balance, entries, film, flags, warnings=1, ranks=2)
        logs[balance] = run.log
    even, balanced = imbalances(logs["no"]), imbalances(logs["yes"])
    volumes = [float(v) for v in re.findall(r"vol min/aver ([\d.]+)", logs["yes"])]
    counted = float(re.search(r"The balanceable part of the MD step is (\d+)%", logs["yes"]).group(1))
    print(f"imbalance, %: {even}, balanced {balanced}; volumes {volumes}; {counted} % of a step")
    assert min(volumes) < 0.92
    assert counted > 10
