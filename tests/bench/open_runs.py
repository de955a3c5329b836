# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the benchmarks of points without images share: processes, tables, files."""

import argparse
import importlib
import importlib.metadata
import importlib.util
import multiprocessing
import os
import queue
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from farfield.gromacs import machine
from tests.bench import results
from tests.bench.figures import points
from tests.bench.open_methods import METHODS, present
from tests.bench.open_points import KINDS, THIN_KINDS, all_pairs, errors, sample

SPAWN = multiprocessing.get_context("spawn")
PACKAGES = ("farfield", "numpy", "cupy", "jax", "fmm3dpy")


def exact_sums(kind, count, targets):
    """Potentials and fields by all pairs, on a GPU where CuPy is."""
    module = importlib.import_module("cupy" if importlib.util.find_spec("cupy") else "numpy")
    return all_pairs(*sample(kind, count, targets), module)


def work(found, kind, count, name, exact, arguments):
    """Puts the records of all settings of a method into a queue, and None when it is done."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    x, q, targets = sample(kind, count, arguments.targets)
    method = METHODS[name]
    for asked, options in method.settings(arguments).items():
        try:
            record, *values = method.run(x, q, targets, options, arguments)
            record |= errors(values, exact, q[targets])
            record["points_per_second"] = count / record["seconds"]
        except (MemoryError, RuntimeError, ValueError) as error:
            # What is missing is a result, too
            record = {"error": (str(error) or repr(error)).splitlines()[0]}
        found.put({"asked": asked, **record})
    found.put(None)


def records_of(kind, count, name, exact, arguments, seconds):
    """The records of work() in a process of its own, as they come; what fails or is late says so."""
    found = SPAWN.Queue()
    process = SPAWN.Process(
        target=work, args=(found, kind, count, name, exact, arguments), daemon=True
    )
    end = time.monotonic() + seconds
    missing = list(METHODS[name].settings(arguments))
    why = None if seconds > 0 else "no time was left"
    if not why:
        process.start()
    while why is None:
        try:
            record = found.get(timeout=1)
        except queue.Empty:
            if time.monotonic() > end:
                why = f"not within {seconds:.0f} s"
            elif not process.is_alive():
                why = f"the process ended with status {process.exitcode}"
            continue
        if record is None:
            break
        missing.remove(record["asked"])
        yield record
    if process.pid:
        process.kill()
        process.join()
    yield from ({"asked": asked, "error": why} for asked in missing)


def describe(record):
    """A line of the table; its last column is the floor, or the time of fields alone."""
    start = f"{record['method']:<21} {record['asked']:>24}"
    if "error" in record:
        return f"{start}  {record['error']}"
    special = record["fields_alone"][0] if "fields_alone" in record else record.get("floor")
    return (f"{start}{record['potential']:>10.1e}{record['field']:>9.1e}{record['force']:>9.1e}"
            f"{1e3 * record['seconds']:>11.3f} +-{1e3 * record['half_range']:>7.2f}"
            f"{record['points_per_second']:>10.2e}{record['first']:>8.2f}"
            f"{record.get('gib', record.get('cores_busy', 0)):>11.2f}"
            + (f"{1e3 * special:>11.3f}" if special else ""))


def measure(kind, count, arguments, end):
    """The records of one set of points; end: when to stop, of time.monotonic()."""
    print(f"\n{kind}, {count} points\n{'':<21} {'asked':>24}{'potential':>10}{'field':>9}{'force':>9}"
          f"{'ms':>11}{'':>10}{'points/s':>10}{'first s':>8}{'GiB, cores':>11}{'floor, ms':>11}")
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        exact = pool.submit(exact_sums, kind, count, arguments.targets).result()
    for name in arguments.methods:
        seconds = max(0, min(arguments.limit, end - time.monotonic()))
        for record in records_of(kind, count, name, exact, arguments, seconds):
            record = {"kind": kind, "count": count, "method": name, **record}
            floor = points.floor_of(record)
            if floor:
                record["floor"] = floor
            print(describe(record), flush=True)
            yield record


def versions():
    """Of the packages that take part, as they are installed."""
    installed = ((d.metadata["Name"] or "", d.version) for d in importlib.metadata.distributions())
    return {name: version for name, version in installed if name.lower().startswith(PACKAGES)}


def parser_with(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS + THIN_KINDS, default=KINDS)
    parser.add_argument("--accuracies", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4, 1e-5, 1e-6],
                        help="of farfield")
    parser.add_argument("--orders", type=int, nargs="+", help="of farfield, in place of accuracies")
    parser.add_argument("--m2l", default="auto", help="engine of farfield; hierarchy has the shortest set-up")
    parser.add_argument("--fmm3d", type=float, nargs="+", default=[0.5, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6],
                        metavar="EPS", help="tolerances of FMM3D")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--longest", type=float, default=30,
                        help="seconds for the repeats of a setting; one call is made in any case")
    parser.add_argument("--targets", type=int, default=300, help="points whose errors are taken")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a method and a set of points")
    parser.add_argument("--total", type=float, default=3600, help="seconds for all")
    parser.add_argument("--cores", type=int, nargs="+", help="what to run on; default: all there are")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    return parser


def run(arguments, name):
    """Measures, prints, and writes NAME.json and, with matplotlib, NAME.svg."""
    if arguments.cores:
        os.sched_setaffinity(0, arguments.cores)
    # Of all that has OpenMP; the processes inherit it
    threads = machine.usable_cores()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.methods = present(arguments.methods)
    head = {**results.conditions(), "gpus": machine.gpus(), "threads": threads,
            "versions": versions()}
    print(*(f"{key}: {value}" for key, value in head.items()), sep="\n")
    records, end = [], time.monotonic() + arguments.total
    for kind in arguments.kinds:
        for count in arguments.counts:
            for record in measure(kind, count, arguments, end):
                records.append(record)
                # After each: a run that is stopped leaves what is done
                results.write(arguments.output / f"{name}.json", {**head, "records": records})
    for title, table in points.tables(records):
        print(f"\n{title}\n\n{table}")
    try:
        points.draw(records, arguments.output / f"{name}.svg")
    except ImportError:
        print("no figure: matplotlib is not installed")
