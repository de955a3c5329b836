# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bugs of GROMACS itself that the patch mends: their inputs, and that each patch is on its own."""

import re
import shutil
import subprocess

import pytest

from tests.support.gmx import environment, mdp, simulation
from tests.support.gmx.environment import ROOT

PATCH = ROOT / "gromacs_patch"
BUGS = PATCH / "bugs"
PATCHES = sorted(PATCH.glob("*.patch"))
OF_BUGS = [patch for patch in PATCHES if patch.name < "0008"]


def prepare(work, name, bug, structure, parameters="grompp.mdp"):
    folder = BUGS / bug
    entries = mdp.read(folder / parameters)
    return simulation.grompp(work, name, entries, folder / structure, folder / "topol.top")


def energies(work, name, *input_files):
    prepare(work, name, *input_files).ok()
    simulation.mdrun(work, name, ntomp=1).ok()
    return simulation.Run(work, name).energies


def test_the_pressure_of_perturbed_pairs_is_the_same_across_the_border(work):
    bug = "virial-of-perturbed-pairs"
    middle, border = (
        energies(work, name, bug, f"{name}.gro")["Pres-XX"][0] for name in ("middle", "border")
    )
    assert border == pytest.approx(middle, rel=1e-5)


def test_atoms_in_state_b_have_the_energies_of_such_atoms_with_lj_pme(work):
    bug = "lj-pme-of-state-b"
    alone, perturbed = (
        energies(work, name, bug, "conf.gro", f"{name}.mdp") for name in ("xenon", "perturbed")
    )
    for term in ("LJ (SR)", "LJ recip.", "Pres-XX"):
        assert perturbed[term][0] == pytest.approx(alone[term][0], rel=1e-4), term


def test_a_position_that_is_far_away_is_an_error(work):
    done = prepare(work, "far", "positions-that-are-not-finite", "conf.gro")
    assert done.status == 1
    assert "The position of atom 1 is not finite or far too large" in " ".join(done.text.split())


def patch_files(folder, patch, *flags):
    command = ["patch", "-p1", "-s", "--force", "--no-backup-if-mismatch", "-i", patch, *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The files of GROMACS that the patches change, as they are without patches."""
    folder = tmp_path_factory.mktemp("plain")
    source = environment.folder_from_environment("GROMACS_SOURCE_DIR")
    text = "\n".join(patch.read_text() for patch in PATCHES)
    for name in set(re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / name)
    for patch in reversed(PATCHES):
        assert patch_files(folder, patch, "--reverse").returncode == 0, patch.name
    return folder


@pytest.mark.parametrize("patch", OF_BUGS, ids=lambda patch: patch.stem)
def test_the_patch_of_a_bug_fits_gromacs_alone(plain, patch):
    done = patch_files(plain, patch, "--dry-run", "--fuzz=0")
    assert done.returncode == 0, done.stdout


def test_only_the_last_patch_is_of_farfield():
    """The others are for any backend: what they add to sources does not know this one."""
    for patch in PATCHES[:-1]:
        added = [line for line in patch.read_text().splitlines() if re.match(r"\+(?!\+\+)", line)]
        assert not [line for line in added if re.search(r"(?i)#include.*farfield|usesFarfield", line)], patch.name


def test_gromacs_asks_in_few_places_what_fmm_can_do():
    """What it does with the answer stands there, too; what is checked by the backend does not count."""
    added = [line for patch in PATCHES for line in patch.read_text().splitlines() if line.startswith("+")]
    asking = [line for line in added if re.search(r"(?<!& )(?:gmx::)?\bfmmBackend\(\*?\w+\)(?!\.check)", line)]
    assert 1 <= len(asking) <= 6, asking
