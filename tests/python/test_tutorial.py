# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of the tutorial for Python print what its page shows."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/tutorial-python.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\nIt prints\n\n```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
NUMBER = r"-?\d+\.?\d*"


@pytest.mark.parametrize("package, example", [("ase", EXAMPLES[0]), ("torch", EXAMPLES[1])], ids=("ase", "torch"))
def test_a_program_prints_what_its_page_shows(package, example, capsys):
    """But for rounding, which grows in dynamics; whole numbers are temperatures, K, and times."""
    pytest.importorskip(package)
    ours, shown = numbers_of(*example, capsys)
    for own, given in zip(ours, shown, strict=True):
        assert float(own) == pytest.approx(float(given), rel=2e-3, abs=0 if "." in given else 3)


def test_a_network_learns_as_its_page_shows(capsys):
    """Rounding grows in its search for the minimum: the begin is that of the page, the end as small."""
    pytest.importorskip("torch")
    ours, shown = numbers_of(*EXAMPLES[2], capsys)
    assert len(ours) == len(shown)
    assert [float(own) for own in ours[:3]] == pytest.approx([float(given) for given in shown[:3]], rel=2e-3)
    assert max(map(float, ours[-2:])) < 2 * max(map(float, shown[-2:]))


def numbers_of(program, expected, capsys):
    """What a program prints and what its page shows; words are the same."""
    exec(program, {})
    printed = capsys.readouterr().out
    assert re.sub(NUMBER, "", printed).split() == re.sub(NUMBER, "", expected).split()
    return re.findall(NUMBER, printed), re.findall(NUMBER, expected)
