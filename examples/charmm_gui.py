# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A folder like the one that CHARMM-GUI's Membrane Builder writes for GROMACS, with a small bilayer of POPC.

    python3 -m examples.charmm_gui --output build/charmm-gui

The bilayer is that of examples/membrane.py. File names, groups, restraints and the settings of the mdp files
are those of CHARMM-GUI: J. Chem. Theory Comput. 12, 405 (2016), doi:10.1021/acs.jctc.5b00935. The force field is
the CHARMM27 that comes with GROMACS, with CHARMM's own TIP3P, as CHARMM-GUI has it.
"""

import argparse
import shutil
import sys
from pathlib import Path

from examples import membrane
from farfield.gromacs.machine import usable_cores
from farfield.gromacs.program import Gmx, GmxError
from tests.support.gmx import gro, mdp

INTERACTIONS = {"cutoff-scheme": "Verlet", "nstlist": 20, "rlist": 1.2, "vdwtype": "Cut-off",
                "vdw-modifier": "Force-switch", "rvdw_switch": 1.0, "rvdw": 1.2, "coulombtype": "PME",
                "rcoulomb": 1.2}
CONSTRAINTS = {"constraints": "h-bonds", "constraint_algorithm": "LINCS"}
GROUPS = ("MEMB", "SOLV")
DYNAMICS = {"integrator": "md", "tcoupl": "v-rescale", "tc_grps": "MEMB SOLV", "tau_t": "1.0 1.0",
            "ref_t": "303.15 303.15", "nstcomm": 100, "comm_mode": "linear", "comm_grps": "MEMB SOLV",
            "nstxout-compressed": 5000, "nstcalcenergy": 100, "nstenergy": 1000, "nstlog": 1000}
PRESSURE = {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau_p": 5.0,
            "compressibility": "4.5e-5 4.5e-5", "ref_p": "1.0 1.0", "refcoord_scaling": "com"}
# Force constants of positions along z and of dihedrals, fs of a step, number of steps
EQUILIBRATION = ((1000, 1000, 1, 125000), (400, 400, 1, 125000), (400, 200, 1, 125000), (200, 200, 2, 250000),
                 (40, 100, 2, 250000), (0, 0, 2, 250000))
# Phosphorus stays at its height, and the double bond of the oleoyl chain stays cis.
HELD, CIS = "P1", ("C28", "C29", "C210", "C211")


def restraints(lipids, dihedrals):
    return {"define": f"-DPOSRES -DPOSRES_FC_LIPID={lipids:.1f} -DDIHRES -DDIHRES_FC={dihedrals:.1f}"}


def stages():
    """{name of an mdp file: its entries}, in the order of the runs."""
    minimisation = {"integrator": "steep", "emtol": 1000.0, "nsteps": 5000}
    found = {"step6.0_minimization": {**restraints(1000, 1000), **minimisation, **INTERACTIONS, **CONSTRAINTS}}
    for i, (lipids, dihedrals, dt, nsteps) in enumerate(EQUILIBRATION, 1):
        start = {"gen_vel": "yes", "gen_temp": 303.15, "gen_seed": -1} if i == 1 else {"continuation": "yes"}
        pressure = PRESSURE if i > 2 else {}
        found[f"step6.{i}_equilibration"] = {
            **restraints(lipids, dihedrals), **DYNAMICS, "dt": dt / 1000, "nsteps": nsteps, **INTERACTIONS,
            **pressure, **CONSTRAINTS, **start}
    found["step7_production"] = {
        **DYNAMICS, "dt": 0.002, "nsteps": 500000, **INTERACTIONS, **PRESSURE, **CONSTRAINTS, "continuation": "yes"}
    del found["step7_production"]["refcoord_scaling"]
    return found


def topology(text):
    """The patch with CHARMM's own water, whose hydrogens have Lennard-Jones interactions."""
    water = f"{membrane.FORCE_FIELD}.ff/{membrane.WATER}.itp"
    assert water in text
    return text.replace(water, f"{membrane.FORCE_FIELD}.ff/tips3p.itp")


def write(gmx, patch, folder):
    """Makes the folder of a prepared patch."""
    s = gro.read(patch / "patch.gro")
    shutil.copy(patch / "patch.gro", folder / "step5_input.gro")
    (folder / "topol.top").write_text(topology((patch / "patch.top").read_text()))
    number = {name: i for i, name in enumerate(membrane.read_residue(membrane.residues_of(gmx), membrane.LIPID)[0], 1)}
    cis = " ".join(str(number[name]) for name in CIS)
    (folder / "lipid_posre.itp").write_text(
        f"[ position_restraints ]\n{number[HELD]} 1 0.0 0.0 POSRES_FC_LIPID\n"
        f"#ifdef DIHRES\n[ dihedral_restraints ]\n{cis} 1 0.0 0.0 DIHRES_FC\n#endif\n")
    lipids = sum(residue.strip() == membrane.LIPID for residue in s.residues)
    atoms = {"SYSTEM": range(len(s.x)), "MEMB": range(lipids), "SOLV": range(lipids, len(s.x))}
    (folder / "index.ndx").write_text("".join(
        f"[ {name} ]\n" + "".join(f"{i + 1}\n" for i in members) for name, members in atoms.items()))
    for name, entries in stages().items():
        mdp.write(folder / f"{name}.mdp", entries)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gmx", type=Path, default=Path("build/bin/gmx"))
    parser.add_argument("--output", type=Path, default=Path("build/charmm-gui"))
    parser.add_argument("--patch", type=Path, default=Path("build/membrane"), help="folder of examples.membrane")
    parser.add_argument("--threads", type=int, default=usable_cores())
    arguments = parser.parse_args(words)
    gmx = Gmx(arguments.gmx)
    membrane.prepare(gmx, arguments, arguments.patch)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write(gmx, arguments.patch, arguments.output)
    print(f"\n{arguments.output} has the files of a bilayer as CHARMM-GUI writes them")


if __name__ == "__main__":
    try:
        main()
    except (GmxError, ValueError, OSError) as error:
        sys.exit(f"charmm_gui.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
