# SPDX-License-Identifier: LGPL-2.1-or-later
"""gromacs_patch/apply.sh: it knows its version of GROMACS, and says of others which hunks do not fit."""

import re
import shutil
import subprocess

import pytest

from tests.support.gmx import patches

HUNKS = sum(len(re.findall("^@@ ", patch.read_text(), re.MULTILINE)) for patch in patches.PATCHES)
PATCH, CHANGED = patches.named("load-of-modules").name, "src/gromacs/domdec/dlbtiming.cpp"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return patches.write_plain(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def tree(plain, tmp_path):
    return shutil.copytree(plain, tmp_path / "gro macs")


def apply(*words):
    """(status, what is said)."""
    command = [patches.FOLDER / "apply.sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def call_it(tree, version):
    file = tree / "CMakeLists.txt"
    file.write_text(re.sub(r"(project\(Gromacs VERSION )[\d.]+", rf"\g<1>{version}", file.read_text()))


def damage(tree):
    """Changes the surroundings of all hunks of a file."""
    file = tree / CHANGED
    file.write_text(file.read_text().replace("\n", " // changed\n"))


def test_every_hunk_fits_exactly_before_and_after_it_is_applied(tree):
    fits = (0, f"all {HUNKS} hunks fit GROMACS 2026.3\n")
    before = contents(tree)
    assert apply("--check", tree) == fits
    assert contents(tree) == before
    assert apply(tree)[0] == 0
    assert apply("--check", tree) == fits
    assert apply(tree) == (0, f"GROMACS 2026.3 in '{tree}' has the FMM backend farfield\n")


def test_hunks_that_do_not_fit_are_named(tree):
    damage(tree)
    before = contents(tree)
    status, said = apply("--check", tree)
    assert status == 1 and contents(tree) == before
    first = said.splitlines()[0]
    assert re.fullmatch(rf"{PATCH}: {CHANGED}: hunk 1 does not fit at line \d+", first)
    number = len(re.findall("does not fit at line", said))
    assert said.endswith(f"\n{number} of {HUNKS} hunks do not fit GROMACS 2026.3\n")
    status, also_said = apply(tree)
    assert status == 1 and said in also_said
    assert f"apply.sh: {PATCH} does not fit" in also_said.splitlines()[-1]


def test_a_file_that_is_missing_counts_with_all_its_hunks(tree):
    (tree / CHANGED).unlink()
    status, said = apply("--check", tree)
    assert status == 1
    assert f"{PATCH}: {CHANGED}: the file is missing, hunks: " in said


def test_a_malformed_patch_does_not_fit(tree, tmp_path):
    copy = shutil.copytree(patches.FOLDER, tmp_path / "patches")
    file = copy / PATCH
    file.write_text(re.sub(r"^@@ -(\d+),\d+", r"@@ -\1,99", file.read_text(), count=1, flags=re.MULTILINE))
    done = subprocess.run([copy / "apply.sh", "--check", tree], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(rf"^{PATCH}: malformed patch at line \d+.*not tried$", done.stdout, re.MULTILINE)


def test_another_release_of_the_year_is_tried_and_another_year_refused(tree):
    call_it(tree, "2025.4")
    before = contents(tree)
    status, said = apply(tree)
    assert status == 1 and len(said.splitlines()) == 1
    assert "is GROMACS 2025.4, the patch is for GROMACS 2026.3" in said and "--check" in said
    assert contents(tree) == before
    call_it(tree, "2026.2")
    status, said = apply(tree)
    assert status == 0
    assert "the patch is made for GROMACS 2026.3, and tried on 2026.2" in said


def test_what_is_no_source_tree_is_refused(tmp_path):
    assert apply(tmp_path) == (1, f"apply.sh: '{tmp_path}' is not a GROMACS source tree, name one of GROMACS 2026.3.\n")
    assert "usage" in apply()[1] and "usage" in apply("--check")[1]
