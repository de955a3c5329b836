# SPDX-License-Identifier: LGPL-2.1-or-later
"""What mdrun's log says about the FMM: the set-up at the start, a time per stage at the end."""

import re

import pytest

from tests.support.gmx import simulation
from tests.support.gmx.environment import on_gpu
from tests.support.gmx.mdp import FMM, settings
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
