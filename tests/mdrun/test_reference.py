# SPDX-License-Identifier: LGPL-2.1-or-later
"""GMX_FMM_REFERENCE: forces in double precision at order 20, in a program of mixed precision."""

import re

import pytest

from farfield.gromacs.tpr import REFERENCE
from tests.support.gmx import environment, simulation
from tests.support.gmx.mdp import FMM, ONE_STEP, settings
from tests.support.gmx.simulation import force_error

# Total forces are sums of some ten terms in single precision, each rounded: 6e-8 of the largest.
ROUNDING = 1e-6
# Two settings of PME that are converged in double precision agree to this.
PME_ERROR = 4e-7


def reference(folder, name, system, changes):
    """One evaluation by reference forces."""
    entries = settings(ONE_STEP, {"rcoulomb": 1.0, "rvdw": 1.0}, FMM, changes)
    simulation.grompp(folder, name, entries, system.conf, system.top, ["-maxwarn", system.warnings]).ok()
    simulation.mdrun(folder, name, variables=REFERENCE).ok()
    return simulation.Run(folder, name)


@pytest.mark.skipif(environment.gmx_double() is None, reason="no double-precision gmx")
@pytest.mark.parametrize("kind", ["salt_water", "charged_water", "protein"])
def test_reference_forces_are_those_of_converged_pme(work, request, converged, kind):
    system = request.getfixturevalue(kind)
    exact = converged(system, 1.0)
    run = reference(work, "reference", system, {})
    assert force_error(run.forces, exact.forces) <= ROUNDING + PME_ERROR
    # The term of the energy file is in single precision
    assert run.coulomb()[0] == pytest.approx(exact.coulomb()[0], rel=2e-7)


def test_reference_forces_do_not_depend_on_settings(work, salt_water):
    """Nor on the position of the cells, which follows the step."""
    first = reference(work, "first", salt_water, {})
    changes = {"fmm-farfield-accuracy": 0.05, "fmm-farfield-order": 2, "init-step": 3}
    other = reference(work, "other", salt_water, changes)
    assert force_error(other.forces, first.forces) <= ROUNDING


def test_the_log_says_so_and_how_large_coulomb_forces_are(work, salt_water):
    log = reference(work, "reference", salt_water, {}).log
    assert "GMX_FMM_REFERENCE is set" in log
    assert len(re.findall(r"^FMM reference at step 0: RMS Coulomb force", log, re.MULTILINE)) == 1
