# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures one system with PME and with FMM."""

import json
import time

import numpy as np

from ..gromacs import log, tpr
from ..gromacs.mdp import FMM
from ..gromacs.program import GmxError
from ..tune.tune import check, given, standard_pme
from . import dynamics, forces, series

# Frames of a trajectory and of the energy file: this often, ps, or so many in a short run and at most so
# many in a long one
FRAME_INTERVAL, ENERGY_INTERVAL, FRAMES, MOST_FRAMES = 0.5, 0.2, 100, 2000
OXYGEN = f"resname {' '.join(dynamics.WATERS)} and name {dynamics.OXYGENS}"
WATER = f"resname {' '.join(dynamics.WATERS)}"
# Selections whose pairs show the structure, where a system has both
PAIRS = {
    "oxygen of water": (OXYGEN, OXYGEN),
    "sodium and chloride": ("resname NA and name NA", "resname CL and name CL"),
}


class Comparison:
    """FMM beside PME on one run input file: errors of forces, runs, and the lines that compare averages."""

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
            "nstxout": self.steps(max(min(FRAME_INTERVAL, length / FRAMES), length / MOST_FRAMES)),
            "nstenergy": self.steps(min(ENERGY_INTERVAL, length / FRAMES), calculated),
        }
        if self.steps(length) < 2 * series.BLOCKS * max(output.values()):
            raise GmxError(
                f"--length {length:g} ps is too short for {2 * series.BLOCKS} energies of {self.path}, "
                f"which is written with nstcalcenergy = {calculated}"
            )
        folder = self.run_input.folder
        changes = {**self.kinds[kind], **output}
        self.note(folder / f"{name}.json", {"changes": changes, "steps": self.steps(length)})
        self.run_input.changed(name, changes, self.steps(length))
        start = time.monotonic()
        if not (self.arguments.resume and dynamics.duration(folder / f"{name}.edr") > 0.99 * length):
            self.run_input.run(name, ["-cpi", f"{name}.cpt"] if self.arguments.resume else [])
        if (reached := dynamics.duration(folder / f"{name}.edr")) < 0.99 * length:
            raise GmxError(
                f"the run of {self.path} with {kind} ended after {reached:g} of {length:g} ps; "
                "--resume goes on with what is in the folder of --keep"
            )
        self.speeds[kind] = log.speed(folder / f"{name}.log")
        self.say(
            f"{self.path.name}: {length:g} ps with {kind}, {self.speeds[kind]:.1f} ns/day, "
            f"{time.monotonic() - start:.0f} s"
        )
        temperature = float(self.parameters.get("ensemble-temperature", 0) or 0)
        run = dynamics.Trajectory(
            self.gmx, folder, name, self.atoms, temperature, length, output["nstxout"] * self.dt
        )
        if not run.temperature > 0:  # at constant energy
            run.temperature = float(np.mean(run.terms["Temperature"]))
        return run

    def note(self, path, settings):
        """Writes what a run is made with; one that goes on has to have the same."""
        text = json.dumps(settings, indent=1)
        if self.arguments.resume and path.exists() and path.read_text(encoding="utf-8") != text:
            raise GmxError(
                f"the run in {path.parent} was begun with other settings, those in {path.name}: "
                "--resume goes on with the same input, --length and --accuracy"
            )
        path.write_text(text, encoding="utf-8")

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

    @property
    def box_text(self):
        """Lengths of the box vectors at the start, nm."""
        *_, frame = tpr.trr.frames(self.run_input.folder / "reference.trr")
        box = np.array(frame.box).reshape(3, 3)
        lengths = " × ".join(f"{length:.2f}" for length in np.linalg.norm(box, axis=1))
        return lengths + ("" if np.count_nonzero(box) == 3 else " (triclinic)")
