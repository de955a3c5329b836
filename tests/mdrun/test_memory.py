# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory of mdrun with FMM beyond what GROMACS needs without long-range electrostatics.

For 93 000 atoms: some 60 MB of operators and set-up do not depend on the number of atoms, and
outweigh the rest in small boxes.
"""

import pytest

from tests.support.gmx import environment, mdp, simulation, systems
from tests.support.gmx.mdp import FMM, settings

# Bytes per atom that the specification allows.
LIMIT = 2048
REACTION_FIELD = {"coulombtype": "Reaction-Field", "epsilon-rf": 0}


def peak_memory(folder, name, system, electrostatics):
    """Largest resident set of an mdrun that computes the forces once, bytes."""
    entries = settings(mdp.ONE_STEP, electrostatics)
    simulation.grompp(folder, name, entries, system.conf, system.top).ok()
    return simulation.peak_memory(folder, name)


@pytest.mark.skipif(environment.on_gpu(), reason="tests/bench/mdrun_gpu.py measures a GPU's memory")
def test_memory_per_atom(work):
    (work / "topol.top").write_text(systems.WATER_TOP)
    water = systems.system(work, systems.solvate(work, [9.8] * 3))
    without = peak_memory(work, "rf", water, REACTION_FIELD)
    fmm = peak_memory(work, "fmm", water, FMM)
    assert fmm - without <= LIMIT * water.atoms
