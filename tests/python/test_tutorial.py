# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of the tutorial for Python print what its page shows."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/tutorial-python.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\nIt prints\n\n```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
NUMBER = r"-?\d+\.?\d*"


@pytest.mark.parametrize("package, example", [*zip(("ase", "torch"), EXAMPLES, strict=True)], ids=("ase", "torch"))
def test_a_program_prints_what_its_page_shows(package, example, capsys):
    """But for rounding, which grows in dynamics; whole numbers are temperatures, K, and times."""
    pytest.importorskip(package)
    program, expected = example
    exec(program, {})
    printed = capsys.readouterr().out
    assert re.sub(NUMBER, "", printed).split() == re.sub(NUMBER, "", expected).split()
    for ours, shown in zip(re.findall(NUMBER, printed), re.findall(NUMBER, expected), strict=True):
        assert float(ours) == pytest.approx(float(shown), rel=2e-3, abs=0 if "." in shown else 3)
