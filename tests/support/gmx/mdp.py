# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run parameters: what several users set alike, and the .mdp files themselves."""

from farfield.gromacs.mdp import FMM, change, normalised, read, value_of, write

__all__ = ["FMM", "change", "normalised", "read", "value_of", "write"]

# One setting in every run: what timing on a GPU prefers may differ, within the accuracy.
UNTUNED_FMM = {**FMM, "fmm-farfield-tune": "no"}
# Nothing is left to choose: what is chosen may depend on the order of the atoms, and on the step.
FIXED_FMM = {
    **UNTUNED_FMM,
    "fmm-farfield-order": 8,
    "fmm-farfield-cell-size": 0.5,
    "fmm-farfield-direct-range": 1,
    "fmm-farfield-m2l": "fft",
}

# No periodic images.
VACUUM = {**FMM, "pbc": "no", "comm-mode": "angular"}
SLAB = {**FMM, "pbc": "xy"}

# GROMACS's standard settings, with a cut-off of 1.0 nm.
STANDARD_PME = {"coulombtype": "PME", "fourierspacing": 0.12, "pme-order": 4, "ewald-rtol": 1e-5}

# PME converged as far as mixed precision lets it, with an unchanged Lennard-Jones cut-off: 5e-6 to
# 7e-6 in the forces against double precision, and 0.1 bar in the pressure, for water and ions.
TIGHT_PME = {
    "coulombtype": "PME",
    "fourierspacing": 0.06,
    "pme-order": 8,
    "ewald-rtol": 1e-7,
}

# Another one as tight, with another splitting: what differs between the two is PME's own error.
OTHER_TIGHT_PME = {
    "coulombtype": "PME",
    "fourierspacing": 0.05,
    "pme-order": 8,
    "ewald-rtol": 1e-8,
}

# Lennard-Jones PME, converged as far as mixed precision lets it.
TIGHT_LJ_PME = {
    "vdwtype": "PME",
    "lj-pme-comb-rule": "Geometric",
    "ewald-rtol-lj": 1e-5,
    "fourierspacing": 0.05,
    "pme-order": 8,
}

# Converged in double precision: two such settings agree to 4e-7 in the forces.
CONVERGED_PME = {
    "coulombtype": "PME",
    "fourierspacing": 0.03,
    "pme-order": 12,
    "ewald-rtol": 1e-12,
}

# One energy and force evaluation of a test's set-up; the tests change single entries.
STANDARD = {
    "integrator": "md",
    "dt": 0.002,
    "nsteps": 0,
    "cutoff-scheme": "Verlet",
    "coulombtype": "PME",
    "rcoulomb": 0.9,
    "rvdw": 0.9,
    "vdwtype": "cut-off",
    "fourierspacing": 0.12,
    "pme-order": 4,
    "constraints": "h-bonds",
    "nstxout": 0,
    "nstvout": 0,
    "nstfout": 0,
    "nstenergy": 1,
    "nstcalcenergy": 1,
    "nstlog": 100,
    "ld-seed": 1993,
    "gen-seed": 1993,
}

ONE_STEP = {"nsteps": 0, "nstxout": 1, "nstfout": 1, "nstlog": 1, "continuation": "yes"}


# A moving run with positions and forces of every step, through pair searches.
MOTION = {
    "nsteps": 40,
    "nstlist": 10,
    "nstxout": 1,
    "nstfout": 1,
    "nstenergy": 1,
    "gen-vel": "yes",
    "gen-temp": 400,
}
THERMOSTAT = {"tcoupl": "v-rescale", "tc-grps": "System", "tau-t": 0.2, "ref-t": 400}
BAROSTAT = {
    "pcoupl": "C-rescale",
    "tau-p": 0.5,
    "compressibility": 4.5e-5,
    "ref-p": 500,
    "nstpcouple": 5,
}
# On a GPU energies are computed at some steps only: forces alone take other kernels.
MOTION_ON_GPU = {
    **MOTION,
    "fmm-farfield-device": "gpu",
    "nsteps": 120,
    "nstlist": 20,
    "nstcalcenergy": 10,
    "nstenergy": 10,
}


def settings(*changes):
    """STANDARD with the changes applied one after another."""
    result = dict(STANDARD)
    for group in changes:
        result.update(group)
    return result
