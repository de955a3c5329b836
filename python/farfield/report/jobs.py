# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several runs at a time, each on its share of the cores."""

import os
import queue
from concurrent.futures import ThreadPoolExecutor

from ..gromacs.program import GmxError, gathered


def shares(cores, number):
    """The cores, dealt to so many parts of neighbours."""
    edges = [len(cores) * i // number for i in range(number + 1)]
    return [cores[begin:end] for begin, end in zip(edges[:-1], edges[1:])]


def check(number):
    """Raises GmxError for more jobs than cores."""
    cores = len(os.sched_getaffinity(0))
    if not 1 <= number <= cores:
        raise GmxError(f"--jobs {number} is out of range: 1 to {cores}, the cores that may be used")


def do_all(tasks, number):
    """Calls all tasks, so many at a time, and returns what they return; after an error none is begun.

    Programs that a task starts inherit its cores, and have no others.
    """
    if number == 1:
        return [task() for task in tasks]
    check(number)
    left: queue.SimpleQueue = queue.SimpleQueue()
    for share in shares(sorted(os.sched_getaffinity(0)), number):
        left.put(share)
    # 0 is the calling thread
    with ThreadPoolExecutor(number, initializer=lambda: os.sched_setaffinity(0, left.get())) as pool:
        return gathered(pool, tasks)
