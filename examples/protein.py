# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A solvated protein, from a PDB file to a comparison of PME and FMM.

Ribonuclease A in TIP3P water with 0.15 M salt in a rhombic dodecahedron is prepared with gmx,
minimised and warmed up with PME, then continued from the same state with PME and with FMM. The
forces of the first step of both are compared with a tightened PME. "./quickstart.sh run" runs it,
and so does, after "./quickstart.sh gmx",

    python3 -m examples.protein
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path

from farfield.gromacs import log, machine, trr
from farfield.gromacs.machine import usable_cores
from farfield.gromacs.program import Gmx, GmxError
from tests.support.gmx import energies, gro, mdp
from tests.support.gmx.mdp import FMM
from tests.support.gmx.mdp import STANDARD_PME as PME

COMMON = {
    "cutoff-scheme": "Verlet",
    "rcoulomb": 1.0,
    "rvdw": 1.0,
    "constraints": "h-bonds",
}
# Its own error is a few 1e-6, the rounding of mixed precision.
TIGHT_PME = {"coulombtype": "PME", "fourierspacing": 0.05, "pme-order": 10, "ewald-rtol": 1e-7}
DYNAMICS = {
    "integrator": "md",
    "dt": 0.002,
    "tcoupl": "v-rescale",
    "tc-grps": "system",
    "tau-t": 0.5,
    "ref-t": 300,
    "ld-seed": 1,
    "nstcalcenergy": 100,
    "nstenergy": 100,
    "nstlog": 1000,
}
MINIMISATION = {"integrator": "steep", "nsteps": 100, "emstep": 0.01, "emtol": 100}
WARM_UP = {"nsteps": 1500, "gen-vel": "yes", "gen-temp": 300, "gen-seed": 1, "tau-t": 0.1}
CONTINUATION = {"continuation": "yes", "gen-vel": "no"}


def say(text):
    print(f"   {text}", flush=True)


def threads_of(arguments):
    return ["-ntmpi", 1, "-ntomp", arguments.threads, "-pin", "auto"]


def has_four_sites(water):
    """Whether a model of water has a virtual site."""
    return water.startswith("tip4p")


def prepare(gmx, arguments, folder, force_field="amber99sb-ildn", water="tip3p"):
    """Leaves warm.gro, warm.cpt and topol.top in the folder; does nothing if they are there."""
    sources = (Path(__file__), Path(mdp.__file__), arguments.structure)
    identity = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    identity.update(f"{force_field} {water}".encode())
    stamp = folder / "prepared"
    if stamp.exists() and stamp.read_text() == identity.hexdigest():
        say("the prepared system of an earlier run is used")
        return
    stamp.unlink(missing_ok=True)
    say("adding hydrogens, topology, box, water and ions")
    gmx("pdb2gmx", "-f", arguments.structure.resolve(), "-ff", force_field, "-water", water,
        "-ignh", "-o", "protein.gro", folder=folder)
    gmx("editconf", "-f", "protein.gro", "-bt", "dodecahedron", "-d", 1.0, "-c", "-o", "box.gro",
        folder=folder)
    solvent = "tip4p" if has_four_sites(water) else "spc216"
    gmx("solvate", "-cp", "box.gro", "-cs", solvent, "-p", "topol.top", "-o", "solvated.gro",
        folder=folder)
    mdp.write(folder / "minimise.mdp", COMMON, PME, MINIMISATION)
    # The protein is charged until the ions are there.
    gmx("grompp", "-f", "minimise.mdp", "-c", "solvated.gro", "-p", "topol.top", "-o", "ions.tpr",
        "-maxwarn", 1, folder=folder)
    gmx("genion", "-s", "ions.tpr", "-p", "topol.top", "-o", "ions.gro", "-neutral",
        "-conc", 0.15, "-seed", 1, folder=folder, answer="SOL\n")
    say("minimising")
    gmx("grompp", "-f", "minimise.mdp", "-c", "ions.gro", "-p", "topol.top", "-o", "minimise.tpr",
        folder=folder)
    gmx("mdrun", "-deffnm", "minimise", *threads_of(arguments), folder=folder)
    say("warming up")
    mdp.write(folder / "warm.mdp", COMMON, PME, DYNAMICS, WARM_UP)
    gmx("grompp", "-f", "warm.mdp", "-c", "minimise.gro", "-p", "topol.top", "-o", "warm.tpr",
        folder=folder)
    gmx("mdrun", "-deffnm", "warm", *threads_of(arguments), folder=folder)
    stamp.write_text(identity.hexdigest())


