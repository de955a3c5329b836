# SPDX-License-Identifier: LGPL-2.1-or-later
"""Converged PME in double precision, by a gmx of that precision without FMM."""

from . import environment, mdp, simulation, systems


def single_point(cutoff):
    """Settings of one evaluation at a Lennard-Jones cut-off (nm); no list buffer is needed."""
    return {**mdp.ONE_STEP, "rcoulomb": cutoff, "rvdw": cutoff}


def converged(folder, system, cutoff):
    """One evaluation by converged PME. Needs environment.gmx_double()."""
    top = systems.self_contained_topology(folder, system)
    alone = systems.System(folder, system.conf, top, system.atoms, system.volume)
    entries = mdp.settings(single_point(cutoff), mdp.CONVERGED_PME)
    # Double precision and a structure without velocities cause notes and one warning at most.
    return simulation.simulate(
        folder,
        "converged",
        entries,
        alone,
        warnings=2,
        program=environment.gmx_double(),
        time_limit=900,
    )


def far_apart():
    """Settings in which slabs with much vacuum between them are as good as alone: converged PME."""
    return {**mdp.CONVERGED_PME, "pbc": "xyz", "ewald-geometry": "3dc"}


def all_pairs(reach):
    """Settings in which all pairs within a distance (nm) interact as 1/r and as Lennard-Jones has it.

    In a box of more than twice that, they are those of a system without images that is no wider.
    """
    return {
        "coulombtype": "Cut-off",
        "coulomb-modifier": "None",
        "epsilon-rf": 1,
        "vdw-modifier": "None",
        "rcoulomb": reach,
        "rvdw": reach,
        "verlet-buffer-tolerance": -1,
        "rlist": reach,
    }
