# SPDX-License-Identifier: LGPL-2.1-or-later
"""Domain decomposition: what several ranks compute is what one does.

Forces at every step of moving runs, through pair searches and changes of domains, are compared with a
rerun on one rank, whose FMM has the same order, and the same cells at the same steps.
"""

import os
import re

import numpy as np
import pytest

from tests.mdrun.test_gpu_sparse import placed
from tests.support.gmx import environment, mdp, simulation, systems
from tests.support.gmx.mdp import BAROSTAT, FIXED_FMM, FMM, THERMOSTAT, settings

pytestmark = pytest.mark.whole_machine

MOTION = {**mdp.MOTION, "fmm-farfield-device": "cpu"}
TREE = {"fmm-farfield-m2l": "hierarchy", "fmm-farfield-cell-size": 0.4}
# Through two pair searches instead of four: more ranks than cores are slow.
SHORT = {"nsteps": 24}
# Some hundred terms of single precision, added in another order; a rerun on the ranks of the run
# differs by as much.
ROUNDING = 2e-5


def run(work, name, system, entries, ranks, flags=()):
    return simulation.simulate(work, name, entries, system, ["-nb", "cpu", *flags], warnings=1, ranks=ranks)


def expect_forces_of_one_rank(work, system, entries, ranks, flags=()):
    """At every step; and energies, at those that have them."""
    several = run(work, "several", system, entries, ranks, ["-dlb", "yes", *flags])
    one = run(work, "one", system, entries, 1, ["-rerun", "several.trr"])
    assert len(several.frames) == int(entries["nsteps"]) + 1
    errors = [simulation.force_error(a.f, b.f) for a, b in zip(several.frames, one.frames, strict=True)]
    print(f"{ranks} ranks: {max(errors):.1e} at step {int(np.argmax(errors))}")
    assert max(errors) < ROUNDING
    energies, expected = several.coulomb(), one.coulomb()
    # that of the rounding of energies in single precision, in units of a whole one
    assert np.abs(energies - expected).max() < 1e-6 * np.abs(expected).max() + 1e-5 * system.atoms
    return several


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("engine", [{}, TREE], ids=["transforms", "tree"])
def test_water(work, water, ranks, engine):
    length = SHORT if ranks > 2 else {}
    several = expect_forces_of_one_rank(work, water, settings(MOTION, FIXED_FMM, engine, length), ranks)
    assert f"ranks                    {ranks}" in several.log
    numbers = r" +([\d.]+) messages, ([\d.]+) kB\n"
    sent = re.search(f"sent per evaluation{numbers} +expected by cost model{numbers}", several.log)
    messages, size, expected_messages, expected_size = map(float, sent.groups())
    assert messages == expected_messages  # from each to each, in a box as small as this
    assert size > 0 and expected_size > 0


def test_four_site_water_at_constant_pressure(work, four_site_water):
    """Particles without charge, virtual sites, another box at every fifth step."""
    entries = settings(MOTION, FIXED_FMM, THERMOSTAT, BAROSTAT)
    several = expect_forces_of_one_rank(work, four_site_water, entries, 3)
    assert several.frames[0].box is not None
    assert not np.array_equal(several.frames[0].box, several.frames[-1].box)


def test_a_net_charge(work, charged_water):
    expect_forces_of_one_rank(work, charged_water, settings(MOTION, FIXED_FMM, SHORT), 4)


def test_a_protein_in_a_dodecahedron(work, protein):
    expect_forces_of_one_rank(work, protein, settings(MOTION, FIXED_FMM, SHORT), 4)


def test_a_film_and_domains_without_atoms(work):
    """Two of four domains along z are in vacuum."""
    (work / "water").mkdir()
    film = placed(work, systems.water(work / "water", 2.8, steps=200), (1, 1, 1), 2, 16)
    flags = ["-dd", 1, 1, 4]
    expect_forces_of_one_rank(work, film, settings(MOTION, FIXED_FMM, TREE, SHORT), 4, flags)


def test_domains_divided_along_all_axes(work, water):
    """Steps before and after pair searches, and no more: eight ranks of threads on few cores are slow."""
    short = {"nsteps": 4}
    flags = ["-dd", 2, 2, 2, "-nstlist", 2]
    expect_forces_of_one_rank(work, water, settings(MOTION, FIXED_FMM, TREE, short), 8, flags)


def test_a_rank_for_the_mesh_of_lennard_jones(work, water):
    """The FMM is on the others, and gets no rank of its own where there is no mesh."""
    mesh = {"vdwtype": "PME", "lj-pme-comb-rule": "Geometric", "rvdw": 0.9}
    expect_forces_of_one_rank(work, water, settings(MOTION, FIXED_FMM, mesh), 3, ["-npme", 1])


def test_ranks_for_a_mesh_that_is_not_there_are_refused(work, water):
    simulation.grompp(work, "run", settings(MOTION, FMM), water.conf, water.top, ["-maxwarn", 1]).ok()
    done = simulation.mdrun(work, "run", ["-nb", "cpu", "-npme", 1], ntmpi=3, ntomp=1, time_limit=60)
    text = " ".join(done.text.split())
    assert 0 < done.status < 124
    assert "The system does not use PME for electrostatics or LJ. Requested -npme 1 option is not" in text


