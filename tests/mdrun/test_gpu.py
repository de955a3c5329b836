# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where coordinates and forces are with a GPU: all paths give the same forces."""

import re

import pytest

from tests.support.gmx import environment, mdp, simulation
from tests.support.gmx.mdp import FIXED_FMM, FMM, settings

pytestmark = pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")

# What mdrun is told, and what its log says about coordinates and forces.
PATHS = {
    "device": (["-nb", "gpu", "-update", "gpu"], "stay on the GPU"),
    "update on the CPU": (["-nb", "gpu", "-update", "cpu"], "copied at every step"),
    "non-bonded on the CPU": (["-nb", "cpu"], "pass through the host"),
}
# Some hundred terms of single precision, added in another order.
ROUNDING = 1e-5


def run(work, name, entries, system, flags, **options):
    simulation.grompp(work, name, entries, system.conf, system.top).ok()
    simulation.mdrun(work, name, flags, **options).ok()
    return simulation.Run(work, name)


@pytest.mark.parametrize("dispersion", [{}, {"vdwtype": "FMM"}])
@pytest.mark.parametrize("tune", ["yes", "no"])
def test_all_paths_give_the_same_forces(work, salt_water, tune, dispersion):
    """With one setting; with tuning every run may choose its own, within the accuracy."""
    electrostatics = FMM if tune == "yes" else FIXED_FMM
    entries = settings(mdp.ONE_STEP, electrostatics, {"fmm-farfield-device": "gpu"}, dispersion)
    runs = {}
    for number, (name, (flags, words)) in enumerate(PATHS.items()):
        runs[name] = run(work, f"run{number}", entries, salt_water, flags)
        line = re.search(r"coordinates and forces\s+(.*)", runs[name].log)
        assert line and words in line.group(1), name
    for name in PATHS:
        error = simulation.force_error(runs[name].forces, runs["device"].forces)
        assert error < (ROUNDING if tune == "no" else 6e-4), name
        if tune == "no":
            assert runs[name].coulomb() == pytest.approx(runs["device"].coulomb(), rel=1e-6)


def test_the_cpu_gives_the_same_forces(work, salt_water):
    """The same order and cells on both."""
    runs = [
        run(
            work,
            device,
            settings(mdp.ONE_STEP, FIXED_FMM, {"fmm-farfield-device": device}),
            salt_water,
            ["-nb", device],
        )
        for device in ("gpu", "cpu")
    ]
    assert simulation.force_error(runs[0].forces, runs[1].forces) < ROUNDING
    assert runs[0].coulomb() == pytest.approx(runs[1].coulomb(), rel=1e-6)


@pytest.mark.parametrize("dispersion", [{}, {"vdwtype": "FMM"}])
def test_graphs_do_not_change_the_forces(work, water, dispersion):
    """19 steps replayed as a graph; rounding has grown by little after so short a time."""
    length = {"nsteps": 20, "nstlist": 20, "nstfout": 20, "nstxout": 20}
    rare = {"nstenergy": 20, "nstcalcenergy": 20, "fmm-farfield-tune": "no"}
    entries = settings({"gen-vel": "yes", "gen-temp": 300}, length, rare, FMM, dispersion)
    runs = [
        run(work, name, entries, water, PATHS["device"][0], variables=variables)
        for name, variables in (("launched", {}), ("graph", {"GMX_CUDA_GRAPH": "1"}))
    ]
    assert all(("sites on the GPU" in run.log) == bool(dispersion) for run in runs)
    first, last = (
        simulation.force_error(runs[0].frames[k].f, runs[1].frames[k].f) for k in (0, -1)
    )
    assert first < ROUNDING
    assert last < 1e-3
    # the grid of cells moves alike, or the errors of the forces would differ by more
    assert simulation.rms(runs[0].frames[-1].x - runs[1].frames[-1].x) < 1e-6


@pytest.mark.parametrize("graphs", ["1", None])
def test_the_log_tells_what_graphs_do_to_output_steps(work, water, graphs):
    variables = {"GMX_CUDA_GRAPH": graphs} if graphs else {}
    entries = settings({"nsteps": 2}, FMM)
    log = run(work, "run", entries, water, PATHS["device"][0], variables=variables).log
    note = "frames whose coordinates and forces belong to different steps"
    assert (note in " ".join(log.split())) == bool(graphs)


def test_pressure_coupling_with_graphs(work, water):
    """The box changes under the graphs; the last forces are those of tight PME."""
    length = {"nsteps": 400, "nstxout": 400, "nstfout": 400, "nstenergy": 100}
    coupled = {
        "nstcalcenergy": 10,
        "nsttcouple": 10,
        "tcoupl": "v-rescale",
        "tc-grps": "System",
        "tau-t": 0.2,
        "ref-t": 300,
        "pcoupl": "C-rescale",
        "pcoupltype": "isotropic",
        "tau-p": 0.5,
        "ref-p": 1000,
        "compressibility": 4.5e-5,
        "nstpcouple": 10,
    }
    entries = settings({"gen-vel": "yes", "gen-temp": 300}, length, coupled, FMM)
    graphs = {"GMX_CUDA_GRAPH": "1"}
    last = run(work, "npt", entries, water, PATHS["device"][0], variables=graphs).frames[-1]
    rerun = settings(mdp.ONE_STEP, mdp.TIGHT_PME, {"nstcalcenergy": 1})
    simulation.grompp(work, "pme", rerun, water.conf, water.top).ok()
    simulation.mdrun(work, "pme", ["-rerun", "npt.trr"]).ok()
    assert simulation.force_error(last.f, simulation.Run(work, "pme").frames[-1].f) <= 4e-4
