# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page: what was measured, as HTML without anything from the network."""

import hashlib
import shlex
import sys
import time
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from ..gromacs import log, machine
from ..gromacs.program import GmxError
from ..tune.tune import format_value
from . import figures, forces, series


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
    if system.lines:
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
    lines = [
        {
            "title": line.title,
            "unit": line.unit,
            "pme": line.pme,
            "fmm": line.fmm,
            "apart": f"{line.apart:.1f}",
            "passes": line.passes,
        }
        for line in system.lines
    ]
    failed = [line.title for line in system.lines if not line.passes]
    # FMM has to be as accurate as asked for: the one line that is always there
    if not fmm.rms <= system.arguments.accuracy:
        failed.append("error of the forces")
    p = system.parameters
    coupling = [p.get("tcoupl", "No"), p.get("pcoupl", "No")]
    return {
        "title": system.path.stem,
        "atoms": system.atoms,
        "file": system.path.name,
        "hash": hashlib.sha256(system.path.read_bytes()).hexdigest(),
        "box": system.box_text,
        "ensemble": f"{p['integrator']}, {system.dt * 1000:g} fs, thermostat {coupling[0]}, barostat {coupling[1]}",
        "errors": {kind: f"{error.rms:.1e}" for kind, error in system.errors.items()},
        "speeds": {kind: f"{system.speeds[kind]:.1f}" if system.speeds else "" for kind in system.kinds},
        "failed": failed,
        "passed": len(system.lines) + 1 - len(failed),
        "total": len(system.lines) + 1,
        "forces": error_rows,
        "force_figures": force_figures,
        "lines": lines,
        "run_figures": run_figures,
        "settings": {
            kind: {name: format_value(value) for name, value in changes.items()}
            for kind, changes in system.kinds.items()
        },
        "setup": "\n".join(log.setup(system.run_input.folder / "error.log")),
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
        tolerated=f"{series.TOLERATED:g}",
        command="farfield " + shlex.join(sys.argv[1:]),
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
