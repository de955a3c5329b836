# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bugs of GROMACS itself that the patch mends: their inputs, and that each patch is on its own."""

import re
import shutil

import pytest

from tests.mdrun.test_rank_errors import SOON, needs_mpi
from tests.support.gmx import environment, mdp, patches, simulation

BUGS = patches.FOLDER / "bugs"


def prepare(work, name, bug, structure, parameters="grompp.mdp", flags=()):
    folder = BUGS / bug
    entries = mdp.read(folder / parameters)
    return simulation.grompp(work, name, entries, folder / structure, folder / "topol.top", flags)


def energies(work, name, *input_files):
    prepare(work, name, *input_files).ok()
    simulation.mdrun(work, name, ntomp=1).ok()
    return simulation.Run(work, name).energies


def test_the_pressure_of_perturbed_pairs_is_the_same_across_the_border(work):
    bug = "virial-of-perturbed-pairs"
    middle, border = (
        energies(work, name, bug, f"{name}.gro")["Pres-XX"][0] for name in ("middle", "border")
    )
    assert border == pytest.approx(middle, rel=1e-5)


def test_atoms_in_state_b_have_the_energies_of_such_atoms_with_lj_pme(work):
    bug = "lj-pme-of-state-b"
    alone, perturbed = (
        energies(work, name, bug, "conf.gro", f"{name}.mdp") for name in ("xenon", "perturbed")
    )
    for term in ("LJ (SR)", "LJ recip.", "Pres-XX"):
        assert perturbed[term][0] == pytest.approx(alone[term][0], rel=1e-4), term


def water(work, bug, *box):
    """conf.gro and topol.top of whole copies of the water that comes with GROMACS, which is at rest."""
    shutil.copy(BUGS / bug / "topol.top", work)
    environment.gmx()("solvate", "-cs", "spc216", "-box", *box, "-p", "topol.top", "-o", "conf.gro", folder=work)


@pytest.mark.whole_machine
@pytest.mark.skipif(environment.gpu_count() < 2, reason="fewer than two GPUs")
def test_forces_on_two_gpus_are_those_of_the_box_of_their_step(work):
    """Fewer steps than in the folder of the bug, whose run shows it at some moments only."""
    bug = "shift-vectors-of-the-step"
    water(work, bug, 7.44824, 3.72412, 3.72412)
    entries = {**mdp.read(BUGS / bug / "grompp.mdp"), "nsteps": 200}
    simulation.grompp(work, "run", entries, "conf.gro", "topol.top").ok()
    on_gpus = ["-nb", "gpu", "-update", "gpu"]
    direct = {"GMX_ENABLE_DIRECT_GPU_COMM": "1"}
    simulation.mdrun(work, "run", on_gpus, ntmpi=2, variables=direct).ok()
    simulation.mdrun(work, "rerun", ["-s", "run.tpr", "-rerun", "run.trr", "-nb", "cpu"]).ok()
    frames, exact = (simulation.Run(work, name).frames for name in ("run", "rerun"))
    assert len(frames) == 201
    # Single precision has 8e-7 on a CPU. The box changes by 4e-4 in a step: with that of the step before
    # pairs across its border are some per cent off
    for ours, theirs in zip(frames, exact, strict=True):
        assert simulation.force_error(ours.f, theirs.f) < 1e-5


def test_an_error_before_the_first_step_ends_a_run_with_its_message(work):
    """On a GPU, too, whose buffers have not been allocated by then."""
    bug = "unallocated-device-buffers"
    shutil.copy(BUGS / bug / "awhinit.xvg", work)
    # mdrun -deffnm gives that file the name of the run
    prepare(work, "awhinit", bug, "conf.gro", flags=["-n", BUGS / bug / "index.ndx"]).ok()
    done = simulation.mdrun(
        work,
        "awhinit",
        ["-nb", "gpu" if environment.on_gpu() else "cpu"],
        variables={"MALLOC_PERTURB_": "85"},  # no memory that happens to be zero
    )
    assert done.status == 1
    message = "awhinit.xvg does not contain data for all coordinate values"
    assert message in " ".join(done.text.split())


def test_a_position_that_is_far_away_is_an_error(work):
    done = prepare(work, "far", "positions-that-are-not-finite", "conf.gro")
    assert done.status == 1
    assert "The position of atom 1 is not finite or far too large" in " ".join(done.text.split())


