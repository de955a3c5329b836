# SPDX-License-Identifier: LGPL-2.1-or-later
"""The patches of GROMACS, and the files that they change as they are without them."""

import re
import shutil
import subprocess

from tests.support.gmx import environment
from tests.support.gmx.environment import ROOT

FOLDER = ROOT / "gromacs_patch"
PATCHES = sorted(FOLDER.glob("*.patch"))


def named(name):
    """A patch, whatever its number is."""
    [patch] = FOLDER.glob(f"????-{name}.patch")
    return patch


# Those of bugs of GROMACS itself come before the first feature
OF_BUGS = [patch for patch in PATCHES if patch < named("fmm-backend-capabilities")]


def run(folder, patch, *flags):
    """The finished program patch, run with a patch in a folder."""
    command = ["patch", "-p1", "-s", "--force", "--no-backup-if-mismatch", "-i", patch, *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def changed(patch):
    """The names of the files that are there after a patch."""
    return set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE))


def write_plain(folder, more=()):
    """Files of GROMACS as they are without patches: those that the patches change, that with its version, and more."""
    source = environment.folder_from_environment("GROMACS_SOURCE_DIR")
    for name in {"CMakeLists.txt", *more}.union(*map(changed, PATCHES)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / name)
    for patch in reversed(PATCHES):
        assert run(folder, patch, "--reverse").returncode == 0, patch.name
    return folder
