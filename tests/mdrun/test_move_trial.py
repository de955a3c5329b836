# SPDX-License-Identifier: LGPL-2.1-or-later
"""The comparison of steps with the FMM on either GPU: turns, what counts, and what is clear enough."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADAPTER = ROOT / "gromacs_patch" / "fmm"
# What the source takes from GROMACS.
FROM_GROMACS = {
    "gmxpre.h": "",
    "gromacs/utility/stringutil.h": """
#include <cstdio>
#include <string>
namespace gmx
{
template<class... Values>
std::string formatString(const char* format, Values... values)
{
    char text[200];
    std::snprintf(text, sizeof(text), format, values...);
    return text;
}
}
""",
}


@pytest.fixture(scope="module")
def compare(tmp_path_factory):
    """Function that runs time_moves.cpp; returns where the FMM was, interval by interval, and the result."""
    folder = tmp_path_factory.mktemp("moves")
    for name, text in FROM_GROMACS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    program = folder / "time_moves"
    sources = [str(ROOT / "tests" / "mdrun" / "time_moves.cpp"), str(ADAPTER / "farfieldmove.cpp")]
    compiler = os.environ.get("CXX") or "g++"
    command = [compiler, "-std=c++17", f"-I{folder}", f"-I{ADAPTER}", *sources, "-o", str(program)]
    subprocess.run(command, check=True)

    def run(alone, moved, interval=200, first=0, slow=()):
        arguments = map(str, (alone, moved, interval, first, *slow))
        done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, timeout=60)
        places, result = done.stdout.splitlines()
        return "".join(places.split()), result

    return run


def test_the_gpus_take_turns_and_the_faster_one_stays(compare):
    assert compare(1.2e-3, 0.8e-3) == ("0101011", "a step took 800 us with the FMM moved and 1200 us without")
    places, result = compare(0.8e-3, 1.2e-3)
    assert places == "0101010"
    assert result == "a step took 1200 us with the FMM moved and 800 us without, and a move has to gain 5 %"


@pytest.mark.parametrize(("gain", "stays"), [(0.04, "0"), (0.06, "1"), (-0.2, "0")])
def test_a_move_has_to_gain_clearly(compare, gain, stays):
    places, _ = compare(1e-3, (1 - gain) * 1e-3)
    assert places.endswith(stays)


@pytest.mark.parametrize("slow", [(0,), (1,), (2, 3), (3, 4), (0, 1, 5)])
def test_what_is_slow_once_does_not_count(compare, slow):
    assert compare(1.2e-3, 0.8e-3, slow=slow) == compare(1.2e-3, 0.8e-3)
    assert compare(0.8e-3, 1.2e-3, slow=slow) == compare(0.8e-3, 1.2e-3)


def test_a_turn_has_enough_steps(compare):
    places, result = compare(1.2e-3, 0.8e-3, interval=40, first=5000)
    assert places == "000111000111000111" + "1"  # three intervals have 100 steps or more
    assert result == compare(1.2e-3, 0.8e-3)[1]
