# SPDX-License-Identifier: LGPL-2.1-or-later
"""Free energies: perturbed charges and atom types with FMM, against tight PME at several lambdas."""

import numpy as np
import pytest

from farfield.gromacs import xvg
from farfield.gromacs.tpr import REFERENCE
from tests.support.gmx import environment, simulation, systems
from tests.support.gmx.limits import WATER_LIMIT, energy_limit
from tests.support.gmx.mdp import FMM, OTHER_TIGHT_PME, TIGHT_PME, UNTUNED_FMM, settings
from tests.support.gmx.simulation import force_error

PERTURBED = 3

# Water of which both states are written out: neighbours along a bond alone are excluded, so that
# the hydrogens interact. Columns: atom, type, residue, name, group, charge, mass, state B.
MOLECULE = """\
[ moleculetype ]
PER 1
[ atoms ]
1 OW 1 PER OW 1 -0.834 16.0 {O}
2 HW 1 PER HW1 2 0.417 1.008 {H1}
3 HW 1 PER HW2 3 0.417 1.008 {H2}
[ bonds ]
1 2 1 0.09572 300000.0 0.09572 300000.0
1 3 1 0.09572 300000.0 0.09572 300000.0
[ angles ]
2 1 3 1 104.52 628.02 104.52 628.02
"""
SAME = {"O": "", "H1": "", "H2": ""}
# TIP4P, whose charge of the oxygen is on a virtual site.
FOUR_SITES = """\
[ moleculetype ]
PER 2
[ atoms ]
1 OW_tip4p 1 PER OW 1 0.0 16.0
2 HW_tip4p 1 PER HW1 2 0.52 1.008 {H}
3 HW_tip4p 1 PER HW2 3 0.52 1.008 {H}
4 MW 1 PER MW 4 -1.04 0.0 {M}
[ bonds ]
1 2 1 0.09572 300000.0 0.09572 300000.0
1 3 1 0.09572 300000.0 0.09572 300000.0
[ angles ]
2 1 3 1 104.52 628.02 104.52 628.02
[ virtual_sites3 ]
4 1 2 3 1 0.128012065 0.128012065
[ exclusions ]
1 2 3 4
2 1 3 4
3 1 2 4
4 1 2 3
"""
# An atom type without interactions, which the force field lacks.
GONE = "[ atomtypes ]\nGONE 0 1.0 0.0 A 0.0 0.0\n"

STATES = {
    "free-energy": "yes",
    "coul-lambdas": "0.0 0.3 0.5 1.0 1.0 1.0",
    "vdw-lambdas": "0.0 0.0 0.0 0.0 0.4 1.0",
    "calc-lambda-neighbors": -1,
    "nstdhdl": 1,
    "separate-dhdl-file": "yes",
    "sc-alpha": 0.5,
    "sc-power": 1,
    "sc-coul": "no",
    "dhdl-print-energy": "no",
}
# All of them change together, without a soft core.
TOGETHER = {
    **STATES,
    "coul-lambdas": "0.0 0.3 0.5 1.0",
    "vdw-lambdas": "0.0 0.3 0.5 1.0",
    "sc-alpha": 0,
}

# All of them change together, with a soft core of both interactions.
SOFT = {**TOGETHER, "sc-alpha": 0.5, "sc-coul": "yes"}

