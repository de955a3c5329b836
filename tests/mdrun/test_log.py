# SPDX-License-Identifier: LGPL-2.1-or-later
"""What mdrun's log says about the FMM: the set-up at the start, a time per stage at the end."""

import os
import re

import pytest

from farfield.gromacs.machine import usable_cores
from tests.support.gmx import simulation, systems
from tests.support.gmx.environment import gmx, on_gpu
from tests.support.gmx.mdp import FIXED_FMM, FMM, settings
from tests.support.gmx.simulation import reproducible, simulate

LENGTH = {"nsteps": 20, "nstlist": 10, "gen-vel": "yes", "gen-temp": 300}


def value(log, label):
    found = re.search(rf"^\s*{re.escape(label)}\s+(\S.*)$", log, re.MULTILINE)
    assert found, f"no line '{label}' in the log"
    return found.group(1)


@pytest.fixture(scope="module")
def log(tmp_path_factory, water):
    options = {"fmm-farfield-order": 7, "fmm-farfield-direct-range": 1, "fmm-farfield-m2l": "fft"}
    folder = tmp_path_factory.mktemp("log")
    return simulate(folder, "run", settings(LENGTH, FMM, options), water).log


def test_the_log_states_the_set_up(log):
    start = log.index("FMM electrostatics with farfield")
    first_step = re.search(r"^\s+Step\s+Time$", log, re.MULTILINE).start()
    assert start < first_step
    assert value(log, "multipole order") == "7"
    assert value(log, "direct range (ws)") == "1"
    assert value(log, "M2L engine").startswith("fft")
    assert re.match(r"\d+, H = ", value(log, "leaf cells"))
    assert 0 < float(value(log, "estimated error").split()[0]) < 1e-1
    assert value(log, "device").startswith("GPU" if on_gpu() else "CPU")


def test_the_log_ends_with_a_time_per_stage(log):
    title = "GPU" if on_gpu() else "wall-clock"
    table = log[log.index(f"FMM (farfield) {title} time per stage") :].split("\n\n")[0]
    row = r"^\s*(\S.*?)\s+(\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s*$"
    rows = re.findall(row, table, re.MULTILINE)
    calls = {name: int(count) for name, count, *_ in rows}
    # seconds, or, of the one evaluation on a GPU, milliseconds per call
    column, resolution = (3, 1e-4) if on_gpu() else (2, 1e-3)
    times = {row[0]: float(row[column]) for row in rows}
    for stage in ("P2M", "M2L", "L2P", "P2P"):
        # on a GPU an evaluation after the last step is measured
        assert calls[stage] >= (1 if on_gpu() else 21), stage
    total = times.pop("Total")
    assert total > 0
    assert sum(times.values()) == pytest.approx(total, abs=resolution * len(times))


ON_CPU = {"fmm-farfield-device": "cpu"}
NOT_PINNED = "not pinned: slow if other programs use the cores, see -pin"


@pytest.fixture(scope="module")
def devices(tmp_path_factory, water):
    """devices(threads, pin): what the log says of the device of a run on so many threads."""
    folder = tmp_path_factory.mktemp("pinned")
    entries = settings(FIXED_FMM, ON_CPU)
    simulation.grompp(folder, "run", entries, water.conf, water.top).ok()

    def of(threads, pin):
        flags = ["-deffnm", "run", "-ntmpi", 1, "-ntomp", threads, "-pin", pin]
        gmx()("mdrun", *flags, folder=folder)
        log = simulation.Run(folder, "run").log
        if pin == "on" and re.search(r"NOTE:.*(?:[Aa]ffinity|pinning)", log):
            pytest.skip("mdrun cannot pin threads here")
        return value(log, "device")

    return of


def test_the_log_says_where_threads_are_not_pinned(devices):
    """Where there are several: a single one waits for nobody."""
    if usable_cores() < 2:
        pytest.skip("there is no second core to go to")
    assert devices(2, "off").endswith(f", 2 OpenMP threads, {NOT_PINNED}")
    assert devices(1, "off").endswith(", 1 OpenMP thread")
    assert devices(2, "on").endswith(", 2 OpenMP threads")


