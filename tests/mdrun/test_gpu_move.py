# SPDX-License-Identifier: LGPL-2.1-or-later
"""The FMM on another GPU than that of the rank: forces at every step are those without the move.

Where there is one GPU it stands for both: all is as with two, but the copies do not leave it."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.mdrun.test_free_energy import CASES, write_topology
from tests.mdrun.test_gpu_helpers import BOUNDARIES, ON_ONE, OTHER_SYSTEMS, ROUNDING
from tests.mdrun.test_gpu_sparse import ACCURACY
from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.mdp import BAROSTAT, FIXED_FMM, MOTION_ON_GPU, ONE_STEP, THERMOSTAT, UNTUNED_FMM, settings

pytestmark = pytest.mark.skipif(not environment.on_gpu(), reason="no GPU")

GPUS = environment.gpu_count() if environment.on_gpu() else 0
OTHER = str(min(1, GPUS - 1))
MOVE = "GMX_FMM_MOVE"
ALONE = {"GMX_FMM_HELPERS": "none", MOVE: "none"}
MOVED = {"GMX_FMM_HELPERS": "none", MOVE: OTHER}
# The GPU of the rank may be among the helpers.
HELPED = {"GMX_FMM_HELPERS": ",".join(str(gpu) for gpu in range(GPUS) if str(gpu) != OTHER), MOVE: OTHER}
several_gpus = pytest.mark.skipif(GPUS < 2, reason="fewer than two GPUs")


def run(work, name, system, entries, flags, variables):
    return simulation.simulate(work, name, entries, system, [*ON_ONE, *flags], warnings=1, ranks=1, variables=variables)


def place(log):
    """All reports of where the FMM is."""
    return re.findall(r"^  FMM moved to +(\S.*)$", log, re.MULTILINE)


def errors_of(moved, alone):
    return [simulation.force_error(a.f, b.f) for a, b in zip(moved.frames, alone.frames, strict=True)]


def expect_forces_without_the_move(work, system, entries, update="gpu", exact=None, limit=ROUNDING, variables=None):
    """At every step of a moving run. exact: what is set otherwise for the rerun."""
    moved = run(work, "moved", system, entries, ["-update", update], variables or MOVED)
    alone = run(work, "alone", system, entries | (exact or {}), ["-rerun", "moved.trr"], ALONE)
    errors = errors_of(moved, alone)
    assert len(errors) == entries["nsteps"] + 1
    print(f"{max(errors):.1e} at step {int(np.argmax(errors))}")
    assert max(errors) < limit
    assert set(place(moved.log)) == {f"GPU {OTHER}: {MOVE} = {OTHER}"}
    assert set(place(alone.log)) == {f"no other GPU: {MOVE} = none"}
    return moved, alone


@pytest.mark.parametrize("coupling", [{}, THERMOSTAT | BAROSTAT], ids=["", "coupled"])
@pytest.mark.parametrize("update", ["gpu", "cpu"])
def test_forces_are_those_without_the_move(work, water, update, coupling):
    expect_forces_without_the_move(work, water, settings(MOTION_ON_GPU, FIXED_FMM, coupling), update)


@several_gpus
def test_other_gpus_help_where_the_fmm_is(work, water):
    entries = settings(MOTION_ON_GPU, FIXED_FMM)
    moved, _ = expect_forces_without_the_move(work, water, entries, variables=HELPED)
    assert re.search(r"^  near field shared with   GPU 0 ", moved.log, re.MULTILINE)


@pytest.mark.parametrize("name", OTHER_SYSTEMS)
def test_forces_on_other_systems_are_those_without_the_move(work, name):
    make, update = OTHER_SYSTEMS[name]
    (work / "system").mkdir()
    expect_forces_without_the_move(work, make(work / "system"), settings(MOTION_ON_GPU, FIXED_FMM), update)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_forces_without_images_have_the_accuracy(work, name):
    """A run keeps the cells that it has begun with, a rerun has those of its first frame."""
    make, boundary = BOUNDARIES[name]
    (work / "system").mkdir()
    entries = settings(MOTION_ON_GPU, boundary, UNTUNED_FMM, {"dt": 0.001})
    exact = {"fmm-farfield-accuracy": 1e-5}
    expect_forces_without_the_move(work, make(work / "system"), entries, exact=exact, limit=ACCURACY)


def test_perturbed_charges_are_those_without_the_move(work, water):
    state_b, lambdas, _, _ = CASES["charges"]
    write_topology(work / "topol.top", water, state_b)
    entries = settings(lambdas, MOTION_ON_GPU, FIXED_FMM, {"constraints": "none", "dt": 0.001, "init-lambda-state": 1})
    expect_forces_without_the_move(work, replace(water, top=work / "topol.top"), entries)


def test_energies_and_pressure_are_those_without_the_move(work, water):
    entries = settings(ONE_STEP, FIXED_FMM)
    moved, alone = (
        run(work, name, water, entries, [], values) for name, values in (("moved", MOVED), ("alone", ALONE))
    )
    np.testing.assert_allclose(moved.coulomb(), alone.coulomb(), rtol=1e-6)
    np.testing.assert_allclose(moved.pressure_tensor(), alone.pressure_tensor(), atol=1)  # bar


def test_minimisation_goes_the_same_way(work, water):
    entries = settings(
        {"integrator": "steep", "nsteps": 20, "emtol": 1, "nstxout": 1, "nstfout": 1, "nstenergy": 1}, FIXED_FMM
    )
    moved, alone = (
        run(work, name, water, entries, [], variables) for name, variables in (("moved", MOVED), ("alone", ALONE))
    )
    assert errors_of(moved, alone)[0] < ROUNDING
    np.testing.assert_allclose(moved.energies["Potential"], alone.energies["Potential"], rtol=1e-4)


def test_graphs_of_steps(work, water):
    """Replayed between pair searches."""
    rare = dict.fromkeys(("nstlist", "nstfout", "nstxout", "nstenergy", "nstcalcenergy"), 20)
    entries = settings(MOTION_ON_GPU, rare, {"nsteps": 60}, FIXED_FMM)
    launched, graphs = (
        run(work, name, water, entries, ["-update", "gpu", "-nstlist", 20], variables)
        for name, variables in (("launched", ALONE), ("graphs", MOVED | {"GMX_CUDA_GRAPH": "1"}))
    )
    for a, b in zip(launched.frames, graphs.frames, strict=True):
        assert simulation.force_error(a.f, b.f) < (ROUNDING if a.step == 0 else 1e-3)
        assert simulation.rms(a.x - b.x) < 1e-5


def test_coordinates_on_the_host(work, water):
    entries = settings(MOTION_ON_GPU, FIXED_FMM)
    expect_forces_without_the_move(
        work, water, entries, update="cpu", variables=MOVED | {"GMX_FMM_DISABLE_GPU_BUFFERS": "1"}
    )


def test_a_run_continues_from_a_checkpoint(work, water):
    entries = settings(MOTION_ON_GPU, FIXED_FMM, {"nsteps": 20})
    run(work, "run", water, entries, ["-update", "gpu", "-nsteps", 10], MOVED)
    simulation.mdrun(work, "run", [*ON_ONE, "-update", "gpu", "-cpi", "run.cpt"], variables=ALONE).ok()
    whole = simulation.Run(work, "run")
    assert [frame.step for frame in whole.frames][-1] == 20
    assert set(place(whole.log)) == {f"GPU {OTHER}: {MOVE} = {OTHER}", f"no other GPU: {MOVE} = none"}


def test_without_a_way_between_the_gpus_nothing_moves(work, water):
    entries = settings(MOTION_ON_GPU, FIXED_FMM)
    moved = run(work, "moved", water, entries, ["-update", "gpu"], {MOVE: "99"})
    assert place(moved.log)[0].startswith("no other GPU: The GPU 99 cannot help the GPU 0")


@pytest.mark.skipif(GPUS < 3, reason="fewer than three GPUs")
@pytest.mark.parametrize("graphs", [{}, {"GMX_CUDA_GRAPH": "1"}], ids=["", "graphs"])
def test_steps_are_timed_on_either_gpu(once, work, graphs):
    """Forces are right while the FMM goes to and fro, and after that."""
    large = once("water48k", lambda folder: systems.water(folder, 8, 50))
    rare = {"nstlist": 100, "nstfout": 100, "nstxout": 100, "nstenergy": 100, "nstcalcenergy": 100}
    entries = settings(MOTION_ON_GPU, rare, {"nsteps": 800}, FIXED_FMM, {"fmm-farfield-tune": "yes"})
    flags = ["-nb", "gpu", "-update", "gpu", "-nstlist", 100, "-gpu_id", ",".join(map(str, range(GPUS)))]
    timed = simulation.simulate(
        work, "timed", entries, large, flags, warnings=1, ranks=1, variables={"GMX_FMM_HELPERS": "auto"} | graphs
    )
    first, last = place(timed.log)[0], place(timed.log)[-1]
    assert first == "no other GPU: the first steps are timed both ways"
    assert re.fullmatch(r"(GPU 1|no other GPU): a step took \d+ us with the FMM moved and \d+ us without.*", last)
    if not graphs:  # frames then have coordinates and forces of different steps
        alone = run(work, "alone", large, entries, ["-rerun", "timed.trr"], ALONE)
        assert max(errors_of(timed, alone)) < ROUNDING
