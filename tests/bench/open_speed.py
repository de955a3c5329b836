# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images on a CPU: error against time of the Python package, beside FMM3D.

    build/python-package/bin/python3 -m pip install fmm3dpy
    build/python-package/bin/python3 -m tests.bench.open_speed --cores 0

What points_gpu does, without a GPU and what needs one: farfield in both precisions and FMM3D, on the
cores of --cores, to which all is bound. Writes open_speed.json and, with matplotlib, open_speed.svg.
"""

from tests.bench import open_runs
from tests.bench.open_methods import ON_HOST


def main():
    parser = open_runs.parser_with(__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--methods", nargs="+", choices=ON_HOST, default=ON_HOST)
    open_runs.run(parser.parse_args(), "open_speed")


if __name__ == "__main__":
    main()
