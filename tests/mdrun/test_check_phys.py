# SPDX-License-Identifier: LGPL-2.1-or-later
"""GROMACS's own physical validation with FMM, one system in short; regressiontests/check_phys.py has the others."""

import sys

import pytest

from tests.support.gmx import mdp

pytest.importorskip("physical_validation")

from regressiontests import check_phys

WATER = "int_water_md_verlet_none_pme_switch"


def test_fluctuations_of_the_energy_of_gromacs_water_fall_with_the_square_of_the_time_step(work):
    folder = work / WATER
    name, scale = check_phys.SHORT[WATER]
    (found,) = check_phys.check(check_phys.Suite(), WATER, folder, scale)
    assert found.name == name
    assert found.passed, str(found)
    for made in folder.iterdir():
        assert mdp.value_of(mdp.read(made / "mdout.mdp"), "coulombtype").upper() == "FMM"


@pytest.mark.parametrize("passed", [True, False])
def test_the_exit_status_says_whether_a_check_failed(monkeypatch, capsys, passed):
    found = [check_phys.Check(WATER, name, ok, 0.1, 0.2) for name, ok in (("integrator", True), ("kin_mb", passed))]
    monkeypatch.setattr(check_phys, "check", lambda *_: found)
    monkeypatch.setattr(sys, "argv", ["check_phys", "--system", WATER])
    assert check_phys.main() == (0 if passed else 1)
    assert capsys.readouterr().out.count("FAIL") == (0 if passed else 1)


def test_runs_that_are_too_short_to_judge_fail(work):
    suite = check_phys.Suite()
    name = "ens_water_md_verlet_settle_pme_vr"
    checks = check_phys.check(suite, name, work / name, 1e-4)
    assert [found.passed for found in checks if found.name == "ensemble"] == [False]
