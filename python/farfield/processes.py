# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Solvers and fork(): a child has none of the threads of its parent, and cannot use its GPU.

OpenMP would wait for the threads of the parent for ever: where that has used several, children and theirs use one.
fork() waits until no solver is at work, so that the child finds all of them whole.
"""

import os
import threading
import weakref
from typing import Any

_guard = threading.Lock()
_solvers: Any = weakref.WeakSet()
_held = []
_has_teams = False
_most = 1 << 30

#: Processes from the first parent to this one.
generation = 0


def register(solver) -> None:
    """Remembers a solver, which has hold(), release() and leave_behind()."""
    with _guard:
        _solvers.add(solver)


def most_threads() -> int:
    """No solver of this process may have more threads."""
    return _most


def note_threads(threads: int) -> None:
    """A solver begins to use so many."""
    global _has_teams
    _has_teams = _has_teams or threads > 1


def _before():
    _guard.acquire()
    for solver in list(_solvers):
        solver.hold()
        _held.append(solver)


def _release():
    for solver in _held:
        solver.release()
    _held.clear()
    _guard.release()


def _in_child():
    global _most, generation
    generation += 1
    if _has_teams:
        _most = 1
    for solver in _held:
        solver.leave_behind()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
