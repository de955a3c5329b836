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
from .lines import BOUNDS


def of_line(line):
    """What page.html shows of a Line."""
    # Lines of the page may break before the sign, not within this
    bounded = line.bound_on.replace(" - ", "\u00a0−\u00a0")
    return {
        "title": line.title,
        "unit": line.unit,
        "pme": line.pme,
        "fmm": line.fmm,
        "difference": line.difference,
        "sigmas": "" if line.sigmas is None else f"{line.sigmas:+.1f}",
        "bound": f"{bounded} ≤\u00a0{line.bound:.2g}",
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
    failed = [line.title for line in judged if not line.passes]
    return {
        "title": system.name,
        "atoms": system.atoms,
        "file": system.path.name,
        "hash": system.sha256,
        "box": system.box_text,
        "ensemble": system.ensemble,
        "errors": {kind: f"{error.rms:.1e}" for kind, error in system.errors.items()},
        "speeds": {kind: f"{system.speeds[kind]:.1f}" if system.speeds else "" for kind in system.kinds},
        "failed": failed,
        "passed": len(judged) - len(failed),
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


def summary(systems):
    """One sentence."""
    failed = [f"{title} ({system['title']})" for system in systems for title in system["failed"]]
    if not failed:
        return "All lines are within their bounds."
    return f"Beyond their bounds: {'; '.join(failed)}."


def render(systems, gmx, arguments):
    """The text of the page; systems: of_system() of each; arguments: of the command."""
    template = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(template)
    version = gmx.version()
    return page.render(
        systems=systems,
        summary=summary(systems),
        machine=machine.describe(),
        program=f"GROMACS {version['GROMACS version']}, {version['Precision']} precision",
        date=time.strftime("%Y-%m-%d"),
        length=f"{arguments.length:g}",
        jobs=arguments.jobs,
        positions=len(forces.STEPS),
        discarded=round(100 * series.DISCARDED),
        blocks=series.BLOCKS,
        bounds=BOUNDS,
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


def make_pdf(page, path):
    try:
        import weasyprint
    except (ImportError, OSError) as reason:
        raise GmxError(
            f"--pdf needs weasyprint ({reason}): pip install weasyprint, and of Debian "
            "libpango-1.0-0 libpangoft2-1.0-0"
        ) from None
    weasyprint.HTML(string=page).write_pdf(path)
