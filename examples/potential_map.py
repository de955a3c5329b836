# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The electrostatic potential around a vacancy of rock salt, as a picture.

    pip install . matplotlib
    python3 examples/potential_map.py

A chloride is missing in a periodic crystal of 6 x 6 x 6 cubic cells: its charge is left over, and a
uniform background neutralises it. The potential is mapped in the plane of the vacancy.
"""

import argparse
from pathlib import Path

import numpy as np

import farfield

CONSTANT = 0.564  # nm, edge of the cubic cell
IONS = np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]) / 2


def crystal(cells):
    """Positions, nm, [n, 3], charges, e, [n], and the edge of the box, nm; without the ion in its middle."""
    corners = np.stack(np.meshgrid(*3 * [np.arange(cells)], indexing="ij"), axis=-1).reshape(-1, 1, 3)
    cations = (corners + IONS).reshape(-1, 3)
    anions = (corners + IONS + [0.5, 0, 0]).reshape(-1, 3)
    x = CONSTANT * np.vstack((cations, anions))
    q = np.repeat([1.0, -1.0], len(cations))
    middle = len(cations) + np.linalg.norm(anions - cells / 2, axis=1).argmin()
    return np.delete(x, middle, axis=0), np.delete(q, middle), x[middle], cells * CONSTANT


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=6, help="of the crystal along each edge")
    parser.add_argument("--points", type=int, default=200, help="of the map along each edge")
    parser.add_argument("--output", type=Path, default=Path("potential_map.png"))
    arguments = parser.parse_args(words)

    x, q, vacancy, edge = crystal(arguments.cells)
    solver = farfield.Solver(accuracy=1e-5)
    solver.set_charges(q)
    # between the points of the map and the ions, so that no point is on an ion
    along = (np.arange(arguments.points) + 0.5) * edge / arguments.points
    grid = np.stack(np.meshgrid(along, along, indexing="xy"), axis=-1).reshape(-1, 2)
    points = np.column_stack((grid, np.full(len(grid), vacancy[2])))
    potentials, _ = solver.evaluate_at(x, [edge] * 3, points)

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 5))
    picture = axes.imshow(
        potentials.reshape(arguments.points, -1) / 96.485,  # kJ/mol/e in V
        origin="lower",
        extent=(0, edge, 0, edge),
        cmap="RdBu_r",
        vmin=-10,
        vmax=10,
    )
    figure.colorbar(picture, label="potential, V")
    axes.set_xlabel("x, nm")
    axes.set_ylabel("y, nm")
    axes.set_title("A chloride vacancy of rock salt")
    figure.savefig(arguments.output, dpi=150, bbox_inches="tight")
    print(f"{len(x)} ions, {len(points)} points: {arguments.output}")


if __name__ == "__main__":
    main()
