# SPDX-License-Identifier: LGPL-2.1-or-later
"""The statistics of "farfield report", and how it deals out the cores."""

import argparse
import html
import json
import os
import sys
import threading

import numpy as np
import pytest

from farfield.gromacs import log
from farfield.gromacs.program import GmxError
from farfield.report import drift, dynamics, forces, jobs, page, series
from farfield.report.lines import BOUNDS, TOO_SHORT, WHY_TOO_SHORT, Line
from tests.bench import results
from tests.support.gmx.environment import ROOT


def autoregressive(random, n, memory):
    """A series of variance 1 whose values are correlated over about memory of them."""
    factor = np.exp(-1 / memory)
    values = np.empty(n)
    values[0] = random.standard_normal()
    for i in range(1, n):
        values[i] = factor * values[i - 1] + np.sqrt(1 - factor**2) * random.standard_normal()
    return values


@pytest.mark.parametrize("memory", [0.1, 5, 20])
def test_errors_of_means_are_those_of_many_series(memory):
    random = np.random.default_rng(1)
    estimates = [series.mean(autoregressive(random, 2000, memory)) for _ in range(200)]
    scatter = np.std([e.value for e in estimates])
    told = np.sqrt(np.mean([e.error**2 for e in estimates]))
    # Of 200 series the scatter is known to 5 %; blocks of 180 values are nearly independent
    assert told == pytest.approx(scatter, rel=0.2)


def test_errors_of_means_count_that_blocks_are_alike():
    """Values that are remembered for as long as a block: from the scatter of blocks alone errors are told 0.59 of
    what they are; with their correlation, seen in ten blocks, 0.86."""
    random = np.random.default_rng(8)
    estimates = [series.mean(autoregressive(random, 2000, 180)) for _ in range(200)]
    scatter = np.std([e.value for e in estimates])
    told = np.sqrt(np.mean([e.error**2 for e in estimates]))
    # The scatter is known to 5 %, and so is what is told
    assert 0.7 * scatter <= told <= 1.1 * scatter


def test_errors_of_slopes_are_those_of_many_series():
    random = np.random.default_rng(2)
    times = np.arange(2000.0)
    estimates = [
        series.slope(times, 0.01 * times + autoregressive(random, 2000, 10)) for _ in range(200)
    ]
    values = np.array([e.value for e in estimates])
    assert values.mean() == pytest.approx(0.01, abs=4 * values.std() / np.sqrt(200))
    # That of a series that wanders is counted as well
    told = np.sqrt(np.mean([e.error**2 for e in estimates]))
    assert 0.8 * values.std() <= told <= 3 * values.std()


def test_a_walk_at_random_has_no_slope():
    """As sums of rounding errors are: of 200 of them 7 are expected beyond what is tolerated, 3 more by chance."""
    random = np.random.default_rng(3)
    estimates = [
        series.slope(np.arange(1000.0), np.cumsum(random.standard_normal(1000))) for _ in range(200)
    ]
    beyond = [e for e in estimates if abs(e.value) > series.TOLERATED * e.error]
    assert len(beyond) <= 7 + 3 * 3


def line(pme, fmm, kind="average", error=0.1, **demands):
    return Line("", "", series.Estimate(pme, error), series.Estimate(fmm, error), kind, **demands)


def test_lines_are_beyond_their_bounds_where_methods_differ():
    assert line(1.0, 1.4).passes
    assert line(1.0, 1.4).sigmas == pytest.approx(0.4 / np.hypot(0.1, 0.1))
    assert line(1.0, 0.6).sigmas == pytest.approx(-0.4 / np.hypot(0.1, 0.1))
    assert not line(1.0, 1.7).passes
    assert not line(1.0, 0.3).passes


def test_what_differs_on_one_structure_is_allowed_for_and_is_no_less_apart():
    assert not line(1.0, 1.7, "energy").passes
    assert line(1.0, 1.7, "energy", known=0.2).passes
    assert line(1.0, 1.7, "energy", known=0.2).sigmas == line(1.0, 1.7).sigmas


def test_drifts_may_be_smaller_with_fmm_and_are_still_told_apart():
    assert line(-1.0, 0.0, "drift").passes
    assert line(-1.0, 0.0, "drift").sigmas == pytest.approx(1 / np.hypot(0.1, 0.1))
    assert line(1.0, -1.0, "drift").passes
    assert not line(1.0, -1.7, "drift").passes
    assert not line(0.0, 1.0, "drift").passes


