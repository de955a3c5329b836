# SPDX-License-Identifier: LGPL-2.1-or-later
"""./quickstart.sh install: what is built, in a folder with a space in its name, moved from where it was installed, is
used by another user who has nothing of the clone."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.gmx import environment, mdp
from tests.support.gmx.environment import ROOT

# Of what is built: building anew would change what other tests run
INSTALL = 'source ./quickstart.sh help > /dev/null; programs=(gmx); choosePrefix "$1"; installInto'
PROGRAM = """
#include <cstdio>
#include <farfield/farfield.h>

int main()
{
    const double x[6] = { 0, 0, 0, 0, 0, 1 }, q[2] = { 1, -1 }, box[3][3] = { { 4, 0, 0 }, { 0, 4, 0 }, { 0, 0, 4 } };
    double       forces[6] = {};
    farfield::Solver<double> solver(farfield::Options{});
    solver.setCharges(q, 2);
    std::printf("%d\\n", solver.evaluate(x, box, forces).energy < 0);
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES CXX)
find_package(farfield 0.1 REQUIRED CONFIG)
add_executable(program program.cpp)
target_link_libraries(program farfield::farfield)
"""


def run(words, folder, **variables):
    """What a command prints that knows nothing of this environment."""
    plain = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "2", **variables}
    done = subprocess.run(words, cwd=folder, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_another_user(words):
    """The command as a user who may not read the clone, if this one may become that."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return words
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]


def install(folder):
    words = ["bash", "-c", f"umask 077; {INSTALL}", "install", folder]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(folder)


