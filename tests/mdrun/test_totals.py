# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps for which mdrun wants the energy or the virial only: each is what both together give."""

import re

import numpy as np
import pytest

from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.mdp import UNTUNED_FMM, settings
from tests.support.gmx.simulation import simulate

STEPS = 8
LENGTH = {"nsteps": STEPS, "nstxout": 1, "nstenergy": STEPS}


def barostat(compressibility):
    """Scales the box by the pressure of every second step."""
    return {
        "pcoupl": "Berendsen",
        "pcoupltype": "isotropic",
        "tau-p": 0.1,
        "nstpcouple": 2,
        "compressibility": compressibility,
        "ref-p": 1,
    }


def test_the_pressure_of_steps_without_energy_is_right(work, water):
    """It scales the box.

    A term of energies has to be there for every pressure that is written, so this is the way to
    see the others.
    """
    # Per bar: 2 steps of 2 fs over tau-p, a third for each edge.
    compressibility = 1e-4
    per_bar = 0.004 / 0.1 * compressibility / 3
    scaled = {}
    for name, every in (("both", 2), ("virial", STEPS)):
        entries = settings(
            {"gen-vel": "yes", "gen-temp": 300},
            LENGTH,
            barostat(compressibility),
            UNTUNED_FMM,
            {"nstcalcenergy": every},
        )
        # That the barostat gives no ensemble is a warning.
        run = simulate(work, name, entries, water, warnings=1)
        edges = np.array([frame.box[0, 0] for frame in run.frames])
        scaled[name] = np.diff(np.log(edges)) / per_bar
    pressures = scaled["both"][np.abs(scaled["both"]) > 0]
    assert len(pressures) >= STEPS // 2 - 1
    # A box of 2.8 nm is rounded to 1.2e-7 nm, 0.06 bar each time; forces of mixed precision to
    # 1e-6, which is 0.1 bar of the pressure's parts, some 1e5 bar.
    assert np.abs(scaled["virial"] - scaled["both"]).max() < 0.5
    assert np.median(np.abs(pressures)) > 50


# Three-site water whose bonds are flexible constraints: their lengths follow the forces.
FLEXIBLE_WATER = f"""\
#include "{systems.FORCE_FIELD}.ff/forcefield.itp"
[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW 1 -0.834 16.0
2 HW 1 SOL HW1 1 0.417 1.008
3 HW 1 SOL HW2 1 0.417 1.008
[ bonds ]
1 2 1 0.09572 502416.0
1 3 1 0.09572 502416.0
[ angles ]
2 1 3 1 104.52 628.02
[ constraints ]
1 2 2 0.0
1 3 2 0.0
[ system ]
water
[ molecules ]
"""


def potentials(text):
    """{step: potential energy} of what mdrun -v tells before it searches for lengths."""
    found = re.findall(r"MDStep= *(\d+)/ *0 EPot: *(\S+),", text)
    return {int(step): float(energy) for step, energy in found}


def test_the_energy_of_steps_without_virial_is_right(work, water):
    """mdrun -v asks for it to tell of flexible constraints, whatever else a step needs.

    GROMACS's own kernels are on the CPU: on a GPU, 2026.3 clears their energies at steps with a
    virial only (gpu_clear_outputs), with any electrostatics.
    """
    device = {"fmm-farfield-device": "gpu" if environment.on_gpu() else "cpu"}
    (work / "topol.top").write_text(FLEXIBLE_WATER + f"SOL {water.atoms // 3}\n")
    flexible = {
        "constraints": "none",
        "emtol": 1,
        "niter": 20,
        # Reduced mass over the force constant, so that one step reaches the minimum.
        "fcstep": 0.95 / 502416.0,
        "dt": 0.0005,
    }
    told = {}
    for name, every in (("both", 1), ("energy", STEPS)):
        changes = {"nstcalcenergy": every, "gen-vel": "yes", "gen-temp": 300}
        entries = settings(LENGTH, UNTUNED_FMM, device, flexible, changes)
        simulation.grompp(work, name, entries, water.conf, "topol.top").ok()
        told[name] = potentials(simulation.mdrun(work, name, ["-v", "-nb", "cpu"]).ok().text)
    assert list(told["both"]) == list(range(STEPS + 1))
    # Some hundred terms of single precision in each force; energies are told to 9 digits.
    assert told["energy"] == pytest.approx(told["both"], rel=1e-5)
