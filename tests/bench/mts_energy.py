# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether multiple time steps with the far field at the outer level conserve energy.

    build/python-package/bin/python3 -m tests.bench.mts_energy

Flexible water (SPC/Fw, Wu2006 of docs/references.md) under r-RESPA (Tuckerman1992): inner steps with
bonds, Lennard-Jones and the near part of the Coulomb forces, and at the outer steps kicks with the rest.
The near part is

    smooth   erfc(a r)/r up to a cutoff, as the direct space of PME
    held     1/r for the pairs in neighbouring cells, as they were listed at the last outer step; the
             kick at an outer step belongs to its new list
    halves   the same, but half of that kick belongs to the list before: each outer step is then a
             symplectic map, with the split that is held in it
    none     nothing: all Coulomb forces at the outer steps alone

The sum of all Coulomb forces is so accurate that its error has no part in this. Prints the drift of the
total energy, with the standard error over runs, and the fluctuation about it. Needs the package farfield
and scipy.
"""

import argparse

import numpy as np
from scipy.special import erfc

import farfield

EDGE, MOLECULES_PER_EDGE = 2.174, 7  # nm
BOND, BOND_CONSTANT = 0.1012, 443153.4  # nm, kJ/mol/nm^2
ANGLE, ANGLE_CONSTANT = np.radians(113.24), 317.57  # kJ/mol
SIGMA, EPSILON, LJ_CUTOFF = 0.3165492, 0.6503, 0.9
CHARGES, MASSES = [-0.82, 0.41, 0.41], [15.9994, 1.008, 1.008]
CUTOFF, SCREENING = 1.0, 3.12  # of the smooth part, nm and 1/nm
CELLS_PER_EDGE = 4
KT = 0.0083144626 * 300  # kJ/mol
COULOMB = 138.935458
INNER_STEP = 0.0005  # ps
ATOMS = 3 * MOLECULES_PER_EDGE**3

Q = np.tile(CHARGES, ATOMS // 3)
MASS = np.tile(MASSES, ATOMS // 3)[:, None]
FIRST, SECOND = np.triu_indices(ATOMS, 1)
APART = FIRST // 3 != SECOND // 3  # of different molecules
FIRST, SECOND = FIRST[APART], SECOND[APART]
OXYGENS = np.triu_indices(ATOMS // 3, 1)


def add_pairs(forces, i, j, vectors):
    """Vectors to atoms i, minus these to atoms j."""
    for d in range(3):
        forces[:, d] += np.bincount(i, vectors[:, d], ATOMS)
        forces[:, d] -= np.bincount(j, vectors[:, d], ATOMS)


def nearest(d):
    return d - EDGE * np.round(d / EDGE)


def bonded(x, forces):
    """Bonds and angles; returns the energy."""
    u = x.reshape(-1, 3, 3)
    arms = u[:, 1:] - u[:, :1]
    length = np.linalg.norm(arms, axis=2, keepdims=True)
    stretch = length - BOND
    on_hydrogens = -BOND_CONSTANT * stretch * arms / length
    unit = arms / length
    cosine = np.sum(unit[:, 0] * unit[:, 1], axis=1)[:, None]
    bend = np.arccos(cosine) - ANGLE
    slope = ANGLE_CONSTANT * bend / np.sqrt(1 - cosine**2)
    for h in range(2):
        on_hydrogens[:, h] += slope * (unit[:, 1 - h] - cosine * unit[:, h]) / length[:, h]
    of_molecules = forces.reshape(-1, 3, 3)
    of_molecules[:, 1:] += on_hydrogens
    of_molecules[:, 0] -= on_hydrogens.sum(axis=1)
    return 0.5 * BOND_CONSTANT * np.sum(stretch**2) + 0.5 * ANGLE_CONSTANT * np.sum(bend**2)


def lennard_jones(x, forces):
    """Energy and force are zero at the cutoff; returns the energy."""
    i, j = OXYGENS
    d = nearest(x[3 * i] - x[3 * j])
    r = np.sqrt(np.sum(d**2, axis=1))
    inside = r < LJ_CUTOFF
    i, j, d, r = i[inside], j[inside], d[inside], r[inside]

    def plain(distance):
        six = (SIGMA / distance) ** 6
        return 4 * EPSILON * (six**2 - six), 24 * EPSILON * (2 * six**2 - six) / distance

    (energy, force), (edge_energy, edge_force) = plain(r), plain(LJ_CUTOFF)
    add_pairs(forces, 3 * i, 3 * j, ((force - edge_force) / r)[:, None] * d)
    return np.sum(energy - edge_energy + (r - LJ_CUTOFF) * edge_force)


class Near:
    """The near part of the Coulomb forces: pairs and their images, as they were listed."""

    def __init__(self, kind, x):
        self.kind = kind
        self.renew(x)

    def renew(self, x):
        if self.kind == "smooth":
            close = np.sum(nearest(x[FIRST] - x[SECOND]) ** 2, axis=1) < (CUTOFF + 0.05) ** 2
        else:
            cells = np.floor(x / EDGE * CELLS_PER_EDGE).astype(int)
            steps = (cells[FIRST] - cells[SECOND]) % CELLS_PER_EDGE
            close = np.all((steps <= 1) | (steps == CELLS_PER_EDGE - 1), axis=1)
        if self.kind == "none":
            close = np.zeros_like(close)
        self.i, self.j = FIRST[close], SECOND[close]
        self.shift = EDGE * np.round((x[self.i] - x[self.j]) / EDGE)

    def forces(self, x):
        result = np.zeros((ATOMS, 3))
        d = x[self.i] - x[self.j] - self.shift
        r2 = np.sum(d**2, axis=1)
        r = np.sqrt(r2)
        scale = COULOMB * Q[self.i] * Q[self.j] / (r2 * r)
        if self.kind == "smooth":
            gauss = 2 * SCREENING / np.sqrt(np.pi) * r * np.exp(-(SCREENING**2) * r2)
            scale *= np.where(r < CUTOFF, erfc(SCREENING * r) + gauss, 0)
        add_pairs(result, self.i, self.j, scale[:, None] * d)
        return result


class Run:
    """Motion without a thermostat, from positions and velocities. Positions are not put back into the box."""

    def __init__(self, kind, inner, solver, x, v):
        self.near, self.kind, self.inner = Near(kind, x), kind, inner
        self.solver, self.x, self.v = solver, x.copy(), v.copy()
        self.find_fast()
        self.find_far()

    def find_fast(self):
        self.coulomb_near = self.near.forces(self.x)
        self.fast = self.coulomb_near.copy()
        self.fast_energy = bonded(self.x, self.fast) + lennard_jones(self.x, self.fast)

    def find_far(self):
        result = self.solver.evaluate(self.x, [EDGE] * 3)
        self.all, self.coulomb_energy = result.forces, result.energy
        self.far = self.all - self.coulomb_near

    def step(self):
        outer = self.inner * INNER_STEP
        self.v += 0.5 * outer * self.far / MASS
        for s in range(self.inner):
            self.v += 0.5 * INNER_STEP * self.fast / MASS
            self.x += INNER_STEP * self.v
            if s == self.inner - 1 and self.kind != "halves":
                self.near.renew(self.x)
            self.find_fast()
            self.v += 0.5 * INNER_STEP * self.fast / MASS
        self.find_far()
        self.v += 0.5 * outer * self.far / MASS
        if self.kind == "halves":
            self.near.renew(self.x)
            self.find_fast()
            self.far = self.all - self.coulomb_near

    def energy(self):
        return 0.5 * np.sum(MASS * self.v**2) + self.fast_energy + self.coulomb_energy


def new_solver(accuracy):
    solver = farfield.Solver(accuracy, device="cpu")
    solver.set_charges(Q)
    pairs = [(3 * m + a, 3 * m + b) for m in range(ATOMS // 3) for a, b in ((0, 1), (0, 2), (1, 2))]
    solver.set_exclusions(pairs)
    return solver


def starts(count):
    """Equilibrated positions and velocities."""
    random = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(*[np.arange(MOLECULES_PER_EDGE)] * 3), axis=-1).reshape(-1, 3)
    turns = np.linalg.qr(random.normal(size=(ATOMS // 3, 3, 3)))[0]
    half = 0.5 * ANGLE
    arms = BOND * np.array([[0, 0, 0], [np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
    centres = (grid + 0.5) * EDGE / MOLECULES_PER_EDGE
    x = (centres[:, None] + arms @ turns).reshape(-1, 3)
    run = Run("none", 1, new_solver(1e-3), x, np.zeros_like(x))
    for _ in range(60):
        run.x += np.clip(1e-6 * (run.fast + run.far), -2e-3, 2e-3)
        run.find_fast()
        run.find_far()
    for start in range(count):
        for _block in range(40 if start == 0 else 10):
            run.v = random.normal(size=x.shape) * np.sqrt(KT / MASS)
            for _ in range(40):
                run.step()
        yield run.x.copy(), run.v.copy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=float, default=0.3, help="ps of a run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--inner", type=int, nargs="+", default=[2], help="inner steps per outer step")
    arguments = parser.parse_args()
    solver, configurations = new_solver(1e-8), list(starts(arguments.runs))
    print(f"{ATOMS} atoms, {arguments.runs} runs of {arguments.length} ps, inner steps of 0.5 fs")
    print("near part  inner steps   drift, kT/ns/atom     RMS, kJ/mol per atom")
    for inner in arguments.inner:
        for kind in ("none", "smooth", "held", "halves"):
            drifts, fluctuations = [], []
            for x, v in configurations:
                run = Run(kind, inner, solver, x, v)
                energies = [run.energy()]
                for _ in range(round(arguments.length / (inner * INNER_STEP))):
                    run.step()
                    energies.append(run.energy())
                time = np.arange(len(energies)) * inner * INNER_STEP
                slope, constant = np.polyfit(time, energies, 1)
                drifts.append(1000 * slope / KT / ATOMS)
                fluctuations.append(np.std(energies - slope * time - constant) / ATOMS)
            error = np.std(drifts, ddof=1) / np.sqrt(len(drifts)) if len(drifts) > 1 else np.nan
            print(f"{kind:10} {inner:6}      {np.mean(drifts):10.3f} +- {error:.3f}", end="")
            print(f"{np.mean(fluctuations):17.6f}", flush=True)


if __name__ == "__main__":
    main()
