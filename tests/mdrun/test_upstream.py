# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is written for GROMACS itself: it fits plain sources, and its figures are those of the pages."""

import os
import re
import subprocess

import pytest

from tests.support.gmx import environment, patches

UPSTREAM = patches.FOLDER / "upstream"
MENDS = {patch.stem[5:]: patch for patch in patches.OF_BUGS}
WITH_TESTS = {path.parent.name: path for path in sorted(UPSTREAM.glob("*/test.patch"))}
# Name: what has to be applied before the patch of the merge request
MERGE_REQUESTS = {
    "device-force-provider": ["shift-vectors-of-the-step", "updates-of-cuda-graphs"],
    "pair-list-of-sites": [],
}
WHO = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def run(folder, *command):
    """What a program prints that succeeds."""
    variables = {**os.environ, **WHO}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Files of plain GROMACS under version control."""
    source = environment.folder_from_environment("GROMACS_SOURCE_DIR")
    names = {name for patch in WITH_TESTS.values() for name in patches.changed(patch)}
    folder = tmp_path_factory.mktemp("plain")
    patches.write_plain(folder, [name for name in names if (source / name).exists()])
    run(folder, "git", "init", "-q", "-b", "start")
    run(folder, "git", "add", "--all")
    run(folder, "git", "commit", "-q", "-m", "GROMACS")
    return folder


@pytest.mark.parametrize("bug", MENDS)
def test_the_message_of_a_bug_is_that_of_a_commit(bug):
    title, empty, *body = (UPSTREAM / bug / "message").read_text().splitlines()
    assert title[0].isupper() and title[-1] != "." and len(title) <= 72
    assert empty == "" and body
    assert max(map(len, body)) <= 75


def test_every_bug_becomes_a_branch_with_its_test(plain):
    run(plain, UPSTREAM / "branches.sh", ".")
    assert run(plain, "git", "branch", "--show-current") == "start\n"
    start = run(plain, "git", "log", "-1", "--format=%h", "start").strip()
    for bug, mend in MENDS.items():
        title = (UPSTREAM / bug / "message").read_text().splitlines()[0]
        assert run(plain, "git", "log", "-1", "--format=%p %s", bug).strip() == f"{start} {title}"
        files = set(run(plain, "git", "diff", "--name-only", "start", bug).split())
        added = [WITH_TESTS[bug]] if bug in WITH_TESTS else []
        assert files == patches.changed(mend).union(*map(patches.changed, added))


@pytest.mark.parametrize("name", MERGE_REQUESTS)
def test_the_patch_of_a_merge_request_fits_gromacs(plain, name):
    for bug in MERGE_REQUESTS[name]:
        assert patches.run(plain, MENDS[bug]).returncode == 0
    done = patches.run(plain, patches.named(name), "--dry-run", "--fuzz=0")
    run(plain, "git", "checkout", "-q", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", MERGE_REQUESTS)
def test_the_figures_of_a_merge_request_are_in_a_page(name):
    pages = "".join(path.read_text() for path in (environment.ROOT / "docs").glob("*.md"))
    text = (UPSTREAM / f"{name}.md").read_text()
    figures = re.findall(r"(?<=\| )\d[\d.]*(?: ± [\d.]+)?(?= \|)", text)
    assert len(figures) > 8
    assert [figure for figure in figures if f"| {figure} |" not in pages] == []