def replicas(work, bug, folder, temperatures, **changes):
    """Folders with run.tpr, one per temperature. folder: that of the structure; changes: of grompp.mdp."""
    entries = {**mdp.read(BUGS / bug / "grompp.mdp"), **changes}
    folders = [work / f"{temperature}K" for temperature in temperatures]
    for own, temperature in zip(folders, temperatures, strict=True):
        own.mkdir()
        heat = {"ref-t": temperature, "gen-temp": temperature}
        simulation.grompp(own, "run", {**entries, **heat}, folder / "conf.gro", folder / "topol.top").ok()
    return folders


def exchange(work, folders, interval, *flags):
    """Their logs, after runs on the CPU."""
    flags = ["-nb", "cpu", "-multidir", *folders, "-replex", interval, *flags]
    simulation.mdrun_with_mpi(work, "run", len(folders), flags, time_limit=SOON)
    return [simulation.Run(folder, "run").log for folder in folders]


def checkpoints(log):
    return [int(step) for step in re.findall(r"Writing checkpoint, step (\d+)", log)]


@pytest.mark.whole_machine
@needs_mpi
def test_replicas_of_different_temperatures_stop_at_the_same_step(work):
    bug = "nstlist-of-replicas"
    water(work, bug, 3.72412, 3.72412, 3.72412)
    logs = exchange(work, replicas(work, bug, work, (100, 1000)), 10, "-maxh", 0.0002)
    chosen = [re.findall(r"Changing nstlist from \d+ to (\d+)", log) for log in logs]
    assert len({own[0] for own in chosen}) == 2
    assert len({own[-1] for own in chosen}) == 1
    assert len({checkpoints(log)[-1] for log in logs}) == 1


@pytest.mark.whole_machine
@needs_mpi
@pytest.mark.parametrize("nstlist", [10, 40])
def test_replicas_write_checkpoints_at_the_same_steps(work, nstlist):
    """Also where the next exchange comes before the next search."""
    bug = "checkpoints-of-replicas"
    folders = replicas(work, bug, BUGS / bug, (300, 301, 302), nstlist=nstlist)
    first, *others = exchange(work, folders, 20, "-cpt", 0)
    assert re.search(r"^Repl ex .*x", first, re.MULTILINE)
    steps = checkpoints(first)
    assert len(steps) > 3
    assert [step for step in steps if step % nstlist] == []
    assert [checkpoints(log) for log in others] == [steps, steps]


@pytest.mark.skipif(not environment.on_gpu(), reason="no GPU, or gmx without CUDA")
def test_graphs_follow_a_start_at_an_odd_step(work):
    bug = "updates-of-cuda-graphs"
    water(work, bug, 3.72412, 3.72412, 3.72412)
    simulation.grompp(work, "run", mdp.read(BUGS / bug / "grompp.mdp"), "conf.gro", "topol.top").ok()
    graphs = {"GMX_CUDA_GRAPH": "1"}
    simulation.mdrun(work, "run", ["-nb", "gpu", "-update", "gpu"], variables=graphs).ok()


def test_every_bug_has_a_section():
    titles = re.findall(r"^## (.*)$", (BUGS / "README.md").read_text(), re.MULTILINE)
    assert sorted(", ".join(titles).split(", ")) == sorted(patch.stem[5:] for patch in patches.OF_BUGS)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return patches.write_plain(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("patch", patches.OF_BUGS, ids=lambda patch: patch.stem)
def test_the_patch_of_a_bug_fits_gromacs_alone(plain, patch):
    done = patches.run(plain, patch, "--dry-run", "--fuzz=0")
    assert done.returncode == 0, done.stdout


def test_only_one_patch_is_of_farfield():
    """The others are for any backend: what they add to sources does not know this one."""
    for patch in (patch for patch in patches.PATCHES if patch != patches.named("farfield")):
        added = [line for line in patch.read_text().splitlines() if re.match(r"\+(?!\+\+)", line)]
        assert not [line for line in added if re.search(r"(?i)#include.*farfield|usesFarfield", line)], patch.name


def test_gromacs_asks_in_few_places_what_fmm_can_do():
    """Outside of the module of FMM."""
    files = [
        part
        for patch in patches.PATCHES
        for part in re.split(r"^(?=diff --git )", patch.read_text(), flags=re.MULTILINE)
        if not part.startswith("diff --git a/src/gromacs/fmm/")
    ]
    asking = re.findall(r"^\+(?!\+\+).*\bfmmBackend\(.*$", "".join(files), re.MULTILINE)
    assert 1 <= len(asking) <= 6, asking
