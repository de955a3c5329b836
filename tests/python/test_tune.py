# SPDX-License-Identifier: LGPL-2.1-or-later
"""What "farfield tune" says of its timings, and the table of its search."""

import json

import pytest

from farfield.tune import settings
from farfield.tune.tune import as_record, doubts
from tests.bench import tune_search


def setting(speeds, order=8, error=2e-4):
    return settings.Setting("FMM", settings.fmm(3e-4, 1, "fft", 0.55, order), error, list(speeds))


def grid(speeds, spacing=0.12):
    return settings.Setting("PME", settings.pme(1.0, spacing, 4, 1e-5), 2e-4, list(speeds))


def test_a_setting_that_is_the_fastest_in_every_round_is_not_doubted():
    """Also where the machine changes by more than the settings differ, as long as each of them scatters little."""
    final = [setting([100, 104, 108]), setting([97, 101, 105], 9), grid([90, 90, 90])]
    assert doubts(final, 3e-4) == []


def test_speeds_that_scatter_are_doubted():
    (doubt,) = doubts([setting([100, 100, 125]), setting([80, 80, 100], 9)], 3e-4)
    assert "FMM" in doubt and "12 %" in doubt and "more than 5 %" in doubt
    assert doubts([setting([100, 100, 110]), setting([80, 80, 80], 9)], 3e-4) == []


def test_a_setting_that_was_as_fast_in_some_rounds_may_be_the_best():
    final = [grid([100, 101, 102]), grid([99, 101, 100], 0.1), grid([97, 97, 97], 0.08)]
    (doubt,) = doubts(final, 3e-4)
    assert "PME" in doubt and "spacing 0.1 nm" in doubt and "1 of 3 rounds" in doubt


def test_settings_that_miss_the_accuracy_are_no_rivals():
    assert doubts([setting([100, 100]), setting([100, 100], 4, 1e-3)], 3e-4) == []
    assert doubts([setting([100, 100], 4, 1e-3)], 3e-4) == []


def test_one_round_tells_no_scatter():
    (doubt,) = doubts([setting([100]), setting([80], 9)], 3e-4)
    assert "one round" in doubt


@pytest.mark.parametrize("same", [True, False])
def test_the_table_of_the_search_has_all_that_was_chosen(same):
    """As it is read from the file of results."""
    found = setting([95, 95, 95], 8, 2.3e-4)
    best = found if same else setting([100, 100, 96], 9, 1.4e-4)
    case = {
        "system": "protein-npt",
        "atoms": 22206,
        "tried": 6,
        "all": 38,
        "found": as_record(found, 3e-4),
        "best": as_record(best, 3e-4),
    }
    head, _, row = tune_search.table([json.loads(json.dumps(case))]).splitlines()
    assert head.count("|") == row.count("|")
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[1:6] == ["22 206", "6", "38", "order 8, range 1, cells 0.550 nm, fft", "2.3e-04"]
    last = ["the same", "2.3e-04", "1"] if same else ["order 9, range 1, cells 0.550 nm, fft", "1.4e-04", "0.96 ± 0.01"]
    assert cells[6:] == last
