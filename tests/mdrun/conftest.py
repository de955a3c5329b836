# SPDX-License-Identifier: LGPL-2.1-or-later
"""Systems shared by the tests, each built once per session, also where pytest-xdist runs several processes."""

import fcntl
import os
import pickle

import pytest

from tests.support.gmx import environment, reference, systems


def pytest_report_header():
    gmx, double = environment.gmx(), environment.gmx_double()
    skipped = "none: tests against double-precision PME are skipped"
    return [
        f"gmx: {gmx.program}, GROMACS {gmx.version()['GROMACS version']}",
        f"double-precision gmx: {double.program if double else skipped}",
    ]


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """once(name, make): what make(folder) returns, with a new folder; made by the first process that asks for it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def of(name, make):
        folder, made = base / f"once-{name}", base / f"once-{name}.pickle"
        with open(base / f"once-{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                folder.mkdir(exist_ok=True)
                made.write_bytes(pickle.dumps(make(folder)))
        return pickle.loads(made.read_bytes())

    return of


@pytest.fixture
def work(tmp_path):
    """An empty folder for one test's runs."""
    return tmp_path


@pytest.fixture(scope="session")
def water(once):
    """About 2 000 atoms of water, at least two cut-offs wide."""
    return once("water", lambda folder: systems.water(folder, 2.8))


@pytest.fixture(scope="session")
def water23k(once):
    """The 6.2 nm water box of the accuracy figures: 23 262 atoms."""
    return once("water23k", lambda folder: systems.water(folder, 6.2, 1000))


@pytest.fixture(scope="session")
def charmm_water(once):
    """CHARMM's TIP3P: Lennard-Jones on hydrogen as well."""
    return once("charmm", lambda folder: systems.water(folder, 2.8, 500, "charmm27", "tips3p"))


@pytest.fixture(scope="session")
def four_site_water(once):
    return once("four_site", lambda folder: systems.four_site_water(folder, 2.8))


@pytest.fixture(scope="session")
def salt_water(once):
    return once("salt", systems.salt_water)


@pytest.fixture(scope="session")
def charged_water(once):
    """Salt water with a net charge of +3 e."""
    system = once("charged", lambda folder: systems.salt_water(folder, concentration=0.3, extra_cations=3))
    system.warnings = 1
    return system


@pytest.fixture(scope="session")
def ion_crystal(once):
    return once("crystal", systems.ion_crystal)


@pytest.fixture(scope="session")
def charged_crystal(once):
    """Rock salt with five vacancies: a net charge of +5 e."""
    system = once("vacancies", lambda folder: systems.ion_crystal(folder, vacancies=5))
    system.warnings = 1
    return system


@pytest.fixture(scope="session")
def protein(once):
    return once("protein", systems.protein)


@pytest.fixture(scope="session")
def converged(once):
    """Forces and energies by converged double-precision PME, computed once per system."""

    def of(system, cutoff):
        name = f"double-{system.folder.name}-{system.conf.stem}-{cutoff:g}"
        return once(name, lambda folder: reference.converged(folder, system, cutoff))

    return of
