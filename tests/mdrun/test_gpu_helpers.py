# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other GPUs that help with the near field: forces at every step are those of one GPU."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.mdrun.test_free_energy import CASES, write_topology
from tests.mdrun.test_gpu_sparse import ACCURACY, placed
from tests.mdrun.test_refusals import assert_clean_failure
from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.mdp import BAROSTAT, FIXED_FMM, MOTION_ON_GPU, SLAB, THERMOSTAT, UNTUNED_FMM, VACUUM, settings

pytestmark = pytest.mark.skipif(not environment.on_gpu() or environment.gpu_count() < 2, reason="fewer than two GPUs")

ROUNDING = 1e-5
VARIABLE = "GMX_FMM_HELPERS"
AUTO = {VARIABLE: "auto"}
OTHERS = ",".join(str(gpu) for gpu in range(1, environment.gpu_count() if environment.on_gpu() else 1))
ON_ONE = ["-nb", "gpu", "-gpu_id", "0"]
ALL = ["-nb", "gpu", "-gpu_id", f"0,{OTHERS}"]


def run(work, name, system, entries, flags, variables):
    return simulation.simulate(work, name, entries, system, [*ON_ONE, *flags], warnings=1, ranks=1, variables=variables)


def helpers(log):
    return re.search(r"^  near field shared with +(\S.*)$", log, re.MULTILINE)[1]


def expect_forces_of_one_gpu(work, system, entries, update="gpu", exact=None, limit=ROUNDING):
    """At every step of a moving run. exact: what is set otherwise for the rerun."""
    helped = run(work, "helped", system, entries, ["-update", update], {VARIABLE: OTHERS})
    one = run(work, "one", system, entries | (exact or {}), ["-rerun", "helped.trr"], {VARIABLE: "none"})
    errors = [simulation.force_error(a.f, b.f) for a, b in zip(helped.frames, one.frames, strict=True)]
    assert len(errors) == entries["nsteps"] + 1
    print(f"{max(errors):.1e} at step {int(np.argmax(errors))}")
    assert max(errors) < limit
    assert helpers(helped.log).startswith("GPU 1 ")
    assert helpers(one.log) == f"no other GPU: {VARIABLE} = none"


@pytest.mark.parametrize("coupling", [{}, THERMOSTAT | BAROSTAT], ids=["", "coupled"])
@pytest.mark.parametrize("update", ["gpu", "cpu"])
def test_forces_are_those_of_one_gpu(work, water, update, coupling):
    expect_forces_of_one_gpu(work, water, settings(MOTION_ON_GPU, FIXED_FMM, coupling), update)


def periodic_film(folder):
    (folder / "water").mkdir()
    return placed(folder, systems.water(folder / "water", 2.8, steps=200), (1, 1, 1), 2, 16)


OTHER_SYSTEMS = {
    "film": (periodic_film, "gpu"),
    "four sites": (lambda folder: systems.four_site_water(folder, 2.8), "cpu"),
    "protein": (systems.protein, "gpu"),
}


@pytest.mark.parametrize("name", OTHER_SYSTEMS)
def test_forces_on_other_systems_are_those_of_one_gpu(work, name):
    make, update = OTHER_SYSTEMS[name]
    (work / "system").mkdir()
    expect_forces_of_one_gpu(work, make(work / "system"), settings(MOTION_ON_GPU, FIXED_FMM), update)


BOUNDARIES = {
    "slab": (systems.film, SLAB),
    "open": (lambda folder: systems.droplet(folder, radius=2.0, steps=100), VACUUM),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_forces_without_images_have_the_accuracy(work, name):
    """A run keeps the cells that it has begun with, a rerun has those of its first frame."""
    make, boundary = BOUNDARIES[name]
    (work / "system").mkdir()
    entries = settings(MOTION_ON_GPU, boundary, UNTUNED_FMM, {"dt": 0.001})
    exact = {"fmm-farfield-accuracy": 1e-5}
    expect_forces_of_one_gpu(work, make(work / "system"), entries, exact=exact, limit=ACCURACY)


def test_perturbed_charges_are_those_of_one_gpu(work, water):
    state_b, lambdas, _, _ = CASES["charges"]
    write_topology(work / "topol.top", water, state_b)
    entries = settings(lambdas, MOTION_ON_GPU, FIXED_FMM, {"constraints": "none", "dt": 0.001, "init-lambda-state": 1})
    expect_forces_of_one_gpu(work, replace(water, top=work / "topol.top"), entries)


def test_graphs_of_steps(work, water):
    """Replayed between pair searches, while the shares change."""
    rare = dict.fromkeys(("nstlist", "nstfout", "nstxout", "nstenergy", "nstcalcenergy"), 20)
    entries = settings(MOTION_ON_GPU, rare, {"nsteps": 60}, FIXED_FMM)
    launched, graphs = (
        run(work, name, water, entries, ["-update", "gpu", "-nstlist", 20], variables)
        for name, variables in (
            ("launched", {VARIABLE: "none"}),
            ("graphs", {VARIABLE: OTHERS, "GMX_CUDA_GRAPH": "1"}),
        )
    )
    for a, b in zip(launched.frames, graphs.frames, strict=True):
        assert simulation.force_error(a.f, b.f) < (ROUNDING if a.step == 0 else 1e-3)
        assert simulation.rms(a.x - b.x) < 1e-5


def test_small_systems_have_none_by_themselves(work, water):
    entries = settings(MOTION_ON_GPU, FIXED_FMM)
    alone = simulation.simulate(work, "alone", entries, water, ALL, warnings=1, ranks=1)
    assert helpers(alone.log) == "no other GPU: the system has fewer than 180000 atoms"


@pytest.mark.parametrize("flags", [["-nb", "gpu"], ["-nb", "gpu", "-gputasks", "0"]], ids=["", "gputasks"])
def test_gpus_that_were_not_given_do_not_help(once, work, flags, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    large = once("water48k", lambda folder: systems.water(folder, 8, 50))
    entries = settings(MOTION_ON_GPU, FIXED_FMM, {"nsteps": 20})
    alone = simulation.simulate(work, "alone", entries, large, flags, warnings=1, ranks=1)
    assert helpers(alone.log) == "no other GPU: -gpu_id did not select any"


def test_helpers_are_timed_where_settings_are(once, work):
    large = once("water48k", lambda folder: systems.water(folder, 8, 50))
    entries = settings(MOTION_ON_GPU, FIXED_FMM, {"nsteps": 20})
    timed, untimed = (
        helpers(
            simulation.simulate(
                work, tune, entries | {"fmm-farfield-tune": tune}, large, ALL, warnings=1, ranks=1, variables=AUTO
            ).log
        )
        for tune in ("yes", "no")
    )
    assert re.search(r": an evaluation takes \d+ us with helpers and \d+ us on one GPU", timed)
    assert untimed == "no other GPU: nothing is timed with fmm-farfield-tune = no"


@pytest.mark.parametrize("value", ["0", "1,1", "99"])
def test_devices_that_cannot_help_are_refused(work, water, value):
    simulation.grompp(work, "run", settings(MOTION_ON_GPU, FIXED_FMM), water.conf, water.top, ["-maxwarn", 2]).ok()
    done = simulation.mdrun(work, "run", ON_ONE, variables={VARIABLE: value}, time_limit=120)
    assert_clean_failure(done, VARIABLE)
    assert f"The helper device {value.split(',')[0]} " in " ".join(done.text.split())