def test_errors_of_forces_are_those_asked_for():
    assert line(7e-4, 3e-4, "force error", error=0.0, wanted=3e-4).passes
    assert not line(7e-4, 3.1e-4, "force error", error=0.0, wanted=3e-4).passes
    assert line(7e-4, 3e-4, "force error", error=0.0, wanted=3e-4).sigmas is None


def test_runs_that_sample_alike_are_within_their_bounds_and_others_beyond():
    """Of 200 lines 0.17 are expected beyond by chance, and three or more once in a thousand such sets. Ten errors
    apart is beyond unless both errors are told 2.5 times too large, which blocks of such noise never do."""
    random = np.random.default_rng(6)

    def mean(shift):
        return series.mean(shift + random.standard_normal(2000))

    alike = [Line("", "", mean(0.0), mean(0.0)) for _ in range(200)]
    assert sum(not one.passes for one in alike) <= 2
    # Of 1800 values each
    shift = 10 * np.sqrt(2 / 1800)
    assert not any(Line("", "", mean(0.0), mean(shift)).passes for _ in range(20))


def of_runs(random, values, size):
    """A line of pressures of two runs that sample alike: so many independent values, which scatter by size."""
    means = (series.mean(size * random.standard_normal(values)) for _ in range(2))
    return Line("pressure", "bar", *means, "energy")


def test_runs_that_cannot_see_what_matters_are_too_short_to_tell():
    """Pressures that scatter by 300 bar about their mean: 4 errors of the difference of means of 450 values are 80 bar,
    of means of 7200 values 20 bar. What would matter are 50, and errors of ten blocks are known to a quarter."""
    random = np.random.default_rng(10)
    short = [of_runs(random, 500, 300.0) for _ in range(50)]
    assert {one.verdict for one in short} <= {TOO_SHORT, "within"}
    assert sum(one.verdict == TOO_SHORT for one in short) >= 45
    assert all(one.record()["verdict"] == one.verdict for one in short)
    assert all(of_runs(random, 8000, 300.0).verdict == "within" for _ in range(50))
    # A run that is as much longer as the line says
    wanted = np.median([one.longer for one in short])
    assert wanted == pytest.approx((4 * 300 * np.sqrt(2 / 450) / 50) ** 2, rel=0.2)


def test_what_is_beyond_its_bound_is_told_by_short_runs_too():
    assert line(1.0, 1.7).verdict == "beyond" and line(1.0, 1.4).verdict == TOO_SHORT
    assert Line("pressure", "bar", series.Estimate(0, 37), series.Estimate(10, 37), "energy").verdict == TOO_SHORT
    assert Line("pressure", "bar", series.Estimate(0, 37), series.Estimate(300, 37), "energy").verdict == "beyond"
    assert Line("pressure", "bar", series.Estimate(0, 5), series.Estimate(10, 5), "energy").verdict == "within"


def test_what_matters_of_a_quantity_goes_by_its_title():
    def matters(title, value):
        return Line(title, "", series.Estimate(value, 0.1), series.Estimate(value, 0.1)).matters

    assert matters("drift of the conserved energy", 0.1) == 0.2
    assert matters("drift, order 8", -1.5) == 1.5
    assert matters("potential energy", -13.0) == 0.1
    assert matters("pressure, xy", -200.0) == 50
    assert matters("compressibility, from fluctuations of the volume", 6.0) == 1.5
    assert matters("box, x: mean square fluctuation", 4.0) == 1.0
    assert matters("box, yx", 0.0) == 0.05
    assert matters("first peak of g(r), oxygen of water: height", 3.0) == pytest.approx(0.3)
    assert matters("temperature", 300.0) == pytest.approx(3.0)


@pytest.mark.parametrize("kind", BOUNDS)
def test_records_of_lines_tell_what_was_compared(kind):
    one = line(1.0, 1.004, kind, error=0.001, known=0.002, wanted=2.0)
    record = json.loads(json.dumps(one.record()))
    assert record["PME"] == [1.0, 0.001] and record["FMM"] == [1.004, 0.001]
    assert record["FMM - PME"] == pytest.approx([0.004, np.hypot(0.001, 0.001)])
    assert record["standard_errors_apart"] == pytest.approx(one.sigmas, abs=0.005)
    judged = {"FMM": 1.004, "|FMM|": 1.004, "|FMM - PME|": 0.004}[record["bound_on"]]
    assert (record["verdict"] == "within") == (judged <= record["bound"])


def test_the_start_does_not_count():
    values = np.ones(100)
    values[:10] = 50
    assert series.mean(values).value == 1


