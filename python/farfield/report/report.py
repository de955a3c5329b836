# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command "report"."""

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console

from ..gromacs.program import Gmx, GmxError
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers of the page")
    parser.add_argument("--length", type=float, default=100, help="of the runs, ps (100); 0: none")
    parser.add_argument(
        "--orders",
        type=int,
        nargs="+",
        default=[],
        metavar="ORDER",
        help="of FMM, whose drift is measured as well in systems at constant energy",
    )
    parser.add_argument("--accuracy", type=float, default=3e-4, help="wanted of FMM (3e-4)")
    parser.add_argument("--gmx", type=Path, default=Path("gmx"), help="the patched program (gmx)")
    parser.add_argument("--mdrun", default="", metavar="FLAGS", help='of mdrun, as "-ntomp 8 -nb gpu"')
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores (1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep inputs, logs and trajectories")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the runs in the folder of --keep, as after --mdrun '-maxh 1'",
    )
    parser.set_defaults(run=run)


def run(arguments):
    if arguments.resume and not arguments.keep:
        raise GmxError("--resume goes on with the runs in a folder: name it by --keep")
    console = Console(soft_wrap=True, highlight=False)
    gmx = Gmx(arguments.gmx)
    # Systems are told apart by the names of their files, or by where these are
    names = [path.stem for path in arguments.tpr]
    if len(set(names)) < len(names):
        names = [str(path) for path in arguments.tpr]
    with ExitStack() as temporary:
        systems = []
        for index, (name, path) in enumerate(zip(names, arguments.tpr)):
            if arguments.keep:
                folder = arguments.keep / f"{index + 1}-{path.stem}"
                folder.mkdir(parents=True, exist_ok=True)
            else:
                folder = Path(temporary.enter_context(tempfile.TemporaryDirectory()))
            systems.append(Comparison(gmx, name, path, folder, arguments, console.print))
        drift.check(systems, arguments.orders)
        runs = [(system, kind) for system in systems for kind in system.kinds]
        if not arguments.length > 0:
            runs = []
        # Runs first: what goes on with them does not measure forces again and again
        tasks = [partial(system.run, kind) for system, kind in runs]
        tasks += [system.measure_forces for system in systems]
        done = dict(zip(runs, jobs.do_all(tasks, arguments.jobs)))
        for system in systems if runs else []:
            system.compare({kind: done[system, kind] for kind in system.kinds})
        # With the cells of the runs that there are now
        orders = [(system, order) for system in systems for order in system.orders] if runs else []
        done = dict(zip(orders, jobs.do_all([partial(s.run_order, order) for s, order in orders], arguments.jobs)))
        for system in systems:
            if found := {order: done[system, order] for order in system.orders if (system, order) in done}:
                system.compare_orders(found)
        pages = [page.of_system(system) for system in systems]
    text = page.render(pages, gmx, arguments)
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"{page.summary(pages)} {arguments.output}")
    if arguments.json:
        page.write_record(arguments.json, pages, gmx, arguments)
        console.print(str(arguments.json))
    if arguments.pdf:
        page.make_pdf(text, arguments.pdf)
        console.print(str(arguments.pdf))
