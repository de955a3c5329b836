# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the FMM runs: the mdp file, the environment variable, and mdrun's choice of devices."""

import re
import struct

import pytest

from tests.support.gmx import environment, mdp, simulation
from tests.support.gmx.mdp import FMM, settings

VARIABLE = "GMX_FMM_DEVICE"


def prepared(work, water, device="auto"):
    entries = settings(mdp.ONE_STEP, FMM, {"fmm-farfield-device": device})
    simulation.grompp(work, "run", entries, water.conf, water.top).ok()
    return "run"


def line(work, label):
    log = simulation.Run(work, "run").log
    return re.search(rf"^  {label} +(\S.*)$", log, re.MULTILINE).group(1)


def number_of_gpus():
    return environment.gpu_count() if environment.on_gpu() else 0


def test_the_variable_overrides_the_mdp_file(work, water):
    name = prepared(work, water, "gpu")
    simulation.mdrun(work, name, variables={VARIABLE: "cpu"}).ok()
    assert line(work, "device").startswith("CPU")
    assert line(work, "device chosen by") == f"{VARIABLE} = cpu"


@pytest.mark.skipif(environment.on_gpu(), reason="there is a GPU")
def test_the_variable_is_named_when_it_asks_for_too_much(work, water):
    name = prepared(work, water, "cpu")
    done = simulation.mdrun(work, name, variables={VARIABLE: "gpu"}, time_limit=60)
    assert done.status == 1
    # By the library, or by mdrun if it could have detected a GPU
    words = " ".join(done.text.split())
    assert f"The option to change is {VARIABLE}." in words or f"{VARIABLE} = gpu, but mdrun" in words
    assert "fmm-farfield-device" not in done.text


@pytest.mark.parametrize("value", ["tpu", "", "1"])
def test_a_wrong_value_of_the_variable_is_refused(work, water, value):
    name = prepared(work, water)
    done = simulation.mdrun(work, name, variables={VARIABLE: value}, time_limit=60)
    assert done.status == 1
    assert f"The environment variable {VARIABLE} is '{value}'" in done.text


@pytest.mark.parametrize("value", ["gpu", "", "1,", "-1", "1;2"])
def test_a_wrong_value_of_the_variable_of_helpers_is_refused(work, water, value):
    name = prepared(work, water)
    done = simulation.mdrun(work, name, variables={"GMX_FMM_HELPERS": value}, time_limit=60)
    assert done.status == 1
    assert f"The environment variable GMX_FMM_HELPERS is '{value}'" in done.text


def test_the_log_says_who_chose_the_device(work, water):
    name = prepared(work, water, "cpu")
    simulation.mdrun(work, name).ok()
    assert line(work, "device chosen by") == "fmm-farfield-device = cpu"


def test_without_a_gpu_for_mdrun_the_fmm_is_on_the_cpu(work, water):
    name = prepared(work, water)
    simulation.mdrun(work, name, ["-nb", "cpu"]).ok()
    assert line(work, "device").startswith("CPU")
    assert "assigned no GPU" in line(work, "device chosen by")


@pytest.mark.skipif(number_of_gpus() < 2, reason="fewer than two GPUs")
@pytest.mark.parametrize("nonbonded", ["gpu", "cpu"])
def test_gpu_id_holds(work, water, nonbonded):
    name = prepared(work, water, "gpu")
    simulation.mdrun(work, name, ["-nb", nonbonded, "-gpu_id", "1"]).ok()
    assert "GPU 1" in line(work, "device chosen by")


# Where a checkpoint has the FMM's state: the key, then an array of tagged big-endian doubles.
STATE = b"fmm-farfield-state\0\0"
# Numbers of the state: version and checksum; precision and seven options; the device; see
# src/choice/saved_state.cpp.
HEADER, CHOSEN_FOR = 2, 10
CPU, GPU = 1, 2


def checksum(numbers):
    """FNV-1a over the bytes of doubles, 53 bits."""
    result = 14695981039346656037
    for byte in struct.pack(f"<{len(numbers)}d", *numbers):
        result = (result ^ byte) * 1099511628211 % 2**64
    return result >> 11


def as_if_chosen_for_a_gpu(checkpoint):
    """Changes the state in a checkpoint of a run on a CPU."""
    content = checkpoint.read_bytes()
    start = content.index(STATE) + len(STATE)
    tag, number = struct.unpack_from(">4sI", content, start)
    assert tag == b"\0\0\0A"
    array = struct.Struct(">" + number * "4sd")
    values = list(array.unpack_from(content, start + 8))
    numbers = values[1::2]
    assert numbers[CHOSEN_FOR] == CPU and numbers[1] == checksum(numbers[HEADER:])
    numbers[CHOSEN_FOR] = GPU
    numbers[1] = checksum(numbers[HEADER:])
    values[1::2] = numbers
    changed = bytearray(content)
    array.pack_into(changed, start + 8, *values)
    checkpoint.write_bytes(changed)


def test_a_continuation_on_another_device_keeps_the_cells_and_says_so(work, water):
    """There is no need of a GPU for that: the state is as one has left it."""
    entries = settings(FMM, {"fmm-farfield-device": "cpu", "nsteps": 10})
    simulation.grompp(work, "run", entries, water.conf, water.top).ok()
    note = "cells that were chosen for a GPU, and this run continues on a CPU"
    simulation.mdrun(work, "run").ok()
    assert note not in " ".join(simulation.Run(work, "run").log.split())
    as_if_chosen_for_a_gpu(work / "run.cpt")
    simulation.mdrun(work, "run", ["-cpi", "run.cpt", "-noappend", "-nsteps", 5]).ok()
    log = (work / "run.part0002.log").read_text()
    assert note in " ".join(log.split())
    assert "checkpoint are not used" not in log
    assert line(work, "leaf cells") in log
