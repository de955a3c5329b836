# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether runs with FMM sample what they should, by physical_validation, beside PME.

    python3 -m tests.bench.ensembles --length 200

The package (PyPI, physical_validation; Merz and Shirts, PLoS ONE 13, e0202764 (2018),
doi:10.1371/journal.pone.0202764) judges what a code says of itself:

    kinetic energy   its distribution has the mean and the width of the temperature
    temperature      potential energies at two temperatures are distributed as Boltzmann has it
    pressure         volumes at two pressures likewise
    integrator       fluctuations of the conserved energy fall with the square of the time step

The first three are deviations in standard errors, of which 3 or less is what chance leaves. The last is
the largest deviation from the ratio of the squares of the time steps, relative to it.

The package refuses pairs of runs that have too few independent energies or volumes to compare. Such a pair
goes on, up to four times the length; if that is not enough, its line says so, and the others are judged.
Environment: see tests/support/gmx/environment.py.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from farfield.gromacs import machine
from tests.bench import nve_drift, results
from tests.support.gmx import environment, mdp, simulation, systems

TEMPERATURES = (298.0, 303.0)  # K
PRESSURES = (1.0, 151.0)  # bar
# ps. At 1 fs fluctuations, 0.36 kJ/mol, are no longer large beside what errors of the forces at the default accuracy
# make the energy wander by in NVE_LENGTH, 0.2 kJ/mol
TIME_STEPS = (0.0028, 0.002, 0.0014)
INTERVAL = 0.04  # ps between energies
# ps left out at the start, for the ensemble to be reached; at constant energy
START, NVE_START = 10.0, 1.0
# ps. Fluctuations of 4 ps leave an error of 0.06 to 0.1 in their ratio, with PME as with FMM
NVE_LENGTH = 41.0
# A pair that cannot be compared goes on until it has so many times the length
LENGTHS = (1, 2, 4)
METHODS = {"PME": mdp.STANDARD_PME, "FMM": mdp.FMM}

COMMON = {
    "dt": 0.002,
    "rcoulomb": 0.9,
    "rvdw": 0.9,
    "DispCorr": "EnerPres",
    "tcoupl": "v-rescale",
    "tc-grps": "System",
    "tau-t": 0.2,
    "gen-vel": "yes",
    "nstlist": 20,
    "nstcalcenergy": round(INTERVAL / 0.002),
    "nstenergy": round(INTERVAL / 0.002),
    "nstlog": 0,
}
BAROSTAT = {
    "pcoupl": "C-rescale",
    "tau-p": 1.0,
    "compressibility": 4.5e-5,
    "nstpcouple": 10,
}
TIME_LIMIT = 3600  # s, of one run
DEVIATIONS = 3.0
# Convergence of second order leaves higher orders of the time step
CONVERGENCE = 0.1


class Runs:
    """Runs of water with a method, as physical_validation takes them."""

    def __init__(self, pv, folder, system, method, length):
        self.pv = pv
        self.folder = folder
        self.system = system
        self.method = method
        self.length = length

    def begin(self, name, changes):
        entries = mdp.settings(changes, METHODS[self.method])
        return simulation.simulate(self.folder, name, entries, self.system, warnings=1, time_limit=TIME_LIMIT)

    def go_on(self, name, steps):
        """A run that ended goes on to so many steps."""
        files = ("-s", f"{name}.tpr", "-o", f"{name}.tpr", "-nsteps", steps)
        environment.gmx()("convert-tpr", *files, folder=self.folder)
        flags = ("-cpi", f"{name}.cpt")
        simulation.mdrun(self.folder, name, flags, time_limit=TIME_LIMIT).ok()
        return simulation.Run(self.folder, name)

    def data(self, name, changes, ensemble, start=START, times=1, **conditions):
        """times: the length; the run with the length before it is there, and goes on."""
        name = f"{name}-{self.method}"
        run = self.begin(name, changes) if times == 1 else self.go_on(name, times * changes["nsteps"])
        terms = run.energies
        late = terms["Time"] >= start
        molecules = self.system.atoms // 3
        data = self.pv.data
        observables = {
            "potential_energy": "Potential",
            "kinetic_energy": "Kinetic En.",
            "total_energy": "Total Energy",
            "constant_of_motion": "Conserved En.",
            "volume": "Volume",
        }
        values = {key: terms[term][late] for key, term in observables.items() if term in terms}
        # Without thermostat and barostat the total energy is conserved, and has no second entry
        values.setdefault("constant_of_motion", values["total_energy"])
        volume = None if "volume" in values else self.system.volume
        return data.SimulationData(
            units=data.UnitData.units("GROMACS"),
            dt=changes["dt"],
            system=data.SystemData(
                natoms=self.system.atoms,
                nconstraints=3 * molecules,
                ndof_reduction_tra=3,
                ndof_reduction_rot=0,
            ),
            ensemble=data.EnsembleData(
                ensemble, natoms=self.system.atoms, volume=volume, **conditions
            ),
            observables=data.ObservableData(**values),
        )

    def at(self, temperature, pressure=None, times=1):
        """A run at a temperature, K, and a pressure, bar, of so many times the length."""
        changes = {**COMMON, "nsteps": round(self.length / COMMON["dt"])}
        changes |= {"ref-t": temperature, "gen-temp": temperature}
        if pressure is None:
            return self.data(f"{temperature:g}K", changes, "NVT", times=times, temperature=temperature)
        changes |= {**BAROSTAT, "ref-p": pressure}
        name = f"{temperature:g}K-{pressure:g}bar"
        return self.data(name, changes, "NPT", times=times, temperature=temperature, pressure=pressure)

    def at_constant_energy(self, time_step):
        changes = {
            **nve_drift.COMMON,
            "dt": time_step,
            "nsteps": round(NVE_LENGTH / time_step),
            "nstenergy": 10,
            "nstcalcenergy": 10,
            "nstcomm": 10,
        }
        return self.data(f"{1000 * time_step:g}fs", changes, "NVE", NVE_START)


