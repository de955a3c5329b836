# SPDX-License-Identifier: LGPL-2.1-or-later
"""The machine that runs are made on."""

import os
import platform
import subprocess
from pathlib import Path


def usable_cores():
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def describe():
    """Processor, cores and system, for the head of a table."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {usable_cores()} cores, {platform.system()} {platform.release()}"


def gpus():
    """Names of the GPUs that nvidia-smi lists; none without it."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return listed.stdout.splitlines()


def busy():
    """A sentence where other programs keep over a quarter of the machine busy, or None; to be asked before runs."""
    load, cores = os.getloadavg()[0], os.cpu_count() or usable_cores()
    if load <= 0.25 * cores:
        return None
    return (
        f"Other programs want {load:.1f} cores of this machine, which has {cores}. Speeds are not those of an idle "
        "one, and may be tens of times lower; GOMP_SPINCOUNT=2000 in the environment helps threads that share cores."
    )
