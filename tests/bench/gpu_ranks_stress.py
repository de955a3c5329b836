# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs on the GPUs of two ranks, many at a time, whose forces are compared frame by frame.

    python3 -m tests.bench.gpu_ranks_stress --seconds 150 --jobs 18

What is wrong once in a thousand steps shows where processors and GPUs have too much to do. Salt water at
constant pressure, in turn with messages between GPUs by every way that there is and with dynamic load
balancing left alone and on, is run again and again; frames are compared with a rerun on the CPU. Says of
frames that differ which atoms do, and how much; ends with status 1 if there are any.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tests.support.gmx import simulation, systems
from tests.support.gmx.mdp import BAROSTAT, FIXED_FMM, MOTION_ON_GPU, THERMOSTAT, settings

# Some hundred terms of single precision, added in another order, on both sides.
ROUNDING = 2e-5
# Ways of messages: what mdrun chooses, and what it does without GPUs that reach each other's memory.
WAYS = {"direct": {}, "not direct": {"GMX_DISABLE_DIRECT_GPU_COMM": "1"}}
BALANCING = ["auto", "yes"]


def differences(run, rerun):
    """Lines about frames that differ."""
    lines = []
    for frame, other in zip(run.frames, rerun.frames, strict=True):
        error = simulation.force_error(frame.f, other.f)
        if error > ROUNDING:
            change = frame.f - other.f
            size = np.linalg.norm(change, axis=1)
            atoms = np.flatnonzero(size > 0.05 * size.max())
            lines.append(f"  step {frame.step}: {error:.1e}, {len(atoms)} atoms, among them")
            lines += [
                f"    {i} at {np.round(frame.x[i], 3)}: {np.round(change[i], 3)} kJ/mol/nm" for i in atoms[:4]
            ]
    return lines


class Jobs:
    """Threads that run until time is over, and what they found."""

    def __init__(self, folder, end):
        self.folder, self.end = folder, end
        self.lock = threading.Lock()
        self.frames, self.bad = 0, 0

    def work(self, number):
        folder = self.folder / f"job-{number}"
        folder.mkdir()
        for name in ("run", "rerun"):
            (folder / f"{name}.tpr").symlink_to(self.folder / f"{name}.tpr")
        way = list(WAYS)[number % len(WAYS)]
        balancing = BALANCING[number // len(WAYS) % len(BALANCING)]
        flags = ["-nb", "gpu", "-update", "cpu", "-gpu_id", "01", "-dlb", balancing]
        while time.monotonic() < self.end:
            simulation.mdrun(folder, "run", flags, ntmpi=2, ntomp=1, variables=WAYS[way]).ok()
            simulation.mdrun(folder, "rerun", ["-nb", "cpu", "-rerun", "run.trr"], ntomp=1).ok()
            run = simulation.Run(folder, "run")
            lines = differences(run, simulation.Run(folder, "rerun"))
            with self.lock:
                self.frames += len(run.frames)
                self.bad += bool(lines)
                if lines:
                    print(f"messages {way}, load balancing {balancing}", *lines, sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--jobs", type=int, default=18, help="at a time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        water = systems.salt_water(folder)
        entries = settings(MOTION_ON_GPU, FIXED_FMM, THERMOSTAT, BAROSTAT)
        for run, device in (("run", "gpu"), ("rerun", "cpu")):
            changed = settings(entries, {"fmm-farfield-device": device})
            simulation.grompp(folder, run, changed, water.conf, water.top, ["-maxwarn", 2]).ok()
        jobs = Jobs(folder, time.monotonic() + arguments.seconds)
        threads = [threading.Thread(target=jobs.work, args=(k,)) for k in range(arguments.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(f"{jobs.frames} frames, {jobs.bad} runs with some that differ")
    sys.exit(jobs.bad > 0)


if __name__ == "__main__":
    main()
