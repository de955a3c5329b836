# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forces, energy and pressure of FMM against PME.

The limits, and where they come from, are in limits.py.
"""

import numpy as np
import pytest

from tests.support.gmx import environment, mdp, reference, simulation, systems
from tests.support.gmx.limits import (
    ENERGY_LIMIT,
    ORDER_12_LIMIT,
    PROTEIN_LIMIT,
    WATER_LIMIT,
    energy_limit,
    pressure_limits,
    pressure_scatter,
)
from tests.support.gmx.mdp import FMM, settings
from tests.support.gmx.simulation import force_error, simulate

needs_double = pytest.mark.skipif(
    environment.gmx_double() is None, reason="no double-precision gmx (set GMX_DOUBLE)"
)


def fmm(folder, name, system, cutoff, **options):
    """One evaluation with FMM; options are those of the backend, without their common prefix."""
    chosen = {f"fmm-farfield-{key.replace('_', '-')}": value for key, value in options.items()}
    entries = settings(reference.single_point(cutoff), FMM, chosen)
    return simulate(folder, name, entries, system)


def tight_pme(folder, name, system, cutoff, **changes):
    entries = settings(reference.single_point(cutoff), mdp.TIGHT_PME, changes)
    return simulate(folder, name, entries, system)


@needs_double
def test_water_at_default_settings(work, water23k, converged):
    exact = converged(water23k, 1.0)
    run = fmm(work, "fmm", water23k, 1.0)
    assert force_error(run.forces, exact.forces) <= WATER_LIMIT
    difference = run.coulomb()[0] - exact.coulomb()[0]
    assert abs(difference) <= ENERGY_LIMIT * water23k.atoms


@needs_double
@pytest.mark.parametrize("direct_range", [1, 2])
def test_water_at_order_12(work, water23k, converged, direct_range):
    exact = converged(water23k, 1.0)
    run = fmm(work, "fmm", water23k, 1.0, order=12, direct_range=direct_range)
    assert force_error(run.forces, exact.forces) < ORDER_12_LIMIT


@needs_double
def test_water_with_each_m2l_engine(work, water23k, converged):
    exact = converged(water23k, 1.0)
    forces = {}
    for engine in ["hierarchy", "fft"]:
        run = fmm(work, engine, water23k, 1.0, m2l=engine)
        forces[engine] = run.forces
        assert force_error(run.forces, exact.forces) <= WATER_LIMIT


@needs_double
def test_protein_in_a_dodecahedron_at_default_settings(work, protein, converged):
    exact = converged(protein, 1.0)
    run = fmm(work, "fmm", protein, 1.0)
    assert force_error(run.forces, exact.forces) <= PROTEIN_LIMIT
    difference = run.coulomb()[0] - exact.coulomb()[0]
    assert abs(difference) <= energy_limit(protein, exact.coulomb()[0])


@needs_double
def test_protein_at_order_12(work, protein, converged):
    exact = converged(protein, 1.0)
    run = fmm(work, "fmm", protein, 1.0, order=12)
    assert force_error(run.forces, exact.forces) < ORDER_12_LIMIT


@needs_double
def test_a_larger_order_is_more_accurate(work, water, converged):
    """Every two orders gain a factor that the expansion's convergence explains.

    The far field's ratio of radii is at most 0.866 / (2 - 0.866) in cells, so the worst pair gains
    0.58 for two orders; a factor of 0.7 leaves room for the lattice's luck.
    """
    exact = converged(water, 0.9)
    fixed = {"direct_range": 1, "cell_size": 0.5}
    errors = [
        force_error(fmm(work, f"p{p}", water, 0.9, order=p, **fixed).forces, exact.forces)
        for p in (2, 4, 6, 8, 10)
    ]
    for coarse, fine in zip(errors, errors[1:]):
        assert fine < 0.7 * coarse, errors


@needs_double
def test_accuracy_is_kept_when_asked_for(work, water, converged):
    """The error stays below what is asked for, down to mixed precision's floor."""
    exact = converged(water, 0.9)
    for accuracy in (3e-3, 3e-4, 3e-5):
        run = fmm(work, f"a{accuracy}", water, 0.9, accuracy=accuracy)
        assert force_error(run.forces, exact.forces) <= accuracy


