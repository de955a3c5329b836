# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Points without images: error against time of the Python package, beside jaxFMM and FMM3D.

    python3 -m pip install jaxfmm fmm3dpy
    python3 -m tests.bench.points_gpu

Potentials and fields of random charges, in a cube, in clusters, in a sheet or along a line, with
farfield in both precisions, on the GPU and on the cores of its host, with the engines of jaxFMM that
have fields, and with FMM3D on those cores: all in one invocation, at the same points. Every method has
several errors that are asked for, or orders. Errors are relative in the 2-norm, over points for which
all pairs are summed in double precision: of potentials, of fields, and of forces, charge times field,
of which the accuracy of farfield is meant. What the times hold is in open_methods.py. The first call
of each setting is listed by itself.

At the end times at equal errors are compared, between the measured ones along straight lines of
logarithms.

OMP_NUM_THREADS is the number of cores that may be used; how many FMM3D and farfield kept busy
is recorded, as wheels of FMM3D may be without OpenMP.

    python3 -m tests.bench.points_gpu --orders 4 8 12 --counts 1048576 --kinds cube

has fixed orders of farfield instead, as the table of Gumerov and Duraiswami, J. Comput. Phys. 227, 8290
(2008), doi:10.1016/j.jcp.2008.05.023.

Each method has a process of its own, which is given up after --limit seconds: what is missing then, as
what needs more memory than there is, is a line of the result. Needs CuPy for what is on a GPU. Writes
points_gpu.json and, with matplotlib, points_gpu.svg; python3 -m tests.bench.figures makes figure
and tables of the file.
"""

from tests.bench import open_runs
from tests.bench.open_methods import METHODS


def main():
    parser = open_runs.parser_with(__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jaxfmm", nargs="+", default=["kifmm:3", "kifmm:4", "kifmm:6", "flex:5:0.7"],
                        metavar="ENGINE:P[:THETA]", help="engines of jaxFMM and their orders")
    open_runs.run(parser.parse_args(), "points_gpu")


if __name__ == "__main__":
    main()
