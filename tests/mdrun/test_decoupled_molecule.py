# SPDX-License-Identifier: LGPL-2.1-or-later
"""Long molecules whose pairs GROMACS lists: beyond its table of interactions, beside plain sums.

PME stops where a decoupled molecule is longer than the pair list. With FMM excluded pairs may be at
any distance, and so may be those that are listed instead of them.
"""

import numpy as np
import pytest

from tests.support.gmx import gro, mdp, simulation, systems
from tests.support.gmx.mdp import settings

COULOMB = 138.935458  # kJ mol^-1 nm e^-2
ATOMS = 32
SIGMA, EPSILON = 0.339967, 0.4577  # of CT in the force field
FUDGE = 0.8333  # of its 1-4 pairs
BOND = 0.15  # nm; 4 nm in all, where the table ends at 2
SHIFT = 3  # bonds between atoms that are excluded

# Sums of some hundred terms in single precision, and a table of them.
ROUNDING = 1e-5
ACCURATE = {"fmm-farfield-accuracy": 1e-5}


def charges():
    return np.round(np.random.default_rng(3).uniform(-0.6, 0.6, ATOMS), 2)


def write_chain(folder, edge, sections=(), charges_b=None):
    """A zigzag whose bonds have no force, in a cube; sections follow in its molecule type."""
    along = np.arange(ATOMS) * BOND * np.cos(0.5)
    across = (np.arange(ATOMS) % 2) * BOND * np.sin(0.5)
    x = np.stack([along, across, np.zeros(ATOMS)], axis=1)
    x += np.full(3, edge / 2) - x.mean(axis=0)
    names = [[i + 1 for i in range(ATOMS)], ["CHN  "] * ATOMS, ["    C"] * ATOMS]
    s = systems.snap_to_grid(gro.Structure("chain", *names, x, np.eye(3) * edge))
    systems.write_gro(folder / "conf.gro", s)
    lines = [f'#include "{systems.FORCE_FIELD}.ff/forcefield.itp"', "[ moleculetype ]"]
    lines += [f"CHN {SHIFT}", "[ atoms ]"]
    for i, charge in enumerate(charges()):
        state_b = "" if charges_b is None else f" CT {charges_b[i]} 12.01"
        lines.append(f"{i + 1} CT 1 CHN C {i + 1} {charge} 12.01{state_b}")
    lines += ["[ bonds ]", *(f"{i} {i + 1} 1 {BOND} 0" for i in range(1, ATOMS)), *sections]
    lines += ["[ system ]", "chain", "[ molecules ]", "CHN 1"]
    (folder / "topol.top").write_text("\n".join(lines) + "\n")
    return systems.System(folder, folder / "conf.gro", folder / "topol.top", ATOMS, edge**3)


def pairs(excluded=()):
    """Those that are not excluded, as two arrays."""
    i, j = np.triu_indices(ATOMS, SHIFT + 1)
    kept = [(a, b) not in excluded for a, b in zip(i, j)]
    return i[kept], j[kept]


def plain_sum(x, i, j, products, c6, c12):
    """(energy, forces[n][3]) of Coulomb and Lennard-Jones interactions of pairs."""
    d = x[i] - x[j]
    r = np.linalg.norm(d, axis=1)
    coulomb, dispersion, repulsion = COULOMB * products / r, c6 / r**6, c12 / r**12
    scale = (coulomb + 12 * repulsion - 6 * dispersion) / r**2
    forces = np.zeros_like(x)
    np.add.at(forces, i, scale[:, None] * d)
    np.add.at(forces, j, -scale[:, None] * d)
    return np.sum(coulomb + repulsion - dispersion), forces


def lennard_jones(sigma, epsilon):
    return 4 * epsilon * sigma**6, 4 * epsilon * sigma**12


DECOUPLED = {
    "free-energy": "yes",
    "couple-moltype": "CHN",
    "couple-lambda0": "vdw-q",
    "couple-lambda1": "vdw",
    "couple-intramol": "no",
    "coul-lambdas": "0 0.5 1",
    "vdw-lambdas": "0 0 0",
    "nstdhdl": 1,
}


