# SPDX-License-Identifier: LGPL-2.1-or-later
"""Relaxing shells: a step has several evaluations, which mdrun gives the number of no step."""

import numpy as np
import pytest

from tests.support.gmx import simulation, systems
from tests.support.gmx.mdp import FMM, settings
from tests.support.gmx.simulation import simulate

# Drude ions: 1 e in all, 2 e of it on a shell; polarizability in nm^3.
TOPOLOGY = """\
[ atomtypes ]
XS 0 0.0 0.0 S 0.0 0.0
[ moleculetype ]
{name} 1
[ atoms ]
1 {type} 1 {name} {name} 1 {core} {mass}
2 XS 1 {name} {name}S 1 -2.0 0.0
[ bonds ]
1 2 5
[ polarization ]
1 2 1 0.0005
"""
IONS = {"PNA": ("Na", 3.0, 22.99), "PCL": ("Cl", 1.0, 35.45)}

# One setting throughout: an evaluation on another grid has other forces by about 1e-3.
COARSE = {
    "fmm-farfield-order": 6,
    "fmm-farfield-cell-size": 0.56,
    "fmm-farfield-direct-range": 1,
    "fmm-farfield-tune": "no",
}
SHELLS = {"emtol": 1.0, "niter": 50, "constraints": "none", "gen-vel": "yes", "gen-temp": 300}


@pytest.fixture(scope="module")
def drude_crystal(tmp_path_factory):
    """Rock salt of ions with shells, which start on their ions."""
    folder = tmp_path_factory.mktemp("drude")
    crystal = systems.ion_crystal(folder)
    ions = systems.read_gro(crystal.conf)
    names = {"NA": "PNA", "CL": "PCL"}
    kinds = [names[name.strip()] for name in ions.atoms]
    # A shell on its core would have no direction to its force
    shells = ions.x + 2 * systems.POSITION_GRID
    ions.residue_numbers = list(np.repeat(ions.residue_numbers, 2))
    ions.residues = [f"{k:<5}" for k in kinds for _ in range(2)]
    ions.atoms = [f"{k + shell:>5}" for k in kinds for shell in ("", "S")]
    ions.x = np.stack([ions.x, shells], axis=1).reshape(-1, 3)
    systems.write_gro(folder / "conf.gro", ions)
    types = TOPOLOGY.split("[ moleculetype ]")[0]
    molecules = "".join(
        TOPOLOGY[len(types) :].format(name=name, type=kind, core=core, mass=mass)
        for name, (kind, core, mass) in IONS.items()
    )
    force_field = f'#include "{systems.FORCE_FIELD}.ff/forcefield.itp"\n'
    counts = "".join(f"{name} {kinds.count(name)}\n" for name in IONS)
    system = f"[ system ]\ndrude\n[ molecules ]\n{counts}"
    (folder / "topol.top").write_text(force_field + types + molecules + system)
    return systems.system(folder)


def test_a_rerun_has_the_forces_of_the_run(work, drude_crystal):
    """A frame has relaxed shells: the rerun evaluates it once, on the grid of its step.

    The run has other evaluations in between, and must have made the last one on that grid, too.
    """
    length = {"nsteps": 4, "nstxout": 1, "nstfout": 1, "nstlist": 1, "dt": 0.001}
    run = simulate(work, "run", settings(SHELLS, length, FMM, COARSE), drude_crystal)
    assert "did not converge" not in run.log
    simulation.mdrun(work, "again", ["-s", "run.tpr", "-rerun", "run.trr"]).ok()
    for before, after in zip(run.frames, simulation.Run(work, "again").frames, strict=True):
        # Some hundred terms of single precision (6e-8) per atom, added in another order.
        assert simulation.force_error(after.f, before.f) < 1e-5, before.step