def make_input(gmx, folder, name, *settings):
    mdp.write(folder / f"{name}.mdp", COMMON, DYNAMICS, CONTINUATION, *settings)
    gmx("grompp", "-f", f"{name}.mdp", "-c", "warm.gro", "-t", "warm.cpt", "-p", "topol.top",
        "-o", f"{name}.tpr", folder=folder)


def first_step(gmx, arguments, folder, name, electrostatics):
    """Forces and energies of the first step."""
    make_input(gmx, folder, name, electrostatics,
               {"nsteps": 0, "nstfout": 1, "nstcalcenergy": 1, "nstenergy": 1})
    gmx("mdrun", "-deffnm", name, "-noconfout", *threads_of(arguments), folder=folder)
    wanted = ["Coulomb-(SR)", "Coul.-recip.", "Potential", "Pressure"]
    terms = energies.first_frame(gmx, folder, name, wanted)
    # Of the two terms FMM fills only the second, so the sum is what can be compared.
    terms["Coulomb"] = terms.get("Coulomb-(SR)", 0.0) + terms["Coul.-recip."]
    return trr.forces(folder / f"{name}.trr"), terms


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gmx", type=Path, default=Path("build/bin/gmx"))
    parser.add_argument("--structure", type=Path, default=Path("build/share/farfield/protein.pdb"))
    parser.add_argument("--output", type=Path, default=Path("build/run"))
    parser.add_argument("--steps", type=int, default=3000, help="steps of each of the two runs")
    parser.add_argument("--threads", type=int, default=usable_cores())
    arguments = parser.parse_args()
    gmx = Gmx(arguments.gmx)
    folder = arguments.output
    folder.mkdir(parents=True, exist_ok=True)

    prepare(gmx, arguments, folder)
    num_atoms = gro.atom_count(folder / "warm.gro")

    say("comparing the forces of the first step")
    reference, exact = first_step(gmx, arguments, folder, "tight_step0", TIGHT_PME)
    pme_forces, pme = first_step(gmx, arguments, folder, "pme_step0", PME)
    fmm_forces, fmm = first_step(gmx, arguments, folder, "fmm_step0", FMM)

    speed = {}
    for name, electrostatics in (("pme", PME), ("fmm", FMM)):
        say(f"running {arguments.steps} steps with {name.upper()}")
        make_input(gmx, folder, name, electrostatics, {"nsteps": arguments.steps})
        start = time.monotonic()
        # The first half is not timed: start-up, caches, and the processor's clock settle in it.
        gmx("mdrun", "-deffnm", name, "-noconfout", "-resethway", *threads_of(arguments),
            folder=folder)
        speed[name] = log.speed(folder / f"{name}.log")
        say(f"  {speed[name]:.2f} ns/day ({time.monotonic() - start:.0f} s)")

    pme_error, fmm_error = (trr.relative_rms(f, reference) for f in (pme_forces, fmm_forces))
    difference = trr.relative_rms(fmm_forces, pme_forces)
    print(f"""
Ribonuclease A in salt water, rhombic dodecahedron, {num_atoms} atoms
{machine.describe()}

                                          tight PME             PME             FMM
first step
  rel. RMS force diff. to tight PME               -{pme_error:16.2e}{fmm_error:16.2e}
  rel. RMS force diff. to PME                     -               -{difference:16.2e}
  Coulomb energy, kJ/mol         {exact["Coulomb"]:18.2f}{pme["Coulomb"]:16.2f}{fmm["Coulomb"]:16.2f}
  potential energy, kJ/mol       {exact["Potential"]:18.2f}{pme["Potential"]:16.2f}{fmm["Potential"]:16.2f}
  pressure, bar                  {exact["Pressure"]:18.2f}{pme["Pressure"]:16.2f}{fmm["Pressure"]:16.2f}
{arguments.steps} steps of 2 fs
  speed, ns/day                                   -{speed["pme"]:16.2f}{speed["fmm"]:16.2f}

About 1e-3 kJ/mol per atom of PME's energies is rounding of mixed precision (see docs/mdrun.md).

Logs: {(folder / "pme.log").resolve()}
      {(folder / "fmm.log").resolve()}""")


if __name__ == "__main__":
    try:
        main()
    except (GmxError, ValueError, OSError) as error:
        sys.exit(f"protein.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
