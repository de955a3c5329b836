# SPDX-License-Identifier: LGPL-2.1-or-later
"""Short simulations with FMM, beside the same ones with PME where a law gives no number."""

import numpy as np
import pytest

from farfield.gromacs import log
from tests.support.gmx import mdp, reference, simulation, systems
from tests.support.gmx.limits import energy_limit
from tests.support.gmx.mdp import FMM, UNTUNED_FMM, settings
from tests.support.gmx.simulation import simulate

THERMOSTAT = {"tcoupl": "v-rescale", "tc-grps": "System", "tau-t": 0.2, "ref-t": 300}
VELOCITIES = {"gen-vel": "yes", "gen-temp": 300}


def barostat(kind, **changes):
    both = kind == "semiisotropic"
    return {
        "pcoupl": "C-rescale",
        "pcoupltype": kind,
        "tau-p": 2.0,
        "compressibility": "4.5e-5 4.5e-5" if both else "4.5e-5",
        "ref-p": "1 1" if both else "1",
        "nstpcouple": 10,
        "refcoord-scaling": "com",
        **changes,
    }


def conserved(run):
    """The conserved energy, kJ/mol; without a thermostat that is the total energy."""
    terms = run.energies
    return terms["Conserved En."] if "Conserved En." in terms else terms["Total Energy"]


def drift(run, atoms):
    """Slope of the conserved energy by a linear fit and its standard error, kJ/mol/ps/atom."""
    time, energy = run.energies["Time"], conserved(run)
    design = np.stack([time, np.ones_like(time)], axis=1)
    solution, residual, _, _ = np.linalg.lstsq(design, energy, rcond=None)
    variance = residual[0] / (len(time) - 2) / np.sum((time - time.mean()) ** 2)
    return solution[0] / atoms, np.sqrt(variance) / atoms


def both(work, system, *changes, flags=("-notunepme",), time_limit=300):
    """The same simulation with FMM and with standard PME."""
    fmm = simulate(work, "fmm", settings(*changes, FMM), system, flags, time_limit=time_limit)
    pme = simulate(work, "pme", settings(*changes), system, flags, time_limit=time_limit)
    return fmm, pme


def test_nve_conserves_energy_as_pme_does(work, water):
    """3 ps: the drift differs from PME's by no more than its scatter over such a short time.

    The fluctuation of the total energy around the fitted line, divided by the length, bounds what
    a drift over 3 ps can mean; tests/bench/nve_drift.py measures 50 ps.
    """
    length = {"nsteps": 1500, "nstenergy": 10, "nstcalcenergy": 10, "nstlist": 10}
    buffer = {"verlet-buffer-tolerance": 1e-4, "verlet-buffer-pressure-tolerance": -1}
    fmm, pme = both(work, water, VELOCITIES, length, buffer)
    slope, error = drift(fmm, water.atoms)
    slope_pme, error_pme = drift(pme, water.atoms)
    energy = conserved(pme)
    scatter = energy.std() / water.atoms / 3.0
    assert abs(slope - slope_pme) <= 3 * np.hypot(error, error_pme) + scatter
    # kT at 300 K is 2.49 kJ/mol: no more than 0.1 % of it per atom in 3 ps.
    assert abs(slope) * 3 < 2.5e-3
    assert len(fmm.energies["Time"]) == 151


def test_nvt_keeps_the_temperature(work, water):
    length = {"nsteps": 1000, "nstenergy": 10, "nstcalcenergy": 10}
    fmm, pme = both(work, water, VELOCITIES, THERMOSTAT, length)
    half = slice(50, None)
    for run in (fmm, pme):
        assert np.isfinite(run.energies["Potential"]).all()
    # Canonical fluctuations: sigma_T = T sqrt(2/N_df), two degrees of freedom per rigid atom, for
    # a mean over 1 ps with a coupling time of 0.2 ps: about three independent samples.
    sigma = 300 * np.sqrt(2 / (2 * water.atoms)) / np.sqrt(3)
    assert abs(fmm.energies["Temperature"][half].mean() - 300) < 5 * sigma
    # The mean potential energy of both differs by less than the fluctuation of one frame.
    potential = [run.energies["Potential"][half] for run in (fmm, pme)]
    assert abs(potential[0].mean() - potential[1].mean()) < 5 * potential[1].std()


