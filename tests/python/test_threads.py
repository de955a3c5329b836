# SPDX-License-Identifier: LGPL-2.1-or-later
"""Solvers among threads and processes."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import farfield
from farfield.gromacs.machine import usable_cores

N, BOX = 300, [2.0, 2.0, 2.0]
#: A hang is what these tests look for; what they run takes a second
PATIENCE = 60


def particles(seed=1, count=N):
    random = np.random.default_rng(seed)
    return np.where(np.arange(count) % 2, 1.0, -1.0), random.random((count, 3)) * 2


def solver(threads=2, seed=1, count=N):
    own = farfield.Solver(1e-4, device="cpu", threads=threads)
    own.set_charges(particles(seed, count)[0])
    return own


def in_child(function):
    """What a function gives in a child made by fork()."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run():
        try:
            there.send(function())
        except BaseException as error:
            there.send(error)

    child = context.Process(target=run)
    child.start()
    try:
        assert here.poll(PATIENCE), "the child does not return"
        return here.recv()
    finally:
        child.kill()
        child.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork()")
def test_children_evaluate_with_solvers_old_and_new():
    count = 1000  # enough for two threads
    x = particles(count=count)[1]
    own = solver(count=count)
    own.set_exclusions([(0, 1)])
    expected = own.evaluate(x, BOX)
    assert own.setup["threads"] == min(2, usable_cores())

    def both():
        fresh = solver(count=count)
        fresh.set_exclusions([(0, 1)])
        return own.evaluate(x, BOX).forces, own.setup, fresh.evaluate(x, BOX).forces, fresh.setup

    forces, setup, fresh, fresh_setup = in_child(both)
    # One thread sums in another order
    largest = 1e-12 * np.abs(expected.forces).max()
    np.testing.assert_allclose(forces, expected.forces, atol=largest)
    np.testing.assert_allclose(fresh, expected.forces, atol=largest)
    if own.setup["threads"] > 1:
        assert setup["threads"] == fresh_setup["threads"] == 1
    # A child of the child has a parent that used no threads, and one that did
    assert np.array_equal(in_child(lambda: in_child(lambda: own.evaluate(x, BOX).forces)), forces)
    assert np.array_equal(own.evaluate(x, BOX).forces, expected.forces)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork()")
def test_children_of_parents_that_have_not_evaluated_may_have_threads():
    """In a process of its own, whose solver has been made, and not used."""
    program = """
import os, farfield
own = farfield.Solver(device="cpu", threads=2)
before = own.setup["threads"]
child = os.fork()
if child == 0:
    os._exit(farfield.Solver(device="cpu", threads=2).setup["threads"] != before)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork()")
def test_fork_waits_for_evaluations():
    x = particles(count=3000)[1]
    own = solver(count=3000)
    own.evaluate(x, BOX)
    ends = threading.Event()

    def work():
        while not ends.is_set():
            own.evaluate(x, BOX)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(5):
            assert np.isfinite(in_child(lambda: own.evaluate(x, BOX).energy))
    finally:
        ends.set()
        worker.join()


def test_threads_that_share_a_solver_take_turns():
    q, x = particles()
    own = solver()
    expected = own.evaluate(x, BOX).forces
    wrong = []

    def work():
        for _ in range(20):
            own.set_charges(q)
            if not np.array_equal(own.evaluate(x, BOX).forces, expected):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_no_more_threads_are_started_than_work_can_use():
    """In a process of its own: threads of OpenMP stay once they are there."""
    program = """
import os, numpy as np, farfield
x = np.random.default_rng(1).random((50, 3))
own = farfield.Solver(device="cpu", threads=300)
own.set_charges(np.where(np.arange(50) % 2, 1.0, -1.0))
own.evaluate(x, [1.0, 1.0, 1.0])
before = len(os.listdir("/proc/self/task"))
own.set_charges(np.where(np.arange(100000) % 2, 1.0, -1.0))
print(own.setup["threads"], before, len(os.sched_getaffinity(0)))
many = farfield.Solver(device="cpu", threads=1)
print(many.setup["threads"])
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    with_many, tasks, processors, one = map(int, out)
    assert tasks == 1
    assert 1 <= with_many <= processors
    assert one == 1


def test_numbers_of_threads_that_are_none_are_refused():
    for threads in (-1, 100000):
        with pytest.raises(ValueError, match="threads"):
            farfield.Solver(threads=threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])
def test_copies_go_on_where_the_solver_is(copied, dtype):
    q, x = particles()
    own = farfield.Solver(1e-4, dtype, device="cpu", threads=1, coulomb_constant=100.0)
    own.set_charges(q)
    own.set_exclusions([(0, 1), (4, 2)])
    own.evaluate(x, BOX)
    # where another choice of cells would be another one
    moved = particles(seed=2)[1] * 0.9
    other = copied(own)
    expected, found = (each.evaluate(moved, BOX, virial=True) for each in (own, other))
    assert found.energy == expected.energy
    assert np.array_equal(found.forces, expected.forces)
    assert np.array_equal(found.virial, expected.virial)
    assert other.setup == own.setup
    # it is another one
    other.set_charges(-2 * q[:100])
    assert own.evaluate(moved, BOX).energy == expected.energy


def test_copies_have_the_charges_of_two_states():
    a, x = particles()
    b = a.copy()
    b[:6] = 0.25
    own = solver(threads=1)
    own.set_perturbed_charges(a, b)
    expected = own.evaluate(x, BOX, lambda_=0.3, slope=True)
    found = copy.copy(own).evaluate(x, BOX, lambda_=0.3, slope=True)
    assert (found.energy, found.slope) == (expected.energy, expected.slope)


def test_a_solver_without_particles_can_be_copied():
    other = pickle.loads(pickle.dumps(farfield.Solver(1e-4, device="cpu", threads=1)))
    q, x = particles()
    other.set_charges(q)
    expected = solver(threads=1).evaluate(x, BOX).energy
    assert other.evaluate(x, BOX).energy == expected