@pytest.fixture(scope="module")
def prefix():
    """Not below the folder of other tests, which others may not read."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="farfield install ", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        first = install(f"{folder}/first place")
        # As if another version had left a file
        for name in ("old", "other"):
            (first / "bin" / name).write_text("")
        with open(first / "share/farfield/files", "a") as files:
            files.write("./bin/old\n")
        install(first)
        yield first.rename(first.with_name("moved"))
    os.umask(before)


@pytest.fixture
def public(prefix):
    """A working folder for all users."""
    with tempfile.TemporaryDirectory(dir=prefix.parent) as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def test_another_user_runs_fmm_with_nothing_but_gmxrc(prefix, public, water):
    for file in (water.conf, water.top):
        shutil.copy(file, public / file.name)
    mdp.write(public / "run.mdp", {**mdp.STANDARD, **mdp.FMM, "nsteps": 10})
    script = f"""set -euo pipefail
        exec 2>&1
        source "$1/bin/GMXRC"
        gmx --version
        gmx -quiet grompp -f run.mdp -c {water.conf.name} -p {water.top.name} -o run.tpr
        gmx -quiet mdrun -deffnm run -ntmpi 1 -nb cpu
        complete -p gmx
    """
    (public / "script").write_text(script)
    said = run(as_another_user(["bash", "script", str(prefix)]), public, PATH="/usr/bin:/bin")
    assert f"Executable:   {prefix}/bin/gmx" in said and f"Data prefix:  {prefix}" in said
    assert "_gmx_compl" in said
    assert "FMM electrostatics with farfield" in (public / "run.log").read_text()


def test_files_are_readable_and_name_no_folder_of_the_build(prefix):
    files = [path for path in prefix.rglob("*") if path.is_file()]
    for path in prefix.rglob("*"):
        mode = path.stat().st_mode
        wanted = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH | (0o111 if path.is_dir() else 0)
        assert mode & wanted == wanted, path
    gromacs = (ROOT / "build/share/gromacs/origin").read_text().strip()
    names = [str(name).encode() for name in (ROOT / "build", ROOT / "src", Path(gromacs).parent, "first place")]
    for path in files:
        content = path.read_bytes()
        assert [name for name in names if name in content] == [], path


def test_what_users_expect_is_there(prefix):
    for name in (
        *("bin/GMXRC.bash", "bin/GMXRC.csh", "bin/gmx-completion.bash", "lib/libfarfield.so.0.1"),
        *("share/man/man1/gmx-mdrun.1", "share/gromacs/top/oplsaa.ff/forcefield.itp"),
        *("share/doc/farfield/LICENSE", "share/gromacs/COPYING", "include/farfield/farfield.h"),
    ):
        assert (prefix / name).exists(), name
    # The completion knows the options of the patch
    completion = (prefix / "bin/gmx-completion.bash").read_text().split("_gmx_convert_tpr_compl()")[1]
    assert r"\n-f\n" in completion.split("esac")[0]


def test_a_later_installation_removes_its_files_alone(prefix):
    assert not (prefix / "bin/old").exists() and (prefix / "bin/other").exists()


@pytest.mark.parametrize("shell", ["bash -eu", "sh -eu", "dash -eu", "zsh -eu", "ksh -eu", "tcsh -f"])
def test_gmxrc_finds_its_place_in_each_shell(prefix, shell, public):
    words = shell.split()
    if not shutil.which(words[0]):
        pytest.skip(f"there is no {words[0]}")
    command = "source" if words[0] == "tcsh" else "."
    script = f"{command} '{prefix}/bin/GMXRC'; {command} '{prefix}/bin/GMXRC'; env"
    found = dict(line.split("=", 1) for line in run([*words, "-c", script], public).splitlines() if "=" in line)
    for name, folder in (("PATH", "/bin"), ("PKG_CONFIG_PATH", "/lib/pkgconfig"), ("CMAKE_PREFIX_PATH", "")):
        entries = found[name].split(":")
        assert entries[0] == f"{prefix}{folder}"
        assert words[0] == "tcsh" or entries.count(entries[0]) == 1


def test_the_module_file_finds_its_place(prefix, public):
    if not shutil.which("tclsh"):
        pytest.skip("there is no tclsh")
    (file,) = (prefix / "share/modulefiles/gromacs").iterdir()
    assert environment.gmx().version()["GROMACS version"] == file.name
    link = public / "link"
    link.symlink_to(file)
    (public / "load.tcl").write_text(
        "proc prepend-path {name value} { puts [list $name $value] }\n"
        + "".join(f"proc {name} args {{}}\n" for name in ("conflict", "module-whatis", "setenv"))
        + "set ModulesCurrentModulefile [lindex $argv 0]\nsource $ModulesCurrentModulefile\n"
    )
    for path in (file, link):
        assert f"PATH {{{prefix}/bin}}" in run(["tclsh", "load.tcl", str(path)], public)


def test_programs_link_the_moved_library_by_cmake_and_by_pkg_config(prefix, public):
    (public / "program.cpp").write_text(PROGRAM)
    (public / "CMakeLists.txt").write_text(PROJECT)
    script = """set -euo pipefail
        source "$1/bin/GMXRC"
        cmake -G Ninja -S . -B build && cmake --build build && build/program
        eval g++ program.cpp -o program $(pkg-config --cflags --libs farfield)
        readelf -d program
        LD_LIBRARY_PATH=$GMXLDLIB ./program
    """
    said = run(["bash", "-c", script, "build", str(prefix)], public)
    assert "[libfarfield.so.0.1]" in said
    assert [line for line in said.splitlines() if line in ("0", "1")] == ["1", "1"]


def test_libraries_from_the_cache_come_along(tmp_path):
    """As those of CUDA from PyPI, of which one needs another beside it."""
    script = r"""source ./quickstart.sh help > /dev/null
        build=$1 cache=$1/cache cuda=$1/cache/cuda stage=$1/stage
        compile_into() { g++ -x c++ - -x none -o "$@"; }
        mkdir -p "$cuda" "$stage/bin" "$stage/lib"
        echo 'int inner() { return 7; }' | compile_into "$cuda/libinner.so" -shared
        echo 'int inner(); int outer() { return inner(); }' \
            | compile_into "$cuda/libouter.so" -shared -L"$cuda" -linner -Wl,-rpath,'$ORIGIN'
        echo 'int outer(); int main() { return outer(); }' | compile_into "$stage/bin/program" \
            -L"$cuda" -louter -Wl,-rpath-link,"$cuda" -Wl,-rpath,'$ORIGIN/../lib':"$cuda":/opt/lib
        ln -s "$cache" "$build/link" && cache=$build/link/
        bundleLibraries "$stage"
        readelf -d "$stage/bin/program"
        rm -r "$build/cache"
        "$stage/bin/program"
    """
    words = ["bash", "-c", script, "bundle", tmp_path]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "[$ORIGIN/../lib:/opt/lib]" in done.stdout


def quickstart(*words):
    return subprocess.run([ROOT / "quickstart.sh", *words], capture_output=True, text=True, check=False)


def test_folders_that_cannot_be_are_refused_before_anything_is_built(tmp_path):
    (tmp_path / "file").write_text("")
    for words, said in (
        ([], "install takes one folder"),
        ([""], "install takes one folder"),
        ([tmp_path, "other"], "install takes one folder"),
        ([tmp_path], f"{tmp_path} holds other files. Name a new folder, such as {tmp_path}/farfield."),
        ([tmp_path / "file"], "is a file; name a folder"),
        ([tmp_path / "file/folder"], "Name a folder of your own"),
        ([tmp_path / "a:b"], "cannot have a colon"),
        (["--help"], "is no folder"),
        ([ROOT / "build/installation"], "lies in a folder of the build"),
    ):
        done = quickstart("install", *words)
        assert done.returncode == 1 and said in done.stderr, done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
