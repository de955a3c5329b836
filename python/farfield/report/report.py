# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs FMM and PME on each run input file and writes a page about both."""

import hashlib
import shlex
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup
from rich.console import Console

from ..gromacs import log, machine, tpr
from ..gromacs.program import Gmx, GmxError
from ..tune.settings import FMM
from ..tune.tune import check, format_value, given, standard_pme
from . import dynamics, figures, forces, series

# Frames of a trajectory and of the energy file: this often, ps, or so many in a run
FRAME_INTERVAL, ENERGY_INTERVAL, FRAMES = 0.5, 0.2, 100
OXYGEN = f"resname {' '.join(dynamics.WATERS)} and name {dynamics.OXYGENS}"
WATER = f"resname {' '.join(dynamics.WATERS)}"
# Selections whose pairs show the structure, where a system has both
PAIRS = {
    "oxygen of water": (OXYGEN, OXYGEN),
    "sodium and chloride": ("resname NA and name NA", "resname CL and name CL"),
}


class Report:
    """One system: what was measured of it, for the page."""

    def __init__(self, gmx, path, folder, arguments, say):
        self.gmx = gmx
        self.path = path
        self.arguments = arguments
        self.say = say
        self.parameters = tpr.parameters(gmx, path)
        check(self.parameters, path)
        self.run_input = tpr.RunInput(gmx, path, folder, tuple(arguments.mdrun.split()))
        self.atoms = int(self.parameters["atoms"])
        self.dt = float(self.parameters["dt"])
        self.kinds = {
            "PME": given(self.parameters) or standard_pme(self.parameters),
            # All that a file made with FMM may have set
            "FMM": {
                **FMM,
                "fmm-farfield-accuracy": arguments.accuracy,
                "fmm-farfield-order": -1,
                "fmm-farfield-direct-range": 0,
                "fmm-farfield-cell-size": 0,
                "fmm-farfield-m2l": "auto",
            },
        }
        self.lines, self.speeds = [], {}

    def measure_forces(self):
        """Errors at the starting structure."""
        self.say(f"{self.path.name}: forces of {self.atoms} atoms")
        references = forces.References(self.run_input, forces.STEPS)
        self.errors = {
            kind: references.errors(changes, forces.STEPS if kind == "FMM" else forces.STEPS[:1])
            for kind, changes in self.kinds.items()
        }

    def steps(self, interval, multiple=1):
        """Steps in so many ps, at least one multiple."""
        return max(1, round(interval / self.dt / multiple)) * multiple

    def run(self, kind, length):
        """One run of so many ps."""
        name = f"run-{kind}"
        calculated = max(1, int(self.parameters["nstcalcenergy"]))
        output = {
            "nstxout": self.steps(min(FRAME_INTERVAL, length / FRAMES)),
            "nstenergy": self.steps(min(ENERGY_INTERVAL, length / FRAMES), calculated),
        }
        if self.steps(length) < 2 * series.BLOCKS * max(output.values()):
            raise GmxError(
                f"--length {length:g} ps is too short for {2 * series.BLOCKS} energies of {self.path}, "
                f"which is written with nstcalcenergy = {calculated}"
            )
        self.run_input.changed(name, {**self.kinds[kind], **output}, self.steps(length))
        start = time.monotonic()
        path = self.run_input.run(name)
        self.speeds[kind] = log.speed(path)
        self.say(
            f"{self.path.name}: {length:g} ps with {kind}, {self.speeds[kind]:.1f} ns/day, "
            f"{time.monotonic() - start:.0f} s"
        )
        temperature = float(self.parameters.get("ensemble-temperature", 0) or 0)
        folder = self.run_input.folder
        run = dynamics.Trajectory(
            self.gmx, folder, name, self.atoms, temperature, length, output["nstxout"] * self.dt
        )
        if not run.temperature > 0:  # at constant energy
            run.temperature = float(np.mean(run.terms["Temperature"]))
        return run

    def measure_runs(self, length):
        """Averages over a run of each method."""
        self.runs = {kind: self.run(kind, length) for kind in self.kinds}
        averages = {kind: run.averages() for kind, run in self.runs.items()}
        for key in averages["PME"]:
            if key in averages["FMM"]:
                self.add(*key, {kind: averages[kind][key] for kind in averages})
        drifts = {k: run.drift() for k, run in self.runs.items()}
        self.add("drift of the conserved energy", "kT/ns per atom", drifts, is_error=True)
        self.curves = {}
        for title, selections in PAIRS.items():
            if all(map(self.count, selections)):
                self.curves[title] = {k: run.rdf(*selections) for k, run in self.runs.items()}
                peaks = dynamics.first_peak(self.curves[title])
                for i, (what, unit) in enumerate((("position", "nm"), ("height", ""))):
                    name = f"first peak of g(r), {title}: {what}"
                    self.add(name, unit, {k: peak[i] for k, peak in peaks.items()})
        if self.count(OXYGEN):
            name = "diffusion of water"
            self.add(name, "1e-5 cm²/s", {k: r.diffusion(OXYGEN) for k, r in self.runs.items()})
            if self.count(WATER) == self.atoms:
                volume = abs(np.linalg.det(np.array(self.box())))
                values = {k: r.dielectric_constant(volume) for k, r in self.runs.items()}
                self.add("dielectric constant, from dipole fluctuations", "", values)

    def add(self, title, unit, values, is_error=False):
        self.lines.append(dynamics.Line(title, unit, values["PME"], values["FMM"], is_error))

    def count(self, selection):
        """Number of atoms that are selected."""
        folder = self.run_input.folder
        words = ("-s", "run-PME.tpr", "-select", selection, "-os", "size.xvg")
        done = self.gmx.attempt("select", *words, folder=folder)
        if "never matches any atoms" in " ".join(done.text.split()):
            return 0
        done.ok()
        return int(float((folder / "size.xvg").read_text().split()[-1]))

    def box(self):
        frame = next(iter(tpr.trr.frames(self.run_input.folder / "run-PME.trr")))
        return np.array(frame.box).reshape(3, 3)

    def for_page(self):
        """What page.html shows."""
        error_rows = []
        for kind, error in self.errors.items():
            numbers = [error.rms, *error.components, np.quantile(error.lengths, 0.99), error.lengths.max()]
            texts = [f"{value:.1e}" for value in numbers]
            texts += [f"{error.coulomb:+.1e}", f"{np.trace(error.pressure) / 3:+.2f}"]
            error_rows.append({"kind": kind, "numbers": texts})
        fmm = self.errors["FMM"]
        force_figures = [
            {
                "svg": Markup(figures.error_distribution(self.errors)),
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
        if self.lines:
            run_figures.append(
                {
                    "svg": Markup(figures.conserved_energy(self.runs)),
                    "caption": "Conserved energy, from its start.",
                }
            )
            for title, curves in self.curves.items():
                run_figures.append(
                    {
                        "svg": Markup(figures.radial_distribution(title, curves)),
                        "caption": f"Radial distribution function, {title}.",
                    }
                )
        lines = [
            {
                "title": line.title,
                "unit": line.unit,
                "pme": line.pme,
                "fmm": line.fmm,
                "apart": f"{line.apart:.1f}",
                "passes": line.passes,
            }
            for line in self.lines
        ]
        # FMM has to be as accurate as asked for: the one line that is always there
        passes = [line.passes for line in self.lines] + [fmm.rms <= self.arguments.accuracy]
        p = self.parameters
        coupling = [p.get("tcoupl", "No"), p.get("pcoupl", "No")]
        return {
            "title": self.path.stem,
            "atoms": self.atoms,
            "file": self.path.name,
            "hash": hashlib.sha256(self.path.read_bytes()).hexdigest()[:16],
            "box": self.box_text,
            "ensemble": f"{p['integrator']}, {self.dt * 1000:g} fs, thermostat {coupling[0]}, barostat {coupling[1]}",
            "errors": {kind: f"{error.rms:.1e}" for kind, error in self.errors.items()},
            "speeds": {kind: f"{self.speeds[kind]:.1f}" if self.speeds else "" for kind in self.kinds},
            "passed": sum(passes),
            "total": len(passes),
            "forces": error_rows,
            "force_figures": force_figures,
            "lines": lines,
            "run_figures": run_figures,
            "settings": {
                kind: {name: format_value(value) for name, value in changes.items()}
                for kind, changes in self.kinds.items()
            },
            "setup": "\n".join(log.setup(self.run_input.folder / "error.log")),
        }

    @property
    def box_text(self):
        *_, frame = tpr.trr.frames(self.run_input.folder / "reference.trr")
        box = np.array(frame.box).reshape(3, 3)
        lengths = " × ".join(f"{length:.2f}" for length in np.linalg.norm(box, axis=1))
        return lengths + ("" if np.count_nonzero(box) == 3 else " (triclinic)")


def summary(systems):
    """One sentence."""
    failed = [s["title"] for s in systems if s["passed"] < s["total"]]
    if not failed:
        return "All lines are within their bounds."
    return f"Beyond their bounds are lines of: {', '.join(failed)}."


def add_parser(subparsers):
    """The command "report"."""
    parser = subparsers.add_parser(
        "report",
        help="compare FMM with PME on systems of yours, as a page",
        description="Compares FMM with PME for run input files: errors of forces, energies and "
        "pressures at the starting structure against double precision; averages over a run of each. "
        "Writes one page that needs no network. Start from equilibrated systems.",
    )
    parser.add_argument("tpr", type=Path, nargs="+", metavar="FILE.tpr", help="made with PME or with FMM")
    parser.add_argument("--output", type=Path, default=Path("report.html"), help="the page (report.html)")
    parser.add_argument("--pdf", type=Path, metavar="FILE", help="the same for print; needs weasyprint")
    parser.add_argument("--length", type=float, default=100, help="of the runs, ps (100); 0: none")
    parser.add_argument("--accuracy", type=float, default=3e-4, help="wanted of FMM (3e-4)")
    parser.add_argument("--gmx", type=Path, default=Path("gmx"), help="the patched program (gmx)")
    parser.add_argument("--mdrun", default="", metavar="FLAGS", help='of mdrun, as "-ntomp 8 -nb gpu"')
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep inputs, logs and trajectories")
    parser.set_defaults(run=run)


def make_pdf(page, path):
    try:
        import weasyprint
    except (ImportError, OSError) as reason:
        raise GmxError(
            f"--pdf needs weasyprint ({reason}): pip install weasyprint, and of Debian "
            "libpango-1.0-0 libpangoft2-1.0-0"
        ) from None
    weasyprint.HTML(string=page).write_pdf(path)


def run(arguments):
    console = Console(soft_wrap=True, highlight=False)
    gmx = Gmx(arguments.gmx)
    systems = []
    for index, path in enumerate(arguments.tpr):
        keep = arguments.keep / f"{index + 1}-{path.stem}" if arguments.keep else None
        with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            report = Report(gmx, path, folder, arguments, console.print)
            report.measure_forces()
            if arguments.length > 0:
                report.measure_runs(arguments.length)
            systems.append(report.for_page())
    template = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(template)
    version = gmx.version()
    text = page.render(
        systems=systems,
        summary=summary(systems),
        machine=machine.describe(),
        program=f"GROMACS {version['GROMACS version']}, {version['Precision']} precision",
        date=time.strftime("%Y-%m-%d"),
        length=f"{arguments.length:g}",
        positions=len(forces.STEPS),
        discarded=round(100 * series.DISCARDED),
        blocks=series.BLOCKS,
        tolerated=f"{series.TOLERATED:g}",
        command="farfield " + shlex.join(sys.argv[1:]),
    )
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"{summary(systems)} {arguments.output}")
    if arguments.pdf:
        make_pdf(text, arguments.pdf)
        console.print(str(arguments.pdf))
