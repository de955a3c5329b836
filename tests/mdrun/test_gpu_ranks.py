# SPDX-License-Identifier: LGPL-2.1-or-later
"""Domain decomposition with the FMM on GPUs: forces at every step are those of one rank.

The ranks share a GPU where there is one, and messages pass through the host; with a GPU for each they
write into each other's memory.
"""

import pytest

from tests.mdrun.test_ranks import BAROSTAT, MOTION, THERMOSTAT
from tests.mdrun.test_refusals import assert_clean_failure
from tests.support.gmx import environment, simulation
from tests.support.gmx.mdp import FIXED_FMM, settings

pytestmark = pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")

# Energies at some steps only: forces alone take other kernels.
ON_GPU = {
    **MOTION,
    "fmm-farfield-device": "gpu",
    "nsteps": 120,
    "nstlist": 20,
    "nstcalcenergy": 10,
    "nstenergy": 10,
}
ROUNDING = 1e-5


def run(work, name, system, entries, ranks, flags):
    return simulation.simulate(work, name, entries, system, flags, warnings=1, ranks=ranks)


def expect_forces_of_one_rank(work, system, entries, ranks, update="gpu"):
    have_own = environment.gpu_count() >= ranks
    gpus = "".join(map(str, range(ranks if have_own else 1)))
    flags = ["-nb", "gpu", "-update", update, "-gpu_id", gpus]
    several = run(work, "several", system, entries, ranks, flags)
    one = run(work, "one", system, entries, 1, ["-nb", "gpu", "-rerun", "several.trr"])
    errors = [simulation.force_error(a.f, b.f) for a, b in zip(several.frames, one.frames, strict=True)]
    assert len(errors) == entries["nsteps"] + 1
    assert max(errors) < ROUNDING
    way = "by writing into each other's memory" if have_own else "through the host"
    assert f"messages between GPUs {way}" in several.log
    assert "exchanges planned" in several.log
    return several


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("update", ["gpu", "cpu"])
def test_water(work, water, ranks, update):
    expect_forces_of_one_rank(work, water, settings(ON_GPU, FIXED_FMM), ranks, update)


def test_constant_pressure(work, salt_water):
    expect_forces_of_one_rank(
        work, salt_water, settings(ON_GPU, FIXED_FMM, THERMOSTAT, BAROSTAT), 2, update="cpu"
    )


def test_a_net_charge(work, charged_water):
    expect_forces_of_one_rank(work, charged_water, settings(ON_GPU, FIXED_FMM), 2)


def test_a_protein_in_a_dodecahedron(work, protein):
    expect_forces_of_one_rank(work, protein, settings(ON_GPU, FIXED_FMM), 2)


def test_trees_are_refused(work, water):
    entries = settings(ON_GPU, FIXED_FMM, {"fmm-farfield-m2l": "hierarchy"})
    simulation.grompp(work, "tree", entries, water.conf, water.top, ["-maxwarn", 2]).ok()
    done = simulation.mdrun(work, "tree", ["-nb", "gpu"], ntmpi=2, ntomp=1)
    assert_clean_failure(done, "fmm-farfield-m2l")
    assert "several ranks have no tree of cells" in " ".join(done.text.split())
