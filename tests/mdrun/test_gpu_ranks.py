# SPDX-License-Identifier: LGPL-2.1-or-later
"""Domain decomposition with the FMM on GPUs: forces at every step are those of one rank.

The ranks share a GPU where there is one, and messages pass through the host; with a GPU for each they
write into each other's memory.
"""

import numpy as np
import pytest

from tests.mdrun.test_gpu_sparse import placed
from tests.mdrun.test_refusals import assert_clean_failure
from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.mdp import BAROSTAT, FIXED_FMM, MOTION_ON_GPU, THERMOSTAT, settings

pytestmark = pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")

ROUNDING = 1e-5


def run(work, name, system, entries, ranks, flags):
    return simulation.simulate(work, name, entries, system, flags, warnings=1, ranks=ranks)


def expect_forces_of_one_rank(work, system, entries, ranks, update="gpu", flags=(), way=None):
    """At every step. way: that messages take, if not by that which there is."""
    have_own = environment.gpu_count() >= ranks
    gpus = "".join(map(str, range(ranks if have_own else 1)))
    flags = ["-nb", "gpu", "-update", update, "-gpu_id", gpus, *flags]
    several = run(work, "several", system, entries, ranks, flags)
    one = run(work, "one", system, entries, 1, ["-nb", "gpu", "-rerun", "several.trr"])
    errors = [simulation.force_error(a.f, b.f) for a, b in zip(several.frames, one.frames, strict=True)]
    assert len(errors) == entries["nsteps"] + 1
    print(f"{ranks} ranks: {max(errors):.1e} at step {int(np.argmax(errors))}")
    assert max(errors) < ROUNDING
    way = way or ("by writing into each other's memory" if have_own else "through the host")
    assert f"messages between GPUs {way}" in several.log
    assert "exchanges planned" in several.log
    return several


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("update", ["gpu", "cpu"])
def test_water(work, water, ranks, update):
    expect_forces_of_one_rank(work, water, settings(MOTION_ON_GPU, FIXED_FMM), ranks, update)


@pytest.mark.parametrize("balancing", ["no", "yes"])
def test_constant_pressure(work, salt_water, balancing):
    """With dynamic load balancing domains change at every pair search."""
    entries = settings(MOTION_ON_GPU, FIXED_FMM, THERMOSTAT, BAROSTAT)
    expect_forces_of_one_rank(work, salt_water, entries, 2, "cpu", ["-dlb", balancing])


def test_a_film_and_domains_without_atoms(work):
    """Two of four domains along z are in vacuum."""
    (work / "water").mkdir()
    film = placed(work, systems.water(work / "water", 2.8, steps=200), (1, 1, 1), 2, 16)
    expect_forces_of_one_rank(
        work, film, settings(MOTION_ON_GPU, FIXED_FMM), 4, "cpu", ["-dd", 1, 1, 4]
    )


@pytest.mark.skipif(environment.gpu_count() < 2, reason="fewer than two GPUs")
def test_messages_by_nccl(work, water, monkeypatch):
    monkeypatch.setenv("GMX_DISABLE_DIRECT_GPU_COMM", "1")
    expect_forces_of_one_rank(
        work, water, settings(MOTION_ON_GPU, FIXED_FMM), 2, "cpu", way="by NCCL"
    )


@pytest.mark.parametrize("coupling", [{}, THERMOSTAT | BAROSTAT | {"nsttcouple": 5}], ids=["", "coupled"])
def test_graphs_of_steps(work, water, coupling):
    """Recorded after each of three pair searches, replayed in between: a grid of cells that moves otherwise
    would put atoms 1e-4 nm apart. Graphs need GPUs that write into each other's memory."""
    rare = dict.fromkeys(("nstlist", "nstfout", "nstxout", "nstenergy", "nstcalcenergy"), 20)
    entries = settings(MOTION_ON_GPU, rare, {"nsteps": 60}, FIXED_FMM, coupling)
    have_own = environment.gpu_count() >= 2
    flags = ["-nb", "gpu", "-update", "gpu", "-nstlist", 20, "-gpu_id", "01" if have_own else "0"]
    launched, graphs = (
        simulation.simulate(work, name, entries, water, flags, warnings=1, ranks=2, variables=variables)
        for name, variables in (("launched", {}), ("graphs", {"GMX_CUDA_GRAPH": "1"}))
    )
    words = " ".join(graphs.log.split())
    assert ("GMX_CUDA_GRAPH has no effect" in words) == (not have_own)
    assert ("coordinates and forces belong to different steps" in words) == have_own
    for a, b in zip(launched.frames, graphs.frames, strict=True):
        assert simulation.force_error(a.f, b.f) < (ROUNDING if a.step == 0 else 1e-3)
        assert simulation.rms(a.x - b.x) < 1e-5


def test_a_net_charge(work, charged_water):
    expect_forces_of_one_rank(work, charged_water, settings(MOTION_ON_GPU, FIXED_FMM), 2)


def test_a_protein_in_a_dodecahedron(work, protein):
    expect_forces_of_one_rank(work, protein, settings(MOTION_ON_GPU, FIXED_FMM), 2)


def test_trees_are_refused(work, water):
    entries = settings(MOTION_ON_GPU, FIXED_FMM, {"fmm-farfield-m2l": "hierarchy"})
    simulation.grompp(work, "tree", entries, water.conf, water.top, ["-maxwarn", 2]).ok()
    done = simulation.mdrun(work, "tree", ["-nb", "gpu"], ntmpi=2, ntomp=1)
    assert_clean_failure(done, "fmm-farfield-m2l")
    assert "several ranks cannot use a tree of cells" in " ".join(done.text.split())
