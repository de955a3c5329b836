# SPDX-License-Identifier: LGPL-2.1-or-later
"""Systems shared by the tests, each built once per session."""

import pytest

from tests.support.gmx import environment, reference, systems


def pytest_report_header():
    gmx, double = environment.gmx(), environment.gmx_double()
    skipped = "none: tests against double-precision PME are skipped"
    return [
        f"gmx: {gmx.program}, GROMACS {gmx.version()['GROMACS version']}",
        f"double-precision gmx: {double.program if double else skipped}",
    ]


@pytest.fixture
def work(tmp_path):
    """An empty folder for one test's runs."""
    return tmp_path


@pytest.fixture(scope="session")
def water(tmp_path_factory):
    """About 2 000 atoms of water, at least two cut-offs wide."""
    folder = tmp_path_factory.mktemp("water")
    return systems.water(folder, 2.8)


@pytest.fixture(scope="session")
def water23k(tmp_path_factory):
    """The 6.2 nm water box of the accuracy figures: 23 262 atoms."""
    folder = tmp_path_factory.mktemp("water23k")
    return systems.water(folder, 6.2, 1000)


@pytest.fixture(scope="session")
def charmm_water(tmp_path_factory):
    """CHARMM's TIP3P: Lennard-Jones on hydrogen as well."""
    return systems.water(tmp_path_factory.mktemp("charmm"), 2.8, 500, "charmm27", "tips3p")


@pytest.fixture(scope="session")
def four_site_water(tmp_path_factory):
    return systems.four_site_water(tmp_path_factory.mktemp("four_site"), 2.8)


@pytest.fixture(scope="session")
def salt_water(tmp_path_factory):
    return systems.salt_water(tmp_path_factory.mktemp("salt"))


@pytest.fixture(scope="session")
def charged_water(tmp_path_factory):
    """Salt water with a net charge of +3 e."""
    folder = tmp_path_factory.mktemp("charged")
    system = systems.salt_water(folder, concentration=0.3, extra_cations=3)
    system.warnings = 1
    return system


@pytest.fixture(scope="session")
def ion_crystal(tmp_path_factory):
    return systems.ion_crystal(tmp_path_factory.mktemp("crystal"))


@pytest.fixture(scope="session")
def charged_crystal(tmp_path_factory):
    """Rock salt with five vacancies: a net charge of +5 e."""
    system = systems.ion_crystal(tmp_path_factory.mktemp("vacancies"), vacancies=5)
    system.warnings = 1
    return system


@pytest.fixture(scope="session")
def protein(tmp_path_factory):
    return systems.protein(tmp_path_factory.mktemp("protein"))


@pytest.fixture(scope="session")
def converged(tmp_path_factory):
    """Forces and energies by converged double-precision PME, computed once per system."""
    cache = {}

    def of(system, cutoff):
        key = (system.conf, cutoff)
        if key not in cache:
            folder = tmp_path_factory.mktemp("double")
            cache[key] = reference.converged(folder, system, cutoff)
        return cache[key]

    return of
