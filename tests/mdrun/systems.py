# SPDX-License-Identifier: LGPL-2.1-or-later
"""The simulated systems, built with gmx tools from structures that come with GROMACS."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gmxio
import gmxrun

FORCE_FIELD = "amber99sb-ildn"
WATER_TOP = f"""\
#include "{FORCE_FIELD}.ff/forcefield.itp"
#include "{FORCE_FIELD}.ff/tip3p.itp"
#include "{FORCE_FIELD}.ff/ions.itp"
[ system ]
test system
[ molecules ]
"""

# 124 residues, four disulphide bridges, from the tests of GROMACS's analysis tools.
PROTEIN = "src/gromacs/trajectoryanalysis/tests/RNAseA.pdb"


@dataclass
class System:
    """A structure with its topology; the topology includes nothing but force-field files."""

    folder: Path
    conf: Path
    top: Path
    atoms: int
    volume: float
    # Warnings that grompp gives with good reason: one for a net charge.
    warnings: int = 0


def system(folder, conf="conf.gro", top="topol.top"):
    s = gmxio.read_gro(folder / conf)
    return System(folder, folder / conf, folder / top, len(s.x), float(np.linalg.det(s.box)))


def solvate(folder, box, solute=None):
    """Fills a box with water, or the room that a solute leaves."""
    start = ["-cp", solute] if solute else ["-box", *box]
    gmxrun.call(
        ["solvate", "-cs", "spc216.gro", *start, "-p", "topol.top", "-o", "solvated.gro"], folder
    ).ok()
    return "solvated.gro"


def add_ions(folder, conf, flags):
    """Exchanges water for sodium and chloride ions."""
    gmxrun.grompp(
        folder, "ions", gmxrun.STANDARD, conf, "topol.top", ["-maxwarn", 1]
    ).ok()
    command = ["genion", "-s", "ions.tpr", "-p", "topol.top", "-o", "ions.gro", "-seed", 7, *flags]
    gmxrun.call(command, folder, stdin="SOL\n").ok()
    return "ions.gro"


def relax(folder, conf, steps):
    """Short minimisation and dynamics with PME, so that the structure is a realistic one."""
    common = {"nstenergy": 1000, "nstcalcenergy": 100}
    # Flexible water: overlapping rigid molecules cannot be moved apart by large steps.
    flexible = {"constraints": "none", "define": "-DFLEXIBLE", "emtol": 100, "emstep": 0.01}
    minimise = gmxrun.settings(common, flexible, {"integrator": "steep", "nsteps": 100})
    # The structure may still carry a net charge or large forces: only warnings are waived.
    gmxrun.grompp(folder, "em", minimise, conf, "topol.top", ["-maxwarn", 1]).ok()
    gmxrun.mdrun(folder, "em").ok()
    heat = {
        "nsteps": steps,
        "gen-vel": "yes",
        "gen-temp": 300,
        "tcoupl": "v-rescale",
        "tc-grps": "System",
        "tau-t": 0.1,
        "ref-t": 300,
        "nstlist": 20,
    }
    entries = gmxrun.settings(common, heat)
    gmxrun.grompp(folder, "relax", entries, "em.gro", "topol.top", ["-maxwarn", 1]).ok()
    gmxrun.mdrun(folder, "relax", timeout=900).ok()
    s = gmxio.snap_to_grid(gmxio.read_gro(folder / "relax.gro"))
    gmxio.write_gro(folder / "conf.gro", s)
    return system(folder)


def water(folder, edge, steps=500):
    """TIP3P water in a cube."""
    (folder / "topol.top").write_text(WATER_TOP)
    return relax(folder, solvate(folder, [edge] * 3), steps)


def salt_water(folder, edge=2.8, concentration=1.0, extra_cations=0):
    """Sodium chloride in water; extra cations leave a net charge."""
    (folder / "topol.top").write_text(WATER_TOP)
    conf = solvate(folder, [edge] * 3)
    pairs = max(1, round(concentration * 0.602214 * edge**3))
    flags = ["-np", pairs + extra_cations, "-nn", pairs, "-pname", "NA", "-nname", "CL"]
    return relax(folder, add_ions(folder, conf, flags), 500)


def ion_crystal(folder, cells=5, constant=0.564, displacement=0.01, vacancies=0):
    """Rock salt, every ion displaced at random so that the forces do not vanish.

    Vacancies are chlorides left out: a positive net charge each.
    """
    corner = np.array(list(np.ndindex(2 * cells, 2 * cells, 2 * cells)))
    is_cation = corner.sum(axis=1) % 2 == 0
    order = np.argsort(~is_cation, kind="stable")
    random = np.random.default_rng(2026)
    x = (corner[order] + 0.25) * constant / 2
    x += displacement * random.standard_normal(x.shape)
    names = [("NA" if c else "CL") for c in is_cation[order]]
    if vacancies:
        x, names = x[:-vacancies], names[:-vacancies]
    s = gmxio.Structure(
        "rock salt",
        list(range(1, len(x) + 1)),
        [f"{n:<5}" for n in names],
        [f"{n:>5}" for n in names],
        x,
        np.eye(3) * cells * constant,
    )
    gmxio.write_gro(folder / "conf.gro", gmxio.snap_to_grid(s))
    counts = f"NA {names.count('NA')}\nCL {names.count('CL')}\n"
    (folder / "topol.top").write_text(WATER_TOP + counts)
    return system(folder)


def protein(folder, margin=1.0, steps=500):
    """A solvated protein with salt in a rhombic dodecahedron."""
    source = gmxrun.folder_from_environment("GROMACS_SOURCE_DIR") / PROTEIN
    names = ["-ff", FORCE_FIELD, "-water", "tip3p", "-o", "protein.gro"]
    gmxrun.call(["pdb2gmx", "-f", source, "-ignh", *names], folder).ok()
    box = ["-bt", "dodecahedron", "-d", margin]
    gmxrun.call(["editconf", "-f", "protein.gro", *box, "-o", "boxed.gro"], folder).ok()
    conf = solvate(folder, None, "boxed.gro")
    conf = add_ions(folder, conf, ["-neutral", "-conc", 0.15])
    return relax(folder, conf, steps)


def self_contained_topology(folder, s, name="processed.top"):
    """The topology with all force-field files in it, for another version of gmx."""
    gmxrun.grompp(
        folder, "processed", gmxrun.STANDARD, s.conf, s.top, ["-pp", name, "-maxwarn", 1]
    ).ok()
    return folder / name
