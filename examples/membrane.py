# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fluid bilayer of POPC in water, built from the force field alone.

GROMACS brings topologies of lipids (CHARMM27) and no structures of bilayers. Here conformers of a
lipid are drawn from its bonds: the chains of a fluid have about one gauche torsion in four. Each
lipid becomes the conformer that leaves most room to those around it. gmx adds water, minimises and
equilibrates: the box relaxes along its normal, at the area per lipid that was measured, as the
force field was made for.

    python3 -m examples.membrane --output build/membrane

leaves patch.gro.xz and patch.top, and says how thick the bilayer is and how ordered. These two files
are all that prepare() needs on another machine.
"""

import argparse
import lzma
import math
import random
import sys
from pathlib import Path

from examples import protein
from farfield.gromacs.machine import usable_cores
from farfield.gromacs.program import Gmx, GmxError
from tests.support.gmx import gro, mdp
from tests.support.gmx.mdp import STANDARD_PME as PME

LIPID, FORCE_FIELD, WATER = "POPC", "charmm27", "tip3p"
PER_EDGE = 6  # lipids along x and along y, in each of two leaflets
# nm^2 at 303 K: Biochim. Biophys. Acta 1808, 2761 (2011), doi:10.1016/j.bbamem.2011.07.022
AREA_PER_LIPID = 0.643
EDGE = PER_EDGE * math.sqrt(AREA_PER_LIPID)
HEIGHT = 7.6  # of the box at first, nm: 34 molecules of water for each lipid
GLYCEROL_HEIGHT = 1.6  # nm from the middle to the central carbon of glycerol
DRY_HEIGHT = 1.75  # water nearer to the middle is removed

# Lengths of bonds, nm, and angles that minimisation makes exact.
BOND_LENGTHS = {"CC": 0.153, "CH": 0.109, "CO": 0.142, "CN": 0.150, "OP": 0.158}
ANGLES = {2: 117.0, 3: 120.0, 4: 110.5}  # by the number of bonds
TRANS_FRACTION = 0.78
TAILS = (["C21"] + [f"C2{i}" for i in range(2, 19)], ["C31"] + [f"C3{i}" for i in range(2, 17)])
ROOT = "HS"  # the hydrogen of the chiral carbon

NUM_CONFORMERS, NUM_TRIES = 200, 300
CLEARANCE = 0.36  # between heavy atoms, nm
VOXEL = 0.1  # nm

# The box keeps its area.
PRESSURE = {"pcoupl": "C-rescale", "pcoupltype": "semiisotropic", "tau-p": 1.0, "ref-p": "1 1",
            "compressibility": "0 4.5e-5"}
MINIMISATION = {"integrator": "steep", "nsteps": 300, "emstep": 0.01, "emtol": 500,
                "constraints": "none", "define": "-DFLEXIBLE"}
# Lipids that overlap have finite forces as they would on the way to a free energy.
SOFT = {"free-energy": "yes", "couple-moltype": LIPID, "couple-lambda0": "none",
        "couple-lambda1": "vdw-q", "couple-intramol": "yes", "sc-alpha": 0.5}
STAGES = {
    "soft": {**MINIMISATION, **SOFT, "init-lambda": 0.5},
    "stiffer": {**MINIMISATION, **SOFT, "init-lambda": 0.8},
    "stiff": {**MINIMISATION, **SOFT, "init-lambda": 0.95},
    "minimise": MINIMISATION,
    "heat": {"dt": 0.001, "nsteps": 4000, "gen-vel": "yes", "gen-temp": 300, "gen-seed": 1,
             "tau-t": 0.1},
    "compress": {**PRESSURE, **protein.CONTINUATION, "nsteps": 15000, "tau-t": 0.1},
    "patch": {**protein.CONTINUATION, "nsteps": 10000},
}


# ---- one lipid ----
def residues_of(gmx):
    """The file of the lipids of the force field, where gmx looks for it."""
    return gmx.program.parent.parent / f"share/gromacs/top/{FORCE_FIELD}.ff/lipids.rtp"


def read_residue(path, name):
    """Atoms and {atom: neighbours}, heavy ones first, of a residue of a force field (.rtp)."""
    atoms, neighbours, residue, block = [], {}, None, None
    for line in Path(path).read_text().splitlines():
        words = line.split(";")[0].split()
        if words and words[0] == "[":
            if words[1] in ("atoms", "bonds", "impropers"):
                block = words[1]
            else:
                residue, block = words[1], None
        elif words and residue == name and block == "atoms":
            atoms.append(words[0])
            neighbours[words[0]] = []
        elif words and residue == name and block == "bonds":
            for a, b in (words, reversed(words)):
                neighbours[a].append(b)
    for bonded in neighbours.values():
        bonded.sort(key=is_hydrogen)
    return atoms, neighbours


def is_hydrogen(atom):
    return atom[0] == "H"


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def minus(a, b):
    return [x - y for x, y in zip(a, b)]


def unit(a):
    length = math.hypot(*a)
    return [x / length for x in a]


def torsion(generator, parent, centre, neighbours):
    """Angle of the first child of the centre around parent-centre, from the grandparent: degrees."""
    def is_planar(atom):
        return len(neighbours[atom]) == 3

    if is_planar(parent) and is_planar(centre):
        return 0.0  # the double bond of the oleoyl chain
    if is_planar(parent) or is_planar(centre):
        if "O" in parent[0] + centre[0]:
            return 180.0  # ester
        return generator.choice((-110, 110)) + generator.gauss(0, 10)
    rotamer = 180 if generator.random() < TRANS_FRACTION else generator.choice((-66, 66))
    return rotamer + generator.gauss(0, 8)


def conformer(generator, neighbours):
    """{atom: position}, the chiral carbon at the origin; atoms follow their neighbours."""
    centre = neighbours[ROOT][0]
    x = {centre: [0.0, 0.0, 0.0], ROOT: [0.0, 0.0, BOND_LENGTHS["CH"]]}
    todo = [(centre, ROOT, [1.0, 0.0, 0.0])]  # with a direction that stands for the grandparent
    while todo:
        centre, parent, reference = todo.pop()
        children = [atom for atom in neighbours[centre] if atom != parent]
        if not children:
            continue
        count = len(children) + 1
        angle = math.radians(ANGLES[count])
        axis = unit(minus(x[parent], x[centre]))
        towards = unit(minus(reference, [dot(reference, axis) * a for a in axis]))
        across = cross(axis, towards)
        first = torsion(generator, parent, centre, neighbours)
        # Around the chiral carbon the children C1, C3 and O21 make the natural, R, enantiomer.
        for i, child in enumerate(children):
            turn = math.radians(first + i * (180 if count == 3 else 120))
            direction = [math.cos(angle) * a
                         + math.sin(angle) * (math.cos(turn) * t + math.sin(turn) * s)
                         for a, t, s in zip(axis, towards, across)]
            length = BOND_LENGTHS["".join(sorted(centre[0] + child[0]))]
            x[child] = [c + length * d for c, d in zip(x[centre], direction)]
            todo.append((child, centre, axis))
    return x


def upright(x):
    """The lipid turned so that its tails point down."""
    ends = [sum(x[tail[-1]][k] for tail in TAILS) / len(TAILS) for k in range(3)]
    up = unit(minus(x["P1"], ends))
    side = unit(cross(up, [1.0, 0.0, 0.0] if abs(up[0]) < 0.9 else [0.0, 1.0, 0.0]))
    third = cross(up, side)
    return {atom: [dot(r, side), dot(r, third), dot(r, up)] for atom, r in x.items()}


def is_suitable(x, far):
    """Whether head and tails are where they are in a bilayer, without overlaps.

    far: pairs of heavy atoms more than four bonds apart.
    """
    if not 0.15 < x["P1"][2] < 0.5 or x["N"][2] < 0.1:
        return False
    if not all(-1.65 < x[tail[-1]][2] < -1.0 and max(x[atom][2] for atom in tail) < 0.3
               for tail in TAILS):
        return False
    return all(math.dist(x[a], x[b]) > 0.32 for a, b in far)


def distant_pairs(heavy, neighbours):
    """Pairs of heavy atoms more than four bonds apart."""
    pairs = []
    for a in heavy:
        near = {a}
        for _ in range(4):
            near |= {b for atom in near for b in neighbours[atom]}
        pairs += [(a, b) for b in heavy if a < b and b not in near]
    return pairs


# ---- the bilayer ----
def place(generator, conformers, atoms):
    """Positions of all lipids, one list of atoms after the other; the middle is at z = 0."""
    reach = int(CLEARANCE / VOXEL) + 1
    around = [(i, j, k) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)
              for k in range(-reach, reach + 1) if math.hypot(i, j, k) * VOXEL < CLEARANCE]
    across = round(EDGE / VOXEL)
    taken = {}

    def voxel(r):
        return int(r[0] / EDGE * across) % across, int(r[1] / EDGE * across) % across, \
            math.floor(r[2] / VOXEL)

    def candidate(row, column, side):
        turn, at = generator.uniform(0, 2 * math.pi), EDGE / PER_EDGE
        centre = [(column + 0.5 + generator.gauss(0, 0.12)) * at,
                  (row + 0.5 + generator.gauss(0, 0.12)) * at,
                  GLYCEROL_HEIGHT + generator.gauss(0, 0.1)]
        c, s = math.cos(turn), math.sin(turn)
        # A half turn around x leads to the other leaflet; a mirror would make enantiomers.
        return [[centre[0] + c * x[0] - s * x[1],
                 centre[1] + side * (s * x[0] + c * x[1]),
                 side * (centre[2] + x[2])]
                for x in map(generator.choice(conformers).get, atoms)]

    def overlap(lipid):
        return sum(taken.get(voxel(r), 0) for r, atom in zip(lipid, atoms) if not is_hydrogen(atom))

    lipids = []
    sites = [(row, column, side) for row in range(PER_EDGE) for column in range(PER_EDGE)
             for side in (1, -1)]
    for site in sites:
        best = min((candidate(*site) for _ in range(NUM_TRIES)), key=overlap)
        for r, atom in zip(best, atoms):
            if not is_hydrogen(atom):
                v = voxel(r)
                for i, j, k in around:
                    key = (v[0] + i) % across, (v[1] + j) % across, v[2] + k
                    taken[key] = taken.get(key, 0) + 1
        lipids.append(best)
    return lipids


def build(gmx, folder):
    """Leaves lipid.gro and bilayer.gro; returns the number of lipids."""
    atoms, neighbours = read_residue(residues_of(gmx), LIPID)
    heavy = [atom for atom in atoms if not is_hydrogen(atom)]
    far = distant_pairs(heavy, neighbours)
    generator = random.Random(1)
    conformers = []
    while len(conformers) < NUM_CONFORMERS:
        x = upright(conformer(generator, neighbours))
        if is_suitable(x, far):
            conformers.append(x)
    lipids = place(generator, conformers, atoms)
    box = [[EDGE, 0, 0], [0, EDGE, 0], [0, 0, HEIGHT]]
    for name, members in (("lipid", lipids[:1]), ("bilayer", lipids)):
        x = [[r[0], r[1], r[2] + HEIGHT / 2] for lipid in members for r in lipid]
        gro.write(folder / f"{name}.gro", gro.Structure(
            f"{LIPID} bilayer", [i // len(atoms) + 1 for i in range(len(x))], [LIPID] * len(x),
            atoms * len(members), x, box), decimals=3)
    return len(lipids)


def remove_core_water(folder):
    """Leaves wet.gro without the water that gmx solvate puts between the tails; returns its number."""
    s = gro.read(folder / "solvated.gro")
    keep = [True] * len(s.x)
    for i, name in enumerate(s.atoms):
        if name.strip() == "OW" and abs(s.x[i][2] - HEIGHT / 2) < DRY_HEIGHT:
            keep[i:i + 3] = [False] * 3
    columns = ([value for value, kept in zip(column, keep) if kept]
               for column in (s.residue_numbers, s.residues, s.atoms, s.x))
    gro.write(folder / "wet.gro", gro.Structure(s.title, *columns, s.box), decimals=3)
    return sum(kept and name.strip() == "OW" for kept, name in zip(keep, s.atoms))


def make_topology(gmx, folder, num_lipids, num_waters):
    """Leaves patch.top: pdb2gmx knows the atoms of a lipid, all of which are there."""
    gmx("pdb2gmx", "-f", "lipid.gro", "-ff", FORCE_FIELD, "-water", WATER, "-o", "ordered.gro",
        "-p", "lipid.top", "-i", "lipid_posre.itp", folder=folder)
    text, end = (folder / "lipid.top").read_text().split("[ molecules ]")
    text = text.replace(end.split()[-2], LIPID)  # the name that pdb2gmx gives to the molecule
    (folder / "patch.top").write_text(
        f"{text}[ molecules ]\n{LIPID} {num_lipids}\nSOL {num_waters}\n")


# ---- the prepared patch ----
def overlapping(gmx, folder):
    """Leaves wet.gro and patch.top in the folder: lipids that overlap, in water."""
    num_lipids = build(gmx, folder)
    gmx("solvate", "-cp", "bilayer.gro", "-cs", "spc216", "-o", "solvated.gro", folder=folder)
    make_topology(gmx, folder, num_lipids, remove_core_water(folder))


def prepare(gmx, arguments, folder):
    """Leaves patch.gro, equilibrated, patch.gro.xz and patch.top in the folder.

    If the last two are there, they are used, whatever made them.
    """
    packed = folder / "patch.gro.xz"
    if not packed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        protein.say("building a bilayer")
        overlapping(gmx, folder)
        start = ["-c", "wet.gro"]
        for name, settings in STAGES.items():
            protein.say(f"membrane: {name}")
            mdp.write(folder / f"{name}.mdp", protein.COMMON, protein.DYNAMICS, PME, settings)
            gmx("grompp", "-f", f"{name}.mdp", *start, "-p", "patch.top", "-o", f"{name}.tpr",
                folder=folder)
            gmx("mdrun", "-deffnm", name, *protein.threads_of(arguments), folder=folder)
            start = ["-c", f"{name}.gro"]
            if (folder / f"{name}.cpt").exists():
                start += ["-t", f"{name}.cpt"]
        packed.write_bytes(lzma.compress((folder / "patch.gro").read_bytes()))
    elif not (folder / "patch.gro").exists():
        (folder / "patch.gro").write_bytes(lzma.decompress(packed.read_bytes()))


def shape(folder):
    """Area per lipid, distance of the two layers of phosphorus, nm; order of the tails.

    The order is the mean of (3 cos^2 - 1) / 2 over vectors between next but one carbons and the
    normal: 1 for stretched chains, about 0.3 in a fluid, 0 for none.
    """
    s = gro.read(folder / "patch.gro")
    names = [name.strip() for name in s.atoms]
    molecules = {}
    for number, residue, name, r in zip(s.residue_numbers, s.residues, names, s.x):
        if residue.strip() == LIPID:
            molecules.setdefault(number, {})[name] = r
    layers, order = ([], []), []
    for x in molecules.values():
        up = x["P1"][2] > x[TAILS[0][-1]][2]
        layers[up].append(x["P1"][2])
        for tail in TAILS:
            for a, b in zip(tail, tail[2:]):
                d = minus(x[b], x[a])
                order.append(1.5 * d[2] ** 2 / dot(d, d) - 0.5)
    lower, upper = (sum(z) / len(z) for z in layers)
    return {"atoms": len(names), "lipids": len(molecules), "waters": names.count("OW"),
            "area": s.box[0][0] * s.box[1][1] / len(layers[0]), "thickness": upper - lower,
            "height": s.box[2][2], "order": sum(order) / len(order)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gmx", type=Path, default=Path("build/bin/gmx"))
    parser.add_argument("--output", type=Path, default=Path("build/membrane"))
    parser.add_argument("--threads", type=int, default=usable_cores())
    arguments = parser.parse_args()
    prepare(Gmx(arguments.gmx), arguments, arguments.output)
    found = shape(arguments.output)
    print(f"""
{found["lipids"]} {LIPID}, {found["waters"]} molecules of water, {found["atoms"]} atoms
area per lipid              {found["area"]:8.3f} nm^2
phosphorus to phosphorus    {found["thickness"]:8.2f} nm
height of the box           {found["height"]:8.2f} nm
order of the tails          {found["order"]:8.2f}

To carry: {arguments.output / "patch.gro.xz"}, {arguments.output / "patch.top"}""")


if __name__ == "__main__":
    try:
        main()
    except (GmxError, ValueError, OSError) as error:
        sys.exit(f"membrane.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
