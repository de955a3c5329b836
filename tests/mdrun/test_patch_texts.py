# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the patch says where no compiler looks: documents, licences."""

import re

import pytest

from tests.support.gmx import environment
from tests.support.gmx.environment import ROOT

PATCH = ROOT / "gromacs_patch"
VARIABLES = "docs/user-guide/environment-variables.rst"
OPTIONS = "docs/user-guide/mdp-options.rst"
SOURCE = (".h", ".cpp", ".cu", ".cuh")


def added_lines():
    """{file of GROMACS: what the patches add to it}; new files are there as a whole."""
    added = {}
    for patch in sorted(PATCH.glob("*.patch")):
        for part in re.split(r"^diff --git a/\S+ b/", patch.read_text(), flags=re.MULTILINE)[1:]:
            name, *lines = part.splitlines()
            start = next(i for i, line in enumerate(lines) if line.startswith("+++")) + 1
            own = [line[1:] for line in lines[start:] if line.startswith("+")]
            added[name.split()[0]] = added.get(name.split()[0], "") + "\n".join(own) + "\n"
    return added


def own_files():
    """{file: its text} of what is added to GROMACS as a whole."""
    paths = [path for path in sorted((PATCH / "fmm").iterdir()) if path.suffix in SOURCE]
    files = {path.name: path.read_text() for path in paths}
    for patch in PATCH.glob("*.patch"):
        for name in re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE):
            files[name] = added_lines()[name]
    return files


def page(name):
    """A page of the manual of the patched GROMACS."""
    return (environment.folder_from_environment("GROMACS_SOURCE_DIR") / name).read_text()


def entries(text):
    """{environment variable: what is said of it}."""
    found = re.findall(r"^``(\w+)``\n((?: +\S.*\n?)+)", text, re.MULTILINE)
    return {name: " ".join(body.split()) for name, body in found}


def test_environment_variables_that_are_read_are_documented_and_the_others_not():
    added = added_lines()
    sources = [text for name, text in added.items() if name.endswith(SOURCE)]
    read = set(re.findall(r'"(GMX_\w+)"', "\n".join([*sources, *own_files().values()])))
    described = entries(added[VARIABLES])
    assert set(described) <= read
    assert {"GMX_FMM_DEVICE", "GMX_FMM_DISABLE_GPU_BUFFERS"} <= set(described)
    assert read <= set(entries(page(VARIABLES)))
    readme = (PATCH / "README.md").read_text()
    assert [name for name in described if f"`{name}`" not in readme] == []


def test_references_to_mdp_options_lead_somewhere():
    added = added_lines()
    documents = "\n".join(text for name, text in added.items() if name.endswith(".rst"))
    there = set(re.findall(r"^\.\. mdp:: +(\S+)", page(OPTIONS) + added[OPTIONS], re.MULTILINE))
    assert set(re.findall(r":mdp:`([^`<]+)`", documents)) <= there


@pytest.mark.parametrize("name", own_files())
def test_files_that_join_gromacs_have_its_licence(name):
    """Word for word, but for the year."""
    own, theirs = (
        re.sub(r"Copyright \d{4}-", "Copyright", text[: text.index("*/")])
        for text in (own_files()[name], page("src/gromacs/fmm/fmmoptions.h"))
    )
    assert own == theirs


def test_the_program_says_that_it_is_a_modified_one():
    """As GROMACS asks; the version in the patch is that of the library."""
    version = re.search(r"VERSION (\d+\.\d+\.\d+)\n", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert f"farfield-{version}" in added_lines()["cmake/gmxVersionInfo.cmake"]
    # GROMACS writes dashes as underscores
    assert environment.gmx().version()["GROMACS version"].endswith(f"-farfield_{version}")