# What state B is, the settings, the lambda states to run, and warnings of grompp.
CASES = {
    "charges": (
        {"O": "OW 0 16.0", "H1": "HW 0 1.008", "H2": "HW 0 1.008"},
        TOGETHER,
        (0, 1, 3),
        0,
    ),
    "types": ({"O": "O -0.834 16.0", "H1": "", "H2": ""}, TOGETHER, (0, 2), 0),
    "charges and types": (
        {"O": "GONE 0 16.0", "H1": "GONE 0 1.008", "H2": "GONE 0 1.008"},
        STATES,
        (1, 4),
        0,
    ),
    "net charge": (
        {"O": "OW 0.166 16.0", "H1": "HW 0.2 1.008", "H2": "HW 0.417 1.008"},
        TOGETHER,
        (0, 2, 3),
        1,
    ),
    "couple-moltype": (
        SAME,
        {
            **STATES,
            "couple-moltype": "PER",
            "couple-lambda0": "vdw-q",
            "couple-lambda1": "none",
            "couple-intramol": "no",
        },
        (1, 3, 4),
        0,
    ),
    "soft charges": (
        {"O": "GONE 0 16.0", "H1": "GONE 0 1.008", "H2": "GONE 0 1.008"},
        SOFT,
        (0, 1, 2, 3),
        0,
    ),
    "soft charges that stay": (
        {"O": "GONE -0.834 16.0", "H1": "HW 0.417 2.016", "H2": "HW 0.417 2.016"},
        {**SOFT, "coul-lambdas": "0.0 0.3 0.5", "vdw-lambdas": "0.0 0.3 0.5"},
        (1, 2),
        0,
    ),
    "soft couple-moltype": (
        SAME,
        {
            **SOFT,
            "couple-moltype": "PER",
            "couple-lambda0": "vdw-q",
            "couple-lambda1": "none",
            "couple-intramol": "no",
        },
        (1, 2),
        0,
    ),
    "soft core of Gapsys": (
        {"O": "GONE 0 16.0", "H1": "GONE 0 1.008", "H2": "GONE 0 1.008"},
        {**TOGETHER, "sc-function": "gapsys"},
        (1, 2),
        0,
    ),
}


def write_topology(path, system, state_b, molecule=MOLECULE, water="tip3p", sites=3):
    """The water of a system, some molecules of which are perturbed."""
    waters = system.atoms // sites
    path.write_text(
        f'#include "{systems.FORCE_FIELD}.ff/forcefield.itp"\n'
        + GONE
        + f'#include "{systems.FORCE_FIELD}.ff/{water}.itp"\n'
        + molecule.format(**state_b)
        + "[ system ]\nperturbed water\n[ molecules ]\n"
        + f"PER {PERTURBED}\nSOL {waters - PERTURBED}\n"
    )


def at(work, name, system, entries, state, warnings=0, flags=(), variables=None):
    """One evaluation in a lambda state: the run, and what its dhdl file has."""
    one = {"nstfout": 1, "continuation": "yes", "constraints": "none", "init-lambda-state": state}
    entries = settings(one, entries)
    (work / f"{name}.top").write_text((work / "topol.top").read_text())
    allowed = ["-maxwarn", warnings]
    simulation.grompp(work, name, entries, system.conf, f"{name}.top", allowed).ok()
    simulation.mdrun(work, name, ["-dhdl", f"{name}.xvg", *flags], variables=variables).ok()
    run = simulation.Run(work, name)
    return run, xvg.columns(work / f"{name}.xvg")


# Of the energy, in mixed precision, kJ/mol per atom: see docs/mdrun.md, "Energies"
PME_ROUNDING = 1e-3


def dhdl_limit(system):
    """Largest error of dV/dlambda and of differences between states, kJ/mol.

    Both are sums of charge times potential over the perturbed atoms, 3 * PERTURBED at most; the
    energy is half of such a sum over all. Errors of single atoms are independent, so sums of them
    grow as the root of their number. PME takes both as differences of two energies of all atoms:
    its noise is 1e-5 kJ/mol per atom.
    """
    perturbed = 3 * PERTURBED / system.atoms
    return 2 * np.sqrt(perturbed) * energy_limit(system, 0) + 1e-5 * system.atoms


def assert_like_tight_pme(work, system, lambdas, states, warnings=0, reference=TIGHT_PME):
    """Forces, energies and all that the dhdl file has, in several lambda states."""
    for state in states:
        (run, found), (pme, expected) = (
            at(work, f"{name}{state}", system, {**lambdas, **method}, state, warnings)
            for name, method in (("fmm", FMM), ("pme", reference))
        )
        assert force_error(run.forces, pme.forces) <= WATER_LIMIT
        # That of PME is rounded to about 1e-3 kJ/mol per atom in mixed precision: it is a check of the
        # reference in double precision (test_reference.py), which has the limit of the energy
        double = at(
            work, f"double{state}", system, {**lambdas, **FMM}, state, warnings, variables=REFERENCE
        )[0]
        exact = double.coulomb()[0]
        assert abs(pme.coulomb()[0] - exact) <= PME_ROUNDING * system.atoms
        assert abs(run.coulomb()[0] - exact) <= energy_limit(system, exact)
        assert list(found) == list(expected)
        for legend, values in expected.items():
            assert np.abs(found[legend] - values).max() <= dhdl_limit(system), legend