SYSTEMS = ["water", "salt_water", "charged_water", "ion_crystal"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_forces_energy_and_pressure_match_tight_pme(work, request, name):
    """Against PME of the same gmx. Its own error is estimated by a second, equally tight split.

    The energy is that of an Ewald sum: mixed-precision PME knows it to a few 1e-4 kJ/mol per atom only,
    as the self energy, much larger than the sum, is accumulated in single precision. Two splits may share
    that error: 2.3e-4 in water with one thread, 2.5e-3 in the crystal.
    """
    system = request.getfixturevalue(name)
    pme = tight_pme(work, "pme", system, 0.9)
    other = tight_pme(work, "other", system, 0.9, **mdp.OTHER_TIGHT_PME)
    run = fmm(work, "fmm", system, 0.9)

    pme_error = force_error(other.forces, pme.forces)
    assert pme_error < 3e-5
    assert force_error(run.forces, pme.forces) <= WATER_LIMIT + pme_error

    exact = reference.coulomb_energy(system)
    assert abs(run.coulomb()[0] - exact) <= energy_limit(system, exact)

    if name == "charged_water":
        # PME's pressure of a charged box depends on the splitting: GROMACS adds an energy per
        # volume, not an energy, to the virial of the background. See the test of the virial below.
        return
    component, average = pressure_limits(system, simulation.rms(pme.forces), exact)
    tensor = [r.pressure_tensor()[0] for r in (run, pme, other)]
    noise = np.abs(tensor[2] - tensor[1]).max()
    assert np.abs(tensor[0] - tensor[1]).max() <= component + 2 * noise
    assert abs(np.trace(tensor[0] - tensor[1])) / 3 <= average + 2 * noise


@needs_double
@pytest.mark.parametrize("name", SYSTEMS)
def test_energy_matches_double_precision(work, request, converged, name):
    system = request.getfixturevalue(name)
    exact = converged(system, 0.9)
    run = fmm(work, "fmm", system, 0.9)
    limit = energy_limit(system, exact.coulomb()[0])
    assert abs(run.coulomb()[0] - exact.coulomb()[0]) <= limit


@pytest.mark.parametrize("engine", ["hierarchy", "fft"])
def test_pressure_tensor_at_order_12_matches_tight_pme(work, salt_water, engine):
    pme = tight_pme(work, "pme", salt_water, 0.9)
    run = fmm(work, "fmm", salt_water, 0.9, order=12, direct_range=1, m2l=engine)
    edge = salt_water.volume ** (1 / 3)
    scatter = pressure_scatter(salt_water, simulation.rms(pme.forces), ORDER_12_LIMIT, edge)
    assert np.abs(run.pressure_tensor()[0] - pme.pressure_tensor()[0]).max() <= 3 * scatter


@pytest.mark.parametrize("name", ["ion_crystal", "charged_crystal"])
def test_trace_of_the_virial_is_minus_half_the_energy(work, request, name):
    """With a net charge too. Halving the Coulomb interaction separates it from Lennard-Jones.

    No constraints act in a crystal of ions. The energies have seven digits.
    """
    system = request.getfixturevalue(name)
    runs = [
        simulate(
            work,
            f"epsilon{epsilon}",
            settings(reference.single_point(0.9), FMM, {"epsilon-r": epsilon}),
            system,
        )
        for epsilon in (1, 2)
    ]
    trace = [sum(r.energies[f"Vir-{a}{a}"][0] for a in "XYZ") for r in runs]
    energy = [r.coulomb()[0] for r in runs]
    expected = -(energy[0] - energy[1]) / 2
    # Rounding of the forces, 1e-5 of them, at positions anywhere in the box; Xi = -P V / 2.
    edge = system.volume ** (1 / 3)
    scatter = pressure_scatter(system, simulation.rms(runs[0].forces), 1e-5, edge)
    limit = 3 * scatter / simulation.BAR * system.volume * np.sqrt(3) / 2 + 1e-6 * abs(expected)
    assert abs(trace[0] - trace[1] - expected) <= limit


@pytest.mark.parametrize("options", [{}, {"order": 16, "direct_range": 2}], ids=["default", "p16"])
def test_rock_salt_has_the_madelung_energy(work, tmp_path_factory, options):
    """Undisplaced rock salt: E = -M k / r0 per pair of ions, M = 1.747 564 594 633."""
    crystal = systems.ion_crystal(tmp_path_factory.mktemp("madelung"), displacement=0.0)
    run = fmm(work, "fmm", crystal, 0.9, **options)
    distance = crystal.volume ** (1 / 3) / 10
    exact = -1.747564594633 * 138.935458 / distance * crystal.atoms / 2
    # With p = 16 only single precision is left: 1e-6 of the energy.
    limit = 1e-6 * abs(exact) if options else energy_limit(crystal, exact)
    assert abs(run.coulomb()[0] - exact) <= limit
    # By symmetry no force acts. The errors are measured by that of a pair of neighbours.
    nearest = 138.935458 / distance**2
    assert simulation.rms(run.forces) <= WATER_LIMIT * nearest
