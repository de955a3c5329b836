# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the benchmarks of points without images make of their measurements."""

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from tests.bench import results
from tests.bench.figures import cases, points
from tests.bench.figures.equal_error import time_at_error
from tests.bench.open_points import KINDS, THIN_KINDS, all_pairs, errors, near_cells, sample


def test_a_power_law_is_met_between_its_points():
    curve = [(error, error**-0.5) for error in (1e-2, 1e-3, 1e-5)]
    for error in (1e-2, 3e-3, 1e-3, 1e-4, 1e-5):
        assert time_at_error(curve, error) == pytest.approx(error**-0.5, rel=1e-12)


def test_the_order_of_points_and_what_is_slower_and_worse_do_not_count():
    curve = [(1e-3, 2.0), (1e-5, 8.0)]
    expected = time_at_error(curve, 1e-4)
    assert expected == pytest.approx(4.0)
    for more in ([(1e-2, 2.5)], [(1e-4, 9.0)], [(1e-3, 3.0)], [(1e-5, 8.0)]):
        for points_ in (curve + more, more + curve[::-1]):
            assert time_at_error(points_, 1e-4) == pytest.approx(expected)


def test_beyond_the_curve_there_is_the_fastest_setting_or_none():
    curve = [(1e-3, 2.0), (1e-5, 8.0)]
    assert time_at_error(curve, 1e-1) == 2.0
    assert time_at_error(curve, 1e-5) == 8.0
    assert time_at_error(curve, 9e-6) is None
    assert time_at_error([], 1e-3) is None


@pytest.mark.parametrize("kind", KINDS + THIN_KINDS)
@pytest.mark.parametrize("reach", [1, 2])
def test_near_pairs_are_those_of_neighbouring_cells(kind, reach):
    x, _, _ = sample(kind, 400, 10)
    # Edges of the cells: those of the box over so many, of which the points fill a half
    widths = np.maximum(np.ptp(x, axis=0), 0.1 * np.ptp(x, axis=0).max())
    counts = np.array([10, 6, 14])
    edges = 2 * widths / counts
    setup = {"cells": np.diag(counts), "cell_size": np.prod(edges) ** (1 / 3), "direct_range": reach}
    found = near_cells(x, setup)
    index = np.floor((x - x.min(axis=0)) / edges)
    assert found["occupied_cells"] == len(np.unique(index, axis=0))
    apart = np.abs(index[:, None] - index[None, :]).max(axis=-1)
    assert found["near_pairs"] == (apart <= reach).sum() - len(x)


def test_sums_of_all_pairs_have_the_field_of_their_potential():
    x, q, _ = sample("cube", 50, 10)
    step = 1e-5
    places = np.concatenate(([0 * x[0]], step * np.eye(3), -step * np.eye(3)))
    probes = x[7] + 0.05 + places
    values = []
    for probe in probes:
        where, charges = np.vstack((x, probe)), np.append(q, 0)
        values.append(all_pairs(where, charges, np.array([50])))
    potentials = np.array([potential[0] for potential, _ in values])
    field = values[0][1][0]
    assert potentials[0] == pytest.approx((q / np.linalg.norm(x - probes[0], axis=1)).sum(), rel=1e-12)
    # Central differences err by step^2 times third derivatives, of 1 / 0.05^2 relative to the first
    assert field == pytest.approx((potentials[4:] - potentials[1:4]) / (2 * step), rel=1e-5, abs=1e-3)


def test_errors_of_forces_weigh_fields_by_charges():
    exact = np.ones(2), np.array([[1.0, 0, 0], [0, 1.0, 0]])
    found = np.array([1.0, 1.1]), np.array([[1.0, 0, 0], [0, 1.1, 0]])
    result = errors(found, exact, np.array([3.0, 4.0]))
    assert result["potential"] == pytest.approx(0.1 / np.sqrt(2))
    assert result["field"] == pytest.approx(0.1 / np.sqrt(2))
    assert result["force"] == pytest.approx(0.4 / 5)


def records_of(kind, method, seconds, **more):
    common = {"kind": kind, "count": 100_000, "method": method, "points_per_second": 1e5 / seconds}
    return [
        {**common, "asked": f"{error:.0e}", "seconds": seconds * error**-0.1, "potential": error,
         "field": error, "force": error, **more}
        for error in (1e-2, 1e-3, 1e-5)
    ]


@pytest.fixture
def records():
    """farfield on an H100 and jaxFMM, which takes forty times as long, twenty times for fields alone."""
    setup = {"device_name": "NVIDIA H100 80GB HBM3", "cells": np.diag([25, 25, 25]).tolist(), "order": 6,
             "direct_range": 1, "levels": 1, "cell_size": 0.97}
    near = {"occupied_cells": 1331, "near_pairs": 10**8}
    found = []
    for kind, factor in (("cube", 1), ("clusters", 2)):
        found += records_of(kind, "farfield float32, GPU", 1e-3 * factor, setup=setup, **near)
        found += records_of(kind, "jaxFMM float32", 40e-3 * factor, fields_alone=[0.01, 0.0])
        found.append({"kind": kind, "count": 100_000, "method": "FMM3D", "asked": "1e-06", "error": "late"})
    return found


def test_ratios_are_those_of_times_at_equal_errors(records):
    titles, tables = zip(*points.tables(records))
    assert len(titles) == 2  # of forces and of fields
    rows = [[entry.strip() for entry in line.split("|")[1:-1]] for line in tables[0].splitlines()[2:]]
    both = [row for row in rows if "alone" not in row[5]]
    assert [(row[0], row[2], row[7]) for row in both] == [
        (kind, error, "40") for kind in ("cube", "clusters") for error in ("1e-03", "1e-04")
    ]
    # Constant: that of the fastest setting
    assert {row[6] for row in rows if "alone" in row[5]} == {"10"}


def test_the_figure_has_the_floor_of_the_card_in_every_kind(records, tmp_path):
    pytest.importorskip("matplotlib")
    points.draw(records, tmp_path / "points.svg")
    text = ElementTree.parse(tmp_path / "points.svg").getroot()
    dashed = [e for e in text.iter() if "stroke-dasharray" in e.get("style", "")]
    # A line in each of both plots and one in the legend
    assert len(dashed) == 3
    floor = points.floor_of(records[0])
    assert floor > 0 and points.floor_of(records[3]) is None
    # As on an H200, whose memory alone is faster
    faster = {**records[0], "setup": {**records[0]["setup"], "device_name": "NVIDIA H200"}}
    assert 3.35 / 4.8 < points.floor_of(faster) / floor <= 1


@pytest.mark.parametrize("name", ["points_gpu", "open_speed"])
def test_figures_and_tables_need_nothing_but_the_file(name, tmp_path):
    pytest.importorskip("matplotlib")
    path = Path(results.__file__).parent / "results" / f"{name}.json"
    records = cases.load([path])["points"][name]
    points.draw(records, tmp_path / "figure.svg")
    kinds = {record["kind"] for record in records if "error" not in record}
    # An axis of each
    axes = ElementTree.parse(tmp_path / "figure.svg").getroot().iter()
    assert sum(e.get("id", "").startswith("axes_") for e in axes) == len(kinds)
    assert all("beside" in body for _, body in points.tables(records))


def test_points_are_the_same_at_every_call():
    for kind, count in itertools.product(KINDS, (100, 3000)):
        for one, other in zip(sample(kind, count, 20), sample(kind, count, 20)):
            assert np.array_equal(one, other)