@pytest.mark.parametrize(
    "boundary, state",
    [(mdp.VACUUM, 0), (mdp.VACUUM, 1), (mdp.VACUUM, 2), (mdp.UNTUNED_FMM, 2)],
    ids=["pbc = no, A", "pbc = no, between", "pbc = no, B", "pbc = xyz, B"],
)
def test_a_decoupled_molecule_has_all_pairs_with_itself(work, boundary, state):
    """In every state, the whole chain: 2 nm beyond the end of the table, in a wide box.

    With images, in the state without charges, in which it has no interactions with them.
    """
    chain = write_chain(work, 9.5)
    one = {**mdp.ONE_STEP, "init-lambda-state": state, "rvdw": 1, "rcoulomb": 1}
    entries = settings(boundary, ACCURATE, DECOUPLED, one)
    run = simulation.simulate(work, "run", entries, chain, warnings=2)
    frame = run.frames[0]
    i, j = pairs()
    products = charges()[i] * charges()[j]
    energy, forces = plain_sum(frame.x, i, j, products, *lennard_jones(SIGMA, EPSILON))
    assert run.energies["Potential"][0] == pytest.approx(energy, rel=ROUNDING)
    assert simulation.force_error(frame.f, forces) < ROUNDING


@pytest.mark.parametrize("edge, fits", [(9.5, True), (6, False)])
def test_a_decoupled_molecule_is_its_own_nearest_image(work, edge, fits):
    """GROMACS takes pairs of nearest images, which in a box of 6 nm are of others than its own atoms."""
    chain = write_chain(work, edge)
    entries = settings(mdp.FMM, DECOUPLED, {"init-lambda-state": 0})
    # its position in the box does not matter
    s = systems.read_gro(chain.conf)
    s.x[:, 0] = (s.x[:, 0] + edge / 2) % edge
    systems.write_gro(work / "wrapped.gro", s)
    done = simulation.grompp(work, "run", entries, "wrapped.gro", chain.top, ["-maxwarn", 2])
    assert (done.status == 0) == fits, done.text[-3000:]
    if not fits:
        text = " ".join(done.text.split())
        assert "of molecule type CHN are excluded from each other" in text
        assert "With couple-intramol = no" in text


@pytest.mark.parametrize("ranks, edge, fits", [(1, 9.5, False), (1, 19, True), (2, 9.5, False)])
def test_a_decoupled_molecule_grows(work, ranks, edge, fits):
    """A chain that stretches by a third in 40 steps, and is looked at when pairs are searched for.

    Charges are gone in both states, so that several ranks may have it.
    """
    chain = write_chain(work, edge)
    s = systems.read_gro(chain.conf)
    apart = s.x - s.x.mean(axis=0)
    # Across it the second domain begins, which all of its pairs span
    s.box[1:, 1:] *= 1.5
    s.x[:, 1] += s.box[1, 1] / 2 - s.x[:, 1].mean()
    systems.write_gro(work / "moving.gro", s)
    lines = (work / "moving.gro").read_text().splitlines()
    for i, along in enumerate(apart[:, 0]):
        lines[2 + i] += "".join(f"{v:12.4f}" for v in (4 * along, 0, 0))
    (work / "moving.gro").write_text("\n".join(lines) + "\n")
    only_vdw = {"couple-lambda0": "vdw", "couple-lambda1": "none", "coul-lambdas": "0 0"}
    changes = {**DECOUPLED, **only_vdw, "vdw-lambdas": "0 1", "init-lambda-state": 0}
    steps = {"nsteps": 40, "nstxout": 40, "nstlist": 5, "constraints": "none", "verlet-buffer-tolerance": -1}
    entries = settings(mdp.FMM, changes, steps, {"rlist": 1, "comm-mode": "none"})
    flags = ["-maxwarn", 3]
    simulation.grompp(work, "run", entries, "moving.gro", chain.top, flags).ok()
    domains = ["-dd", 1, ranks, 1] if ranks > 1 else []
    done = simulation.mdrun(work, "run", ["-nb", "cpu", *domains], ntmpi=ranks, ntomp=1)
    text = " ".join(done.text.split())
    assert (done.status == 0) == fits, text[-3000:]
    assert ("of molecule type CHN are excluded from each other" in text) != fits, text[-3000:]
    assert ("would be computed. Use a larger box, or set couple-intramol = yes." in text) != fits
    if fits:
        x = simulation.read_trr(work / "run.trr")[-1].x
        assert np.ptp(x[:, 0]) > 1.2 * np.ptp(apart[:, 0])


