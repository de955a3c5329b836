# SPDX-License-Identifier: LGPL-2.1-or-later
"""Replicas of very different temperatures, one with atoms that overlap, which exchange while they settle.

They need an MPI library: see GMX_MPI.
"""

import re

import pytest

from tests.mdrun.test_rank_errors import SOON, needs_mpi
from tests.mdrun.test_settling import ACCURACY, error_of_last_forces, estimates
from tests.support.gmx import reference, simulation, systems
from tests.support.gmx.mdp import FMM, settings

pytestmark = [pytest.mark.whole_machine, needs_mpi]

TEMPERATURES = (280, 420, 620, 900)
INTERVAL, STEPS = 20, 400
HEAT = {
    "dt": 0.001,
    "nsteps": STEPS,
    "nstxout": STEPS,
    "nstfout": STEPS,
    "gen-vel": "yes",
    "tcoupl": "v-rescale",
    "tc-grps": "System",
    "tau-t": 0.02,
    "fmm-farfield-device": "cpu",
}


def solution(work):
    """Salt water: settled, and with all molecules at random places."""
    (work / "settled").mkdir()
    settled = systems.salt_water(work / "settled")
    return settled, systems.parted(work, systems.scattered(work, settled), 15)


def crystal(work):
    """Rock salt: with its ions near their sites, and so far from them that some are in contact."""
    near, far = work / "near", work / "far"
    near.mkdir()
    far.mkdir()
    settled = systems.ion_crystal(near, cells=5)
    return settled, systems.parted(work, systems.ion_crystal(far, cells=5, displacement=0.06), 10)


def replicas(work, settled, other, temperatures=TEMPERATURES, **changes):
    """Folders with run.tpr; the coldest replica has the other start. changes: of settings."""
    folders = [work / f"replica{i}" for i in range(len(temperatures))]
    for i, (folder, temperature) in enumerate(zip(folders, temperatures)):
        folder.mkdir()
        own = {"ref-t": temperature, "gen-temp": temperature, "gen-seed": 5 + i, "ld-seed": 9 + i}
        start = other if i == 0 else settled
        simulation.grompp(folder, "run", settings(HEAT, FMM, own, changes), start.conf, start.top).ok()
    return folders


def exchange(work, folders, ranks, flags=(), **options):
    flags = ["-nb", "cpu", "-multidir", *folders, "-replex", INTERVAL, "-reseed", 3, *flags]
    simulation.mdrun_with_mpi(work, "run", ranks * len(folders), flags, **options)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", [solution, crystal])
def test_accuracy_is_met_after_exchanges(work, kind, ranks):
    settled, other = kind(work)
    folders = replicas(work, settled, other)
    exchange(work, folders, ranks)
    runs = [simulation.Run(folder, "run") for folder in folders]
    accepted = re.findall(r"^Repl ex .*x", runs[0].log, re.MULTILINE)
    print(f"{len(accepted)} exchanges")
    assert accepted
    for folder, run, temperature in zip(folders, runs, TEMPERATURES):
        error = error_of_last_forces(folder, "run", run, settled, settings(reference.single_point(0.9)))
        told = estimates(run.log)
        print(f"{temperature} K: error {error:.1e}, estimates {told}")
        assert error <= ACCURACY
        assert told[-1] / 2 < error < 2 * told[-1]
    if kind is crystal:  # forces of ions that have parted are much weaker
        assert max(len(estimates(run.log)) for run in runs) > 1


def checkpoints(log):
    return re.findall(r"Writing checkpoint, step (\d+)", log)


def test_checkpoints_are_at_the_same_steps(work):
    """mdrun also searches for pairs after an exchange, in the replicas that took part."""
    start = systems.ion_crystal(work, cells=5)
    folders = replicas(work, start, start, (300, 301, 302, 303), nsteps=-1)
    exchange(work, folders, 1, ["-maxh", 0.003, "-cpt", 0.005], time_limit=SOON)
    first, *others = [(folder / "run.log").read_text() for folder in folders]
    assert re.search(r"^Repl ex .*x", first, re.MULTILINE)
    assert len(checkpoints(first)) > 3
    assert all(checkpoints(log) == checkpoints(first) for log in others)


def test_a_time_limit_ends_all_at_the_same_step(work):
    """mdrun would search for pairs, and so stop, at other steps of a cold replica than of a hot one."""
    start = systems.ion_crystal(work, cells=5)
    folders = replicas(work, start, start, nsteps=-1)
    exchange(work, folders, 1, ["-maxh", 0.002], time_limit=SOON)
    logs = [(folder / "run.log").read_text() for folder in folders]
    changes = [re.findall(r"Changing nstlist from \d+ to (\d+)", log) for log in logs]
    assert len({own[0] for own in changes}) > 1
    assert len({own[-1] for own in changes}) == 1
    assert len({checkpoints(log)[-1] for log in logs}) == 1
