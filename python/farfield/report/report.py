# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command "report"."""

import shutil
from functools import partial
from pathlib import Path

from rich.console import Console

from .. import options
from ..gromacs import machine
from ..gromacs.program import Gmx, GmxError
from ..tune import settings
from . import drift, jobs, page
from .system import Comparison


def add_parser(subparsers):
    """The command "report"."""
    parser = subparsers.add_parser(
        "report",
        help="compare FMM with PME on systems of yours, as a page",
        description="Compares FMM with PME for run input files: errors of forces, energies and "
        "pressures at the starting structure against double precision; averages over a run of each. "
        "Writes one page that needs no network. Start from equilibrated systems.",
    )
    parser.add_argument("tpr", type=Path, nargs="+", metavar="FILE.tpr", help="made with PME or with FMM")
    parser.add_argument("--output", type=Path, default=Path("report.html"), help="the page (report.html)")
    parser.add_argument("--pdf", type=Path, metavar="FILE", help="the same for print; needs weasyprint")
    parser.add_argument(
        "--length", type=options.number(float, 0), default=100, help="of the runs, ps (100); 0: none"
    )
    parser.add_argument(
        "--orders",
        type=options.number(int, 0, settings.MAX_ORDER),
        nargs="+",
        default=[],
        metavar="ORDER",
        help="of FMM, whose drift is measured as well in systems at constant energy",
    )
    options.add_common(parser)
    parser.add_argument(
        "--jobs", type=options.number(int, 1), default=1, help="runs at a time, which share the cores (1)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the runs in the folder of --keep, as after --mdrun '-maxh 1'",
    )
    parser.set_defaults(run=run)


def check(arguments):
    """Raises GmxError for what can be known of the arguments before gmx is run."""
    outputs = {"--output": arguments.output, "--pdf": arguments.pdf, "--json": arguments.json}
    options.check_files(arguments.tpr, outputs, arguments.keep, arguments.overwrite)
    if arguments.pdf:
        page.weasyprint()
    if arguments.resume and not arguments.keep:
        raise GmxError("--resume goes on with the runs in a folder: name it by --keep")
    if "-maxh" in arguments.mdrun.split() and not arguments.keep:
        raise GmxError("--mdrun -maxh ends runs before they are complete: --keep names a folder, and --resume goes on")
    if arguments.orders and not arguments.length > 0:
        raise GmxError("--orders needs runs: a --length above 0")
    jobs.check(arguments.jobs)


def run(arguments):
    check(arguments)
    console = Console(soft_wrap=True, highlight=False)
    gmx = Gmx(arguments.gmx)
    gmx.check_patched()
    if busy := machine.busy():
        console.print(busy)
    # Systems are told apart by the names of their files, or by where these are
    names = [path.stem for path in arguments.tpr]
    if len(set(names)) < len(names):
        names = [str(path) for path in arguments.tpr]
    with options.work_folder(arguments.keep, "run-*.edr", "--resume") as top:
        systems = []
        for index, (name, path) in enumerate(zip(names, arguments.tpr)):
            folder = top / f"{index + 1}-{path.stem}"
            systems.append(Comparison(gmx, name, path, folder, arguments, console.print))
        drift.check(systems, arguments.orders)
        measure(systems, arguments)
        write([page.of_system(system) for system in systems], gmx, arguments, console)


def measure(systems, arguments):
    """Errors of forces, runs, and what compares them."""
    runs = [(system, kind) for system in systems for kind in system.kinds] if arguments.length > 0 else []
    for system, kind in runs:
        system.prepare(kind)
    check_disk(systems)
    # Forces first: they show within minutes whether both methods run. What goes on with runs does not measure
    # them again and again
    forces = [system.measure_forces for system in systems]
    tasks = [partial(system.run, kind) for system, kind in runs]
    done = jobs.do_all([*tasks, *forces] if arguments.resume else [*forces, *tasks], arguments.jobs)
    done = dict(zip(runs, done if arguments.resume else done[len(forces) :]))
    for system in systems if runs else []:
        system.compare({kind: done[system, kind] for kind in system.kinds})
    # With the cells of the runs that there are now
    orders = [(system, order) for system in systems for order in system.orders] if runs else []
    done = dict(zip(orders, jobs.do_all([partial(s.run_order, order) for s, order in orders], arguments.jobs)))
    for system in systems:
        if found := {order: done[system, order] for order in system.orders if (system, order) in done}:
            system.compare_orders(found)


def check_disk(systems):
    """Raises GmxError where the trajectories have no room."""
    wanted = sum(system.bytes for system in systems)
    folder = systems[0].run_input.folder
    free = shutil.disk_usage(folder).free
    if wanted > free:
        raise GmxError(
            f"the runs write {wanted / 1e6:.0f} MB, but the disk of {folder} has {free / 1e6:.0f} MB left; "
            "--keep names a folder elsewhere"
        )


def write(pages, gmx, arguments, console):
    """The page, and the same as other files."""
    text = page.render(pages, gmx, arguments)
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"{page.summary(pages, arguments.length)} {arguments.output}")
    if arguments.json:
        page.write_record(arguments.json, pages, gmx, arguments)
        console.print(str(arguments.json))
    if arguments.pdf:
        page.make_pdf(text, arguments.pdf)
        console.print(str(arguments.pdf))
