# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The explosion of a ball of ions in vacuum beside that of a uniform ball of charge, as a picture.

    pip install . matplotlib
    python3 examples/coulomb_explosion.py

Ions without images, by the velocity Verlet integrator. A uniform ball of charge Q stays uniform; its
radius follows d^2R/dt^2 = k q Q / (m R^2).
"""

import argparse
from pathlib import Path

import numpy as np

import farfield

COULOMB = 138.935458  # kJ/mol nm/e^2
MASS = 40.0  # u
START = 2.0  # nm, radius


def ball(ions, seed=1):
    """Positions, nm, [n, 3], spread evenly: random ones that repel each other would be hot."""
    random = np.random.default_rng(seed)
    edge = START * (4 * np.pi / 3 / ions) ** (1 / 3)
    along = np.arange(-np.ceil(START / edge), np.ceil(START / edge) + 1)
    lattice = edge * np.stack(np.meshgrid(along, along, along), axis=-1).reshape(-1, 3)
    lattice += random.uniform(-0.1, 0.1, lattice.shape) * edge
    return lattice[np.linalg.norm(lattice, axis=1).argsort()[:ions]]


def explode(x, steps, dt):
    """RMS radius, nm, and total energy, kJ/mol, at every step [steps + 1]."""
    solver = farfield.Solver(accuracy=1e-5, boundary="open")
    solver.set_charges(np.ones(len(x)))
    v = np.zeros_like(x)
    result = solver.evaluate(x)
    radii, energies = [], []
    for step in range(steps + 1):
        radii.append(np.sqrt((x**2).sum(axis=1).mean()))
        energies.append(result.energy + 0.5 * MASS * (v**2).sum())
        v += 0.5 * dt * result.forces / MASS
        x = x + dt * v
        # another position of the cells at every step: errors then have no memory
        result = solver.evaluate(x, grid_offset=np.random.default_rng(step).random(3))
        v += 0.5 * dt * result.forces / MASS
    return np.array(radii), np.array(energies)


def uniform(ions, radius, steps, dt, parts=20):
    """Radius of a uniform ball, nm, at every step [steps + 1]."""
    radii, speed = [radius], 0.0
    for _ in range(steps):
        for _ in range(parts):
            middle = radius + 0.5 * dt / parts * speed
            speed += dt / parts * COULOMB * ions / (MASS * middle**2)
            radius = middle + 0.5 * dt / parts * speed
        radii.append(radius)
    return np.array(radii)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ions", type=int, default=4000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--dt", type=float, default=0.0005, help="time step, ps")
    parser.add_argument("--output", type=Path, default=Path("coulomb_explosion.png"))
    arguments = parser.parse_args(words)

    radii, energies = explode(ball(arguments.ions), arguments.steps, arguments.dt)
    # a uniform ball has an RMS radius of sqrt(3/5) of its own
    start = radii[0] / np.sqrt(0.6)
    expected = np.sqrt(0.6) * uniform(arguments.ions, start, arguments.steps, arguments.dt)
    drift = (energies[-1] - energies[0]) / energies[0]
    print(f"{arguments.ions} ions, radius {radii[0]:.3f} to {radii[-1]:.3f} nm")
    print(f"uniform ball {expected[-1]:.3f} nm; total energy changed by {drift:.1e}")

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    times = arguments.dt * np.arange(arguments.steps + 1)
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(times, expected, color="black", label="uniform ball of charge")
    axes.plot(times[::10], radii[::10], "o", label=f"{arguments.ions} ions")
    axes.set_xlabel("time, ps")
    axes.set_ylabel("RMS radius, nm")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(arguments.output, dpi=150, bbox_inches="tight")
    print(arguments.output)
    return radii, expected, energies


if __name__ == "__main__":
    main()
