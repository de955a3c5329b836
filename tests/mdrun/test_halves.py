# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is on a machine by halves, as a compiler of MPI without headers, does not break the build: with programs and
files that stand in for it."""

import os
import re
import subprocess

import pytest

from tests.support.gmx import patches
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


def configured(folder, text, *options):
    """The messages of CMake for a project with these lines, in a new build folder."""
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\ninclude({ROOT}/cmake/optional.cmake)\n{text}"
    )
    words = ["cmake", "--fresh", "-S", folder, "-B", folder / "build", *options]
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


# The call of CMake by which the tests and, in a patch, GROMACS look for NCCL; "used" is what is linked.
OF_TESTS = """
farfield_find_nccl()
if(farfield_nccl_works)
    set(used ${NCCL_LIBRARY})
endif()
"""
OF_GROMACS = """
add_library(fmm STATIC nothing.cpp)
{}
get_target_property(used fmm LINK_LIBRARIES)
"""


def looks_for_nccl(where):
    if where == "tests":
        assert "farfield_find_nccl()" in (ROOT / "tests/CMakeLists.txt").read_text()
        return OF_TESTS
    patch = patches.named("farfield").read_text()
    lines = re.search(r"^\+ +find_path\(NCCL_INCLUDE_DIR .*?^\+ +endif\(\)", patch, re.MULTILINE | re.DOTALL)
    return OF_GROMACS.format(re.sub(r"^\+", "", lines[0], flags=re.MULTILINE))


@pytest.mark.parametrize("where", ["tests", "GROMACS"])
def test_nccl_of_the_system_is_not_linked_where_it_is_off(tmp_path, where):
    """FARFIELD_NCCL=OFF turns into NCCL_INCLUDE_DIR=OFF, as the next test has it."""
    (tmp_path / "nccl.h").write_text("inline int ncclGetVersion(int* version) { return *version = 0; }\n")
    (tmp_path / "nothing.cpp").write_text("")
    (tmp_path / "libnccl.so.2").write_text("INPUT(-lm)\n")
    text = looks_for_nccl(where) + 'message(STATUS "used: ${used}.")\n'
    system = [f"-DCMAKE_INCLUDE_PATH={tmp_path}", f"-DCMAKE_LIBRARY_PATH={tmp_path}"]
    assert f"used: {tmp_path}/libnccl.so.2." in configured(tmp_path, text, *system)
    assert re.search(r"used: (used-NOTFOUND)?\.", configured(tmp_path, text, *system, "-DNCCL_INCLUDE_DIR=OFF"))


@pytest.mark.parametrize(
    "choice, gpus, has", [("OFF", 2, False), ("AUTO", 1, False), ("AUTO", 2, True), ("ON", 1, True), ("", 2, True)]
)
def test_nccl_is_that_of_the_package_or_none(tmp_path, stand_in, choice, gpus, has):
    """Where FARFIELD_NCCL is OFF nothing is fetched, and CMake is told to look for none."""
    stand_in("nvidia-smi", f"seq -f 'GPU %g: some' 1 {gpus}")
    package = tmp_path / "python/lib/python3.11/site-packages/nvidia/nccl"
    (package / "lib").mkdir(parents=True)
    (package / "lib/libnccl.so.2").write_text("")
    done = shell(
        tmp_path,
        """
gpuFound=90-real CUDACXX=/nowhere/nvcc
installPythonPackages() { touch fetched; pythonPrefix=$PWD/python; }
chooseGromacsGpu > log
printf '%s\\n' "${gromacsOptions[@]}"
""",
        FARFIELD_NCCL=choice,
    )
    assert "-DGMX_GPU=CUDA" in done.stdout.split(), done.stderr
    wanted = [f"-DNCCL_INCLUDE_DIR={package}/include", f"-DNCCL_LIBRARY={package}/lib/libnccl.so.2"]
    assert [word for word in done.stdout.split() if "NCCL" in word] == (wanted if has else ["-DNCCL_INCLUDE_DIR=OFF"])
    assert (tmp_path / "fetched").exists() == has


@pytest.mark.parametrize(
    "gpus, given, built", [(0, "90-real", "90-real"), (1, "90-real", "90-real"), (1, "", "80-real")]
)
def test_both_are_built_for_the_gpus_that_are_named(tmp_path, stand_in, gpus, given, built):
    """Those of another machine, whatever GPU is in this one."""
    stand_in("nvidia-smi", "echo 8.0" if gpus else "exit 9")
    stand_in("nvcc", "exit 0")
    ends = 'chooseCuda > log; echo "$gpuFound" "${cudaOptions[@]}"'
    done = shell(tmp_path, ends, FARFIELD_CUDA="ON", CUDAARCHS=given, CUDACXX=str(tmp_path / "bin/nvcc"))
    assert done.stdout.split()[0] == built, done.stderr
    assert f"-DCMAKE_CUDA_ARCHITECTURES={built}" in done.stdout.split()


def test_a_gpu_that_is_nowhere_needs_a_name(tmp_path, stand_in):
    """GROMACS would have been without CUDA, and the library with it."""
    stand_in("nvidia-smi", "exit 9")
    stand_in("nvcc", "exit 0")
    done = shell(tmp_path, "chooseCuda", FARFIELD_CUDA="ON", CUDAARCHS="", CUDACXX=str(tmp_path / "bin/nvcc"))
    assert done.returncode == 1 and "CUDAARCHS=90-real" in done.stderr
    assert shell(tmp_path, "chooseCuda test", FARFIELD_CUDA="ON", CUDAARCHS="").returncode == 0


@pytest.fixture
def debian_gromacs(stand_in, mpi_without_headers):
    """What "apt install gromacs" brings: programs of another version, and Open MPI without its headers."""
    for name in ("gmx", "gmx_d"):
        stand_in(name, "echo 'GROMACS version:    2022.5-Debian_2022.5_2'")
    stand_in("mpirun", "exit 0")


@pytest.mark.parametrize("mpi, wanted", [("ON", {"libopenmpi-dev"}), ("OFF", set())])
def test_gromacs_of_debian_lacks_headers_alone(tmp_path, debian_gromacs, mpi, wanted):
    done = shell(tmp_path, f"mpi={mpi}; missingPackages test")
    assert set(done.stdout.split()) & {"gromacs", "openmpi-bin", "libopenmpi-dev"} == wanted, done.stderr


def test_gromacs_of_debian_is_not_what_is_tested(tmp_path, debian_gromacs):
    """But its gmx_d is the reference."""
    (tmp_path / "build/share/gromacs").mkdir(parents=True)
    (tmp_path / "build/share/gromacs/origin").write_text("/some/where\n")
    done = shell(
        tmp_path,
        """
