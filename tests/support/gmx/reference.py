# SPDX-License-Identifier: LGPL-2.1-or-later
"""Energies and forces to compare with: converged PME in double precision, by a gmx of that precision without
FMM, and Ewald sums."""

import numpy as np

from tests.python import ewald

from . import environment, mdp, simulation, systems

# Of TIP3P and of ions, e, by the first letters of atoms.
CHARGES = {"OW": -0.834, "HW": 0.417, "NA": 1.0, "CL": -1.0}


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


def coulomb_energy(system, x=None, of=tuple(CHARGES)):
    """Coulomb energy of water, ions or both by an Ewald sum in double precision, kJ/mol.

    x: where atoms are, [n][3], nm; as in the structure of the system if there is none.
    of: the first letters of the atoms that count.
    """
    s = systems.read_gro(system.conf)
    names = [name.strip()[:2] for name in s.atoms]
    counted = np.isin(names, of)
    q = np.array([CHARGES[name] for name in names])
    # gmx reads them in single precision
    given = np.array(s.x if x is None else x, dtype=np.float32).astype(float)
    return ewald.energy_of_many(q[counted], given[counted], np.array(s.box), np.array(s.residue_numbers)[counted])


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
