# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed of mdrun with FMM against PME, and against no Coulomb interaction at all.

Boxes of water and of salt water, solvated proteins and a membrane are made with gmx, minimised and
warmed up once, and kept in the cache folder. Then mdrun runs each kind in turn, several rounds in one
invocation and on the same cores, so that a change of the machine's speed meets all of them. Medians
of the rounds are compared:

    PME            with GROMACS's standard settings; mdrun does not tune it on a CPU alone
    FMM            with the options of --mdp
    FMM all atoms  the same with all atoms in GROMACS's pair list
    none           three-site water with its charges set to zero and a plain cut-off

    python3 -m tests.bench.mdrun_speed --sizes 23k four-site protein
    python3 -m tests.bench.mdrun_speed --sizes 23k --nstcalcenergy 1 10 100

The name of a system of 4 fs steps, with three times heavier hydrogens, ends with "-4fs". The forces of
both at the first step are compared with a converged PME: in double precision if --gmx-double names
such a gmx of any version, otherwise in mixed precision, which limits the comparison to a few 1e-6.
"""

import argparse
import hashlib
import math
import os
import shutil
import sys
import time
from pathlib import Path

from examples import membrane, protein
from farfield.gromacs import log, machine, trr
from farfield.gromacs.program import Gmx, GmxError
from tests.bench import results
from tests.support.gmx import environment, gro, mdp
from tests.support.gmx.mdp import FMM
from tests.support.gmx.mdp import STANDARD_PME as PME

# GROMACS's standard settings for PME: 1.0 nm, 0.12 nm, order 4, 1e-5.
COMMON = {
    "cutoff-scheme": "Verlet",
    "rcoulomb": 1.0,
    "rvdw": 1.0,
    "integrator": "md",
    "dt": 0.002,
    "tcoupl": "v-rescale",
    "tc-grps": "system",
    "tau-t": 0.5,
    "ref-t": 300,
    "ld-seed": 1,
    "nstcalcenergy": 100,
    "nstenergy": 1000,
    "nstlog": 1000,
}
NONE = {"coulombtype": "Cut-off"}
MINIMISATION = {"integrator": "steep", "nsteps": 60, "emstep": 0.01, "emtol": 100}
WARM_UP = {"nsteps": 1000, "gen-vel": "yes", "gen-temp": 300, "gen-seed": 1, "tau-t": 0.1}
CONTINUATION = {"continuation": "yes", "gen-vel": "no"}
# Constraints and virtual sites are put in order first: a file has few decimals.
START = {"continuation": "no", "gen-vel": "no"}

# Edge of the cube, nm: 23 262, 46 650 and 93 237 atoms of TIP3P; one of TIP4P; then multiples of such
# boxes along x, y, z.
BOXES = {"23k": 6.2, "47k": 7.8, "93k": 9.8}
FOUR_SITE_BOXES = {"four-site": 6.2}
MULTIPLES = {"373k": ("93k", (2, 2, 1)), "1120k": ("93k", (3, 2, 2))}

# Force field and water of a solvated protein; the oxygen of the last one has no charge.
PROTEINS = {
    "protein": ("amber99sb-ildn", "tip3p"),
    "protein-charmm": ("charmm27", "tip3p"),
    "protein-opls": ("oplsaa", "tip4p"),
}

# Copies of a protein in its dodecahedron or of a patch of membrane along x, y, z: 88 824, 16 998 and
# 101 988 atoms. A folder membrane-patch in the cache with patch.gro.xz and patch.top spares making one.
TILES = {
    "protein-89k": ("protein", (2, 2, 1)),
    "membrane-17k": ("patch", (1, 1, 1)),
    "membrane": ("patch", (3, 2, 1)),
}

# A protein with CMAP in water beside a membrane: copies of the patch along x, y, z, and what the box
# gains along z, nm.
MEMBRANE_PROTEINS = {"membrane-protein": ((2, 1, 1), 4.5)}
GAP = 0.15  # nm between the two: molecules stand out of their boxes
SETTLE = {**MINIMISATION, "nsteps": 300}
PRESSED = {**WARM_UP, **membrane.PRESSURE, "nsteps": 5000}

# Sodium chloride, mol/l, in a box of TIP3P.
SALT = {"salt": ("93k", 1.0)}

# The same with steps of 4 fs. With one iteration of LINCS the conserved energy of the membrane drifts by
# 0.009 kJ/mol/ps per atom, with PME as with FMM; with two by less than 3 % of that.
HEAVY_HYDROGENS = {"mass-repartition-factor": 3, "dt": 0.004, "lincs-iter": 2}
HEAVY = {f"{name}-4fs": name for name in ("protein", *TILES)}

SYSTEMS = [*BOXES, *MULTIPLES, *FOUR_SITE_BOXES, *SALT, *PROTEINS, *TILES, *MEMBRANE_PROTEINS, *HEAVY]

ALL_ATOMS = {"GMX_NBNXM_SEARCH_ALL_ATOMS": "1"}

TOPOLOGY = """#include "amber99sb-ildn.ff/forcefield.itp"
#include "amber99sb-ildn.ff/tip3p.itp"
[ system ]
TIP3P water
[ molecules ]
"""

# Rigid TIP3P without its charges: the atom types, and so Lennard-Jones, stay.
UNCHARGED_TOPOLOGY = """#include "amber99sb-ildn.ff/forcefield.itp"
[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW  1 0.0 16.00
2 HW 1 SOL HW1 1 0.0 1.008
3 HW 1 SOL HW2 1 0.0 1.008
[ settles ]
1 1 0.09572 0.15139
[ exclusions ]
1 2 3
2 1 3
3 1 2
[ system ]
TIP3P water without charges
[ molecules ]
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def cache_folder():
    if "FARFIELD_CACHE" in os.environ:
        return Path(os.environ["FARFIELD_CACHE"]) / "bench"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "farfield" / "bench"


def prepare(gmx, size, arguments):
    """The folder of a warm box of water: warm.gro, warm.cpt, and both topologies."""
    part, counts = MULTIPLES.get(size, (size, None))
    is_four_site = size in FOUR_SITE_BOXES
    edge = FOUR_SITE_BOXES[size] if is_four_site else BOXES[part]
    shape = (edge, counts) if counts else edge
    topologies = {"topol.top": TOPOLOGY, "uncharged.top": UNCHARGED_TOPOLOGY}
    if is_four_site:
        topologies = {"topol.top": TOPOLOGY.replace("tip3p", "tip4p")}
    key = hashlib.sha256(repr((shape, *topologies.values(), COMMON, PME,
                               MINIMISATION, WARM_UP)).encode()).hexdigest()[:12]
    folder = arguments.cache / f"water-{size}-{key}"
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    stages = (("minimise", MINIMISATION), ("warm", WARM_UP))
    if counts:
        warm_part = prepare(gmx, part, arguments) / "warm.gro"
        say(f"{size}: joining boxes of {part} and warming up (once)")
        gmx("genconf", "-f", warm_part, "-nbox", *counts, "-o", "water.gro", folder=folder)
        stages = stages[1:]
    else:
        say(f"{size}: making and warming up a cube of water of {edge} nm (once)")
        solvent = "tip4p" if is_four_site else "spc216"
        gmx("solvate", "-cs", solvent, "-box", edge, edge, edge, "-o", "water.gro", folder=folder)
    num_molecules = gro.atom_count(folder / "water.gro") // (4 if is_four_site else 3)
    for name, text in topologies.items():
        (folder / name).write_text(f"{text}SOL {num_molecules}\n")
    warm_up(gmx, folder, "water.gro", stages, PME, arguments.threads)
    (folder / "complete").touch()
    return folder


def warm_up(gmx, folder, start, stages, electrostatics, threads, common=None, warnings=0):
    """Runs the stages one after the other, from the structure start; grompp may warn so often."""
    for name, settings in stages:
        mdp.write(folder / f"{name}.mdp", common or COMMON, electrostatics, settings)
        gmx("grompp", "-f", f"{name}.mdp", "-c", start, "-p", "topol.top", "-o", f"{name}.tpr",
            "-maxwarn", warnings, folder=folder)
        gmx("mdrun", "-deffnm", name, "-ntmpi", 1, "-ntomp", threads, folder=folder)
        start = f"{name}.gro"


def has_bonded(name):
    """Whether a system has more than rigid water and ions."""
    return name.startswith(("protein", "membrane"))


def common_settings(name):
    """The settings that all runs of a system share."""
    return {**COMMON, **(protein.COMMON if has_bonded(name) else {}),
            **(HEAVY_HYDROGENS if name in HEAVY else {})}


def derived(gmx, name, arguments, sources, make, stages):
    """The folder of a system that is made of files of another, anew when these change.

    make(folder) leaves the structure start.gro and topol.top.
    """
    common = common_settings(name)
    identity = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    identity.update(repr((name, TILES.get(name) or MEMBRANE_PROTEINS.get(name), SALT.get(name), common,
                          stages)).encode())
    folder = arguments.cache / name
    stamp = folder / "prepared"
    if stamp.exists() and stamp.read_text() == identity.hexdigest():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    say(f"{name}: making and warming up (once)")
    make(folder)
    warm_up(gmx, folder, "start.gro", stages, PME, arguments.threads, common)
    stamp.write_text(identity.hexdigest())
    return folder


def tiles(gmx, name, arguments):
    """The folder of copies of a protein or of a patch of membrane."""
    part, counts = TILES[name]
    if part == "patch":
        source = arguments.cache / "membrane-patch"
        membrane.prepare(gmx, arguments, source)
        structure, topology = source / "patch.gro", source / "patch.top"
    else:
        source = system(gmx, part, arguments)[0]
        structure, topology = source / "warm.gro", source / "topol.top"

    def make(folder):
        gmx("genconf", "-f", structure, "-nbox", *counts, "-o", "start.gro", folder=folder)
        head, molecules = topology.read_text().split("[ molecules ]\n")
        (folder / "topol.top").write_text(
            f"{head}[ molecules ]\n{molecules * math.prod(counts)}")

    return derived(gmx, name, arguments, (structure, topology), make, (("warm", WARM_UP),))


def membrane_protein(gmx, name, arguments):
    """The folder of a membrane with a protein in the water beside it, both with CHARMM's force field."""
    counts, height = MEMBRANE_PROTEINS[name]
    patch = arguments.cache / "membrane-patch"
    membrane.prepare(gmx, arguments, patch)

    def make(folder):
        gmx("genconf", "-f", patch / "patch.gro", "-nbox", *counts, "-o", "tiles.gro", folder=folder)
        tiled = gro.read(folder / "tiles.gro")
        edges = [tiled.box[k][k] for k in range(3)]
        gmx("pdb2gmx", "-f", arguments.structure.resolve(), "-ff", membrane.FORCE_FIELD,
            "-water", membrane.WATER, "-ignh", "-o", "protein.gro", "-p", "protein.top", folder=folder)
        # Its longest axis along x, where there is most room
        gmx("editconf", "-f", "protein.gro", "-princ", "-box", edges[0], edges[1], height, "-c",
            "-o", "box.gro", folder=folder, answer="System\n")
        gmx("solvate", "-cp", "box.gro", "-cs", "spc216", "-o", "wet.gro", folder=folder)
        wet = gro.read(folder / "wet.gro")
        atoms = [*zip(tiled.residue_numbers, tiled.residues, tiled.atoms, tiled.x),
                 *zip(wet.residue_numbers, wet.residues, wet.atoms,
                      [[x, y, z + edges[2] + GAP] for x, y, z in wet.x])]
        # Water to the end, in one piece, of which genion makes ions
        atoms.sort(key=lambda atom: atom[1].strip() == "SOL")
        box = [[edges[0], 0, 0], [0, edges[1], 0], [0, 0, edges[2] + height + 2 * GAP]]
        gro.write(folder / "stacked.gro",
                  gro.Structure("a membrane, and a protein in water", *zip(*atoms), box), decimals=3)
        head, molecules = (patch / "patch.top").read_text().split("[ molecules ]\n")
        before, after = head.split("[ system ]")
        text = (folder / "protein.top").read_text()
        itself = text[text.index("[ moleculetype ]"):text.index("; Include water topology")]
        protein_name = text.split("[ molecules ]")[1].split()[-2]
        lipids = molecules.splitlines()[0]
        waters = sum(atom[2].strip() == "OW" for atom in atoms)
        (folder / "topol.top").write_text("\n".join((
            f"{before}{itself}[ system ]{after}[ molecules ]", *[lipids] * math.prod(counts), f"{protein_name} 1",
            f"SOL {waters}\n")))
        mdp.write(folder / "ions.mdp", COMMON, PME, MINIMISATION)
        gmx("grompp", "-f", "ions.mdp", "-c", "stacked.gro", "-p", "topol.top", "-o", "ions.tpr",
            "-maxwarn", 1, folder=folder)  # the protein is charged until the ions are there
        gmx("genion", "-s", "ions.tpr", "-p", "topol.top", "-o", "start.gro", "-neutral",
            "-conc", 0.15, "-seed", 1, folder=folder, answer="SOL\n")

    return derived(gmx, name, arguments, (patch / "patch.gro", patch / "patch.top", arguments.structure), make,
                   (("minimise", SETTLE), ("warm", PRESSED)))


def salt_water(gmx, name, arguments):
    """The folder of a box of water in which ions replace molecules."""
    size, concentration = SALT[name]
    water = prepare(gmx, size, arguments)

    def make(folder):
        text = (water / "topol.top").read_text()
        ions = '#include "amber99sb-ildn.ff/ions.itp"\n[ system ]'
        (folder / "topol.top").write_text(text.replace("[ system ]", ions))
        mdp.write(folder / "ions.mdp", COMMON, PME, MINIMISATION)
        gmx("grompp", "-f", "ions.mdp", "-c", water / "warm.gro", "-p", "topol.top",
            "-o", "ions.tpr", folder=folder)
        gmx("genion", "-s", "ions.tpr", "-p", "topol.top", "-o", "start.gro",
            "-conc", concentration, "-seed", 1, folder=folder, answer="SOL\n")

    return derived(gmx, name, arguments, (water / "warm.gro", water / "topol.top"), make,
                   (("minimise", MINIMISATION), ("warm", WARM_UP)))


def heavy(gmx, name, arguments):
    """The folder of a system with heavy hydrogens."""
    source = system(gmx, HEAVY[name], arguments)[0]
    structure, topology = source / "warm.gro", source / "topol.top"

    def make(folder):
        for path, copy in ((structure, "start.gro"), (topology, "topol.top")):
            shutil.copyfile(path, folder / copy)

    return derived(gmx, name, arguments, (structure, topology), make, (("warm", WARM_UP),))


def system(gmx, name, arguments):
    """The folder with warm.gro, warm.cpt and topol.top of a system, and its common settings."""
    if name in PROTEINS:
        folder = arguments.cache / name
        folder.mkdir(parents=True, exist_ok=True)
        protein.prepare(gmx, arguments, folder, *PROTEINS[name])
    else:
        makers = {**dict.fromkeys(TILES, tiles), **dict.fromkeys(SALT, salt_water),
                  **dict.fromkeys(MEMBRANE_PROTEINS, membrane_protein), **dict.fromkeys(HEAVY, heavy)}
        folder = makers.get(name, prepare)(gmx, name, arguments)
    return folder, common_settings(name)


def ms_per_step(ns_per_day, dt):
    """Milliseconds that a step of dt ps takes: 86.4e6 ms a day, 1000 ps a ns."""
    return 86.4e3 * dt / ns_per_day


def force_errors(gmx, name, folder, common, arguments, devices):
    """Relative RMS error of the forces of the warm structure: {kind: error}, and the reference.

    devices: {kind: options of mdrun}.
    """
    output = arguments.output
    single_step = {"nsteps": 0, "nstfout": 1, "nstcalcenergy": 1, "nstenergy": 1}
    double = Gmx(arguments.gmx_double) if arguments.gmx_double else None
    reference = mdp.CONVERGED_PME if double else protein.TIGHT_PME
    forces = {}
    for kind, program, settings, options in (
            ("reference", double or gmx, reference, () if double else ("-nb", "cpu")),
            ("PME", gmx, PME, devices["PME"]),
            ("FMM", gmx, {**FMM, **arguments.mdp}, devices["FMM"])):
        run_name = f"{name}-forces-{kind}"
        mdp.write(output / f"{run_name}.mdp", common, START, settings, single_step)
        # From the structure file alone, which any version reads: all programs have equal positions.
        program("grompp", "-f", f"{run_name}.mdp", "-c", folder / "warm.gro",
                "-p", folder / "topol.top", "-o", f"{run_name}.tpr", "-po", f"{run_name}-out.mdp",
                folder=output)
        program("mdrun", "-deffnm", run_name, "-noconfout", "-ntmpi", 1,
                "-ntomp", arguments.threads, *options, folder=output)
        forces[kind] = trr.forces(output / f"{run_name}.trr")
    errors = {kind: trr.relative_rms(forces[kind], forces["reference"])
              for kind in ("PME", "FMM")}
    return {**errors, "reference": reference, "double": bool(double)}


def describe_errors(errors):
    """The line of a table with what force_errors() found."""
    return (f"force error: PME {errors['PME']:.2e}, FMM {errors['FMM']:.2e}"
            + ("" if errors["double"] else " (reference in mixed precision)"))


def kinds_of(folder, arguments):
    """{kind: settings, topology, variables of mdrun's environment}"""
    fmm = {**FMM, **arguments.mdp}
    kinds = {"PME": (PME, "topol.top", {}), "FMM": (fmm, "topol.top", {})}
    if not arguments.no_baseline:
        kinds["FMM all atoms"] = (fmm, "topol.top", ALL_ATOMS)
        if (folder / "uncharged.top").exists():
            kinds["none"] = (NONE, "uncharged.top", {})
    return kinds


def measure(gmx, size, interval, arguments):
    """All rounds of a system with energies at an interval; returns the record for the JSON file."""
    folder, common = system(gmx, size, arguments)
    kinds = kinds_of(folder, arguments)
    label = f"{size}-every-{interval}"
    num_atoms = gro.atom_count(folder / "warm.gro")
    # A core of today needs about 1 us per step and atom.
    steps = arguments.steps
    if not steps:
        steps = max(400, int(arguments.seconds * arguments.threads / (num_atoms * 1e-6)))
        steps = steps // 100 * 100  # whole intervals of energy calculation
    length = {"nsteps": steps, "nstcalcenergy": interval}
    for kind, (settings, topology, _) in kinds.items():
        name = f"{label}-{kind.replace(' ', '-')}"
        mdp.write(arguments.output / f"{name}.mdp", common, CONTINUATION, settings, length)
        gmx("grompp", "-f", f"{name}.mdp", "-c", folder / "warm.gro",
            "-t", folder / "warm.cpt", "-p", folder / topology, "-o", f"{name}.tpr",
            "-po", f"{name}-out.mdp", folder=arguments.output)
    speeds = {kind: [] for kind in kinds}
    stages = []
    for turn in range(arguments.rounds):
        for kind, (_, _, variables) in kinds.items():
            run = f"{label}-{kind.replace(' ', '-')}"
            name = f"{run}-{turn + 1}"
            start = time.monotonic()
            gmx("mdrun", "-s", f"{run}.tpr", "-deffnm", name, "-noconfout", "-resethway",
                "-ntmpi", 1, "-ntomp", arguments.threads, "-pin", "on", "-notunepme",
                folder=arguments.output, variables=variables)
            path = arguments.output / f"{name}.log"
            speeds[kind].append(log.speed(path))
            say(f"{label} round {turn + 1} {kind:<13} {speeds[kind][-1]:9.2f} ns/day"
                f"  ({time.monotonic() - start:.0f} s)")
            if kind == "FMM":
                stages.append(log.stages(path))
                setup = log.setup(path)
    record = {"atoms": num_atoms, "steps": steps, "nstcalcenergy": interval, "setup": setup,
              "ns_per_day": speeds,
              "median_ns_per_day": {}, "half_range_ns_per_day": {}, "ms_per_step": {},
              "fmm_stage_ms": {}}
    for kind, values in speeds.items():
        median, spread = results.median_and_spread(values)
        record["median_ns_per_day"][kind] = median
        record["half_range_ns_per_day"][kind] = spread
        record["ms_per_step"][kind] = ms_per_step(median, common["dt"])
    # The ratio within each round, then its median: what changes slowly cancels.
    record["fmm_over_pme"], record["fmm_over_pme_half_range"] = results.median_and_spread(
        [fmm / pme for fmm, pme in zip(speeds["FMM"], speeds["PME"])])
    if num_atoms <= arguments.max_error_atoms:
        record["force_error"] = force_errors(gmx, label, folder, common, arguments,
                                             {"PME": (), "FMM": ()})
    for name in stages[0]:
        values = [stage[name] for stage in stages if name in stage]
        record["fmm_stage_ms"][name] = results.median_and_spread(values)[0]
    return record


def print_tables(records):
    print(f"\n{'':<20}{'atoms':>8}  {'':<14}{'ns/day':>18}{'ms/step':>9}")
    for size, record in records.items():
        spreads = record["half_range_ns_per_day"]
        for kind, median in record["median_ns_per_day"].items():
            print(f"{size:<20}{record['atoms']:>8}  {kind:<14}{median:>9.2f} +-"
                  f"{spreads[kind]:>6.2f}{record['ms_per_step'][kind]:>9.2f}")
        print(f"{size:<20}{'':>8}  {'FMM / PME':<14}{record['fmm_over_pme']:>9.3f} +-"
              f"{record['fmm_over_pme_half_range']:>6.3f}")
        if "force_error" in record:
            print(f"{size:<30}{describe_errors(record['force_error'])}")
    print("medians and half the distance of the extremes\n")
    print(f"{'farfield, ms per call':<26}" + "".join(f"{size:>20}" for size in records))
    for name in next(iter(records.values()))["fmm_stage_ms"]:
        row = (record["fmm_stage_ms"].get(name) for record in records.values())
        print(f"{name:<26}" + "".join(f"{value:>20.3f}" if value is not None else f"{'-':>20}"
                                      for value in row))
    for size, record in records.items():
        print(f"\n{size}, {record['steps']} steps, the second half timed")
        print("\n".join(record["setup"]))


def parse_setting(text):
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form option=value")
    return key.strip(), value.strip()


def add_common_arguments(parser, result):
    """The arguments that benchmarks of mdrun share; result: the names of the files they write."""
    root = environment.ROOT
    parser.add_argument("--gmx", type=Path, default=root / "build/bin/gmx")
    parser.add_argument("--mdp", type=parse_setting, nargs="*", default=[],
                        metavar="OPTION=VALUE", help="options of FMM, as in an .mdp file")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="for the warm systems")
    parser.add_argument("--output", type=Path, default=root / "build/bench",
                        help=f"for inputs, logs, {result}")
    parser.add_argument("--structure", type=Path, default=root / "build/share/farfield/protein.pdb",
                        help="of the protein")


