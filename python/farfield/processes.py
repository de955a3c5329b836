# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Solvers and batches, threads and fork(): a child has none of the threads of its parent, and cannot use its GPU.

OpenMP would wait for the threads of the parent for ever: where that has used several, children and theirs use one.
fork() waits until no solver is at work, so that the child finds all of them whole.
"""

import os
import threading
import weakref
from typing import Any, Optional

_guard = threading.Lock()
_solvers: Any = weakref.WeakSet()
_held: list[Any] = []
#: Cores on a GPU that a child process has from its parent, which it must not destroy.
_lost: list[Any] = []
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


class CoreOwner:
    """A solver or a batch, with its core: an object of the compiled library, for one thread at a time."""

    #: What it is called in messages, and several of them.
    _names = ("solver", "solvers")
    _core: Optional[Any] = None
    _threads: int
    _generation: int
    _is_on_host: bool

    def hold(self) -> None:
        """Waits until nobody is at work with the core."""
        self._lock.acquire()

    def release(self) -> None:
        """Ends hold()."""
        self._lock.release()

    def leave_behind(self) -> None:
        """In a child process: what is on a GPU can neither be used nor given back."""
        if not self._is_on_host:
            _lost.append(self._core)
            self._core = None

    def _start_with(self, core: Any) -> None:
        """Makes a core the first one."""
        self._lock = threading.RLock()
        self._take(core)
        register(self)

    def _take(self, core: Any) -> None:
        """Makes a core that of the owner, and of this process."""
        setup = core.setup()
        self._core, self._threads, self._generation = core, setup["threads"], generation
        self._is_on_host = setup["device"] == "cpu"

    def _own_core(self) -> Any:
        """The core.

        Raises:
            RuntimeError: it was left behind.
        """
        if self._core is None:
            one, several = self._names
            raise RuntimeError(
                f"This {one} has worked on a GPU before fork(), and cannot do so in the child: start processes by the "
                f"method 'spawn' or 'forkserver', or make {several} in the children alone."
            )
        return self._core


class CoreOfOptions(CoreOwner):
    """One whose core has nothing but its options, so that a child process makes its own."""

    def _made(self) -> Any:
        """A core."""
        raise NotImplementedError

    def run(self, name: str, *arrays: Any) -> None:
        """Calls a function of the core."""
        with self._lock:
            core = self._own_core()
            if self._generation != generation:
                core = self._made()
                self._take(core)
            note_threads(self._threads)
            getattr(core, name)(*arrays)
