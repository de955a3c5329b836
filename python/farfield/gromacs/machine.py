# SPDX-License-Identifier: LGPL-2.1-or-later
"""The machine that runs are made on."""

import os
import platform
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