def add_arguments(parser, result):
    """The same, and of those with a baseline and errors of forces."""
    add_common_arguments(parser, result)
    parser.add_argument("--no-baseline", action="store_true",
                        help="leave out runs without a long range, and with all atoms listed")
    parser.add_argument("--gmx-double", type=Path, help="for the converged forces")
    parser.add_argument("--max-error-atoms", type=int, default=120000,
                        help="no force error of larger systems; 0: of none")


def start(arguments):
    """Makes the folders, prints the machine; returns gmx and its version."""
    arguments.mdp = dict(arguments.mdp)
    arguments.cache, arguments.output = arguments.cache.resolve(), arguments.output.resolve()
    arguments.output.mkdir(parents=True, exist_ok=True)
    gmx = Gmx(arguments.gmx)
    version = gmx.version()
    print(f"{machine.describe()}; {arguments.threads} threads, one rank, pinned")
    for name, value in version.items():
        print(f"{name}: {value}")
    return gmx, version


def write_result(path, arguments, version, key, records):
    """Writes all numbers, with what they belong to."""
    results.write(path, {
        **results.conditions(), "threads": arguments.threads, "versions": version,
        "mdp": {"common": COMMON, "PME": PME, "FMM": {**FMM, **arguments.mdp}, "none": NONE},
        key: records})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, "mdrun_speed.json")
    parser.add_argument("--sizes", nargs="+", choices=SYSTEMS,
                        default=["23k", "93k", "four-site", "protein"])
    parser.add_argument("--nstcalcenergy", type=int, nargs="+", default=[100],
                        help="intervals of energies, each is run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="steps per run; default: by --seconds")
    parser.add_argument("--seconds", type=float, default=15,
                        help="rough length of each run when --steps is not given")
    parser.add_argument("--threads", type=int, default=machine.usable_cores())
    arguments = parser.parse_args()
    if min(arguments.rounds, arguments.threads, *arguments.nstcalcenergy) < 1 or arguments.steps < 0:
        parser.error("--rounds, --threads, --nstcalcenergy must be at least 1, --steps at least 0")
    gmx, version = start(arguments)
    records = {}
    for size in arguments.sizes:
        for interval in arguments.nstcalcenergy:
            several = len(arguments.nstcalcenergy) > 1
            label = f"{size} every {interval}" if several else size
            records[label] = measure(gmx, size, interval, arguments)
    print_tables(records)
    result = arguments.output / "mdrun_speed.json"
    write_result(result, arguments, version, "sizes", records)
    print(f"\nAll numbers: {result}")


if __name__ == "__main__":
    try:
        main()
    except (GmxError, ValueError, OSError) as error:
        sys.exit(f"mdrun_speed.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
