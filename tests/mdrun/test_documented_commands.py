# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands that the documentation shows are there, and know the options that it shows."""

import re
import shlex
import subprocess
import sys

import pytest

from tests.support.gmx.environment import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands():
    """All that are shown as an indented line, without comments, each as words."""
    found = set()
    for page in PAGES:
        text = re.sub(r"\\\n", " ", page.read_text())
        for line in re.findall(r"^ {4}(?=farfield |python3 |\./quickstart|build/)(.*?)(?:  +#.*)?$", text, re.MULTILINE):
            found.add(line)
    return sorted(found)


def words_of(pattern):
    return [shlex.split(line) for line in commands() if re.match(pattern, line)]


def test_there_are_commands_of_each_kind():
    assert len(words_of(r"python3 -m")) > 8
    assert len(words_of("farfield ")) >= 3
    assert len(words_of(r"\./quickstart")) >= 4


def options(words):
    return {word for word in words if word.startswith("--")}


@pytest.mark.parametrize("words", words_of(r"python3 -m (?!pytest)"), ids=" ".join)
def test_modules_know_their_options(words):
    done = subprocess.run(
        [sys.executable, "-m", words[2], "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for option in options(words):
        assert re.search(rf"{option}\b", done.stdout), f"{words[2]} has no {option}"


@pytest.mark.parametrize("words", words_of("farfield "), ids=" ".join)
def test_the_program_knows_its_options(words, capsys):
    from farfield.command import main

    with pytest.raises(SystemExit) as end:
        main([words[1], "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    for option in options(words):
        assert re.search(rf"{option}\b", shown), f"farfield {words[1]} has no {option}"


@pytest.mark.parametrize("words", words_of(r"\./quickstart"), ids=" ".join)
def test_quickstart_has_its_commands(words):
    usage = subprocess.run(
        [ROOT / "quickstart.sh", "help"], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(rf"^  {words[1]} ", usage, re.MULTILINE)


@pytest.mark.parametrize("words", words_of("build/bin/"), ids=" ".join)
def test_programs_are_targets_of_the_build(words):
    name = words[0].rpartition("/")[2]
    targets = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("CMakeLists.txt"))
    assert name == "gmx" or re.search(rf"\b{name}\b", targets)
