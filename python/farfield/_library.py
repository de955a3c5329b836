# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loads the compiled library, with threads that wait briefly."""

import os


def _load():
    """The extension module.

    Threads of libgomp that wait at a barrier spin for about a millisecond before they sleep. Where more threads than
    cores want to run, what they wait for does not get to run meanwhile, and an evaluation takes up to hundreds of
    times as long. With 2000 rounds it takes a few times as long, and no longer than before where nothing else
    runs. libgomp reads the variable when it is loaded; what the user sets stands.
    """
    name = "GOMP_SPINCOUNT"
    is_ours = name not in os.environ and "OMP_WAIT_POLICY" not in os.environ
    if is_ours:
        os.environ[name] = "2000"
    try:
        from . import _core
    finally:
        if is_ours:
            del os.environ[name]
    return _core


_core = _load()
