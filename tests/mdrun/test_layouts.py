# SPDX-License-Identifier: LGPL-2.1-or-later
"""The benchmark of layouts: PME has at least three to be best at, and the table shows the best of each method."""

import pytest

from tests.bench import mdrun_layouts, page_tables


@pytest.mark.parametrize("cores", [4, 16, 32, 64])
def test_pme_has_several_layouts_on_cores(cores):
    kinds = mdrun_layouts.on_cores(cores, every=False)
    assert sum(kind.method == "PME" for kind in kinds) >= 3
    assert all(kind.ranks * kind.threads <= cores for kind in kinds)
    assert len({kind.label for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("gpus", [2, 4])
def test_pme_has_several_layouts_on_gpus(gpus):
    kinds = mdrun_layouts.on_gpus(gpus, 16)
    assert sum(kind.method == "PME" for kind in kinds) >= 3
    assert all(kind.ranks * kind.threads <= 16 * gpus and kind.gpus <= gpus for kind in kinds)
    # a rank with all cores of a host waits for the slowest of its threads
    assert all(kind.threads <= 16 for kind in kinds)
    assert len({kind.label for kind in kinds}) == len(kinds)


def record_of(speeds):
    kinds = {f"{m}, {layout}": {"method": m, "layout": layout, "ns_per_day": s} for (m, layout), s in speeds.items()}
    record = {"cores": 16, "kinds": kinds}
    kinds["PME, 32 x 1"] = {"method": "PME", "layout": "32 x 1", "ns_per_day": [], "refused": "no domains"}
    mdrun_layouts.summarise(record)
    return record


def test_the_best_layouts_are_compared_and_shown():
    speeds = {
        ("FMM", "1 x 16"): [30.0, 33.0, 30.0],
        ("PME", "1 x 16"): [10.0, 10.0, 9.0],
        ("PME", "16 x 1"): [20.0, 22.0, 15.0],
    }
    record = record_of(speeds)
    assert record["best"] == {"FMM": "FMM, 1 x 16", "PME": "PME, 16 x 1"}
    assert record["fmm_over_pme"] == 1.5
    content = {"systems": {"protein": {"atoms": 20640, "rows": [record]}}}
    table = page_tables.of_layouts(content, "cores").splitlines()
    assert table[2] == ("| protein | 20640 | 16 cores | 30.0 ± 1.5 (1 x 16) | 20.0 ± 3.5 (16 x 1) | 1.50 ± 0.25 |")
    assert len(page_tables.of_layouts(content, "gpus").splitlines()) == 2