def share_of_waiting(log):
    """Per cent of the time, as the table and as the line below it have it; None where they do not."""
    table = log[log.index("FMM (farfield) wall-clock time per stage") :].split("\n\n")[0]
    row = re.search(r"^ +Waiting .* (\S+)$", table, re.MULTILINE)
    line = re.search(
        r"Threads waited for each other for (\d+) % of this time: see 'Slow' in docs/trouble.md of farfield\.",
        table,
    )
    return float(row[1]) if row else None, int(line[1]) if line else None


@pytest.fixture
def one_core():
    """Programs that are started have a single one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def test_the_log_says_where_threads_wait_for_each_other(work, one_core):
    """Four threads that take turns on a core, and 64 ions that give them little to do."""
    ions = systems.ion_crystal(work, cells=2, constant=1.2)
    little = {"fmm-farfield-order": 2, "fmm-farfield-cell-size": 0.8}
    entries = settings(FIXED_FMM, ON_CPU, little, {"nsteps": 2000, "dt": 1e-6, "nstlist": 200})
    simulation.grompp(work, "run", entries, ions.conf, ions.top).ok()
    simulation.mdrun(work, "run", ntomp=4).ok()
    in_table, told = share_of_waiting(simulation.Run(work, "run").log)
    assert in_table > 50
    assert told == pytest.approx(in_table, abs=0.6)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_log_does_not_tell_of_little_waiting(work, water, threads):
    entries = settings(LENGTH, FIXED_FMM, ON_CPU)
    simulation.grompp(work, "run", entries, water.conf, water.top).ok()
    simulation.mdrun(work, "run", ntomp=threads).ok()
    in_table, told = share_of_waiting(simulation.Run(work, "run").log)
    assert (in_table is None) == (threads == 1)
    # with two threads it depends on what else the machine does
    assert in_table >= 40 if told else (in_table or 0) <= 40


def test_the_log_cites_the_method(log):
    cited = log[: log.index("FMM electrostatics with farfield")]
    dois = ["10.1016/0021-9991(87)90140-9", "10.1021/acs.jctc.0c00744", "10.1177/1094342020964857"]
    for doi in dois:
        assert f"https://doi.org/{doi}" in cited


def test_the_log_tells_of_an_external_library(log):
    assert "an external FMM library" in log


def test_the_estimated_error_is_below_the_accuracy(tmp_path, water):
    run = simulate(tmp_path, "run", settings(LENGTH, FMM, {"fmm-farfield-accuracy": 1e-4}), water)
    assert float(value(run.log, "estimated error").split()[0]) <= 1e-4


TIMED = "settings that were timed"


def test_only_a_gpu_run_that_may_differ_times_settings(tmp_path, water):
    runs = {
        "default": ({}, ()),
        "no": ({"fmm-farfield-tune": "no"}, ()),
        "reprod": (simulation.reproducible_fmm(), reproducible()),
    }
    logs = {
        name: simulate(tmp_path, name, settings(LENGTH, FMM, options), water, flags).log
        for name, (options, flags) in runs.items()
    }
    assert (TIMED in logs["default"]) == on_gpu()
    if on_gpu():
        table = logs["default"][logs["default"].index(TIMED) :].split("\n\n")[0]
        assert table.count("in use") == 1
        assert len(re.findall(r"cell size \d+\.\d+ nm, levels \d, \w+ +\d+\.\d us", table)) >= 2
    assert TIMED not in logs["no"]
    assert TIMED not in logs["reprod"]


def test_a_pme_run_does_not_mention_farfield(tmp_path, water):
    run = simulate(tmp_path, "run", settings(LENGTH), water)
    after_input = run.log[run.log.index("Input Parameters:") :]
    assert "FMM electrostatics" not in after_input
    assert "FMM (farfield)" not in after_input
    assert "external FMM library" not in run.log
    assert "Kohnke" not in run.log
