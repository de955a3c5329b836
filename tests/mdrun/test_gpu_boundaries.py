# SPDX-License-Identifier: LGPL-2.1-or-later
"""pbc = no and pbc = xy on a GPU: forces of many steps of a run, with and without energies, against a
rerun on the CPU, and what a step with energies has."""

import numpy as np
import pytest

from tests.support.gmx import boundary_checks, environment, mdp, systems
from tests.support.gmx.mdp import settings
from tests.support.gmx.simulation import force_error, simulate

pytestmark = pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")

WALLS = {"nwall": 2, "wall-type": "9-3", "wall-atomtype": "OW OW", "wall-density": "33 33"}
SCENES = {
    "droplet": mdp.VACUUM,
    "protein": mdp.VACUUM,
    "film": mdp.SLAB,
    "between walls": {**mdp.SLAB, **WALLS, "wall-r-linpot": 0.05},
}
ON_GPU = ["-nb", "gpu", "-update", "gpu"]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    film = systems.film(tmp_path_factory.mktemp("film"))
    folder = tmp_path_factory.mktemp("walls")
    s = systems.read_gro(film.conf)
    low, high = s.x[:, 2].min(), s.x[:, 2].max()
    s.x[:, 2] += 0.3 - low
    s.box[2] = [0, 0, high - low + 0.6]
    systems.write_gro(folder / "conf.gro", systems.snap_to_grid(s))
    return {
        "droplet": systems.droplet(tmp_path_factory.mktemp("droplet"), radius=2.0, steps=100),
        "protein": systems.vacuum_protein(tmp_path_factory.mktemp("protein")),
        "film": film,
        "between walls": systems.System(folder, folder / "conf.gro", film.top, film.atoms, 0),
    }


@pytest.mark.parametrize("update", ["gpu", "cpu"])
@pytest.mark.parametrize("scene", SCENES)
def test_forces_of_a_run_are_those_of_a_rerun_on_the_cpu(work, scenes, scene, update):
    system = scenes[scene]
    hot = {"gen-vel": "yes", "gen-temp": 600, "dt": 0.001, "nsteps": 400, "nstlist": 50}
    rare = {"nstxout": 4, "nstfout": 4, "nstenergy": 100, "nstcalcenergy": 100}
    cells = {"fmm-farfield-cell-size": 0.5}
    run = simulate(
        work,
        "run",
        settings(SCENES[scene], hot, rare, cells),
        system,
        flags=["-nb", "gpu", "-update", update],
    )
    assert update == "cpu" or "stay on the GPU" in run.log
    often = {"nstcalcenergy": 1, "nstenergy": 1, "nstfout": 1, "nstxout": 1}
    exact = settings(SCENES[scene], often, {"fmm-farfield-accuracy": 1e-5})
    flags = ["-nb", "cpu", "-rerun", "run.trr"]
    rerun = simulate(work, "rerun", exact, system, flags=flags)
    assert len(run.frames) == len(rerun.frames) == 101
    errors = [force_error(a.f, b.f) for a, b in zip(run.frames, rerun.frames, strict=True)]
    print(f"{scene}: {max(errors):.2e} at step {4 * int(np.argmax(errors))}")
    assert max(errors) <= 3e-4
    energies = rerun.energies["Potential"][::25]
    assert run.energies["Potential"] == pytest.approx(energies, abs=5e-3 * system.atoms)


@pytest.mark.parametrize("scene", SCENES)
def test_totals_are_those_of_the_cpu(work, scenes, scene):
    """Energies and the pressure, whose components need the whole virial."""
    entries = settings(mdp.ONE_STEP, SCENES[scene], {"fmm-farfield-accuracy": 1e-5})
    system = scenes[scene]
    runs = [
        simulate(work, name, entries, system, flags=flags)
        for name, flags in (("gpu", ON_GPU), ("cpu", ["-nb", "cpu"]))
    ]
    assert "stay on the GPU" in runs[0].log
    assert force_error(runs[0].forces, runs[1].forces) < 2e-5
    assert runs[0].coulomb() == pytest.approx(runs[1].coulomb(), rel=1e-5)
    for direction in ("XX", "YY", "ZZ", "XY", "XZ", "YZ"):
        ours, theirs = (r.energies[f"Vir-{direction}"][0] for r in runs)
        scale = max(abs(r.energies[f"Vir-{d}"][0]) for r in runs for d in ("XX", "YY", "ZZ"))
        assert ours == pytest.approx(theirs, abs=2e-4 * scale), direction


@pytest.mark.parametrize("scene", SCENES)
def test_energy_is_conserved(work, scenes, scene):
    system = scenes[scene]
    # The integrator's own error, with angles of hydrogens: 5 kJ/mol at 0.5 fs, 21 at 1 fs
    dt = 0.0005 if scene == "protein" else 0.001
    boundary_checks.expect_constant_energy(
        work, SCENES[scene], system, 4e-3 * system.atoms, flags=ON_GPU, dt=dt
    )


def test_graphs_are_not_recorded_and_the_log_says_so(work, scenes):
    entries = settings(SCENES["film"], {"nsteps": 20, "gen-vel": "yes"})
    run = simulate(
        work, "run", entries, scenes["film"], flags=ON_GPU, variables={"GMX_CUDA_GRAPH": "1"}
    )
    assert "GMX_CUDA_GRAPH has no effect" in " ".join(run.log.split())
