# SPDX-License-Identifier: LGPL-2.1-or-later
"""Molecules that are broken across a box are refused where there are no images that would join them."""

import numpy as np
import pytest

from tests.support.gmx import mdp, simulation, systems
from tests.support.gmx.mdp import settings

ONE = settings(mdp.ONE_STEP, mdp.VACUUM)


@pytest.fixture(scope="module")
def droplet(tmp_path_factory):
    return systems.droplet(tmp_path_factory.mktemp("droplet"), radius=0.8, steps=20)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    return systems.film(tmp_path_factory.mktemp("film"), steps=20)


def wrapped(folder, system, box, axes, shown=None):
    """The structure with atoms put into a box along some axes; the file has the box, or what is shown."""
    s = systems.read_gro(system.conf)
    s.box = np.diag(np.array(box, dtype=float)) if len(np.shape(box)) == 1 else np.array(box)
    for axis in sorted(axes, reverse=True):
        times = np.floor(s.x[:, axis] / s.box[axis][axis])
        s.x = s.x - times[:, None] * s.box[axis]
    if shown is not None:
        s.box = np.diag(np.array(shown, dtype=float))
    systems.write_gro(folder / "wrapped.gro", s)
    return folder / "wrapped.gro"


def longest_bond(conf):
    """Between the oxygen and a hydrogen of water, as the file has them."""
    s = systems.read_gro(conf)
    names = np.char.strip(np.array(s.atoms))
    oxygens = np.flatnonzero(names == "OW")
    return max(np.linalg.norm(s.x[oxygens + k] - s.x[oxygens], axis=1).max() for k in (1, 2))


def prepare(folder, entries, conf, top, allowed=0):
    done = simulation.grompp(folder, "run", entries, conf, top, ["-maxwarn", allowed])
    return done.status == 0, " ".join(done.text.split())


@pytest.mark.parametrize(
    "box", [(3, 3, 3), ((3, 0, 0), (0, 3, 0), (1.5, 1.5, 2.1))], ids=["cube", "skewed"]
)
def test_without_images(work, droplet, box):
    conf = wrapped(work, droplet, box, axes=(0, 1, 2))
    assert longest_bond(conf) > 1
    accepted, text = prepare(work, ONE, conf, droplet.top, allowed=9)
    assert not accepted
    assert "molecule is broken" in text and "gmx trjconv -pbc whole" in text, text


def test_whatever_box_is_in_the_file(work, droplet):
    """Without the box in which molecules were broken there is a warning."""
    conf = wrapped(work, droplet, (3, 3, 3), axes=(0, 1, 2), shown=(0, 0, 0))
    for allowed in (0, 1):
        accepted, text = prepare(work, ONE, conf, droplet.top, allowed)
        assert accepted == bool(allowed)
        assert "If a molecule is broken, make molecules whole" in text


@pytest.mark.parametrize("axis, joined", [(0, True), (1, True), (2, False)])
def test_slabs_have_images_along_their_plane(work, film, axis, joined):
    box = systems.read_gro(film.conf).box.diagonal() + [0, 0, 4]
    s = systems.read_gro(film.conf)
    s.x[:, 2] -= s.x[:, 2].mean()
    systems.write_gro(work / "centred.gro", s)
    centred = systems.System(work, work / "centred.gro", film.top, film.atoms, 0)
    conf = wrapped(work, centred, box, axes=(axis,))
    if joined:
        s = systems.read_gro(conf)
        # some molecules are broken, along an axis with images
        s.x[: len(s.x) // 2 // 3 * 3 : 3, axis] += box[axis]
        systems.write_gro(conf, s)
    assert longest_bond(conf) > 1
    accepted, text = prepare(work, settings(mdp.ONE_STEP, mdp.SLAB), conf, film.top, allowed=9)
    assert accepted == joined, text
    assert ("there are no images along z" in text) != joined


@pytest.mark.parametrize("edge", [0, 0.05, 0.15, 0.5, 2.5])
@pytest.mark.parametrize("strain", [0, 0.8])
def test_strain_is_no_break(work, droplet, edge, strain):
    """A bond of nearly a nanometre, and boxes that have nothing to do with the structure."""
    s = systems.read_gro(droplet.conf)
    s.x[1] += [strain, 0, 0]
    s.box = np.eye(3) * edge
    systems.write_gro(work / "strained.gro", s)
    minimise = settings(mdp.VACUUM, {"integrator": "steep", "nsteps": 1})
    flexible = {"constraints": "none", "define": "-DFLEXIBLE"}
    accepted, text = prepare(work, settings(minimise, flexible), "strained.gro", droplet.top)
    assert accepted, text


def test_frames_of_a_rerun(work, droplet):
    """Those of a periodic run have their box."""
    simulation.grompp(work, "run", ONE, droplet.conf, droplet.top).ok()
    conf = wrapped(work, droplet, (3, 3, 3), axes=(0, 1, 2))
    done = simulation.mdrun(work, "run", ["-rerun", conf], time_limit=60)
    assert done.status != 0
    assert "molecule is broken" in " ".join(done.text.split()), done.text[-3000:]
    simulation.mdrun(work, "run", ["-rerun", droplet.conf]).ok()


def test_what_a_periodic_run_left(work, droplet):
    """Its checkpoint has broken molecules and a box; mdrun itself does not continue it without images."""
    s = systems.read_gro(droplet.conf)
    s.box = np.eye(3) * 3
    systems.write_gro(work / "boxed.gro", s)
    periodic = settings(mdp.UNTUNED_FMM, {"nsteps": 20, "nstlist": 10})
    simulation.grompp(work, "periodic", periodic, "boxed.gro", droplet.top).ok()
    # without an order of domains, which keeps rigid water whole
    simulation.mdrun(work, "periodic", variables={"GMX_DD_SINGLE_RANK": "0"}).ok()
    entries = settings(periodic, mdp.VACUUM, {"nsteps": 40})
    flags = ["-t", "periodic.cpt", "-maxwarn", 9]
    done = simulation.grompp(work, "open", entries, droplet.conf, droplet.top, flags)
    assert done.status != 0 and "molecule is broken" in " ".join(done.text.split())
    simulation.grompp(work, "open", entries, droplet.conf, droplet.top).ok()
    done = simulation.mdrun(work, "open", ["-cpi", "periodic.cpt", "-noappend"], time_limit=60)
    assert done.status != 0 and "Cannot change a simulation algorithm" in done.text
