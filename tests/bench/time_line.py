# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The time line of a step of mdrun on a GPU, from what libfarfield_time_line.so has written.

    python3 -m tests.bench.time_line run.csv

prints how long the steps of the second half of the run took, and one typical step, kernel by kernel:
begin, end, duration and its mean over all typical steps, us; stream; blocks, threads of a block,
registers of a thread, shared memory of a block in bytes and of the multiprocessor in KiB. A step goes
from the integration of the equations of motion to the next one. Of several GPUs of a run one is shown.
"""

import argparse
import re
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

STEP = "leapfrog"  # in the name of the kernel that begins a step
LIKE = 0.05  # typical steps are so close to the median, as a fraction


class Launch(NamedTuple):
    """What ran on the GPU; times in ns."""

    begin: int
    end: int
    device: int
    stream: int
    blocks: int
    threads: int
    registers: int
    shared: int
    shared_of_all: int
    name: str


def read(path, device):
    """All launches on a GPU, by the time at which they began."""
    launches = []
    for line in path.read_text().splitlines():
        *numbers, name = line.split(",", 9)
        launch = Launch(*map(int, numbers), name)
        if launch.device == device:
            launches.append(launch)
    launches.sort()
    names = sorted({launch.name for launch in launches})
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    short = {name: shorten(full) for name, full in zip(names, plain)}
    return [launch._replace(name=short[launch.name]) for launch in launches]


def shorten(name):
    """A name without arguments and namespaces."""
    name = re.sub(r"\(anonymous namespace\)::|void |farfield::|gmx::", "", name)
    return re.sub(r"\(.*", "", name)[:60]


def steps_of(launches):
    """(first, last) indices of the steps in the second half."""
    marks = [i for i, launch in enumerate(launches) if STEP in launch.name.lower()]
    marks = marks[len(marks) // 2:]
    return list(zip(marks, marks[1:]))


def busy(launches):
    """Time in which anything ran, ns."""
    total, end = 0, 0
    for launch in launches:
        total += max(0, launch.end - max(launch.begin, end))
        end = max(end, launch.end)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--device", type=int, default=0, help="the GPU (0)")
    args = parser.parse_args()
    launches = read(args.file, args.device)
    steps = steps_of(launches)
    if not steps:
        parser.error(f"no steps of GPU {args.device}: fewer than four kernels have '{STEP}' in their names")
    lengths = [launches[b].begin - launches[a].begin for a, b in steps]
    median = statistics.median(lengths)
    print(f"{len(steps)} steps, us: mean {statistics.mean(lengths) / 1e3:.1f}, "
          f"median {median / 1e3:.1f}, longest {max(lengths) / 1e3:.1f}")
    typical = [step for step, length in zip(steps, lengths)
               if abs(length - median) < LIKE * median]
    durations = defaultdict(list)
    for a, b in typical:
        for launch in launches[a:b]:
            durations[launch.name].append(launch.end - launch.begin)
    mean_busy = statistics.mean(busy(launches[a:b]) for a, b in typical)
    print(f"{len(typical)} typical ones; something runs for {mean_busy / 1e3:.1f} us of each\n")
    a, b = typical[len(typical) // 2]
    zero = launches[a].begin
    print("   begin      end duration    mean  stream  blocks x threads  regs  shared    of  name")
    for launch in launches[a:b + 1]:
        mean = statistics.mean(durations[launch.name])
        print(f"{(launch.begin - zero) / 1e3:8.1f} {(launch.end - zero) / 1e3:8.1f} "
              f"{(launch.end - launch.begin) / 1e3:8.1f} {mean / 1e3:7.1f} {launch.stream:7} "
              f"{launch.blocks:7} x {launch.threads:<7} {launch.registers:5} {launch.shared:7} "
              f"{launch.shared_of_all:5}  {launch.name}")


if __name__ == "__main__":
    main()
