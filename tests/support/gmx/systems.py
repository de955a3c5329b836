# SPDX-License-Identifier: LGPL-2.1-or-later
"""The simulated systems, built with gmx tools from structures that come with GROMACS."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from . import environment, gro, mdp, simulation

# Boxes are on a grid of 2^-16 nm, positions halfway between its points: exact in single and in
# double precision alike (up to 128 nm), so that programs of either precision see the
# same coordinates. No position is on an edge of the box, where it would be in the first or in the
# last cell, depending on which periodic image GROMACS has chosen.
POSITION_GRID = 2.0**-16

FORCE_FIELD = "amber99sb-ildn"


def water_top(force_field=FORCE_FIELD, model="tip3p"):
    """A topology of water and ions, up to the numbers of molecules."""
    files = ("forcefield", model, "ions")
    includes = [f'#include "{force_field}.ff/{name}.itp"' for name in files]
    return "\n".join([*includes, "[ system ]", "test system", "[ molecules ]", ""])


WATER_TOP = water_top()

# 124 residues, four disulphide bridges, from the tests of GROMACS's analysis tools.
PROTEIN = "src/gromacs/trajectoryanalysis/tests/RNAseA.pdb"
# 373 residues and a zinc ion: one protein of 6 000 atoms.
LARGE_PROTEIN = "src/gromacs/trajectoryanalysis/tests/hdac.pdb"


# The same structure in every run on the same machine: a test that fails does so again.
REPRODUCIBLE = ["-reprod"]
# So systems are the same ones, whatever the machine and the tests beside.
SET_UP_THREADS = 2
# Of minimisers. Water is flexible: overlapping rigid molecules cannot be moved apart by large steps.
FLEXIBLE = {"constraints": "none", "define": "-DFLEXIBLE", "emtol": 100, "emstep": 0.01}


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


def read_gro(path):
    """A structure with numpy arrays."""
    s = gro.read(path)
    s.x, s.box = np.array(s.x), np.array(s.box)
    return s


def write_gro(path, s):
    """With as many decimals as keep, in single precision, what snap_to_grid() made."""
    gro.write(path, s, decimals=12)


def snap_to_grid(s):
    """Rounds positions and box as POSITION_GRID says."""
    s.x = (np.floor(s.x / POSITION_GRID) + 0.5) * POSITION_GRID
    s.box = np.round(s.box / POSITION_GRID) * POSITION_GRID
    return s


def system(folder, conf="conf.gro", top="topol.top"):
    s = read_gro(folder / conf)
    return System(folder, folder / conf, folder / top, len(s.x), float(np.linalg.det(s.box)))


def solvate(folder, box, solute=None, solvent="spc216.gro"):
    """Fills a box with water, or the room that a solute leaves."""
    start = ["-cp", solute] if solute else ["-box", *box]
    files = ["-cs", solvent, *start, "-p", "topol.top", "-o", "solvated.gro"]
    environment.gmx()("solvate", *files, folder=folder)
    return "solvated.gro"


def add_ions(folder, conf, flags):
    """Exchanges water for sodium and chloride ions."""
    simulation.grompp(folder, "ions", mdp.STANDARD, conf, "topol.top", ["-maxwarn", 1]).ok()
    files = ["-s", "ions.tpr", "-p", "topol.top", "-o", "ions.gro"]
    environment.gmx()("genion", *files, "-seed", 7, *flags, folder=folder, answer="SOL\n")
    return "ions.gro"


def relax(folder, conf, steps, changes=None):
    """Short minimisation and dynamics with PME, so that the structure is a realistic one."""
    common = {"nstenergy": 1000, "nstcalcenergy": 100, **(changes or {})}
    minimise = mdp.settings(common, FLEXIBLE, {"integrator": "steep", "nsteps": 100})
    # The structure may still carry a net charge or large forces: only warnings are waived.
    simulation.grompp(folder, "em", minimise, conf, "topol.top", ["-maxwarn", 1]).ok()
    simulation.mdrun(folder, "em", REPRODUCIBLE, ntomp=SET_UP_THREADS).ok()
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
    entries = mdp.settings(common, heat)
    simulation.grompp(folder, "relax", entries, "em.gro", "topol.top", ["-maxwarn", 1]).ok()
    simulation.mdrun(folder, "relax", REPRODUCIBLE, ntomp=SET_UP_THREADS, time_limit=900).ok()
    s = snap_to_grid(read_gro(folder / "relax.gro"))
    write_gro(folder / "conf.gro", s)
    return system(folder)


def water(folder, edge, steps=500, force_field=FORCE_FIELD, model="tip3p"):
    """Water of three sites in a cube."""
    (folder / "topol.top").write_text(water_top(force_field, model))
    return relax(folder, solvate(folder, [edge] * 3), steps)


def four_site_water(folder, edge, steps=500):
    """TIP4P water in a cube: Lennard-Jones on one site, charges on the others."""
    (folder / "topol.top").write_text(water_top(model="tip4p"))
    return relax(folder, solvate(folder, [edge] * 3, solvent="tip4p.gro"), steps)


def salt_water(folder, edge=2.8, concentration=1.0, extra_cations=0):
    """Sodium chloride in water; extra cations leave a net charge."""
    (folder / "topol.top").write_text(WATER_TOP)
    conf = solvate(folder, [edge] * 3)
    pairs = max(1, round(concentration * 0.602214 * edge**3))
    flags = ["-np", pairs + extra_cations, "-nn", pairs, "-pname", "NA", "-nname", "CL"]
    return relax(folder, add_ions(folder, conf, flags), 500)


def parted(folder, s, steps):
    """After a few steps of a minimiser: atoms that overlapped are as near each other as mdrun just survives.

    The box is the very same one: replicas of constant volume that exchange must not differ in it.
    """
    minimise = mdp.settings(FLEXIBLE, {"integrator": "steep", "nsteps": steps})
    simulation.grompp(folder, "parted", minimise, s.conf, s.top).ok()
    simulation.mdrun(folder, "parted", REPRODUCIBLE, ntomp=SET_UP_THREADS).ok()
    write_gro(folder / "conf.gro", snap_to_grid(read_gro(folder / "parted.gro")))
    return replace(s, conf=folder / "conf.gro")


def scattered(folder, s, nearest=0.2):
    """The molecules of a system in a rectangular box at random places, turned at random.

    Their first atoms are no nearer each other than nearest (nm): molecules overlap.
    """
    random = np.random.default_rng(37)
    g = read_gro(s.conf)
    edges = np.diag(g.box)

    def nearest_image(d):
        return d - edges * np.round(d / edges)

    starts = np.flatnonzero(np.diff(g.residue_numbers, prepend=-1))
    places = np.empty((0, 3))
    for molecule in np.split(np.arange(len(g.x)), starts[1:]):
        place = random.random(3) * edges
        while (np.linalg.norm(nearest_image(places - place), axis=1) < nearest).any():
            place = random.random(3) * edges
        places = np.vstack([places, place])
        turn, _ = np.linalg.qr(random.standard_normal((3, 3)))
        turn *= np.linalg.det(turn)  # no reflection
        g.x[molecule] = place + nearest_image(g.x[molecule] - g.x[molecule[0]]) @ turn
    write_gro(folder / "scattered.gro", snap_to_grid(g))
    return replace(s, conf=folder / "scattered.gro")


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
    s = gro.Structure(
        "rock salt",
        list(range(1, len(x) + 1)),
        [f"{n:<5}" for n in names],
        [f"{n:>5}" for n in names],
        x,
        np.eye(3) * cells * constant,
    )
    write_gro(folder / "conf.gro", snap_to_grid(s))
    counts = f"NA {names.count('NA')}\nCL {names.count('CL')}\n"
    (folder / "topol.top").write_text(WATER_TOP + counts)
    return system(folder)


def folded_protein(folder, structure=PROTEIN):
    """protein.gro and topol.top of the protein alone."""
    source = environment.folder_from_environment("GROMACS_SOURCE_DIR") / structure
    names = ["-ff", FORCE_FIELD, "-water", "tip3p", "-o", "protein.gro"]
    environment.gmx()("pdb2gmx", "-f", source, "-ignh", *names, folder=folder)


def protein(folder, margin=1.0, steps=500):
    """A solvated protein with salt in a rhombic dodecahedron."""
    folded_protein(folder)
    box = ["-bt", "dodecahedron", "-d", margin]
    environment.gmx()("editconf", "-f", "protein.gro", *box, "-o", "boxed.gro", folder=folder)
    conf = solvate(folder, None, "boxed.gro")
    conf = add_ions(folder, conf, ["-neutral", "-conc", 0.15])
    return relax(folder, conf, steps)


def vacuum_protein(folder, steps=500, copies=1, structure=PROTEIN):
    """The protein without water, box or counter-ions: whole. Copies lie side by side."""
    folded_protein(folder, structure)
    gmx = environment.gmx()
    gmx("editconf", "-f", "protein.gro", "-d", 0.1, "-o", "one.gro", folder=folder)
    gmx("genconf", "-f", "one.gro", "-nbox", copies, 1, 1, "-o", "dry.gro", folder=folder)
    top = folder / "topol.top"
    head, molecules = top.read_text().split("[ molecules ]\n")
    top.write_text(f"{head}[ molecules ]\n{molecules * copies}")
    return relax(folder, "dry.gro", steps, mdp.VACUUM)


def droplet(folder, radius=1.2, steps=500):
    """Water of three sites within a sphere around the origin, without a box."""
    (folder / "topol.top").write_text(WATER_TOP)
    s = read_gro(folder / solvate(folder, [2 * radius + 0.6] * 3))
    centres = s.x[::3] - s.box.diagonal() / 2
    kept = np.repeat(np.linalg.norm(centres, axis=1) < radius, 3)
    s = gro.Structure(
        "droplet",
        *(list(np.array(names)[kept]) for names in (s.residue_numbers, s.residues, s.atoms)),
        s.x[kept] - s.box.diagonal() / 2,
        np.zeros((3, 3)),
    )
    write_gro(folder / "droplet.gro", s)
    (folder / "topol.top").write_text(f"{WATER_TOP}SOL {len(s.x) // 3}\n")
    return relax(folder, "droplet.gro", steps, mdp.VACUUM)


def film(folder, edge=2.6, thickness=2.2, steps=500):
    """Salt water between two surfaces, periodic along x and y; whole molecules, without a height."""
    (folder / "topol.top").write_text(WATER_TOP)
    conf = solvate(folder, [edge, edge, thickness])
    pairs = max(1, round(0.602214 * edge**2 * thickness))
    flags = ["-np", pairs, "-nn", pairs, "-pname", "NA", "-nname", "CL"]
    s = read_gro(folder / add_ions(folder, conf, flags))
    s.box[2] = 0
    write_gro(folder / "film.gro", s)
    return relax(folder, "film.gro", steps, mdp.SLAB)


def ions_above_water(folder, waters, ions, gap, box):
    """Columns that have atoms of a pair list's kind at one end, and others at the other one.

    A layer of water, and a layer of ions above; gap (nm) in between. Box: edges, nm, or zeros.
    """
    random = np.random.default_rng(4)

    def layer(count, lowest):
        """Points 0.35 nm apart, three by three in each plane."""
        corner = np.array([(i % 3, i // 3 % 3, i // 9) for i in range(count)]).reshape(-1, 3)
        return 0.35 * (corner + 0.1 * random.random(corner.shape)) + [0.5, 0.5, lowest]

    oxygen = layer(waters, 0.3)
    site = np.array([[0, 0, 0], [0.09572, 0, 0], [-0.0239987, 0.0926627, 0]])
    water = (oxygen[:, None] + site).reshape(-1, 3)
    anions = ions // 2
    names = ["OW", "HW1", "HW2"] * waters + ["NA"] * (ions - anions) + ["CL"] * anions
    residues = ["SOL"] * (3 * waters) + names[3 * waters :]
    s = gro.Structure(
        "ions above water",
        [*np.repeat(np.arange(1, waters + 1), 3), *range(waters + 1, waters + ions + 1)],
        [f"{residue:<5}" for residue in residues],
        [f"{name:>5}" for name in names],
        np.vstack([water, layer(ions, oxygen[:, 2].max(initial=0) + gap)]),
        np.diag(box),
    )
    write_gro(folder / "conf.gro", snap_to_grid(s))
    counts = {"SOL": waters, "NA": ions - anions, "CL": anions}
    molecules = "".join(f"{name} {count}\n" for name, count in counts.items() if count)
    (folder / "topol.top").write_text(WATER_TOP + molecules)
    return system(folder)


def in_box(folder, s, edge, name="boxed.gro"):
    """The same, with the very same distances, in the middle of a cube."""
    boxed = read_gro(s.conf)
    boxed.box = np.eye(3) * edge
    shift = edge / 2 - (boxed.x.min(axis=0) + boxed.x.max(axis=0)) / 2
    boxed.x = boxed.x + np.round(shift / POSITION_GRID) * POSITION_GRID
    write_gro(folder / name, snap_to_grid(boxed))
    return System(folder, folder / name, s.top, s.atoms, edge**3, s.warnings)


def self_contained_topology(folder, s, name="processed.top"):
    """The topology with all force-field files in it, for another version of gmx."""
    simulation.grompp(
        folder, "processed", mdp.STANDARD, s.conf, s.top, ["-pp", name, "-maxwarn", 1]
    ).ok()
    return folder / name
