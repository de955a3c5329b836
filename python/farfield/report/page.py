# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page: what was measured, as HTML without anything from the network."""

import time
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from .. import results
from ..gromacs import log, machine
from ..gromacs.program import GmxError
from ..tune.tune import format_value
from . import figures, forces, series
from .lines import BOUNDS, TOO_SHORT, WHY_TOO_SHORT


def of_line(line):
    """What page.html shows of a Line."""
    # Cells may break before a sign, not behind it
    pme, fmm, difference = (str(value).replace("± ", "±\u00a0") for value in (line.pme, line.fmm, line.difference))
    bounded = line.bound_on.replace(" - ", "\u00a0−\u00a0")
    bound = f"{line.bound:.0f}" if line.bound >= 10 else f"{line.bound:.2g}"
    return {
        "title": line.title,
        "unit": line.unit,
        "pme": pme,
        "fmm": fmm,
        "difference": difference,
        "sigmas": "" if line.sigmas is None else f"{line.sigmas:+.1f}",
        "bound": f"{bounded} ≤\u00a0{bound}",
        "verdict": line.verdict,
    }


def of_system(system):
    """What page.html shows of a Comparison."""
    error_rows = []
    for kind, error in system.errors.items():
        numbers = [error.rms, *error.components, np.quantile(error.lengths, 0.99), error.lengths.max()]
        texts = [f"{value:.1e}" for value in numbers]
        texts += [f"{error.coulomb:+.1e}", f"{np.trace(error.pressure) / 3:+.2f}"]
        texts.append(f"{np.abs(error.pressure).max():.2f}")
        error_rows.append({"kind": kind, "numbers": texts})
    fmm = system.errors["FMM"]
    force_figures = [
        {
            "svg": Markup(figures.error_distribution(system.errors)),
            "caption": "Distribution of the errors of the forces.",
        }
    ]
    if fmm.to_faces is not None:
        force_figures.append(
            {
                "svg": Markup(figures.error_by_distance(fmm)),
                "caption": "FMM: errors by the place of a particle in its cell; dotted: RMS.",
            }
        )
    run_figures = []
    if system.runs:
        run_figures.append(
            {
                "svg": Markup(figures.conserved_energy(system.runs)),
                "caption": "Conserved energy, from its start.",
            }
        )
        for title, curves in system.curves.items():
            caption = f"Radial distribution function, {title}; grey: two standard errors of the difference."
            if system.peaks[title] is None:
                caption += " Pairs are too few to compare peaks."
            run_figures.append({"svg": Markup(figures.radial_distribution(title, curves)), "caption": caption})
    judged = [*system.lines, *(row.line for row in system.rows if row.judged)]
    verdicts = [line.verdict for line in judged]
    untold = [line for line in judged if line.verdict == TOO_SHORT]
    return {
        "title": system.name,
        "atoms": system.atoms,
        "file": system.path.name,
        "hash": system.sha256,
        "box": system.box_text,
        "ensemble": system.ensemble,
        "errors": {kind: f"{error.rms:.1e}" for kind, error in system.errors.items()},
        "speeds": {kind: f"{system.speeds[kind]:.1f}" if system.speeds else "" for kind in system.kinds},
        "failed": [line.title for line in judged if line.verdict == "beyond"],
        "untold": [line.title for line in untold],
        "longer": max((line.longer for line in untold), default=0.0),
        "passed": verdicts.count("within"),
        "total": len(judged),
        "forces": error_rows,
        "force_figures": force_figures,
        "lines": [of_line(line) for line in system.lines],
        "run_figures": run_figures,
        "drifts": [
            {**of_line(row.line), "order": row.order, "error": f"{row.error:.1e}", "verdict": row.verdict}
            for row in system.rows
        ],
        "dt": f"{1000 * system.dt:g}",
        "settings": {
            kind: {name: format_value(value) for name, value in changes.items()}
            for kind, changes in system.kinds.items()
        },
        "setup": "\n".join(log.setup(system.run_input.folder / "error.log")),
        "record": system.record(),
    }


def summary(systems, length):
    """What the verdicts are, in words; length: of the runs, ps."""
    failed = [f"{title} ({system['title']})" for system in systems for title in system["failed"]]
    untold = [f"{len(system['untold'])} of {system['title']}" for system in systems if system["untold"]]
    text = f"Beyond their bounds: {'; '.join(failed)}." if failed else ""
    if untold:
        longer = length * max(system["longer"] for system in systems)
        advice = f"; runs of {float(f'{longer:.1e}'):g} ps would" if np.isfinite(longer) else ""
        text += f" The runs are {TOO_SHORT} of some lines ({', '.join(untold)}){advice}."
    if not failed:
        text = f"All {'other ' if untold else ''}lines are within their bounds.{text}"
    return text


def render(systems, gmx, arguments):
    """The text of the page; systems: of_system() of each; arguments: of the command."""
    template = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(template)
    version = gmx.version()
    return page.render(
        systems=systems,
        summary=summary(systems, arguments.length),
        machine=machine.describe(),
        program=f"GROMACS {version['GROMACS version']}, {version['Precision']} precision",
        date=time.strftime("%Y-%m-%d"),
        length=f"{arguments.length:g}",
        jobs=arguments.jobs,
        positions=len(forces.STEPS),
        discarded=round(100 * series.DISCARDED),
        blocks=series.BLOCKS,
        bounds=BOUNDS,
        too_short=WHY_TOO_SHORT,
        colours={"within": "yes", "beyond": "no", TOO_SHORT: "open", "not asked for": "faint"},
        command=arguments.command,
    )


def write_record(path, systems, gmx, arguments):
    """The same for programs: the JSON file; systems: of_system() of each."""
    records = [system["record"] for system in systems]
    results.write(
        path,
        {
            "command": arguments.command,
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine.describe(),
            "versions": gmx.version(),
            "mdrun": arguments.mdrun,
            "length_ps": arguments.length,
            "accuracy": arguments.accuracy,
            "jobs": arguments.jobs,
            "bounds": {kind: {"on": on, "why": why} for kind, (on, why) in BOUNDS.items()},
            "systems": {record["name"]: record["system"] for record in records},
            **{
                kind: [{"system": record["name"], **line} for record in records for line in record[kind]]
                for kind in ("lines", "drifts")
            },
        },
    )


def weasyprint():
    """The package; raises GmxError where it is missing."""
    try:
        import weasyprint as package
    except (ImportError, OSError) as reason:
        raise GmxError(
            f"--pdf needs weasyprint ({reason}): pip install weasyprint, and of Debian "
            "libpango-1.0-0 libpangoft2-1.0-0"
        ) from None
    return package


def make_pdf(page, path):
    weasyprint().HTML(string=page).write_pdf(path)
