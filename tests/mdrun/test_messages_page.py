# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/limits.md explains messages that exist: each part of one stands in the sources."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for folder in ("src", "kernels", "gromacs_patch/fmm")
           for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".cpp", ".h", ".cu"}]


def literals():
    """All texts in the sources, those that are continued on the next line as one."""
    text = "\n".join(path.read_text() for path in SOURCES)
    # Of new files in a patch the lines begin with a plus
    patches = (path.read_text() for path in sorted((ROOT / "gromacs_patch").glob("*.patch")))
    text += re.sub(r"^\+", "", "\n".join(patches), flags=re.MULTILINE)
    return re.sub(r'"\s*\n?\s*(?:\+ )?"', "", text)


def messages():
    page = (ROOT / "docs/limits.md").read_text().split("## Messages")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \|", page, flags=re.MULTILINE)


def test_there_are_messages():
    assert len(messages()) > 8


@pytest.mark.parametrize("message", messages())
def test_a_message_is_one_of_the_sources(message):
    known = literals()
    parts = [part.strip(" ',") for part in re.split(r"\.\.\.|fmm-farfield-\w+", message)]
    parts = [part for part in parts if len(part) > 3]
    assert parts
    for part in parts:
        assert part in known, f"no source says '{part}'"
