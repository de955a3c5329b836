# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of measurements in pages, from the files of results.

    python3 -m tests.bench.page_tables

writes every block of a page that stands between these lines anew; NAME is that of a file with several
tables. tests/mdrun/test_pages.py fails where a page has something else.

    <!-- results: FILE.json [NAME] -->
    <!-- end of results -->
"""

import argparse
import math
import os
import re
from pathlib import Path

from farfield.report.series import describe
from tests.accuracy import summary
from tests.bench import mdrun_layouts, report_tables, results, tune_search
from tests.bench.figures import accuracy, cases, evaluations, m2l, near_field, points

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "gromacs_patch/bugs/README.md"])
BLOCK = re.compile(r"(<!-- results: (\S+)(?: (\S+))? -->\n).*?(<!-- end of results -->\n)", re.DOTALL)


def spread(pair):
    """A median and half the distance of the extremes: three digits of the former, and what tells the latter from 0."""
    value, half = pair
    digits = 2 - math.floor(math.log10(abs(value)))
    if half > 0:
        known = -math.floor(math.log10(half))
        digits = min(max(digits, known), known + 1)
    digits = max(0, digits)
    return f"{value:.{digits}f} ± {half:.{digits}f}"


def short(value):
    """Three digits."""
    return f"{float(f'{value:.3g}'):g}"


# Each takes the content of a file, and the name of the table.


def recorded(content, name):
    """Figures that no program writes."""
    return cases.markdown(content["tables"][name]["columns"], content["tables"][name]["rows"])


def of_accuracy(content, name):
    text = cases.markdown(summary.TITLES, summary.rows(content["cases"]))
    return f"{summary.counted(content['cases'])}\n\n{text}"


def of_vacuum(content, name):
    rows = []
    for system, record in content["systems"].items():
        row = [system, record["atoms"], spread(record["pairs_ns_per_day"])]
        for kind in ("FMM_3e-04", "FMM_1e-05"):
            speed, ratio = (spread(record[key]) for key in (f"{kind}_ns_per_day", f"{kind}_over_pairs".lower()))
            row += [speed, ratio, f"{record[f'{kind}_force_error']:.1e}"]
        rows.append(row)
    accurate = [f"{title}{request}" for request in ("", ", 1e-5") for title in ("FMM", "ratio", "error")]
    return cases.markdown(["system", "atoms", "all pairs", *accurate], rows)


def of_slabs(content, name):
    rows = []
    for system, record in content["systems"].items():
        row = [system, record["atoms"]]
        for kind in ("PME", "FMM"):
            error = record.get(f"{kind}_force_error")
            row += [spread(record[f"{kind}_ns_per_day"]), f"{error:.1e}" if error else ""]
        rows.append([*row, spread(record["fmm_over_pme"])])
    return cases.markdown(["system", "atoms", "PME", "error", "FMM", "error", "ratio"], rows)


def of_dispersion(content, name):
    """Speeds as multiples of those with a cut-off, round by round."""
    rows = []
    for system, record in content["systems"].items():
        kinds = record["ns_per_day"]
        usual = next(iter(kinds.values()))
        for kind, speeds in kinds.items():
            ratios = [a / b for a, b in zip(speeds, usual)]
            # one round has no spread
            ratio = spread(results.median_and_spread(ratios)) if len(ratios) > 1 else f"{ratios[0]:.3g}"
            error = record["errors"].get(kind)
            rows.append([system, record["atoms"], kind, f"{error:.1e}" if error else "", ratio])
    return cases.markdown(["system", "atoms", "Lennard-Jones interactions", "error", "speed"], rows)


def of_mdrun(content, name):
    """All kinds, or the best of PME and of FMM."""
    rows = []
    for system, record in content["systems"].items():
        kinds = record["kinds"]
        row = [record.get("title", system), record["atoms"]]
        shown = ("PME", "PME list 200", "PME tuned", "FMM", "FMM list 200")
        for kind in (record["best"]["PME"], record["best"]["FMM"]) if name == "best" else shown:
            if kind not in kinds:
                row.append("")
                continue
            speed = spread((kinds[kind]["median"], kinds[kind]["half_range"]))
            row.append(f"{speed} (tuned)" if name == "best" and "tuned" in kind else speed)
        rows.append([*row, spread((record["fmm_over_pme"], record["fmm_over_pme_half_range"]))])
    titles = ["PME, list 100", "PME, list 200", "PME, tuned", "FMM, list 100", "FMM, list 200"]
    if name == "best":
        titles = ["PME", "FMM"]
    return cases.markdown(["system", "atoms", *titles, "FMM / PME"], rows)


def of_layouts(content, name):
    """The best layout of each method; cores, gpus or replicas."""
    rows = []
    for system, record in content["systems"].items():
        for row in record["rows"]:
            kind = "replicas" if "replicas" in row else "gpus" if "gpus" in row else "cores"
            if kind != name or "fmm_over_pme" not in row:
                continue
            cells = [system, record["atoms"], mdrun_layouts.title(row)]
            for method in ("FMM", "PME"):
                best = row["kinds"][row["best"][method]]
                cells.append(f"{spread((best['median'], best['half_range']))} ({best['layout']})")
            rows.append([*cells, spread((row["fmm_over_pme"], row["fmm_over_pme_half_range"]))])
    return cases.markdown(["system", "atoms", "on", "FMM (ranks x threads)", "PME", "FMM / PME"], rows)


def of_points(content, name):
    """Times at equal errors, or all that was measured."""
    if name in ("forces", "fields"):
        return dict(points.tables(content["records"]))[f"Times at equal errors of the {name}"]
    rows = []
    keys = ("kind", "count", "method")
    for record in sorted(points.measured(content["records"]), key=lambda record: [record[key] for key in keys]):
        alone = record.get("fields_alone")
        row = [*(record[key] for key in keys), record["asked"]]
        row += [f"{record[error]:.1e}" for error in ("potential", "field")]
        row += [short(1e3 * record["seconds"]), short(1e3 * alone[0]) if alone else "", short(record["first"])]
        rows.append([*row, short(1e3 * floor) if (floor := points.floor_of(record)) else ""])
    errors, times = ("potential", "field"), ("ms", "fields alone, ms", "first, s", "floor, ms")
    return cases.markdown(["points", "number", "method", "asked", *errors, *times], rows)


def of_batches(content, name):
    """On a GPU with columns for tensors that lie there."""
    columns = {
        "batch": "`Batch`",
        "tensors": "`CoulombBatch`",
        "row": "`CoulombBatch`, asynchronous",
        "first": "`Solver`, new box",
        "next": "`Solver`, same box",
    }
    rates = {kind: f"{kind}_atoms_per_second" for kind in columns}
    kinds = [kind for kind in columns if rates[kind] in content["cases"][0]]
    rows = []
    for case in content["cases"]:
        values = [case[rates[kind]] for kind in kinds]
        texts = (f"{1e-3 * value:.3g}" if value < 1e6 else f"{1e-3 * value:.0f}" for value in values)
        rows.append([case["dtype"], case["atoms"], *texts, short(case[rates["batch"]] / case[rates["first"]])])
    return cases.markdown(["", "atoms a system", *(columns[kind] for kind in kinds), "`Batch` / new box"], rows)


def of_training(content, name):
    rows = []
    for case in content["cases"]:
        own, plain = (case[f"{kind}_atoms_per_second"] for kind in ("batch", "plain"))
        rows.append([case["dtype"], case["atoms"], short(1e-3 * own), short(1e-3 * plain), short(own / plain)])
    return cases.markdown(["", "atoms a system", "`CoulombBatch`", "sum in PyTorch", "ratio"], rows)


def of_kernels(content, name):
    """The same accuracy is asked of both; errors are what they are."""
    found = {}
    for row in content["rows"]:
        found.setdefault((row["kind"], row["kernel"], row["asked"]), {})[row["method"]] = row
    rows = []
    for (kind, kernel, asked), runs in found.items():
        own, single, other = (runs.get(method) for method in ("farfield", "farfield, float32", "FMM3D"))
        rows.append([kind, kernel, f"{asked:.0e}", short(own["us"]), short(single["us"]) if single else "-",
                     short(own["first_us"]), f"{own['error']:.1e}",
                     *([short(other["us"]), f"{other['error']:.1e}", short(other["us"] / own["us"])] if other
                       else ["-"] * 3)])
    return cases.markdown(["points", "kernel", "asked", "farfield", "float32", "first call", "error", "FMM3D", "error",
                           "FMM3D / farfield"], rows)


def of_tangents(content, name):
    """errors, times, induction"""
    kinds_of_times = {"gradients": "with gradients", "hessians": "and second derivatives", "dipoles": "with dipoles",
                      "quadrupoles": "and quadrupoles", "tangent": "a tangent"}
    measured = [kind for kind in kinds_of_times if f"{kind}_over_forces" in content["cases"][0]]
    rows = []
    for case in content["cases"]:
        if name == "errors":
            kinds = ("forces", "tangent_forces", "tangent_potentials")
            values = [f"{case[f'error_of_{kind}']:.1e}" for kind in kinds]
        elif name == "induction":
            own = case["induction"]
            values = [short(own["forces_ms"]), own["iterations"], short(own["over_forces"])]
        else:
            values = [short(case["forces_ms"]), *(short(case[f"{kind}_over_forces"]) for kind in measured)]
        rows.append([case["dtype"], case["atoms"], f"{case['accuracy']:.0e}", *values])
    titles = {
        "errors": ["forces", "tangents of forces", "tangents of potentials"],
        "times": ["forces, ms", *(kinds_of_times[kind] for kind in measured)],
        "induction": ["forces, ms", "iterations", "multiple of the time for forces"],
    }
    return cases.markdown(["", "atoms", "accuracy", *titles[name]], rows)


def of_peers(content, _):
    """Times and errors of all that was measured; multiples of our time."""
    titles = {"nvalchemi_ewald": "nvalchemi, Ewald", "nvalchemi_pme": "nvalchemi, PME", "torch_pme": "torch-pme"}
    others = [name for name in titles if name in content["cases"][0]]
    rows = []
    for case in content["cases"]:
        own = case["farfield"]
        row = [case["dtype"], case["atoms"], short(own["ms"]), f"{own['error_of_forces']:.1e}"]
        for name in others:
            other = case[name]
            row += [short(other["ms"]), f"{other['error_of_forces']:.1e}", short(other["ms"] / own["ms"])]
        rows.append(row)
    columns = [column for name in others for column in (f"{titles[name]}, ms", "error", "multiple")]
    return cases.markdown(["", "atoms", "farfield, ms", "error", *columns], rows)


def drift(case):
    return describe(case["drift_kT_per_ns_atom"], case["drift_error"])


def of_energy(content, name):
    """error-FMM, error-PME: drift against the error; default, equal: against step and constraints."""
    if name.startswith("error"):
        found = {}
        for case in content["cases"]:
            if case["section"].startswith("error") and case["method"] == name[-3:]:
                found.setdefault(case["label"], []).append(case)
        rows = [[label, f"{one['force_error']:.1e}", drift(one), drift(two)] for label, (one, two) in found.items()]
        return cases.markdown(["", "error of the forces", "drift at 1 fs", "at 2 fs"], rows)
    found = {}
    for case in content["cases"]:
        section, precision = case["section"].rsplit(", ", 1)
        if not section.startswith("error") and section.startswith("equal") == (name == "equal"):
            key = section.removeprefix("equal, "), precision, case["label"]
            found.setdefault(key, {})[case["method"]] = drift(case)
    rows = [[*key, both["FMM"], both["PME"]] for key, both in found.items()]
    return cases.markdown(["water", "precision", "step", "FMM", "PME"], rows)


def of_evaluations(content, name):
    """Of the settings that are taken by themselves, as graphs, forces alone."""
    rows = [[case["system"], case["atoms"], f"{case['box']:.0f}", f"{case['setup']['engine']}, {cases.setting(case)}",
             *(evaluations.microseconds(case[request]["graph"]) for request in ("forces", "with_totals"))]
            for case in content["cases"] if not case["cells_per_edge"] and case["precision"] == "float"]
    return cases.markdown(["system", "atoms", "box, nm", "setting", "forces, us", "with energy and virial, us"], rows)


def of_m2l(content, name):
    """One order, 16^3 cells."""
    curves = m2l.curves_of(content["cases"], "float", 16)
    rows = [[m2l.label_of(key), f"{1e6 * case['seconds']:.0f}"]
            for key, of_orders in curves.items() for order, case in of_orders if order == 8]
    return cases.markdown(["", "us"], rows)


def of_gpu_file(content, name):
    """All tables of a file of farfield_gpu_benchmark."""
    found = cases.load([results.FOLDER / f"gpu_{content['benchmark']}.json"])
    whole = found["total"] + found["droplets"]
    parts = (m2l.tables(found["m2l"]), evaluations.total_table(whole), evaluations.stage_tables(whole),
             near_field.table(found["p2p"]), accuracy.table(found["accuracy"]))
    return "\n".join(f"## {title}\n\n{body}" for part in parts for title, body in part)


def of_report(content, name):
    return report_tables.table(content["lines"], name.split("+"))


def of_tune(content, name):
    return tune_search.table(content["cases"])


MAKERS = {
    "accuracy_suite.json": of_accuracy,
    "vacuum_speed.json": of_vacuum,
    "slab_speed.json": of_slabs,
    "slab_gpu.json": of_slabs,
    "mdrun_gpu.json": of_mdrun,
    **{f"mdrun_layouts{cores}.json": of_layouts for cores in ("", "_2", "_16", "_32")},
    "open_speed.json": of_points,
    "points_equal.json": of_points,
    "points_gpu.json": of_points,
    "points_h200.json": of_points,
    "batch_speed.json": of_batches,
    "batch_speed_gpu.json": of_batches,
    "batch_training.json": of_training,
    "kernel_speed.json": of_kernels,
    "dispersion.json": of_dispersion,
    "dispersion_gpu.json": of_dispersion,
    "tangents.json": of_tangents,
    "tangents_gpu.json": of_tangents,
    "peers_single.json": of_peers,
    "peers_batches.json": of_peers,
    "peers_batches_in_a_row.json": of_peers,
    "energy_conservation.json": of_energy,
    "gpu_total.json": of_evaluations,
    "gpu_droplets.json": of_evaluations,
    "gpu_m2l.json": of_m2l,
    "large_report.json": of_report,
    "tune_search.json": of_tune,
}


def source(entry, file, page):
    """Where figures are from: a line below the table."""
    machine = entry["machine"]
    if isinstance(machine, dict):
        machine = machine["gpu"]["name"]
    machine = re.sub(r", Linux [^;]*", "", machine)
    machine = ", ".join([machine, *sorted(set(entry.get("gpus", ())))])
    by_hand, command = re.fullmatch("(by hand: )?(.*)", entry["command"]).groups(default="")
    command = by_hand + "; ".join(f"`{one}`" for one in command.split("; "))  # a merged file has several
    return (f"*{entry['date'].split('T')[0]}, revision {entry['revision']}. Machine: {machine}. Command: {command}. "
            f"Numbers: [{file}]({os.path.relpath(results.FOLDER / file, page.parent)}).*")


def block(file, name, page):
    """What stands between the lines of a block."""
    content = results.read(results.FOLDER / file)
    if "tables" in content:
        text, entry = recorded(content, name), content["tables"][name]
    else:
        make = of_gpu_file if name == "all" else MAKERS[file]
        text, entry = make(content, name), content
    return f"{text.rstrip()}\n\n{source(entry, file, page)}\n\n"


def with_tables(page):
    """The text of a page with the tables that its files of results give."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{block(found[2], found[3], page)}{found[4]}", page.read_text())


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for page in PAGES:
        text = with_tables(page)
        if text != page.read_text():
            page.write_text(text)
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