@pytest.mark.parametrize("edge, fits", [(9.5, True), (6, False)])
def test_excluded_charges_are_their_own_nearest_images(work, edge, fits):
    """A warning: they may be held in place."""
    sections = ["[ exclusions ]", f"1 {ATOMS}"]
    chain = write_chain(work, edge, sections)
    for allowed in (1, 2):
        flags = ["-maxwarn", allowed]
        done = simulation.grompp(work, "run", settings(mdp.FMM), chain.conf, chain.top, flags)
        text = " ".join(done.text.split())
        assert (done.status == 0) == (fits or allowed == 2), text
        assert ("the interaction with that image is left out" in text) != fits


# Sigma and epsilon of a pair in states A and B: 4 nm apart, it has to show.
PAIR_A, PAIR_B = (1.0, 100.0), (1.1, 200.0)


@pytest.mark.parametrize("is_perturbed", [False, True])
def test_pairs_of_a_list_may_be_anywhere(work, is_perturbed):
    """Both ends of the chain are a 1-4 pair; at steps with energies and at others."""
    q_a = charges()
    q_b = np.where(np.arange(ATOMS) % 5 == 0, 0.5 * q_a, q_a) if is_perturbed else None
    parameters = " ".join(map(str, PAIR_A + PAIR_B if is_perturbed else PAIR_A))
    sections = ["[ pairs ]", f"1 {ATOMS} 1 {parameters}", "[ exclusions ]", f"1 {ATOMS}"]
    chain = write_chain(work, 9.5, sections, q_b)
    states = {"free-energy": "yes", "init-lambda": 0.3, "nstdhdl": 1}
    rare = {"nstcalcenergy": 2, "nstenergy": 2, "nsteps": 1, "dt": 1e-6, "nstxout": 1, "nstfout": 1}
    reach = {"rvdw": 6, "rcoulomb": 6, "vdw-modifier": "None", "table-extension": -5}
    entries = settings(mdp.VACUUM, ACCURATE, {"continuation": "yes"}, reach, rare)
    entries.update(states if is_perturbed else {})
    run = simulation.simulate(work, "run", entries, chain, warnings=2)
    i, j = pairs(excluded={(0, ATOMS - 1)})
    ends = np.array([0]), np.array([ATOMS - 1])

    def of_state(x, q, pair):
        energy, forces = plain_sum(x, i, j, q[i] * q[j], *lennard_jones(SIGMA, EPSILON))
        listed = plain_sum(x, *ends, FUDGE * q[:1] * q[-1:], *lennard_jones(*pair))
        return energy + listed[0], forces + listed[1]

    assert len(run.frames) == 2
    for frame in run.frames:
        energy, forces = of_state(frame.x, q_a, PAIR_A)
        if is_perturbed:
            other = of_state(frame.x, q_b, PAIR_B)
            slope = other[0] - energy
            energy, forces = energy + 0.3 * slope, 0.7 * forces + 0.3 * other[1]
        assert simulation.force_error(frame.f, forces) < ROUNDING
        if frame.step == 0:
            assert run.energies["Potential"][0] == pytest.approx(energy, rel=ROUNDING)
            if is_perturbed:
                found = run.energies["dVremain/dl"][0]
                assert found == pytest.approx(slope, rel=10 * ROUNDING)
