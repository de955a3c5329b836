# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures one system with PME and with FMM."""

import hashlib
import json
import shlex
import time

import numpy as np

from ..gromacs import log, tpr
from ..gromacs.mdp import FMM
from ..gromacs.program import GmxError
from ..tune import settings
from ..tune.tune import check, given, standard_pme
from . import drift, dynamics, forces, series
from .lines import Line

# Frames of a trajectory and of the energy file: this often, ps, or so many in a short run and at most so
# many in a long one
FRAME_INTERVAL, ENERGY_INTERVAL, FRAMES, MOST_FRAMES, MOST_ENERGIES = 0.5, 0.2, 100, 1000, 10000


class Comparison:
    """FMM beside PME on one run input file: errors of forces, runs, and the lines that compare averages."""

    def __init__(self, gmx, name, path, folder, arguments, say):
        self.gmx = gmx
        self.name = name
        self.path = path
        self.arguments = arguments
        self.say = say
        self.parameters = tpr.parameters(gmx, path)
        check(self.parameters, path)
        if not (arguments.resume or arguments.overwrite) and any(folder.glob("run-*.edr")):
            raise GmxError(f"{folder} has runs: --resume goes on with them, --overwrite makes them anew")
        folder.mkdir(parents=True, exist_ok=True)
        self.run_input = tpr.RunInput(gmx, path, folder, tuple(shlex.split(arguments.mdrun)))
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
        self.lines, self.curves, self.peaks, self.speeds = [], {}, {}, {}
        # By which the methods differ at the starting structure: {title of a line: so much}
        self.known = {}
        self.runs = {}
        self.rows = []  # of drift.Row

    def measure_forces(self):
        """Errors at the starting structure."""
        self.say(f"{self.name}: forces of {self.atoms} atoms")
        self.references = forces.References(self.run_input, forces.STEPS)
        self.errors = {
            kind: self.references.errors(changes, forces.STEPS if kind == "FMM" else forces.STEPS[:1])
            for kind, changes in self.kinds.items()
        }
        # As asked for: the one line that is always there
        rms = {kind: series.Estimate(error.rms, 0.0) for kind, error in self.errors.items()}
        wanted = self.arguments.accuracy
        self.add("error of the forces", "relative", rms, "force error", wanted=wanted)

    def steps(self, interval, multiple=1):
        """Steps in so many ps, at least one multiple."""
        return max(1, round(interval / self.dt / multiple)) * multiple

    def run(self, kind):
        """A run with one method, and what is averaged over it."""
        run = self.simulate(kind)
        self.speeds[kind] = log.speed(run.folder / f"{run.name}.log")
        run.measure()
        return run

    @property
    def orders(self):
        """Those whose drift is measured here: at constant energy alone it tells of forces and integrator."""
        return self.arguments.orders if drift.is_at_constant_energy(self.parameters) else []

    def run_order(self, order):
        """The error of the forces of one order, with the cells of the run as asked for, and its drift."""
        cells = settings.chosen(self.errors["FMM"].log)
        changes = drift.of_order(self.kinds["FMM"], order, cells.size, cells.direct_range)
        name = f"order-{order}"
        error = self.references.errors(changes, forces.STEPS, f"error-{name}").rms
        self.prepare(name, changes, with_frames=False)
        return error, self.simulate(name).drift()

    @property
    def output(self):
        """How often frames and energies of a run are written, in steps."""
        length = self.arguments.length
        return {
            "nstxout": self.steps(max(min(FRAME_INTERVAL, length / FRAMES), length / MOST_FRAMES)),
            "nstenergy": self.steps(
                max(min(ENERGY_INTERVAL, length / FRAMES), length / MOST_ENERGIES), self.calculated
            ),
        }

    @property
    def calculated(self):
        return max(1, int(self.parameters["nstcalcenergy"]))

    @property
    def bytes(self):
        """Of the trajectories that are still to be written."""
        length = self.arguments.length
        if self.arguments.resume or not length > 0:
            return 0
        return len(self.kinds) * 12 * self.atoms * self.steps(length) // self.output["nstxout"]

    def prepare(self, kind, changes=None, with_frames=True):
        """Makes the run input file of a run; what does not fit shows here, before runs that take hours."""
        length, output = self.arguments.length, self.output
        if self.steps(length) < 2 * series.BLOCKS * max(output.values()):
            raise GmxError(
                f"--length {length:g} ps is too short for {2 * series.BLOCKS} energies of {self.path}, "
                f"which is written with nstcalcenergy = {self.calculated}"
            )
        name = f"run-{kind}"
        changes = {**(changes or self.kinds[kind]), **output, **({} if with_frames else {"nstxout": 0})}
        self.note(self.run_input.folder / f"{name}.json", {"changes": changes, "steps": self.steps(length)})
        self.run_input.changed(name, changes, self.steps(length))

    def simulate(self, kind):
        """The run that was prepared, of which nothing is measured yet but its length."""
        length, name, folder = self.arguments.length, f"run-{kind}", self.run_input.folder
        start = time.monotonic()
        if not (self.arguments.resume and dynamics.duration(folder / f"{name}.edr") > 0.99 * length):
            self.run_input.run(name, ["-cpi", f"{name}.cpt"] if self.arguments.resume else [])
        if (reached := dynamics.duration(folder / f"{name}.edr")) < 0.99 * length:
            raise GmxError(
                f"the run of {self.path} with {kind} ended after {reached:g} of {length:g} ps; "
                "--resume goes on with what is in the folder of --keep"
            )
        self.say(
            f"{self.name}: {length:g} ps with {kind}, {log.speed(folder / f'{name}.log'):.1f} ns/day, "
            f"{time.monotonic() - start:.0f} s"
        )
        temperature = float(self.parameters.get("ensemble-temperature", 0) or 0)
        coupling = self.parameters.get("pcoupltype", "").lower()
        run = dynamics.Trajectory(
            self.gmx, folder, name, self.atoms, temperature, length, self.output["nstxout"] * self.dt, coupling
        )
        if not run.temperature > 0:  # at constant energy
            run.temperature = float(np.mean(run.terms["Temperature"]))
        return run

    def note(self, path, made_with):
        """Writes what a run is made with; one that goes on has to have the same."""
        text = json.dumps(made_with, indent=1)
        if self.arguments.resume and path.exists() and path.read_text(encoding="utf-8") != text:
            raise GmxError(
                f"the run in {path.parent} was begun with other settings, those in {path.name}: "
                "--resume goes on with the same input, --length and --accuracy"
            )
        path.write_text(text, encoding="utf-8")

    def compare(self, runs):
        """Sets the lines that compare two runs, {kind: run}, and their curves of g(r)."""
        self.runs = runs
        # PME's energies have the rounding of mixed precision, at the start as in the mean of a run
        pme, fmm = self.errors["PME"], self.errors["FMM"]
        energy = abs(pme.coulomb - fmm.coulomb)
        pressure = pme.pressure - fmm.pressure
        self.known = {
            "potential energy": energy,
            "Coulomb energy": energy,
            "pressure": abs(np.trace(pressure)) / 3,
            **{f"pressure, {ab}": abs(pressure["xyz".index(ab[0]), "xyz".index(ab[1])]) for ab in dynamics.TENSOR},
        }
        self.add_common({kind: run.averages for kind, run in runs.items()})
        drifts = {kind: run.drift() for kind, run in runs.items()}
        self.add("drift of the conserved energy", "kT/ns per atom", drifts, "drift")
        for title in runs["PME"].curves:
            self.curves[title] = {kind: run.curves[title] for kind, run in runs.items()}
            self.peaks[title] = dynamics.first_peak(self.curves[title])
            if self.peaks[title] is None:
                continue
            for i, (what, unit) in enumerate((("position", "nm"), ("height", ""))):
                name = f"first peak of g(r), {title}: {what}"
                self.add(name, unit, {kind: peak[i] for kind, peak in self.peaks[title].items()})
        self.add_common({kind: run.of_water for kind, run in runs.items()})

    def compare_orders(self, found):
        """Sets the rows of orders, {order: (error, drift)}, beside the run with PME."""
        of_pme = self.runs["PME"].drift()
        self.rows = [
            drift.row(order, error, {"PME": of_pme, "FMM": of_order}, self.arguments.accuracy)
            for order, (error, of_order) in found.items()
        ]

    def add(self, title, unit, values, kind="average", **demands):
        """A line; values: {"PME": Estimate, "FMM": Estimate}."""
        if title in self.known:
            kind, demands = "energy", {"known": self.known[title]}
        self.lines.append(Line(title, unit, values["PME"], values["FMM"], kind, **demands))

    def add_common(self, estimates):
        """Lines of what both have; estimates: {kind: {(title, unit): Estimate}}."""
        for title, unit in estimates["PME"]:
            if (title, unit) in estimates["FMM"]:
                self.add(title, unit, {kind: of_kind[title, unit] for kind, of_kind in estimates.items()})

    @property
    def box_text(self):
        """Lengths of the box vectors at the start, nm."""
        *_, frame = tpr.trr.frames(self.run_input.folder / "reference.trr")
        box = np.array(frame.box).reshape(3, 3)
        lengths = " × ".join(f"{length:.2f}" for length in np.linalg.norm(box, axis=1))
        return lengths + ("" if np.count_nonzero(box) == 3 else " (triclinic)")

    @property
    def ensemble(self):
        """Integrator, time step, and what is coupled to the system."""
        p = self.parameters
        coupling = [p.get("tcoupl", "No"), p.get("pcoupl", "No")]
        if coupling[1].lower() != "no":
            coupling[1] += f" ({p['pcoupltype'].lower()})"
        return f"{p['integrator']}, {self.dt * 1000:g} fs, thermostat {coupling[0]}, barostat {coupling[1]}"

    @property
    def sha256(self):
        """Of the run input file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def record(self):
        """All that is known of the system and its lines, for the JSON file."""
        of_error = {
            kind: {
                "rms": error.rms,
                "rms_xyz": error.components.tolist(),
                "largest": float(error.lengths.max()),
                "coulomb_kJ_per_mol_atom": error.coulomb,
                "pressure_bar": error.pressure.tolist(),
            }
            for kind, error in self.errors.items()
        }
        logs = self.run_input.folder / "error.log"
        return {
            "name": self.name,
            "system": {
                "file": self.path.name,
                "sha256": self.sha256,
                "atoms": self.atoms,
                "box_nm": self.box_text,
                "ensemble": self.ensemble,
                "gpu": log.gpu(logs),
                "ns_per_day": self.speeds,
                "errors_at_start": of_error,
                "settings": self.kinds,
                "setup": log.setup(logs),
            },
            "lines": [line.record() for line in self.lines],
            "drifts": [{"dt_fs": 1000 * self.dt, **row.record()} for row in self.rows],
        }
