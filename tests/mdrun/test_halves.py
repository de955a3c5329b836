# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is on a machine by halves, as a compiler of MPI without headers, does not break the build: with programs and
files that stand in for it."""

import os
import subprocess

import pytest

from tests.support.gmx.environment import ROOT

SHELL = f"""
set -euo pipefail
root={ROOT}; cache=$PWD; mpi=ON; jobs=1
eval "$(sed -n '/^checkSpace()/,/^}}/p' "$root/quickstart.sh")"
note() {{ printf '   %s\\n' "$*"; }}
step() {{ note "$@"; }}
fail() {{ printf 'quickstart: %s\\n' "$*" >&2; exit 1; }}
. "$root/cmake/packages.sh"
. "$root/cmake/gromacs.sh"
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """stand_in(name, text): puts a program in front of others of its name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        return folder / name

    return make


@pytest.fixture
def mpi_without_headers(stand_in):
    """As Debian's openmpi-bin has it."""
    stand_in(
        "mpicxx",
        """case "$*" in
*showme:compile*) echo "-I/nowhere/openmpi/include -pthread" ;;
*showme:link*) echo "-L/nowhere/openmpi/lib -lmpi_cxx -lmpi" ;;
*showme:incdirs*) echo /nowhere/openmpi/include ;;
*showme:libdirs*) echo /nowhere/openmpi/lib ;;
*showme:libs*) echo mpi_cxx mpi ;;
*) exec g++ -nostdinc "$@" ;;
esac""",
    )
    stand_in("mpiexec", "exit 0")


def shell(folder, commands, **variables):
    return subprocess.run(
        ["bash", "-c", SHELL + commands],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )


def configured(folder, text):
    """The messages of CMake for a project with these lines."""
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\ninclude({ROOT}/cmake/optional.cmake)\n{text}"
    )
    words = ["cmake", "-S", folder, "-B", folder / "build"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_mpi_without_headers_counts_as_none(tmp_path, mpi_without_headers):
    said = configured(tmp_path, 'farfield_find_mpi()\nmessage(STATUS "found: ${MPI_CXX_FOUND}.")\n')
    assert "Ranks over MPI: not tested" in said and "found: ." in said
    assert "farfield_find_mpi()" in (ROOT / "tests/CMakeLists.txt").read_text()


def test_targets_without_headers_count_as_none(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/some.h").write_text("")
    said = configured(
        tmp_path,
        f"""
foreach(name there nowhere)
    add_library(${{name}} INTERFACE IMPORTED)
    set_target_properties(${{name}} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "{tmp_path}/${{name}}")
endforeach()
foreach(name there nowhere unknown)
    farfield_has_header(has ${{name}} some.h)
    message(STATUS "${{name}}: ${{has}}.")
endforeach()
farfield_has_header(has there other.h)
message(STATUS "other: ${{has}}.")
""",
    )
    assert [f"{name}: {has}." in said for name, has in (("there", "TRUE"), ("nowhere", "FALSE"))] == [True, True]
    assert "unknown: FALSE." in said and "other: FALSE." in said


def test_nccl_that_does_not_compile_counts_as_none(tmp_path):
    (tmp_path / "nccl.h").write_text("#error for another CUDA\n")
    said = configured(
        tmp_path,
        f"set(NCCL_INCLUDE_DIR {tmp_path})\nset(NCCL_LIBRARY m)\nfarfield_find_nccl()\n"
        'message(STATUS "works: ${farfield_nccl_works}.")\n',
    )
    assert "works: ." in said


def test_quickstart_installs_the_other_halves(tmp_path, stand_in, mpi_without_headers):
    """Headers of MPI; FFTW in the other precision, where one in double precision alone stands before; doxygen that
    does not start."""
    stand_in("doxygen", "exit 1")
    (tmp_path / "fftw3f.pc").write_text(
        "Name: fftw3f\nDescription: none\nVersion: 3.3\nLibs: -L/nowhere -lfftw3f_of_nobody\n"
    )
    done = shell(tmp_path, "missingPackages docs", PKG_CONFIG_PATH=str(tmp_path))
    assert {"libopenmpi-dev", "libfftw3-dev", "doxygen"} <= set(done.stdout.split()), done.stderr


def test_a_cuda_toolkit_without_its_libraries_is_not_taken(tmp_path, stand_in):
    path = stand_in("nvcc", "exit 1")
    done = shell(tmp_path, "findNvcc || true", CUDACXX=str(path), CUDA_HOME="")
    assert f"{path}: its toolkit has no cuFFT or cuBLAS" in done.stderr
    assert str(path) not in done.stdout.split()


def test_quickstart_waits_for_another_apt(tmp_path, stand_in):
    stand_in("apt-get", f'echo "$@" >> {tmp_path}/calls')
    stand_in("sudo", 'exec "$@"')
    shell(tmp_path, "missingPackages() { [ -e calls ] || echo some; }\ninstallPackages")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 2 and all("DPkg::Lock::Timeout=" in call for call in calls)


def test_a_disk_without_room_is_named_before_the_build(tmp_path, stand_in):
    stand_in("df", "echo head; echo /dev/disk 100000000 99000000 1000000 99% /")
    done = shell(tmp_path, 'checkSpace "$cache" 2 "building GROMACS"')
    assert done.returncode == 1 and "building GROMACS needs 2 GB, but the disk of" in done.stderr
    assert shell(tmp_path, 'checkSpace "$cache" 0 "building GROMACS"').returncode == 0


def test_a_download_that_breaks_off_is_begun_anew(tmp_path, stand_in):
    """What is there of it is not taken for the release, and the sum of what comes decides."""
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads/gromacs-2026.3.tar.gz.part").write_text("half")
    (tmp_path / "downloads/gromacs-2026.3.tar.gz").write_text("other")
    stand_in("curl", "exit 18")
    done = shell(
        tmp_path, "root=$PWD/tree; downloadFromMirror() { return 1; }\nfindArchive gromacs gromacs name GROMACS_SOURCE"
    )
    assert done.returncode == 1 and "GROMACS_SOURCE=/path/to/gromacs-2026.3.tar.gz" in done.stderr
    assert not (tmp_path / "downloads/gromacs-2026.3.tar.gz.part").exists()