def test_fluctuations_are_variances_about_the_mean_of_the_run():
    random = np.random.default_rng(5)
    vectors = 7 + np.array([1.0, 2.0, 3.0]) * random.standard_normal((20000, 3))
    found = series.fluctuation(vectors)
    assert abs(found.value - 14) <= 4 * found.error
    # Of squares of normal variables with these widths
    assert found.error == pytest.approx(np.sqrt(2 * (1 + 16 + 81) / 18000), rel=0.5)
    assert series.fluctuation(vectors[:, 2]).value == pytest.approx(9, rel=0.05)


def test_areas_of_membranes_have_the_compressibility_of_their_fluctuations():
    """Areas drawn with the variance kT A / K of a modulus K; K of 0.25 N/m is 150.55 kJ/mol/nm^2."""
    random = np.random.default_rng(7)
    kt, modulus, area = 0.0083144626 * 300, 0.25 * 602.214076, 22.5
    areas = area + np.sqrt(kt * area / modulus) * random.standard_normal(20000)
    height = 7.3 + 0.02 * random.standard_normal(20000)
    terms = {"Box-X": np.sqrt(areas), "Box-Y": np.sqrt(areas), "Box-Z": height}
    found = dynamics.of_box(terms, "semiisotropic", 300, 72)
    expected = {
        ("box, z", "nm"): 7.3,
        ("box, z: mean square fluctuation", "1e-6 nm²"): 400,
        ("area of the box, xy", "nm²"): area,
        ("area per lipid", "nm²"): area / 36,
        ("compressibility of the area, from its fluctuations", "m/N"): 4.0,
    }
    for key, value in expected.items():
        assert abs(found[key].value - value) <= series.TOLERATED * found[key].error, key
    assert not any("lipid" in title for title, _ in dynamics.of_box(terms, "semiisotropic", 300, 0))


def test_elements_of_the_box_are_told_where_they_vary():
    random = np.random.default_rng(9)
    terms = {f"Box-{ab}": random.standard_normal(100) for ab in ("XX", "YY", "ZZ", "YX", "ZX")}
    terms["Box-ZY"] = np.full(100, 0.5)
    titles = {title for title, _ in dynamics.of_box(terms, "anisotropic", 300, 0)}
    elements = {f"box, {ab}" for ab in ("xx", "yy", "zz", "yx", "zx")}
    assert titles == elements | {f"{title}: mean square fluctuation" for title in elements}
    edges = {f"Box-{a}": random.standard_normal(100) for a in "XYZ"}
    assert {title for title, _ in dynamics.of_box(edges, "isotropic", 300, 0)} == {"box, x", "box, y", "box, z"}


def test_the_summary_names_what_is_beyond_its_bound():
    within, beyond = {"title": "water", "failed": []}, {"title": "salt", "failed": ["density", "pressure"]}
    for system in (within, beyond):
        system.update(untold=[], longer=0.0)
    assert page.summary([within], 100) == "All lines are within their bounds."
    assert page.summary([within, beyond], 100) == "Beyond their bounds: density (salt); pressure (salt)."
    within.update(untold=["pressure"], longer=7.3)
    assert page.summary([within], 100) == (
        "All other lines are within their bounds. The runs are too short to tell of some lines (1 of water); runs of "
        "730 ps would."
    )
    both = page.summary([within, beyond], 100)
    assert both.startswith("Beyond their bounds: density (salt); pressure (salt). The runs")


def test_orders_that_are_less_accurate_than_asked_for_are_shown_but_not_judged():
    drifts = {"PME": series.Estimate(-0.01, 0.01), "FMM": series.Estimate(2.4, 0.1)}
    assert drift.row(4, 8e-3, drifts, 3e-4).verdict == "not asked for"
    assert drift.row(8, 2e-4, drifts, 3e-4).verdict == "beyond"
    assert drift.row(8, 2e-4, {**drifts, "FMM": series.Estimate(0.01, 0.01)}, 3e-4).verdict == "within"
    assert drift.row(4, 8e-3, drifts, 3e-4).record()["verdict"] == "not asked for"


def test_orders_need_a_system_at_constant_energy():
    free = argparse.Namespace(parameters={"integrator": "md", "tcoupl": "No", "pcoupl": "No"})
    coupled = argparse.Namespace(parameters={"integrator": "md", "tcoupl": "V-rescale", "pcoupl": "No"})
    drift.check([coupled, free], [4, 8])
    drift.check([coupled], [])
    with pytest.raises(GmxError, match="tcoupl = no"):
        drift.check([coupled], [4])
    with pytest.raises(GmxError, match="twice"):
        drift.check([free], [4, 4])
    assert not drift.is_at_constant_energy({"integrator": "sd", "tcoupl": "No", "pcoupl": "No"})


def test_a_series_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="too short"):
        series.mean(np.ones(5))


