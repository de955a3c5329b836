# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run input files: those without this backend are those of GROMACS without the patch."""

import pytest

from tests.support.gmx import simulation
from tests.support.gmx.mdp import FMM, settings

# GROMACS refuses a run input file with options that it does not know.
OWN = b"farfield-"
PME_WITH_LEFTOVERS = {"coulombtype": "PME", "fmm-farfield-order": 7}
CASES = {
    "PME": ({}, False),
    "PME, with an option of FMM in the mdp file": (PME_WITH_LEFTOVERS, False),
    "FMM, another backend": ({"coulombtype": "FMM", "fmm-backend": "exafmm"}, False),
    "FMM, this backend": (FMM, True),
}


@pytest.mark.parametrize("case", CASES)
def test_only_runs_with_this_backend_have_its_options(work, water, case):
    change, expected = CASES[case]
    simulation.grompp(work, "run", settings(change), water.conf, water.top).ok()
    content = (work / "run.tpr").read_bytes()
    assert b"fmsolvr-order" in content
    assert (OWN in content) == expected


def test_the_options_of_a_run_reach_mdrun(work, water):
    """Those of a run with this backend are still read back, without the defaults."""
    entries = settings(FMM, {"fmm-farfield-order": 5, "fmm-farfield-direct-range": 2})
    simulation.grompp(work, "run", entries, water.conf, water.top).ok()
    simulation.mdrun(work, "run").ok()
    log = simulation.Run(work, "run").log
    described = log[log.index("FMM electrostatics with farfield") :].split("\n\n")[0]
    assert "multipole order          5" in described
    assert "direct range (ws)        2" in described
