# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs whose start says little about the forces that follow: ions in contact, and ions at their sites."""

import re
from dataclasses import replace

import numpy as np
import pytest

from examples import membrane, protein
from tests.support.gmx import environment, mdp, reference, systems
from tests.support.gmx.mdp import FMM, settings
from tests.support.gmx.simulation import rms, simulate

ACCURACY = 3e-4  # the default
MINIMISE = {"integrator": "steep", "nsteps": 80, "emstep": 0.01, "emtol": 1, "nstxout": 80, "nstfout": 80}


def estimates(log):
    """What the log says of the error, in the order in which it says it."""
    return [float(value) for value in re.findall(r"estimated error (?:is now )? *(\d\S*e-\d+)", log)]


def error_of_last_forces(work, name, run, system, entries):
    """Of NAME.trr, relative to the Coulomb forces; entries: of the rerun for the reference."""
    last = ["-rerun", f"{name}.trr", "-e", "last.edr"]
    exact, half = (
        simulate(work, kind, entries | FMM | {"epsilon-r": epsilon}, system, last,
                 variables={"GMX_FMM_REFERENCE": "1"}, time_limit=1200).frames[-1].f
        for kind, epsilon in (("exact", 1), ("half", 2))
    )
    return rms(run.frames[-1].f - exact) / rms(2 * (exact - half))


def test_the_accuracy_is_met_once_ions_have_parted(work):
    """More than 20 000 of them, so far from their sites that some are in contact."""
    salt = systems.ion_crystal(work, cells=14, displacement=0.06)
    run = simulate(work, "run", settings({"rvdw": 0.9}, MINIMISE, FMM), salt, time_limit=600)
    error = error_of_last_forces(work, "run", run, salt, settings(reference.single_point(0.9)))
    told = estimates(run.log)
    print(f"error {error:.1e}, estimates {told}")
    assert len(told) > 1  # forces have become others
    assert error <= ACCURACY
    assert told[-1] / 2 < error < 2 * told[-1]


@pytest.mark.long
def test_a_membrane_that_overlaps_at_first_keeps_the_accuracy(work):
    """Minimised, heated and pressed: at the end of each, forces are others than at its begin."""
    membrane.overlapping(environment.gmx(), work)
    s = systems.read_gro(work / "wet.gro")
    patch = systems.System(work, work / "wet.gro", work / "patch.top", len(s.x), float(np.prod(np.diag(s.box))))
    start, errors = [], {}
    for name in ("soft", "stiffer", "stiff", "minimise", "heat", "compress"):
        stage = {**protein.COMMON, **protein.DYNAMICS, **membrane.STAGES[name]}
        if "sc-alpha" in stage:  # lipids that are in each other come apart
            simulate(work, name, stage | mdp.STANDARD_PME, patch, warnings=1)
            patch = replace(patch, conf=work / f"{name}.gro")
            continue
        output = {f"nst{what}out": stage["nsteps"] for what in "xf"}
        run = simulate(work, name, stage | FMM | output, patch, warnings=1, grompp_flags=start, time_limit=3600)
        patch = replace(patch, conf=work / f"{name}.gro")
        start = ["-t", work / f"{name}.cpt"] if name != "minimise" else []
        rerun = stage | {"integrator": "md", "nsteps": 0, "tcoupl": "no", "pcoupl": "no", "gen-vel": "no"}
        rerun |= {"nstxout": 1, "nstfout": 1}
        errors[name] = error_of_last_forces(work, name, run, replace(patch, warnings=1), rerun)
        print(f"{name}: error {errors[name]:.1e}, estimates {estimates(run.log)}")
    assert max(errors.values()) <= ACCURACY


def test_a_crystal_at_its_sites_is_accepted(work):
    """All forces cancel: what rounding leaves is not asked for."""
    crystal = systems.ion_crystal(work, cells=3, constant=0.5, displacement=0)
    entries = settings(reference.single_point(0.68), FMM, {"fmm-farfield-accuracy": 1e-5})  # between two shells
    run = simulate(work, "run", entries, crystal)
    between_neighbours = 138.935458 / 0.25**2
    assert rms(run.forces) < 1e-5 * between_neighbours


# Ions without Lennard-Jones interactions: they may come as near each other as they like.
POINT_CHARGES = """[ defaults ]
1 2
[ atomtypes ]
Q 0 23 0 A 0 0
[ moleculetype ]
NA 1
[ atoms ]
1 Q 1 NA NA 1 1
[ moleculetype ]
CL 1
[ atoms ]
1 Q 1 CL CL 1 -1
[ system ]
ions
[ molecules ]
NA {0}
CL {0}
"""


NEAR = {"rcoulomb": 0.68, "rvdw": 0.68, "fmm-farfield-accuracy": 1e-5, "nstxout": 1, "nstfout": 1}


def rerun_of_ions_that_coincide(work, *changes):
    """In the second frame of three ions come so near each other that cells do not resolve their distance."""
    crystal = systems.ion_crystal(work, cells=3, constant=0.5, displacement=0.02)
    s = systems.read_gro(crystal.conf)
    sodium, chloride = np.split(s.x, 2)
    crystal.top.write_text(POINT_CHARGES.format(len(sodium)))
    with open(work / "frames.gro", "w") as frames:
        for x in (chloride, sodium + [1e-4, 0, 0], sodium + [0, 2e-4, 0]):
            systems.write_gro(work / "frame.gro", replace(s, x=np.concatenate([sodium, x])))
            frames.write((work / "frame.gro").read_text())
    return simulate(work, "run", settings(NEAR, *changes), crystal, ["-rerun", "frames.gro"])


@pytest.mark.parametrize("boundary", [FMM, mdp.SLAB], ids=["periodic", "slab"])
def test_what_cannot_be_reached_is_said_once_and_ends_no_run(work, boundary):
    """Mixed precision does not resolve forces of ions that nearly coincide."""
    run = rerun_of_ions_that_coincide(work, boundary)
    assert run.log.count("The requested FMM accuracy is not reached") == 1
    assert len(run.energies["Potential"]) == 3


@pytest.mark.parametrize("cells", [{}, {"fmm-farfield-cell-size": 0.35, "fmm-farfield-direct-range": 1}])
def test_without_images_ions_may_nearly_coincide(work, cells):
    """Then distances are those of the positions as they are given, not as they are in cells."""
    run = rerun_of_ions_that_coincide(work, mdp.VACUUM, cells)
    assert "The requested FMM accuracy is not reached" not in run.log
    assert len(run.frames) == 3
    for frame in run.frames:
        q = np.repeat([1.0, -1.0], len(frame.x) // 2)
        d = frame.x[:, None] - frame.x
        r = np.linalg.norm(d, axis=-1) + np.where(np.eye(len(q)), np.inf, 0)
        exact = 138.935458 * np.einsum("i,j,ijk,ij->ik", q, q, d, r**-3)
        assert rms(frame.f - exact) < 1e-5 * rms(exact)
