# SPDX-License-Identifier: LGPL-2.1-or-later
"""What goes wrong on one of several ranks ends all of them, with its message and soon."""

import os
import signal
import struct
import time
from pathlib import Path

import pytest

from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.mdp import FMM, settings

pytestmark = pytest.mark.whole_machine
needs_mpi = pytest.mark.skipif(environment.gmx_mpi() is None, reason="GMX_MPI is not set")

# Seconds, in which ranks that are more than processors start, and end.
SOON = 120
# Exact in decimals and in single precision, and those of one atom.
VELOCITY = (1.5, -2.25, 3.375)
# Far from the box after one step of 2 fs, by more than a billion cells.
TOO_FAST = 1e13


def with_fast_ion(work, system, speed=TOO_FAST, **changes):
    """bad.tpr, in which the last atom, an ion, leaves the box in the first step if it has that speed.

    Nothing but the FMM looks at it before the next pair search. changes: of settings.
    """
    s = systems.read_gro(system.conf)
    systems.write_gro(work / "fast.gro", s)
    lines = (work / "fast.gro").read_text().splitlines()
    assert s.atoms[-1].strip() == "CL"
    for i in range(len(s.x)):
        velocity = VELOCITY if i == len(s.x) - 1 else (0, 0, 0)
        lines[2 + i] += "".join(f"{v:17.13f}" for v in velocity)
    (work / "fast.gro").write_text("\n".join(lines) + "\n")
    steps = {"nsteps": 10, "nstcalcenergy": 100, "nstenergy": 100, "comm-mode": "none", "nstlist": 20}
    entries = settings(FMM, steps, {"fmm-farfield-device": "cpu"}, changes)
    simulation.grompp(work, "bad", entries, work / "fast.gro", system.top, ["-maxwarn", 2]).ok()
    tpr = work / "bad.tpr"
    content = tpr.read_bytes()
    stored = struct.pack(">3f", *VELOCITY)
    assert content.count(stored) == 1
    tpr.write_bytes(content.replace(stored, struct.pack(">f", speed) + stored[4:]))


def expect_the_error(status, text):
    words = " ".join(text.split())
    assert "FMM (fmm-backend = farfield) stopped at step 1: " in words, text[-3000:]
    assert "is not finite" in words
    assert "The simulation has blown up, or its coordinates were bad from the start." in words
    # no crash: that of a signal is negative in Python, above 128 through a shell
    assert 0 < status < 124, text[-3000:]


def test_a_position_on_one_rank_is_called_a_blow_up(work, salt_water):
    with_fast_ion(work, salt_water)
    done = simulation.mdrun(work, "bad", ["-nb", "cpu"], ntmpi=1, time_limit=SOON)
    expect_the_error(done.status, done.text)
    words = " ".join(done.text.split())
    # The ion is the last atom: by its number in the topology, from 1
    atoms = len(systems.read_gro(salt_water.conf).x)
    assert f"the position of atom {atoms} is not finite or far too large." in words
    assert "fmm-farfield-" not in words.split("stopped at step 1: ")[1]


def test_a_position_of_one_of_four_threads(work, salt_water):
    with_fast_ion(work, salt_water)
    done = simulation.mdrun(work, "bad", ["-nb", "cpu"], ntmpi=4, ntomp=1, time_limit=SOON)
    expect_the_error(done.status, done.text)


@needs_mpi
def test_a_position_of_one_of_four_processes(work, salt_water):
    with_fast_ion(work, salt_water)
    started = simulation.start_with_mpi(work, "bad", 4, ["-nb", "cpu"])
    expect_the_error(*simulation.end_of(started, SOON))


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_replica_ends_those_with_which_it_exchanges(work, salt_water, ranks):
    folders = [work / "good", work / "bad"]
    for folder, speed, temperature in zip(folders, (VELOCITY[0], TOO_FAST), (300, 310)):
        folder.mkdir()
        bath = {"tcoupl": "v-rescale", "tc-grps": "System", "tau-t": 1, "ref-t": temperature}
        with_fast_ion(folder, salt_water, speed, **bath)
    flags = ["-nb", "cpu", "-multidir", *folders, "-replex", 5]
    started = simulation.start_with_mpi(work, "bad", ranks * len(folders), flags)
    expect_the_error(*simulation.end_of(started, SOON))


def stat_of(pid):
    """Name of the program and parent of a process; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, rest = stat.split("(", 1)[1].rsplit(")", 1)
    state, parent = rest.split()[:2]
    return None if state == "Z" else (name, int(parent))


def processes_under(ancestor):
    """All descendants of a process: {id: name of the program}."""
    ids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    stats = {pid: stat for pid in ids if (stat := stat_of(pid))}
    below, parents = {}, [ancestor]
    while parents:
        parent = parents.pop()
        children = {pid: name for pid, (name, above) in stats.items() if above == parent}
        below |= children
        parents += children
    return below


def wait_for(condition):
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


@needs_mpi
@pytest.mark.parametrize("method", ["FMM", "PME"])
def test_a_lost_process(work, water, method):
    """The same with PME: what ends the others is the MPI library."""
    electrostatics = {**FMM, "fmm-farfield-device": "cpu"} if method == "FMM" else {}
    entries = settings(electrostatics, {"nsteps": -1, "nstlog": 10})
    simulation.grompp(work, "run", entries, water.conf, water.top, ["-maxwarn", 1]).ok()
    started = simulation.start_with_mpi(work, "run", 2, ["-nb", "cpu"])
    try:
        log = work / "run.log"
        wait_for(lambda: log.exists() and "Energies (kJ/mol)" in log.read_text(errors="replace"))
        program = environment.gmx_mpi().name[:15]  # as much as the kernel keeps
        ranks = [pid for pid, name in processes_under(started.pid).items() if name == program]
        assert len(ranks) == 2
        os.kill(ranks[1], signal.SIGKILL)
        status, _ = simulation.end_of(started, SOON)
        assert status != 0
        wait_for(lambda: not any(map(stat_of, ranks)))
    finally:
        if started.poll() is None:
            started.terminate()
