# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs gmx and reads what it writes; needs nothing but Python."""

import array
import math
import os
import platform
import re
import statistics
import struct
import subprocess
import sys
from pathlib import Path


class GmxError(RuntimeError):
    """A gmx command failed; the text says which, and ends with its last messages."""


class Gmx:
    """One gmx program."""

    def __init__(self, program):
        self.program = Path(program).resolve()
        if not self.program.is_file():
            raise GmxError(f"{program} does not exist; ./quickstart.sh gmx builds it")

    def __call__(self, command, *arguments, folder, answer="", variables=None):
        """Runs one command in a folder; its messages go to <command>.out there.

        answer: what to type at the command's questions; variables: to add to the environment.
        Returns the messages.
        """
        words = [str(self.program), "-quiet", "-nobackup", command, *map(str, arguments)]
        environment = dict(os.environ)
        environment.pop("GMXLIB", None)
        # mdrun is told its threads; a different number here would be an error.
        environment.pop("OMP_NUM_THREADS", None)
        # Threads that sleep between two parallel regions make the pair search slow.
        environment.pop("OMP_WAIT_POLICY", None)
        environment.update(variables or {})
        done = subprocess.run(words, cwd=folder, input=answer, text=True, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                              check=False)
        log = Path(folder) / f"{command}.out"
        log.write_text(done.stdout)
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-25:])
            raise GmxError(f"gmx {command} failed in {folder} (messages in {log}):\n{tail}")
        return done.stdout

    def version(self):
        """The lines of "gmx -version" that matter for a comparison of speeds."""
        text = subprocess.run([str(self.program), "-quiet", "-version"], text=True, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        wanted = ("GROMACS version", "Precision", "SIMD instructions", "CPU FFT library",
                  "GPU support", "C++ compiler")
        lines = (line.split(":", 1) for line in text.splitlines() if ":" in line)
        return {name.strip(): value.strip() for name, value in lines if name.strip() in wanted}


def write_mdp(path, *settings):
    """Writes an .mdp file; later settings override earlier ones."""
    merged = {}
    for group in settings:
        merged.update(group)
    path.write_text("".join(f"{key:<28} = {value}\n" for key, value in merged.items()))


def usable_cores():
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def machine():
    """Processor, cores and system, for the head of a table."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {usable_cores()} cores, {platform.system()} {platform.release()}"


def read_forces(path):
    """The forces of the last frame of a .trr file, kJ/mol/nm, as a flat array x0 y0 z0 x1 ...

    A frame is a header of big-endian integers (XDR) that gives the size of each block, then the
    blocks: box, virial, pressure, x, v, f.
    """
    forces = None
    with open(path, "rb") as file:
        while True:
            start = file.read(4)
            if not start:
                break
            if struct.unpack(">i", start)[0] != 1993:
                raise ValueError(f"{path} is not a .trr file")
            _, length = struct.unpack(">2i", file.read(8))
            file.read((length + 3) // 4 * 4)
            sizes = struct.unpack(">13i", file.read(52))
            box, virial, pressure = sizes[2], sizes[3], sizes[4]
            positions, velocities, num_bytes, num_atoms = sizes[7], sizes[8], sizes[9], sizes[10]
            # The precision shows in the size of any block that is present.
            if box:
                real = box // 9
            else:
                real = max(positions, velocities, num_bytes) // (3 * num_atoms)
            file.read(2 * real)  # time and lambda
            file.seek(sizes[0] + sizes[1] + box + virial + pressure + sizes[5] + sizes[6]
                      + positions + velocities, os.SEEK_CUR)
            if num_bytes:
                forces = array.array("f" if real == 4 else "d", file.read(num_bytes))
                if sys.byteorder == "little":
                    forces.byteswap()
    if forces is None:
        raise ValueError(f"{path} holds no forces")
    return forces


def relative_rms(forces, reference):
    """sqrt(sum |f - f_ref|^2 / sum |f_ref|^2)."""
    if len(forces) != len(reference):
        raise ValueError("the numbers of atoms differ")
    difference = math.fsum((a - b) ** 2 for a, b in zip(forces, reference))
    return math.sqrt(difference / math.fsum(b * b for b in reference))


def read_energies(gmx, folder, name, terms):
    """Terms of the first frame of <name>.edr; a term that the file lacks is left out.

    Terms are asked for as gmx energy writes them, with "-" for blanks.
    """
    gmx("energy", "-f", f"{name}.edr", "-o", f"{name}.xvg", "-b", 0, "-e", 0, "-dp",
        folder=folder, answer="\n".join(terms) + "\n\n")
    legends, values = [], None
    for line in (Path(folder) / f"{name}.xvg").read_text().splitlines():
        legend = re.match(r'@ s\d+ legend "(.*)"', line)
        if legend:
            legends.append(legend.group(1).replace(" ", "-"))
        elif line and line[0] not in "#@" and values is None:
            values = [float(word) for word in line.split()[1:]]
    return dict(zip(legends, values))


def read_speed(log):
    """ns/day from an md.log."""
    for line in reversed(Path(log).read_text(errors="replace").splitlines()):
        if line.startswith("Performance:"):
            return float(line.split()[1])
    raise GmxError(f"{log} has no line with the performance; did mdrun finish?")


def read_cycles(log):
    """The table of activities of an md.log: {activity: seconds}."""
    rows = re.finditer(r"^ (\S.*?)  +\d+ +\d+ +\d+ +([\d.]+) +[\d.]+ +[\d.]+$",
                       Path(log).read_text(errors="replace"), re.MULTILINE)
    return {row.group(1): float(row.group(2)) for row in rows}


def read_gpu(log):
    """Name of the first GPU in an md.log, or None."""
    found = re.search(r"^ *#0: (?:NVIDIA )?(.*?), compute cap", Path(log).read_text(errors="replace"),
                      re.MULTILINE)
    return found.group(1) if found else None


def read_stages(log):
    """farfield's stages from an md.log: {name: milliseconds per call}, in their order."""
    stages, inside = {}, False
    for line in Path(log).read_text(errors="replace").splitlines():
        if re.match(r"FMM \(farfield\) (wall-clock|GPU) time per stage", line):
            stages, inside = {}, True
        elif inside:
            row = re.match(r"\s+(\S.*?)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", line)
            if row:
                stages[row.group(1)] = float(row.group(4))
            elif not line.strip():
                inside = False
    return stages


def read_setup(log):
    """The paragraph in which farfield describes its discretisation in an md.log."""
    found = []
    for line in Path(log).read_text(errors="replace").splitlines():
        if line.startswith("FMM electrostatics with farfield"):
            found = [line]
        elif found and line.startswith("  "):
            found.append(line)
        elif found:
            break
    return found


def median_and_spread(values):
    """Median, and half the distance between the extremes."""
    return statistics.median(values), (max(values) - min(values)) / 2
