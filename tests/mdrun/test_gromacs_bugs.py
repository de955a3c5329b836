# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bugs of GROMACS itself that the patch mends: their inputs, and that each patch is on its own."""

import re
import shutil

import pytest

from tests.support.gmx import environment, mdp, patches, simulation

BUGS = patches.FOLDER / "bugs"
OF_BUGS = [patch for patch in patches.PATCHES if patch.name < "0008"]


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


@pytest.mark.whole_machine
@pytest.mark.skipif(environment.gpu_count() < 2, reason="fewer than two GPUs")
def test_forces_on_two_gpus_are_those_of_the_box_of_their_step(work):
    """Fewer steps than in the folder of the bug, whose run shows it at some moments only."""
    folder = BUGS / "shift-vectors-of-the-step"
    shutil.copy(folder / "topol.top", work)
    box = ["-box", 7.44824, 3.72412, 3.72412]  # whole copies, at rest
    environment.gmx()("solvate", "-cs", "spc216", *box, "-p", "topol.top", "-o", "conf.gro", folder=work)
    entries = {**mdp.read(folder / "grompp.mdp"), "nsteps": 200}
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


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return patches.write_plain(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("patch", OF_BUGS, ids=lambda patch: patch.stem)
def test_the_patch_of_a_bug_fits_gromacs_alone(plain, patch):
    done = patches.run(plain, patch, "--dry-run", "--fuzz=0")
    assert done.returncode == 0, done.stdout


def test_only_one_patch_is_of_farfield():
    """The others are for any backend: what they add to sources does not know this one."""
    for patch in (patch for patch in patches.PATCHES if patch.stem != "0015-farfield"):
        added = [line for line in patch.read_text().splitlines() if re.match(r"\+(?!\+\+)", line)]
        assert not [line for line in added if re.search(r"(?i)#include.*farfield|usesFarfield", line)], patch.name


def test_gromacs_asks_in_few_places_what_fmm_can_do():
    """What it does with the answer stands there, too; what is checked by the backend does not count."""
    added = [line for patch in patches.PATCHES for line in patch.read_text().splitlines() if line.startswith("+")]
    asking = [line for line in added if re.search(r"(?<!& )(?:gmx::)?\bfmmBackend\(\*?\w+\)(?!\.check)", line)]
    assert 1 <= len(asking) <= 6, asking