def test_pressure_and_energy(work, salt_water):
    """With all that GROMACS adds up over ranks, at one structure."""
    entries = settings(MOTION, {"nsteps": 0, "gen-vel": "no", "continuation": "yes"}, FIXED_FMM)
    one, several = (run(work, f"ranks{n}", salt_water, entries, n) for n in (1, 4))
    for term in ("Potential", "Coul. recip.", "Pressure"):
        expected = one.energies[term][0]
        # one bar in the pressure is 1e-5 of the sum of its terms
        assert several.energies[term][0] == pytest.approx(expected, rel=1e-5, abs=1.0)
    for term in (f"Pres-{a}{b}" for a in "XYZ" for b in "XYZ"):
        if term in one.energies:
            assert several.energies[term][0] == pytest.approx(one.energies[term][0], abs=3.0)


def test_a_run_continues_on_another_number_of_ranks(work, water):
    entries = settings(MOTION, FIXED_FMM)
    run(work, "run", water, entries, 2, ["-nsteps", 20])
    flags = ["-nb", "cpu", "-cpi", "run.cpt", "-noappend", "-nsteps", 20]
    simulation.mdrun(work, "run", flags, ntmpi=4, ntomp=1).ok()
    part = simulation.Run(work, "run.part0002")
    assert "checkpoint are not used" not in part.log  # the cells of the checkpoint
    run(work, "one", water, entries, 1, ["-rerun", "run.part0002.trr"])
    one = simulation.Run(work, "one")
    errors = [simulation.force_error(a.f, b.f) for a, b in zip(part.frames, one.frames, strict=True)]
    assert len(errors) == 21
    assert max(errors) < ROUNDING


def test_runs_are_reproducible(work, water):
    """With -reprod bit for bit, with cells that do not depend on timings."""
    entries = settings(MOTION, FMM, SHORT)
    first, second = (
        run(work, name, water, entries, 3, ["-reprod"]) for name in ("first", "second")
    )
    assert np.array_equal(first.frames[-1].x, second.frames[-1].x)
    assert np.array_equal(first.frames[-1].f, second.frames[-1].f)


def test_energy_is_conserved(work, water):
    """0.4 ps: a pair that is missing, or found late, costs tens of kJ/mol."""
    length = {"gen-vel": "yes", "gen-temp": 300, "nsteps": 400, "dt": 0.001, "nstenergy": 10}
    exact = {"verlet-buffer-tolerance": 1e-5, "fmm-farfield-accuracy": 1e-5}
    several = run(work, "run", water, settings(FMM, length, exact), 2)
    energy = several.energies["Total Energy"]
    assert np.abs(energy - energy[0]).max() < 10


def test_a_minimiser(work, water):
    steps = {"integrator": "steep", "nsteps": 10, "emtol": 1, "constraints": "none"}
    entries = settings(steps, FIXED_FMM, {"nstenergy": 1})
    one, several = (run(work, f"ranks{n}", water, entries, n) for n in (1, 2))
    assert several.energies["Potential"][-1] == pytest.approx(one.energies["Potential"][-1], rel=1e-5)


@pytest.mark.skipif(environment.gmx_mpi() is None, reason="GMX_MPI is not set")
def test_an_mpi_library_gives_what_thread_mpi_gives(work, salt_water):
    """Messages between processes; the same program otherwise."""
    entries = settings(MOTION, FIXED_FMM)
    threads = run(work, "threads", salt_water, entries, 3, ["-reprod"])
    simulation.grompp(work, "processes", entries, salt_water.conf, salt_water.top, ["-maxwarn", 1]).ok()
    simulation.mdrun_with_mpi(work, "processes", 3, ["-nb", "cpu", "-reprod"])
    processes = simulation.Run(work, "processes")
    errors = [
        simulation.force_error(a.f, b.f)
        for a, b in zip(processes.frames[:10], threads.frames[:10], strict=True)
    ]
    # the same structures to rounding, which grows with time
    assert errors[0] < ROUNDING
    assert max(errors) < 1e-3


REFUSED = {
    "slab": ({"pbc": "xy", "nwall": 0, "comm-mode": "linear"}, "with pbc = xy"),
    "groups": ({"energygrps": "SOL Ion"}, "with energy groups"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_needs_one_rank_says_so(work, salt_water, what):
    changes, words = REFUSED[what]
    entries = settings(MOTION, FMM, changes)
    flags = ["-maxwarn", 2]
    simulation.grompp(work, "run", entries, salt_water.conf, salt_water.top, flags).ok()
    done = simulation.mdrun(work, "run", ["-nb", "cpu"], ntmpi=2, ntomp=1)
    text = " ".join(done.text.split())
    assert done.status != 0
    assert f"FMM electrostatics {words} only supports a single rank" in text


def chosen(work, *flags):
    """What mdrun says of the layout that it chooses, and its number of threads."""
    environment.gmx()("mdrun", "-deffnm", "run", "-nb", "cpu", "-pin", "off", *flags, folder=work)
    log = simulation.Run(work, "run").log
    said = re.findall(r"With FMM electrostatics mdrun uses (.*?) unless", " ".join(log.split()))
    return said, int(re.search(r"^  device .* (\d+) OpenMP thread", log, re.MULTILINE)[1])


def test_mdrun_chooses_one_rank_and_its_threads_by_itself(work, water):
    simulation.grompp(work, "run", settings(FMM), water.conf, water.top).ok()
    assert chosen(work) == (["one rank"], len(os.sched_getaffinity(0)))
    assert chosen(work, "-ntomp", 1) == (["one rank"], 1)
    assert chosen(work, "-ntmpi", 1, "-ntomp", 1) == ([], 1)