@pytest.mark.parametrize("kind", ["isotropic", "semiisotropic"])
def test_npt_follows_the_box(work, water, kind):
    """The box changes, and after it has, forces and pressure are still those of tight PME."""
    length = {"nsteps": 500, "nstenergy": 10, "nstcalcenergy": 10, "nstxout": 500, "nstfout": 500}
    # 1 kbar off the water's pressure, so that the box changes by about 1 % in 1 ps.
    squeeze = {"tau-p": 0.5, "ref-p": "1000 -500" if kind == "semiisotropic" else "1000"}
    entries = settings(VELOCITIES, THERMOSTAT, length, barostat(kind, **squeeze), FMM)
    run = simulate(work, "npt", entries, water)
    first, last = run.frames[0], run.frames[-1]
    change = np.diag(last.box) / np.diag(first.box)
    assert np.abs(change - 1).max() > 1e-3
    if kind == "semiisotropic":
        assert abs(change[0] - change[2]) > 1e-3

    # The last frame once more, by tight PME.
    rerun = settings(mdp.ONE_STEP, mdp.TIGHT_PME, {"nstcalcenergy": 1})
    simulation.grompp(work, "pme", rerun, water.conf, water.top).ok()
    simulation.mdrun(work, "pme", ["-rerun", "npt.trr"]).ok()
    pme = simulation.Run(work, "pme")
    # Operators that follow the box to first order may cost a few 1e-5 more than the default error.
    assert simulation.force_error(last.f, pme.frames[-1].f) <= 4e-4


@pytest.mark.parametrize("kind", ["isotropic", "semiisotropic"])
def test_continuation_is_exact(work, water, kind):
    """Twice 40 steps from a checkpoint give bit for bit what 80 steps give, in a box that grows.

    Pair search, where mdrun puts atoms back into the box, must fall on step 40, and pair lists
    must hold the same pairs: mdrun derives a buffer from the density at its start, and lets
    buffers miss pairs, so that both are fixed, and wide.
    """
    length = {
        "nsteps": 80,
        "nstlist": 10,
        "verlet-buffer-tolerance": -1,
        "rlist": 1.0,
        "nstenergy": 10,
        "nstcalcenergy": 10,
        "nstxout": 40,
        "nstvout": 40,
        "nstfout": 40,
        "nstcomm": 10,
    }
    pull = {"ref-p": "-4000 1000" if kind == "semiisotropic" else "-4000"}
    coupling = {**THERMOSTAT, **barostat(kind, **pull)}
    entries = settings(VELOCITIES, coupling, length, simulation.reproducible_fmm())
    simulation.grompp(work, "whole", entries, water.conf, water.top).ok()
    flags = [*simulation.reproducible(), "-notunepme"]
    simulation.mdrun(work, "whole", flags).ok()
    parts = ["-s", "whole.tpr", *flags]
    simulation.mdrun(work, "first", [*parts, "-nsteps", 40]).ok()
    simulation.mdrun(work, "second", [*parts, "-cpi", "first.cpt", "-noappend"]).ok()
    whole = simulation.Run(work, "whole").frames
    second = simulation.Run(work, "second.part0002").frames[-1]
    assert whole[-1].step == second.step == 80
    assert np.abs(np.diag(whole[1].box) / np.diag(whole[0].box) - 1).max() > 1e-3
    for array in ("box", "x", "v", "f"):
        assert np.array_equal(getattr(whole[-1], array), getattr(second, array)), array


def test_two_runs_are_bitwise_identical(work, salt_water):
    length = {"nsteps": 50, "nstxout": 10, "nstvout": 10, "nstfout": 10, "nstlist": 10}
    entries = settings(VELOCITIES, length, simulation.reproducible_fmm())
    for name in ("one", "two"):
        simulate(work, name, entries, salt_water, simulation.reproducible())
    assert (work / "one.trr").read_bytes() == (work / "two.trr").read_bytes()
    one, two = (simulation.Run(work, name).energies for name in ("one", "two"))
    for term in one:
        assert np.array_equal(one[term], two[term]), term


def test_number_of_threads_does_not_matter(work, salt_water):
    """One and two threads sum in another order: the forces agree to mixed precision's rounding."""
    entries = settings(mdp.ONE_STEP, UNTUNED_FMM)
    forces = []
    for count in (1, 2):
        simulation.grompp(work, f"t{count}", entries, salt_water.conf, salt_water.top).ok()
        simulation.mdrun(work, f"t{count}", ntomp=count).ok()
        forces.append(simulation.Run(work, f"t{count}").forces)
    # Some hundred terms of single precision (6e-8) per atom, added in random order.
    assert simulation.force_error(forces[0], forces[1]) < 1e-5


def test_velocity_verlet(work, water):
    """Leap-frog and velocity Verlet start with the same forces and conserve energy alike."""
    length = {"nsteps": 200, "nstenergy": 10, "nstcalcenergy": 10, "nstfout": 200}
    entries = settings(VELOCITIES, length, UNTUNED_FMM, {"integrator": "md-vv"})
    vv = simulate(work, "vv", entries, water)
    md = simulate(work, "md", {**entries, "integrator": "md"}, water)
    assert simulation.force_error(vv.frames[0].f, md.frames[0].f) < 1e-5
    energy = conserved(vv)
    assert np.ptp(energy[1:]) < 0.01 * abs(vv.energies["Kinetic En."][-1])


