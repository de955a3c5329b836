# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies of energy groups: all of them, with periodic images, unlike those of PME."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gmx import simulation, systems
from tests.support.gmx.limits import energy_limit
from tests.support.gmx.mdp import FMM, TIGHT_PME, UNTUNED_FMM, settings

SINGLE = {"nstfout": 1}


def without_charges(text, molecules):
    """A processed topology in which molecule types have no charges."""
    lines, section, molecule = [], "", None
    for line in text.splitlines():
        found = re.match(r"\[\s*(\w+)\s*\]", line)
        fields = line.split(";")[0].split()
        if found:
            section = found.group(1)
        elif fields and section == "moleculetype":
            molecule = fields[0]
        elif fields and section == "atoms" and molecule in molecules:
            line = " ".join([*fields[:6], "0.0", *fields[7:]])
        lines.append(line)
    return "\n".join(lines) + "\n"


def run_of(work, name, system, topology, settings_of_run):
    """One evaluation with another topology."""
    top = work / f"{name}.top"
    top.write_text(topology)
    entries = settings(SINGLE, settings_of_run)
    return simulation.simulate(work, name, entries, replace(system, top=top, warnings=1))


@pytest.mark.parametrize("box", ["salt_water", "charged_water"])
def test_groups_have_the_energies_of_their_charges(work, box, request):
    """Against the energies of tight PME with charges of one group, and of both."""
    system = request.getfixturevalue(box)
    topology = systems.self_contained_topology(work, system).read_text()
    groups = {"energygrps": "SOL Ion"}
    run = run_of(work, "groups", system, topology, {**FMM, **groups})
    ions = ["NA", "CL"]
    own = {
        name: run_of(work, name, system, without_charges(topology, others), TIGHT_PME).coulomb()[0]
        for name, others in (("SOL", ions), ("Ion", ["SOL"]), ("all", []))
    }
    expected = {
        "SOL-SOL": own["SOL"],
        "SOL-Ion": own["all"] - own["SOL"] - own["Ion"],
        "Ion-Ion": own["Ion"],
    }
    limit = energy_limit(system, own["all"])
    for pair, energy in expected.items():
        assert run.energies[f"Coul-SR:{pair}"][0] == pytest.approx(energy, abs=3 * limit), pair
    assert run.coulomb()[0] == pytest.approx(own["all"], abs=limit)
    # what is left is rounding
    assert abs(run.energies["Coul. recip."][0]) <= 1e-6 * abs(own["all"])


def test_groups_change_nothing_else(work, salt_water):
    """At every step of a run, also those between steps with energies."""
    motion = {"nsteps": 6, "nstfout": 1, "nstcalcenergy": 3, "nstenergy": 3, "gen-vel": "yes"}
    runs = []
    for name, groups in (("one", {}), ("two", {"energygrps": "SOL Ion"})):
        entries = settings(UNTUNED_FMM, motion, groups)
        # GROMACS has no kernels for groups on a GPU
        runs.append(simulation.simulate(work, name, entries, salt_water, ["-nb", "cpu"]))
    for one, two in zip(runs[0].frames, runs[1].frames):
        assert simulation.force_error(two.f, one.f) <= 1e-5
    for term in ("Potential", "Pressure"):
        one, two = (np.array(run.energies[term]) for run in runs)
        assert len(one) == 3
        assert np.abs(two - one).max() <= 1e-5 * np.abs(one).max() + 1, term