# What the package prints is left to the caller
QUIET = {"bootstrap_seed": 1, "verbosity": 0}


def compare(runs, conditions):
    """The two runs, and how far they are from Boltzmann's ratio; None where they cannot be compared at any length."""
    for times in LENGTHS:
        pair = [runs.at(*condition, times=times) for condition in conditions]
        try:
            return pair, abs(float(runs.pv.ensemble.check(*pair, **QUIET)[0]))
        except runs.pv.util.error.InputError:
            length = f"{times * runs.length:g} ps"
            print(f"{runs.method}: too few independent samples to compare in {length} at {conditions}", flush=True)
    return pair, None


def at_constant_volume(runs):
    """{what: (value, bound)} of runs at two temperatures."""
    pair, deviation = compare(runs, [(temperature,) for temperature in TEMPERATURES])
    mean, width = runs.pv.kinetic_energy.distribution(pair[0], strict=False, **QUIET)
    return {
        "kinetic energy, mean": (abs(float(mean)), DEVIATIONS),
        "kinetic energy, width": (abs(float(width)), DEVIATIONS),
        "temperature": (deviation, DEVIATIONS),
    }


def at_constant_pressure(runs):
    """The same of runs at two pressures."""
    _, deviation = compare(runs, [(TEMPERATURES[0], pressure) for pressure in PRESSURES])
    return {"pressure": (deviation, DEVIATIONS)}


def at_constant_energy(runs):
    """The same of runs with several time steps."""
    steps = [runs.at_constant_energy(step) for step in TIME_STEPS]
    return {"integrator": (float(runs.pv.integrator.convergence(steps, verbose=False)), CONVERGENCE)}


def text(value):
    return "too short" if value is None else f"{value:.2f}"


def judge(runs):
    """All of it, which is told as it comes."""
    found = {}
    for check in (at_constant_volume, at_constant_energy, at_constant_pressure):
        new = check(runs)
        print(f"{runs.method}: " + ", ".join(f"{what} {text(value)}" for what, (value, _) in new.items()), flush=True)
        found |= new
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=float, default=200.0, help="of each run, ps")
    parser.add_argument("--edge", type=float, default=2.8, help="nm, of the cube of water")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="one of them alone")
    parser.add_argument("--keep", type=Path, help="folder for the runs; kept")
    parser.add_argument("--output", type=Path, help="JSON file of the results")
    arguments = parser.parse_args()
    try:
        import physical_validation as pv
    except ImportError:
        parser.error("this needs the package physical_validation: pip install physical_validation")

    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="farfield-ensembles-"))
    folder.mkdir(parents=True, exist_ok=True)
    system = systems.water(folder, arguments.edge, 10000)
    print(f"{system.atoms} atoms of water, runs of {arguments.length:g} ps; {machine.describe()}", flush=True)
    found = {m: judge(Runs(pv, folder, system, m, arguments.length)) for m in arguments.methods}
    print(f"{'':24}" + "".join(f"{m:>10}" for m in found) + f"{'bound':>10}")
    for what, (_, bound) in next(iter(found.values())).items():
        print(f"{what:24}" + "".join(f"{text(lines[what][0]):>10}" for lines in found.values()) + f"{bound:10.2f}")
    if arguments.output:
        results.write(
            arguments.output,
            {
                **results.conditions(),
                "versions": environment.gmx().version(),
                "physical_validation": pv.__version__,
                "atoms": system.atoms,
                "length_ps": arguments.length,
                "checks": [
                    {"method": method, "check": what, "value": value, "bound": bound}
                    for method, lines in found.items()
                    for what, (value, bound) in lines.items()
                ],
            },
        )
    judged = found.get("FMM") or found["PME"]
    short = [what for what, (value, _) in judged.items() if value is None]
    missed = [what for what, (value, bound) in judged.items() if value is not None and not value <= bound]
    if short:
        print(f"too few independent samples, choose a larger --length: {', '.join(short)}")
    if missed:
        print(f"beyond its bound: {', '.join(missed)}")
    return 1 if missed or short else 0


if __name__ == "__main__":
    sys.exit(main())