# Conjugate gradients and L-BFGS need flexible water.
FLEXIBLE = {"constraints": "none", "define": "-DFLEXIBLE"}


def minimised(work, name, system, integrator, electrostatics, steps):
    length = {"integrator": integrator, "nsteps": steps, "emtol": 1.0, "emstep": 0.01}
    entries = settings(FLEXIBLE, length, electrostatics)
    return simulate(work, name, entries, system, warnings=1)


@pytest.mark.parametrize("integrator", ["steep", "cg", "l-bfgs"])
def test_minimisation_lowers_the_energy_as_pme_does(work, water, integrator):
    fmm = minimised(work, "fmm", water, integrator, FMM, 40)
    pme = minimised(work, "pme", water, integrator, {}, 40)
    start, end = fmm.energies["Potential"][[0, -1]]
    start_pme, end_pme = pme.energies["Potential"][[0, -1]]
    assert end < start
    # The paths part after some steps, most with line searches.
    assert (start - end) == pytest.approx(start_pme - end_pme, rel=0.15)

    # What FMM has at the end is the energy of that structure.
    rerun = settings(mdp.ONE_STEP, FLEXIBLE, mdp.TIGHT_PME)
    simulation.grompp(work, "exact", rerun, water.conf, water.top, ["-maxwarn", 1]).ok()
    simulation.mdrun(work, "exact", ["-rerun", "fmm.trr"]).ok()
    tight = simulation.Run(work, "exact")
    # all terms of PME's but the Coulomb energy, which mixed precision rounds more than the limit allows
    coulomb = reference.coulomb_energy(water, fmm.frames[-1].x)
    exact = tight.energies["Potential"][-1] - tight.coulomb()[-1] + coulomb
    assert abs(end - exact) <= energy_limit(water, coulomb)


def test_rerun_reproduces_the_run(work, salt_water):
    length = {"nsteps": 20, "nstxout": 10, "nstfout": 10, "nstlist": 10}
    run = simulate(work, "run", settings(VELOCITIES, length, UNTUNED_FMM), salt_water)
    simulation.mdrun(work, "again", ["-s", "run.tpr", "-rerun", "run.trr"]).ok()
    again = simulation.Run(work, "again")
    for before, after in zip(run.frames, again.frames, strict=True):
        assert simulation.force_error(after.f, before.f) < 1e-5
    # Coulomb energies of the frames that both wrote, to mixed precision's rounding.
    assert again.coulomb() == pytest.approx(run.coulomb()[[0, 10, 20]], rel=1e-5)


@pytest.mark.parametrize("ordered, ranks", [("0", 1), ("1", 1), ("1", 2)])
def test_cells_of_a_rerun_are_those_of_its_frames(work, water, ordered, ranks):
    """Not of the structure in the run input file, even where GROMACS divides atoms into domains by it."""
    s = systems.read_gro(water.conf)
    s.x, s.box = 1.6 * s.x, 1.6 * s.box
    systems.write_gro(work / "wide.gro", s)
    setups = []
    for name, conf in (("right", water.conf), ("wide", "wide.gro")):
        entries = settings(UNTUNED_FMM)
        simulation.grompp(work, name, entries, conf, water.top).ok()
        options = {"variables": {"GMX_DD_SINGLE_RANK": ordered}, "ntmpi": ranks, "ntomp": 1}
        simulation.mdrun(work, name, ["-rerun", water.conf, "-nb", "cpu"], **options).ok()
        setups.append(log.setup(work / f"{name}.log"))
        assert simulation.Run(work, name).log.count("FMM electrostatics with farfield") == 1
    assert setups[0] == setups[1] and setups[0]


def test_frozen_atoms_stay(work, salt_water):
    index = "[ System ]\n" + " ".join(str(i + 1) for i in range(salt_water.atoms)) + "\n"
    ions = [
        i + 1
        for i, line in enumerate(salt_water.conf.read_text().splitlines()[2:-1])
        if line[5:10].strip() in ("NA", "CL")
    ]
    index += "[ Ions ]\n" + " ".join(map(str, ions)) + "\n"
    (work / "index.ndx").write_text(index)
    frozen = {"freezegrps": "Ions", "freezedim": "Y Y Y", "comm-mode": "none"}
    length = {"nsteps": 20, "nstxout": 20}
    entries = settings(VELOCITIES, length, frozen, FMM)
    run = simulate(work, "run", entries, salt_water, warnings=2, grompp_flags=["-n", "index.ndx"])
    first, last = run.frames[0], run.frames[-1]
    moved = np.abs(last.x - first.x).max(axis=1)
    chosen = np.array(ions) - 1
    assert moved[chosen].max() == 0
    assert np.delete(moved, chosen).min() > 0
