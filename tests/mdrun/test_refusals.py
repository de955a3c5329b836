# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is not supported is refused by grompp, and bad input stops mdrun, with a clear sentence."""

import struct

import numpy as np
import pytest

from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.mdp import FMM, settings

# One change of a valid FMM input each, and a word that the error has to contain.
UNSUPPORTED = {
    "no backend": ({"fmm-backend": "inactive"}, "fmm-backend"),
    "unknown backend": ({"fmm-backend": "nearfield"}, "Allowed values: inactive"),
    "multiple time stepping": (
        {"mts": "yes", "mts-level2-forces": "longrange-nonbonded"},
        "mts",
    ),
    "slab, PME": ({"pbc": "xy", "coulombtype": "PME"}, "pbc"),
    "slab, other backend": ({"pbc": "xy", "fmm-backend": "exafmm"}, "pbc"),
    "slab, Lennard-Jones PME": ({"pbc": "xy", "vdwtype": "PME"}, "pbc"),
    "slab, Lennard-Jones PME between walls": (
        {
            "pbc": "xy",
            "nwall": 2,
            "wall-type": "9-3",
            "wall-atomtype": "OW OW",
            "wall-density": "33 33",
            "vdwtype": "PME",
        },
        "vdwtype",
    ),
    "slab, pressure": ({"pbc": "xy", "pcoupl": "C-rescale"}, "pressure coupling"),
    "slab, acceleration": ({"pbc": "xy", "cos-acceleration": 0.1}, "cos-acceleration"),
    "no periodicity, PME": ({"pbc": "no", "coulombtype": "PME"}, "pbc"),
    "no periodicity, other backend": ({"pbc": "no", "fmm-backend": "exafmm"}, "pbc"),
    "no periodicity, Lennard-Jones PME": ({"pbc": "no", "vdwtype": "PME"}, "pbc"),
    "no periodicity, acceleration": ({"pbc": "no", "cos-acceleration": 0.1}, "cos-acceleration"),
    "no periodicity, deformation": ({"pbc": "no", "deform": "0.01 0 0 0 0 0"}, "deform"),
    "no periodicity, maps": (
        {"pbc": "no", "density-guided-simulation-active": "yes"},
        "density-guided-simulation-active",
    ),
    "no periodicity, dispersion correction": ({"pbc": "no", "DispCorr": "Ener"}, "pbc"),
    "screw": ({"pbc": "screw", "comm-mode": "none"}, "pbc"),
    "slab correction": ({"ewald-geometry": "3dc"}, "ewald-geometry"),
    "insulating surroundings": ({"epsilon-surface": 1}, "epsilon-surface"),
    "walls, slab correction": (
        {
            "pbc": "xy",
            "nwall": 2,
            "wall-type": "9-3",
            "wall-atomtype": "OW OW",
            "wall-density": "33 33",
            "ewald-geometry": "3dc",
        },
        "ewald-geometry",
    ),
    "order too high": ({"fmm-farfield-order": 21}, "fmm-farfield-order"),
    "order too low": ({"fmm-farfield-order": -2}, "fmm-farfield-order"),
    "direct range too large": ({"fmm-farfield-direct-range": 3}, "fmm-farfield-direct-range"),
    "direct range negative": ({"fmm-farfield-direct-range": -1}, "fmm-farfield-direct-range"),
    "cell size negative": ({"fmm-farfield-cell-size": -0.5}, "fmm-farfield-cell-size"),
    "cell size larger than the box": ({"fmm-farfield-cell-size": 50}, "fmm-farfield-cell-size"),
    "cell size not a number": ({"fmm-farfield-cell-size": "nan"}, "fmm-farfield-cell-size"),
    "accuracy of zero": ({"fmm-farfield-accuracy": 0}, "fmm-farfield-accuracy"),
    "accuracy negative": ({"fmm-farfield-accuracy": -1e-3}, "fmm-farfield-accuracy"),
    "accuracy better than rounding": ({"fmm-farfield-accuracy": 1e-6}, "2e-06"),
    "accuracy above one": ({"fmm-farfield-accuracy": 2}, "fmm-farfield-accuracy"),
    "unknown engine": ({"fmm-farfield-m2l": "dense"}, "fmm-farfield-m2l"),
    "unknown device": ({"fmm-farfield-device": "tpu"}, "fmm-farfield-device"),
    "unknown answer": ({"fmm-farfield-tune": "maybe"}, "fmm-farfield-tune"),
    "test-particle insertion": ({"integrator": "tpi"}, "TPI"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_grompp_refuses(work, salt_water, case):
    change, word = UNSUPPORTED[case]
    entries = settings(FMM, change)
    done = simulation.grompp(work, "bad", entries, salt_water.conf, salt_water.top, ["-maxwarn", 5])
    assert done.status != 0
    assert word in error_text(done), done.text[-3000:]
    assert not (work / "bad.tpr").exists()


def error_text(done):
    """The part of the output that reports errors, from the first such report on."""
    lines = done.text.splitlines()
    starts = ("ERROR ", "Fatal error", "Error in user input", "Inconsistency in user input")
    first = next((i for i, line in enumerate(lines) if line.startswith(starts)), len(lines))
    return "\n".join(lines[first:])


def test_grompp_accepts_the_unchanged_input(work, salt_water):
    """Without this the refusals would prove nothing."""
    simulation.grompp(work, "good", settings(FMM), salt_water.conf, salt_water.top).ok()
    assert (work / "good.tpr").exists()


@pytest.mark.parametrize("accuracy", [2e-6, 0.1])
def test_the_limits_of_the_accuracy_are_those_of_mdrun(work, water, accuracy):
    """What grompp lets pass, mdrun runs; see UNSUPPORTED for what is beyond."""
    entries = settings(FMM, {"fmm-farfield-accuracy": accuracy})
    simulation.grompp(work, "run", entries, water.conf, water.top, ["-maxwarn", 1]).ok()
    simulation.mdrun(work, "run").ok()


def test_a_cell_may_be_the_box(work, water):
    """2.8 rounds down to single precision, in which the box is stored."""
    s = systems.read_gro(water.conf)
    s.box = np.diag([2.8, 2.8, 2.8])
    systems.write_gro(work / "box.gro", s)
    entries = settings(FMM, {"fmm-farfield-cell-size": 2.8})
    simulation.grompp(work, "run", entries, "box.gro", water.top).ok()
    simulation.mdrun(work, "run").ok()


@pytest.mark.parametrize("backend", ["exafmm", "fmsolvr"])
def test_other_backends_are_treated_as_without_the_patch(work, water, backend):
    """grompp prepares them; mdrun has nothing that computes their forces."""
    entries = settings(FMM, WRITE_ALL, {"fmm-backend": backend})
    simulation.grompp(work, "other", entries, water.conf, water.top).ok()
    done = simulation.mdrun(work, "other", time_limit=60)
    assert_clean_failure(done, "FMM is not yet supported by mdrun")
    assert "an external FMM library" in (work / "other.log").read_text()
    assert_nothing_written(work, "other")


def test_other_backends_keep_their_checks(work, water):
    entries = settings(FMM, {"fmm-backend": "exafmm", "fmm-exafmm-order": 0})
    done = simulation.grompp(work, "other", entries, water.conf, water.top)
    assert "ExaFMM expansion order must be greater than 0." in error_text(done)


def test_a_net_charge_gives_a_warning_that_names_fmm(work, charged_water):
    done = simulation.grompp(work, "run", settings(FMM), charged_water.conf, charged_water.top)
    assert done.status != 0
    words = " ".join(done.text.split())
    assert "You are using Ewald or FMM electrostatics with a net charge." in words


def test_an_error_of_the_library_is_told_as_it_is_and_names_the_option(work, water):
    entries = settings(FMM, WRITE_ALL, {"fmm-farfield-m2l": "gemm", "fmm-farfield-device": "cpu"})
    simulation.grompp(work, "bad", entries, water.conf, water.top).ok()
    done = simulation.mdrun(work, "bad", time_limit=60)
    words = " ".join(done.text.split())
    assert "The M2L engine 'gemm' exists on the device 'gpu' only" in words
    assert "The option to change is fmm-farfield-m2l." in words
    assert_clean_failure(done)
    assert_nothing_written(work, "bad")


def assert_nothing_written(folder, name):
    """No frame, no energies, no final structure."""
    trajectory = folder / f"{name}.trr"
    energies = folder / f"{name}.edr"
    assert not trajectory.exists() or simulation.read_trr(trajectory) == []
    # The names of the energy terms may be there already, in front of the first frame.
    if energies.exists() and energies.stat().st_size > 0:
        assert len(simulation.read_edr(energies).get("Time", [])) == 0
    assert not (folder / f"{name}.gro").exists()


# A crash shows as a signal: negative in Python, above 128 through a shell.
def assert_clean_failure(done, *words):
    assert done.status not in (0, 124, 134, 136, 139)
    assert done.status > 0, f"killed by signal {-done.status}\n{done.text[-2000:]}"
    for word in words:
        assert word in done.text, done.text[-3000:]


WRITE_ALL = {"nsteps": 10, "nstxout": 1, "nstfout": 1}


def with_bad_position(tpr, x, value):
    """Overwrites the first atom's x in a tpr file, where it is stored as a big-endian float."""
    content = tpr.read_bytes()
    stored = struct.pack(">6f", *np.asarray(x[:2], dtype=np.float32).ravel())
    assert content.count(stored) == 1
    tpr.write_bytes(content.replace(stored, struct.pack(">f", value) + stored[4:]))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_position_that_is_not_finite_stops_mdrun(work, water, value):
    simulation.grompp(work, "bad", settings(FMM, WRITE_ALL), water.conf, water.top).ok()
    with_bad_position(work / "bad.tpr", systems.read_gro(water.conf).x, value)
    done = simulation.mdrun(work, "bad", time_limit=60)
    assert_clean_failure(done)
    assert_nothing_written(work, "bad")


def refused_by_either(work, conf, top):
    """grompp refuses, or else mdrun does; in both cases nothing is written."""
    entries = settings(FMM, WRITE_ALL)
    done = simulation.grompp(work, "bad", entries, conf, top, ["-maxwarn", 5])
    if done.status == 0:
        done = simulation.mdrun(work, "bad", time_limit=60)
    assert_clean_failure(done)
    assert_nothing_written(work, "bad")


def test_position_that_is_not_a_number_in_the_structure(work, water):
    s = systems.read_gro(water.conf)
    s.x[5, 1] = np.nan
    systems.write_gro(work / "nan.gro", s)
    (work / "top.top").write_text(water.top.read_text())
    refused_by_either(work, "nan.gro", "top.top")


@pytest.mark.parametrize(
    "box", [[0, 0, 0], [2.8, 2.8, 0], [-2.8, 2.8, 2.8]], ids=["zero", "flat", "inverted"]
)
def test_box_without_volume(work, water, box):
    s = systems.read_gro(water.conf)
    s.box = np.diag(np.array(box, dtype=float))
    systems.write_gro(work / "box.gro", s)
    refused_by_either(work, "box.gro", water.top)


def test_charge_that_is_not_finite(work, ion_crystal):
    """A molecule type of our own: one sodium ion with a charge that is not a number."""
    text = ion_crystal.top.read_text()
    own = "[ moleculetype ]\nBAD 1\n[ atoms ]\n1 Na 1 NA NA 1 nan 22.99\n[ system ]"
    lines = text.replace("[ system ]", own).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("NA "))
    count = int(lines[at].split()[1])
    lines[at : at + 1] = ["BAD 1", f"NA {count - 1}"]
    (work / "bad.top").write_text("\n".join(lines) + "\n")
    refused_by_either(work, ion_crystal.conf, "bad.top")


@pytest.mark.skipif(environment.on_gpu(), reason="there is a GPU")
def test_gpu_without_a_gpu(work, water):
    """A build without CUDA, or a machine without a GPU: an error that says so, no fall-back."""
    entries = settings(FMM, WRITE_ALL, {"fmm-farfield-device": "gpu"})
    simulation.grompp(work, "gpu", entries, water.conf, water.top).ok()
    done = simulation.mdrun(work, "gpu", time_limit=60)
    assert_clean_failure(done, "fmm-farfield-device")
    # The library's text has the advice, and mdrun does not repeat it
    assert "Set fmm-farfield-device = cpu" not in " ".join(done.text.split())
    assert_nothing_written(work, "gpu")