@pytest.mark.parametrize("method", [FMM, TIGHT_PME], ids=["fmm", "pme"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_pressure_is_that_of_the_forces(work, water, method, threads):
    """In state A, with perturbed pairs in kernels of their own, that of a run without a state B.

    GROMACS 2026.3 without the patch leaves out the virial of what the first thread computes there.
    """
    write_topology(work / "topol.top", water, CASES["types"][0])
    tensors = []
    for name, entries in (("one", {}), ("two", {**TOGETHER, "init-lambda-state": 0})):
        merged = settings({"nstfout": 1, "constraints": "none"}, entries, method)
        simulation.grompp(work, name, merged, water.conf, "topol.top").ok()
        simulation.mdrun(work, name, ntomp=threads).ok()
        tensors.append(simulation.Run(work, name).pressure_tensor()[0])
    # rounding of some 1e5 bar in mixed precision
    assert np.abs(tensors[1] - tensors[0]).max() < 2


@pytest.mark.parametrize("method", [FMM, TIGHT_PME], ids=["fmm", "pme"])
def test_the_grid_of_lj_pme_is_that_of_the_state(work, water, method):
    """In state B, that of a run with its types alone.

    GROMACS 2026.3 without the patch solves the grid of state A twice, and not that of state B.
    """
    kind = {"vdwtype": "PME", "lj-pme-comb-rule": "Geometric", "nstfout": 1, "constraints": "none"}
    state_b, energies = CASES["types"][0], []
    for name, molecule, entries in (
        ("one", MOLECULE.replace("1 OW ", "1 O ", 1), {}),
        ("two", MOLECULE, {**TOGETHER, "init-lambda-state": 3}),
    ):
        write_topology(work / f"{name}.top", water, state_b if entries else SAME, molecule)
        merged = settings(kind, entries, method)
        simulation.grompp(work, name, merged, water.conf, f"{name}.top", ["-maxwarn", 1]).ok()
        simulation.mdrun(work, name).ok()
        energies.append(simulation.Run(work, name).energies["LJ recip."][0])
    assert energies[1] == pytest.approx(energies[0], rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_forces_and_energies_at_several_lambdas_match_tight_pme(work, water, case):
    state_b, lambdas, states, warnings = CASES[case]
    write_topology(work / "topol.top", water, state_b)
    assert_like_tight_pme(work, water, lambdas, states, warnings)


@pytest.mark.parametrize("charges", [("0", "0"), ("0.1", "-0.2")])
def test_virtual_sites_may_be_perturbed(work, four_site_water, charges):
    """Excluded pairs of perturbed charges, and forces that are spread from a virtual site."""
    hydrogen, site = charges
    state_b = {"H": f"HW_tip4p {hydrogen} 1.008", "M": f"MW {site} 0.0"}
    write_topology(work / "topol.top", four_site_water, state_b, FOUR_SITES, "tip4p", 4)
    # a continuation with PME takes virtual sites as they are in the file, in its few decimals
    entries = {**TOGETHER, "continuation": "no"}
    # the energy of TIGHT_PME is off by 2e-4 kJ/mol per atom here
    assert_like_tight_pme(work, four_site_water, entries, (0, 2, 3), 0, OTHER_TIGHT_PME)


def test_states_follow_from_one_another(work, water):
    """V is linear in lambda: what is foreign in one state is the energy of the other.

    One position of the grid of cells in both, so that what is left is rounding.
    """
    state_b, lambdas, _, warnings = CASES["net charge"]
    write_topology(work / "topol.top", water, state_b)
    entries = {**lambdas, **FMM, "fmm-farfield-accuracy": 3e-5}
    runs = [at(work, f"fmm{state}", water, entries, state, warnings) for state in (0, 3)]
    energies = [run.energies["Potential"][0] for run, _ in runs]
    foreign = [next(reversed(found.values()))[0] for _, found in runs]
    # energies of 3e4 kJ/mol in single precision
    assert foreign[0] == pytest.approx(energies[1] - energies[0], abs=0.02)
    slopes = [found[legend][0] for _, found in runs for legend in found if "coul" in legend]
    assert slopes == pytest.approx([energies[1] - energies[0]] * 2, abs=0.02)


def test_lambda_may_change_from_step_to_step(work, water):
    """Slow growth over a few steps, in which FMM and PME do not yet move apart."""
    state_b, _, _, warnings = CASES["charges"]
    write_topology(work / "topol.top", water, state_b)
    growth = {
        "free-energy": "yes",
        "init-lambda": 0.1,
        "delta-lambda": 0.2,
        "nsteps": 4,
        "nstfout": 1,
        "constraints": "none",
        "nstdhdl": 1,
    }
    runs = []
    for name, method in (("fmm", UNTUNED_FMM), ("pme", TIGHT_PME)):
        entries = settings(growth, method)
        simulation.grompp(work, name, entries, water.conf, "topol.top", ["-maxwarn", warnings]).ok()
        simulation.mdrun(work, name).ok()
        runs.append(simulation.Run(work, name))
    run, pme = runs
    for found, expected in zip(run.frames, pme.frames):
        assert force_error(found.f, expected.f) <= WATER_LIMIT
    slopes = [np.array(each.energies["dVremain/dl"]) for each in runs]
    assert len(slopes[0]) == 5
    assert np.abs(slopes[0] - slopes[1]).max() <= dhdl_limit(water)


SAMPLING = {
    "expanded ensemble": {
        "integrator": "md-vv",
        "tcoupl": "v-rescale",
        "free-energy": "expanded",
        "nstexpanded": 2,
        "lmc-stats": "wang-landau",
        "lmc-seed": 7,
        "lmc-move": "metropolis",
        "weight-equil-wl-delta": 0.001,
        "lmc-weights-equil": "wl-delta",
    },
    "awh": {
        "nstcalcenergy": 2,
        "awh": "yes",
        "awh-potential": "umbrella",
        "awh-nsamples-update": 1,
        "awh-seed": 7,
        "awh-nstsample": 2,
        "awh-nstout": 4,
        "awh1-ndim": 1,
        "awh1-dim1-coord-provider": "fep-lambda",
        "awh1-dim1-coord-index": 1,
        "awh1-dim1-start": 0,
        "awh1-dim1-end": 5,
        "awh1-dim1-diffusion": 0.001,
        "awh1-error-init": 10,
        "awh1-equilibrate-histogram": "no",
    },
}


@pytest.mark.parametrize("name", SAMPLING)
def test_lambda_is_sampled(work, water, name):
    """What moves between states in a run takes its energies from the ordinary terms."""
    write_topology(work / "topol.top", water, CASES["charges and types"][0])
    motion = {
        "integrator": "sd",
        "nsteps": 20,
        "tc-grps": "System",
        "tau-t": 1,
        "ref-t": 300,
        "gen-vel": "yes",
        "constraints": "none",
        "init-lambda-state": 0,
        "nstdhdl": 2,
        "separate-dhdl-file": "yes",
    }
    entries = settings(motion, UNTUNED_FMM, STATES, SAMPLING[name], {"nstdhdl": 2})
    simulation.grompp(work, "run", entries, water.conf, "topol.top", ["-maxwarn", 2]).ok()
    simulation.mdrun(work, "run", ["-dhdl", "run.xvg"]).ok()
    found = xvg.columns(work / "run.xvg")
    state = next(values for legend, values in found.items() if "state" in legend.lower())
    assert len(state) > 5 and all(np.isfinite(values).all() for values in found.values())
    assert len(set(state)) > 1


@pytest.mark.parametrize("cutoff, variables", [(0.9, {}), (1.1, {"GMX_DISABLE_SIMD_KERNELS": "1"})])
def test_a_soft_core_acts_at_every_step_and_at_any_distance(work, water, cutoff, variables):
    """Atoms that come near to a molecule that half is there, and one that is upon it from the start."""
    state_b, lambdas, _, _ = CASES["soft charges"]
    write_topology(work / "topol.top", water, state_b)
    s = systems.read_gro(water.conf)
    # A hydrogen of the last water on the oxygen of the first, which is perturbed
    s.x[-3:] += s.x[0] + [0.01, 0.02, 0.01] - s.x[-2]
    systems.write_gro(work / "upon.gro", systems.snap_to_grid(s))
    motion = {"nsteps": 30, "nstlist": 10, "dt": 0.0005, "nstxout": 1, "nstfout": 1, "nstcalcenergy": 10}
    entries = settings(lambdas, motion, {"constraints": "none", "init-lambda-state": 2})
    entries |= {"nstdhdl": 10, "nstenergy": 10, "gen-vel": "yes", "gen-temp": 300}
    entries |= {"rvdw": cutoff, "rcoulomb": cutoff}
    simulation.grompp(work, "run", entries | UNTUNED_FMM, "upon.gro", "topol.top", ["-maxwarn", 1]).ok()
    simulation.mdrun(work, "run", ["-dhdl", "run.xvg"], variables=variables).ok()
    simulation.grompp(work, "pme", entries | TIGHT_PME, "upon.gro", "topol.top", ["-maxwarn", 1]).ok()
    simulation.mdrun(work, "pme", ["-rerun", "run.trr", "-dhdl", "pme.xvg"]).ok()
    frames, expected = (simulation.Run(work, name).frames for name in ("run", "pme"))
    assert len(frames) == len(expected) == 31
    for frame, exact in zip(frames, expected):
        assert force_error(frame.f, exact.f) <= WATER_LIMIT
    found, pme = (xvg.columns(work / f"{name}.xvg") for name in ("run", "pme"))
    rows = [list(pme["Time"]).index(time) for time in found["Time"]]
    legends = [legend for legend in found if r"\xl\f{}" in legend]
    assert len(rows) == 4 and len(legends) == 6
    for legend in legends:
        expected = pme[legend][rows]
        # In the hard state the molecules that overlap have 1e5 to 1e7 kJ/mol, in single precision
        limits = dhdl_limit(water) + 1e-5 * np.abs(expected)
        assert np.all(np.abs(found[legend] - expected) <= limits), legend


def test_a_soft_core_needs_one_rank(work, water):
    """Also where no charge is perturbed."""
    write_topology(work / "topol.top", water, CASES["soft charges that stay"][0])
    entries = settings(FMM, CASES["soft charges that stay"][1], {"constraints": "none", "init-lambda-state": 1})
    simulation.grompp(work, "run", entries, water.conf, "topol.top").ok()
    done = simulation.mdrun(work, "run", ["-nb", "cpu"], ntmpi=2, ntomp=1)
    assert done.status != 0
    assert "with a soft core of Coulomb interactions" in " ".join(done.text.split())


PERTURBATIONS = {
    "masses": ({"O": "OW -0.834 18.0", "H1": "", "H2": ""}, TOGETHER),
    "nothing": (SAME, TOGETHER),
    "discharged first": (CASES["charges and types"][0], STATES),
    "a soft core": (CASES["soft charges"][0], SOFT),
}


@pytest.mark.parametrize("case", PERTURBATIONS)
def test_sound_perturbations_are_accepted(work, water, case):
    state_b, lambdas = PERTURBATIONS[case]
    write_topology(work / "topol.top", water, state_b)
    entries = settings(FMM, {"constraints": "none", "init-lambda-state": 0}, lambdas)
    simulation.grompp(work, "run", entries, water.conf, "topol.top").ok()


# Repulsion fades while there are charges.
UNSOUND = {
    "charges alone at one end": {"coul-lambdas": "0 0 1", "vdw-lambdas": "0 0.5 1"},
    "repulsion first": {"coul-lambdas": "0 0 1", "vdw-lambdas": "0 1 1"},
    "no repulsion at the end": {"coul-lambdas": "0 0.5 0.5", "vdw-lambdas": "0 0 1"},
    "slow growth": {
        "coul-lambdas": None,
        "vdw-lambdas": None,
        "calc-lambda-neighbors": None,
        "init-lambda-state": None,
        "init-lambda": 0,
        "delta-lambda": 0.5,
        "nsteps": 2,
    },
}


@pytest.mark.parametrize("case", UNSOUND)
@pytest.mark.parametrize("molecule", ["charges and types", "couple-moltype", "bare hydrogen"])
def test_charges_without_repulsion_are_refused(work, water, case, molecule):
    if molecule == "bare hydrogen":
        # the oxygen alone is perturbed; the hydrogens have charges and rely on it
        state_b = {"O": "GONE 0 16.0", "H1": "", "H2": ""}
        lambdas = {}
    else:
        state_b, lambdas, _, _ = CASES[molecule]
    write_topology(work / "topol.top", water, state_b)
    common = {"constraints": "none", "init-lambda-state": 0}
    merged = settings(FMM, common, STATES, lambdas, UNSOUND[case])
    entries = {key: value for key, value in merged.items() if value is not None}
    done = simulation.grompp(work, "run", entries, water.conf, "topol.top", ["-maxwarn", 5])
    # Without lambdas of its own for each interaction grompp sets sc-coul by itself
    is_soft = case == "slow growth" and molecule != "bare hydrogen"
    assert (done.status == 0) == is_soft
    text = " ".join(done.text.split())
    if not is_soft:
        assert "coul-lambdas" in text and "vdw-lambdas" in text and "molecule type PER" in text, text
    # A soft core is of perturbed atoms, and not of a state that is there alone
    done = simulation.grompp(work, "soft", {**entries, "sc-coul": "yes"}, water.conf, "topol.top", ["-maxwarn", 5])
    is_soft = molecule != "bare hydrogen" and case in ("slow growth", "no repulsion at the end")
    assert (done.status == 0) == is_soft, done.text[-3000:]


# Options of mdrun, and where the log has coordinates and forces.
ON_GPU = {
    "update on the CPU": (["-update", "cpu"], "on the GPU, copied at every step: the update runs on the CPU"),
    "resident": (["-update", "gpu"], "stay on the GPU"),
    "perturbed pairs too": (["-update", "gpu", "-nbfe", "gpu"], "stay on the GPU"),
}


@pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")
@pytest.mark.parametrize("where", ON_GPU)
@pytest.mark.parametrize(
    "case, state", [("charges", 1), ("charges and types", 2), ("charges and types", 4), ("soft charges", 2)]
)
def test_a_gpu_gives_what_the_cpu_gives(work, water, case, state, where):
    """At every step of a moving run, forces and all that dhdl files have, beside exact ones."""
    flags, place = ON_GPU[where]
    state_b, lambdas, _, _ = CASES[case]
    write_topology(work / "topol.top", water, state_b)
    motion = {"nsteps": 20, "nstfout": 1, "nstxout": 1, "nstcalcenergy": 5, "gen-vel": "yes"}
    entries = settings(lambdas, UNTUNED_FMM, motion, {"constraints": "none", "nstdhdl": 5})
    entries["init-lambda-state"] = state
    simulation.grompp(work, "run", entries, water.conf, "topol.top", ["-maxwarn", 1]).ok()
    done = simulation.mdrun(work, "run", ["-nb", "gpu", "-dhdl", "run.xvg", *flags])
    if "-nbfe" in flags and entries["sc-coul"] == "yes":
        assert done.status != 0
        assert "run gmx mdrun without -nbfe gpu" in " ".join(done.text.split())
        return
    done.ok()
    run = simulation.Run(work, "run")
    assert place in run.log
    again = ["-nb", "cpu", "-rerun", "run.trr", "-dhdl", "again.xvg"]
    simulation.grompp(work, "again", entries, water.conf, "topol.top", ["-maxwarn", 1]).ok()
    simulation.mdrun(work, "again", again, variables=REFERENCE).ok()
    expected = simulation.Run(work, "again")
    assert len(run.frames) == len(expected.frames) == 21
    for found, frame in zip(run.frames, expected.frames):
        assert force_error(found.f, frame.f) <= WATER_LIMIT
    found, rerun = (xvg.columns(work / f"{name}.xvg") for name in ("run", "again"))
    assert len(found["Time"]) == 5
    rows = [list(rerun["Time"]).index(time) for time in found["Time"]]
    interactions = [legend for legend in found if r"\xl\f{}" in legend]
    assert len(interactions) == 2 + len(lambdas["coul-lambdas"].split())
    for legend in interactions:
        assert np.abs(found[legend] - rerun[legend][rows]).max() <= dhdl_limit(water), legend