@pytest.mark.parametrize(
    "value, error, text",
    [
        (984.7123, 0.3141, "984.71 ± 0.31"),
        (-13.14981, 0.00462, "-13.1498 ± 0.0046"),
        (-214.2, 19.3, "-214 ± 19"),
        (2.5, 0.0, "2.5"),
        (0.27995674, 8.21e-6, "0.2799567 ± 0.0000082"),
        (-1.1e-5, 1e-6, "(-1.10 ± 0.10)e-5"),
        (3.21e-9, 1.2e-10, "(3.21 ± 0.12)e-9"),
    ],
)
def test_numbers_have_the_decimals_that_their_error_leaves(value, error, text):
    assert series.describe(value, error) == text


def test_distances_to_faces_of_cells():
    """In a rectangular box, and in one of skewed cells: the distance along the vectors of a cell."""
    cells = np.array([[4, 0, 0], [0, 2, 0], [0, 0, 1]])
    box = np.diag([4.0, 4.0, 3.0])
    x = np.array([[0.5, 1.0, 1.5], [1.1, 1.0, 1.5], [3.5, -1.0, 2.7]])
    np.testing.assert_allclose(forces.distance_to_faces(x, box, cells), [0.5, 0.1, 0.1])
    skewed = np.array([[2, 0, 0], [1, 2, 0], [0, 0, 2]])
    box = skewed @ np.diag([1.0, 1.0, 1.0])
    np.testing.assert_allclose(forces.distance_to_faces(np.array([[0.3, 0.45, 1.8]]), box, skewed), [0.2])


def test_peaks_of_two_methods_are_found_with_the_same_points():
    """Equal but for noise that puts the highest point elsewhere: no difference in position but that of the noise."""
    radii = np.arange(0.0, 0.9, 0.005)
    exact = np.where(radii < 0.277, np.exp(-(((radii - 0.277) / 0.01) ** 2)), np.exp(-(((radii - 0.277) / 0.03) ** 2)))
    random = np.random.default_rng(4)
    curves = {
        kind: (radii, 2.7 * exact + 0.03 * random.standard_normal((series.BLOCKS, len(radii))))
        for kind in ("PME", "FMM")
    }
    peaks = dynamics.first_peak(curves)
    for i in (0, 1):
        assert Line("", "", peaks["PME"][i], peaks["FMM"][i]).passes
    assert peaks["FMM"][0].value == pytest.approx(0.28, abs=0.005)
    assert peaks["FMM"][1].value == pytest.approx(2.7, abs=0.1)


def test_pairs_that_a_block_has_none_of_have_no_peak():
    """Its height would be zero without an error."""
    radii = np.arange(0.0, 0.9, 0.005)
    rows = np.tile(np.exp(-(((radii - 0.28) / 0.02) ** 2)), (series.BLOCKS, 1))
    rows[rows < 1e-3] = 0
    missing = rows.copy()
    missing[3] = 0
    assert dynamics.first_peak({"PME": (radii, rows), "FMM": (radii, rows)})
    assert dynamics.first_peak({"PME": (radii, rows), "FMM": (radii, missing)}) is None


def test_speed_is_that_of_all_parts_of_a_run(tmp_path):
    path = tmp_path / "md.log"
    part = """
               Core t (s)   Wall t (s)        (%)
       Time:      {0}       {0}      100.0
                 (ns/day)    (hour/ns)
Performance:      {1}        0.1
"""
    longer = part.replace("100.0\n", "100.0\n          1:30\n", 1)
    path.write_text(part.format(30.0, 100.0) + longer.format(90.0, 200.0))
    assert log.speed(path) == pytest.approx((30 * 100 + 90 * 200) / 120)