eval "$(sed -n '/^setUpTests()/,/^}/p' "$root/quickstart.sh")"
for work in setUpTools chooseCuda buildFarfield buildGromacs setUpTestPython fetchRegressionTests; do
    eval "$work() { :; }"
done
build=$PWD/build mpi=OFF regressionTests=there
setUpTests
python3 -c "import sys; sys.path[:0] = ['$root', '$root/python']
from tests.support.gmx.environment import gmx_double
print(gmx_double().program)"
echo "$GMX $GROMACS_SOURCE_DIR"
""",
    )
    expected = [tmp_path / "bin/gmx_d", tmp_path / "build/bin/gmx", "/some/where/gromacs-patched"]
    assert done.stdout.split() == list(map(str, expected)), done.stderr


@pytest.fixture
def python_that_installs_cmake(tmp_path, stand_in):
    """Stands in for pip as well; the file "installed" has what it was asked for."""
    stand_in(
        "pip",
        """echo "$@" >> installed
[ ! -e offline ] || exit 1
printf '#!/bin/sh\\necho "cmake version 3.31.6"\\n' > "${0%/*}/cmake"
chmod +x "${0%/*}"/cmake""",
    )
    stand_in("python3", f'mkdir -p "$3/bin"; cp {tmp_path}/bin/pip "$3/bin/python3"')
    return tmp_path / "installed"


@pytest.mark.parametrize("version", ["3.25.1", "3.5.9", "2.8.12.2"])
def test_an_older_cmake_is_no_cmake(tmp_path, stand_in, python_that_installs_cmake, version):
    """A newer one is installed, once, and goes before it."""
    stand_in("cmake", f"echo 'cmake version {version}'")
    for _ in range(2):
        done = shell(tmp_path, "(setUpCmake); setUpCmake; cmake --version")
        assert done.stdout.splitlines()[-1] == "cmake version 3.31.6", done.stderr
    installed = python_that_installs_cmake.read_text().splitlines()
    assert len(installed) == 1 and installed[0].endswith("cmake>=3.28,<4")


@pytest.mark.parametrize("version", ["3.28.0", "3.31.6", "4.1.0"])
def test_a_new_cmake_is_used(tmp_path, stand_in, python_that_installs_cmake, version):
    stand_in("cmake", f"echo 'cmake version {version}'")
    done = shell(tmp_path, "setUpCmake; cmake --version")
    assert done.stdout == f"cmake version {version}\n" and not python_that_installs_cmake.exists()


def test_a_cmake_that_cannot_be_installed_is_an_error(tmp_path, stand_in, python_that_installs_cmake):
    """And is tried anew by the next command."""
    stand_in("cmake", "echo 'cmake version 3.25.1'")
    (tmp_path / "offline").write_text("")
    for times in (1, 2):
        done = shell(tmp_path, "setUpCmake")
        assert done.returncode == 1 and "CMake 3.28 or newer could not be installed" in done.stderr
        assert len(python_that_installs_cmake.read_text().splitlines()) == times


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


@pytest.mark.parametrize("has_apt, why", [(False, "there is no apt-get"), (True, "no root rights and no sudo")])
def test_commands_for_what_is_missing(tmp_path, stand_in, has_apt, why):
    """Each package once, by its name in each distribution; what all call the same has no row."""
    stand_in("id", "echo 1000")
    has = "apt-get) return 0" if has_apt else "nothing) return 1"
    hidden = f"command() {{ case $2 in {has};; *) return 1;; esac; }}\n"
    missing = "missingPackages() { printf '%s\\n' g++ make ninja-build libhwy-dev openmpi-bin libopenmpi-dev; }\n"
    done = shell(tmp_path, f"{hidden}{missing}installPackages")
    assert done.returncode == 1 and why in done.stderr, done.stderr
    commands = [line.split("  ")[-1].strip() for line in done.stderr.splitlines() if "install " in line]
    assert commands == [
        "apt-get install g++ make ninja-build libhwy-dev openmpi-bin libopenmpi-dev",
        "dnf install gcc-c++ make ninja-build highway-devel openmpi-devel",
        "conda install -c conda-forge cxx-compiler make ninja libhwy openmpi",
    ]


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
