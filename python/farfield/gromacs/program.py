# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs commands of a gmx program in a folder and collects their messages."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import dataclass
from pathlib import Path


class GmxError(RuntimeError):
    """A gmx command failed; the text says which, and ends with its last messages."""


# Commands that are running, and since when they are asked to end; what it takes to change that
_running = {}
_lock = threading.Lock()
# One for each end_all() under way: a thread whose commands are ended may end those of its own threads
_endings = []
# Seconds that mdrun has for its checkpoint
PATIENCE = 20.0
# Bytes that a disk has left when it is called full
LITTLE = 1 << 20


class _Interruptions:
    """While it lives, signals that would raise in the main thread are noted, and raise where that calls check().

    Between any two instructions they could leave a task behind that nobody knows of, or a lock that nobody opens.
    """

    def __enter__(self):
        self.noted: list[tuple] = []
        self.before: dict = {}
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            self.before = {number: handler for number, handler in handlers.items() if callable(handler)}
            for number in self.before:
                signal.signal(number, lambda *noted: self.noted.append(noted))
        return self

    def check(self):
        """Lets the signals that have come do what they would have done."""
        while self.noted:
            number, frame = self.noted.pop(0)
            self.before[number](number, frame)

    def __exit__(self, kind, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if kind is None:
            self.check()


def end_all(are_done, interruptions):
    """Ends the commands that run until are_done(); what calls them gets a KeyboardInterrupt.

    They are interrupted, upon which mdrun writes a checkpoint, and killed if that takes long or the user
    interrupts once more.
    """
    patience = PATIENCE
    ending = object()
    _endings.append(ending)
    while not are_done():
        try:
            interruptions.check()
        except KeyboardInterrupt:
            patience = 0.0
        with _lock:
            for process, asked in list(_running.items()):
                if asked is None:
                    _running[process] = time.monotonic()
                    process.send_signal(signal.SIGINT)
                elif time.monotonic() - asked >= patience:
                    process.kill()
        time.sleep(0.05)
    _endings.remove(ending)


def gathered(pool, tasks):
    """What all tasks return, threads of a pool; after an error, or an interruption, none is begun, and the
    commands of the others are ended."""
    with _Interruptions() as interruptions:
        futures = [pool.submit(task) for task in tasks]
        try:
            _await(futures, interruptions)
        except BaseException as error:
            for future in futures:
                future.cancel()
            end_all(lambda: all(future.done() for future in futures), interruptions)
            if isinstance(error, KeyboardInterrupt):
                # Those that were ended know what they leave
                error.args = next((e.args for e in map(_interruption, futures) if e and e.args), error.args)
            raise
    return [future.result() for future in futures]


def _await(futures, interruptions):
    """Returns when all are done; raises the first error, or interruption."""
    left = futures
    while left:
        # Only the main thread is interrupted
        done, left = wait(futures, 0.2 if interruptions.before else None, FIRST_EXCEPTION)
        interruptions.check()
        for future in [future for future in futures if future in done]:
            future.result()


def _interruption(future):
    error = None if future.cancelled() else future.exception()
    return error if isinstance(error, KeyboardInterrupt) else None


@dataclass
class Done:
    """A finished command: exit status (negative: the signal) and both outputs together."""

    command: str
    messages: Path
    status: int
    text: str

    def ok(self):
        """Returns itself, or raises GmxError if the command failed, or may have: some overlook a full disk."""
        if self.status != 0 or self.full:
            tail = "\n".join(self.text.splitlines()[-25:])
            raise GmxError(
                f"gmx {self.command} failed, {self.reason} "
                f"(messages in {self.messages}):\n{tail}"
            )
        return self

    @property
    def full(self):
        """Whether the disk is, in words, or ""."""
        folder = self.messages.parent
        return f"; the disk of {folder} is full" if shutil.disk_usage(folder).free < LITTLE else ""

    @property
    def reason(self):
        """Of a failure, as far as it can be told from outside."""
        full = self.full
        if self.status >= 0:
            return f"exit status {self.status}{full}"
        name = signal.Signals(-self.status).name
        killed = ": somebody or something killed it, as Linux does when memory runs out" if name == "SIGKILL" else ""
        return f"ended by the signal {name}{killed}{full}"


def clean_environment():
    """The environment without what would change results or speed behind the caller's back."""
    # Another force field; a number of threads beside mdrun's own, which is an error; threads that
    # sleep between two parallel regions, which makes the pair search slow; reference forces.
    unwanted = ("GMXLIB", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GMX_FMM_REFERENCE")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


class Gmx:
    """One gmx program, a path or a name on PATH; its commands end after time_limit seconds, if there is one."""

    def __init__(self, program, time_limit=None):
        self.program = Path(shutil.which(program) or program).resolve()
        self.time_limit = time_limit
        if not (self.program.is_file() and os.access(self.program, os.X_OK)):
            raise GmxError(f"no program at {program}; ./quickstart.sh gmx builds one")

    def attempt(self, command, *arguments, folder, answer="", variables=None, time_limit=None):
        """Runs one command, which may fail; its messages also go to <command>.out in the folder.

        answer: what to type at its questions; variables: to add to the environment. Raises
        subprocess.TimeoutExpired when it takes longer than the time limit.
        """
        words = [str(self.program), "-quiet", "-nobackup", command, *map(str, arguments)]
        if _endings:
            raise KeyboardInterrupt
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**clean_environment(), **(variables or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        with process:
            with _lock:
                _running[process] = None
            try:
                text, _ = process.communicate(answer, time_limit or self.time_limit)
            except BaseException:
                process.kill()
                raise
            finally:
                with _lock:
                    del _running[process]
        if _endings:
            raise KeyboardInterrupt
        messages = Path(folder) / f"{command}.out"
        messages.write_text(text)
        return Done(command, messages, process.returncode, text)

    def __call__(self, command, *arguments, **options):
        """Runs one command, which has to succeed, as attempt() does; returns its messages."""
        return self.attempt(command, *arguments, **options).ok().text

    def _says(self, *arguments):
        words = [str(self.program), "-quiet", *arguments]
        return subprocess.run(
            words, text=True, errors="replace", check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ).stdout

    def check_patched(self):
        """Raises GmxError if this is not a GROMACS with the patches of farfield."""
        version = re.search(r"GROMACS version: +(\S+)", self._says("-version"))
        if not version:
            raise GmxError(f"{self.program} is not a gmx program; --gmx names the patched one, as build/bin/gmx")
        if not re.search(r"-f +\[<\.mdp>\]", self._says("help", "convert-tpr")):
            raise GmxError(
                f"{self.program} is GROMACS {version[1]} without the patches of farfield; --gmx names the program "
                "that has them, as build/bin/gmx after ./quickstart.sh gmx"
            )

    def version(self):
        """The lines of "gmx -version" that matter for a comparison of speeds."""
        text = self._says("-version")
        wanted = (
            *("GROMACS version", "Precision", "SIMD instructions", "CPU FFT library"),
            *("GPU support", "C++ compiler"),
        )
        lines = (line.split(":", 1) for line in text.splitlines() if ":" in line)
        return {name.strip(): value.strip() for name, value in lines if name.strip() in wanted}