@pytest.mark.parametrize("cores, number", [(8, 3), (4, 4), (5, 1)])
def test_every_core_belongs_to_one_job(cores, number):
    dealt = jobs.shares(list(range(cores)), number)
    assert [core for share in dealt for core in share] == list(range(cores))
    assert {len(share) for share in dealt} <= {cores // number, cores // number + 1}


def test_jobs_run_at_a_time_on_cores_of_their_own():
    """Two threads meet, which have half of the cores each; this thread keeps all."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("one core")
    met = threading.Barrier(2, timeout=60)

    def cores_of(number):
        met.wait()
        return number, os.sched_getaffinity(0)

    first, second = jobs.do_all([lambda: cores_of(1), lambda: cores_of(2)], 2)
    assert (first[0], second[0]) == (1, 2)
    assert not first[1] & second[1]
    assert sorted(first[1] | second[1]) == cores == sorted(os.sched_getaffinity(0))


def test_after_an_error_no_job_is_begun():
    begun = []

    def fail():
        raise GmxError("ended")

    with pytest.raises(GmxError, match="ended"):
        jobs.do_all([fail, lambda: begun.append(1)], 1)
    assert not begun


def test_more_jobs_than_cores_are_refused():
    with pytest.raises(GmxError, match=r"--jobs 100000 is out of range"):
        jobs.do_all([], 100000)
    with pytest.raises(GmxError, match=r"--jobs 0 is out of range"):
        jobs.do_all([], 0)


class Program:
    """As a gmx of which no more is asked than its version."""

    def version(self):
        return {"GROMACS version": "2026.0-farfield", "Precision": "mixed"}


def shown(name, lines):
    """What page.html shows of a system, with these lines."""
    return {
        "title": name, "atoms": 22206, "file": f"{name}.tpr", "hash": 64 * "d", "box": "6.80 × 6.80 × 4.81",
        "ensemble": "md, 2 fs", "errors": {"PME": "3.9e-04", "FMM": "2.1e-04"},
        "speeds": {"PME": "712.0", "FMM": "824.0"},
        "failed": [], "untold": ["pressure"], "longer": 2.0, "passed": 20, "total": len(lines),
        "forces": [{"kind": kind, "numbers": 8 * ["3.9e-04"] + ["1.31"]} for kind in ("PME", "FMM")],
        "force_figures": [], "lines": lines, "run_figures": [], "settings": {}, "setup": "", "dt": "2",
        "drifts": [{**lines[0], "order": 8, "error": "2.1e-04"}],
    }


@pytest.fixture
def rendered():
    """The page of no systems at all: its head, notes and styles."""
    arguments = argparse.Namespace(length=50.0, jobs=1, command="farfield report run.tpr")
    return page.render([], Program(), arguments)


def test_the_page_says_what_each_bound_is_and_why(rendered):
    for _, why in BOUNDS.values():
        assert why in html.unescape(rendered)
    assert WHY_TOO_SHORT in html.unescape(rendered)


def test_the_page_is_made_for_print(rendered, tmp_path):
    try:
        import weasyprint  # noqa: F401
    except (ImportError, OSError) as reason:  # the package, or the libraries that it loads
        pytest.skip(f"no weasyprint: {reason}")
    page.make_pdf(rendered, tmp_path / "report.pdf")
    written = (tmp_path / "report.pdf").read_bytes()
    assert written.startswith(b"%PDF-") and b"%%EOF" in written[-16:]


@pytest.mark.parametrize("width", [1280, 1024])
def test_bounds_and_verdicts_are_visible(width):
    """The documented lines, which have long numbers, on screens so wide."""
    try:
        from weasyprint import HTML
        from weasyprint.formatting_structure.boxes import TableCellBox
    except (ImportError, OSError) as reason:
        pytest.skip(f"no weasyprint: {reason}")
    lines = [
        Line(r["title"], r["unit"], *(series.Estimate(*r[kind]) for kind in ("PME", "FMM")), r["kind"])
        for r in results.read(ROOT / "tests/bench/results/large_report.json")["lines"]
        if r["system"] == "protein-npt"
    ]
    system = shown("protein-npt", [page.of_line(line) for line in lines])
    text = page.render([system], Program(), argparse.Namespace(length=50.0, jobs=1, command="farfield report run.tpr"))
    text = text.replace("size: A4; margin: 16mm 14mm", f"size: {width}px 20000px; margin: 0")
    (screen,) = HTML(string=text, media_type="screen").render().pages
    cells = [box for box in screen._page_box.descendants() if isinstance(box, TableCellBox)]
    verdicts = [box for box in cells if "verdict" in box.element.get("class", "")]
    assert len(verdicts) == len(lines) + 1  # and one of drifts
    # What overflow-x hides, too, lies to the right
    assert max(box.position_x + box.margin_width() for box in cells) <= width


def test_print_says_what_it_needs(rendered, tmp_path, monkeypatch):
    """As without the package: Python raises ImportError for what is None."""
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(GmxError, match="pip install weasyprint"):
        page.make_pdf(rendered, tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()


def test_documented_results_are_what_lines_say_of_their_values():
    """Differences, bounds and verdicts follow from values, errors, and what is known or wanted."""
    found = results.read(ROOT / "tests/bench/results/large_report.json")
    for record in found["lines"]:
        demands = {"known": record.get("known", 0.0), "wanted": found["accuracy"]}
        estimates = (series.Estimate(*record[kind]) for kind in ("PME", "FMM"))
        again = Line(record["title"], record["unit"], *estimates, record["kind"], **demands).record()
        assert again == {name: value for name, value in record.items() if name != "system"}
