# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands that the documentation shows work: each is run, smaller where it would be long, or is read by the
program's own parser as it is shown, or stands in EXCEPTIONS with what keeps it from that."""

import argparse
import functools
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.bench import results
from tests.support.gmx import environment
from tests.support.gmx.environment import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(ROOT / "gromacs_patch" / name for name in ("README.md", "mdp-options.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]

# What a command begins with, behind variables of the environment.
PROGRAM = (
    r"python3|pip|cmake|ctest|\./quickstart\.sh|gromacs_patch/apply\.sh|build/\S+|gmx|mdrun|mpirun|srun|farfield|sed|grep|source|"
    r"perf|ncu|compute-sanitizer|rattler-build|spack|eb|docker|apptainer|cibuildwheel|auditwheel|apt-get|dpkg|"
    r"nvidia-cuda-mps-control"
)
VARIABLES = r"(?:[A-Z0-9_]+=(?:\"[^\"]*\"|\S+) )*"
COMMAND = re.compile(rf"{VARIABLES}(?:{PROGRAM})(?= |$)")
# Indented blocks that are no commands, by how they begin.
OTHER_BLOCKS = {
    "coulombtype ": "lines of an mdp file",
    "pbc ": "lines of an mdp file",
    "FMM electrostatics with": "a log",
    "order ": "a log",
    "near field shared with": "a log",
    "positions ": "a drawing",
    "import numpy": "a program, which tests/python/test_solver.py runs",
    "random = ": "the same",
    "find_package": "lines of a CMakeLists.txt, as in cmake/consumer",
}
# Options that a text shows by themselves, of which command: page, what the option begins with.
TOOLS = ("farfield tune topol.tpr", "farfield report topol.tpr")
OPTIONS = {
    ("accuracy.md", "--help"): ("build/bin/farfield_accuracy_suite",),
    ("choosing.md", "--gpu"): ("python3 -m tests.bench.slab_speed",),
    ("energy.md", "--double"): ("python3 -m tests.bench.energy_conservation",),
    ("energy.md", "--table"): ("python3 -m tests.bench.energy_conservation",),
    ("mdrun.md", "--sizes"): ("python3 -m tests.bench.mdrun_speed",),
    ("mdrun.md", "--steps"): ("python3 -m tests.bench.perturbed_speed",),
    ("performance-gpu.md", "--merge"): ("python3 -m tests.bench.mdrun_gpu",),
    ("performance-gpu.md", "--"): ("build/bin/farfield_gpu_benchmark m2l",),
    ("performance-library.md", "--m2l"): ("python3 -m tests.bench.points_gpu",),
    ("python.md", "--"): tuple(
        f"python3 examples/{name}.py" for name in ("coulomb_explosion", "potential_map", "polarisable_water")
    ),
    ("report.md", "--json"): ("python3 -m tests.bench.standard_report",),
    ("report.md", "--systems"): ("python3 -m tests.bench.standard_report",),
    ("tools.md", "--scale"): ("python3 -m regressiontests.check_phys",),
    ("tools.md", "--select"): ("python3 -m regressiontests.check_phys",),
    ("tools.md", "--method"): ("python3 -m regressiontests.check_phys",),
    ("tools.md", "--short"): ("python3 -m tests.bench.standard_report",),
    ("tools.md", "--long"): ("python3 -m tests.bench.standard_report",),
    ("tools.md", "--"): TOOLS,
    ("trouble.md", "--"): TOOLS,
}


def unfenced(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def blocks(page):
    """Indented blocks, but those of lists; a line that is continued as one."""
    text = re.sub(r" *\\\n *", " ", unfenced(page))
    return re.findall(r"(?<=\n\n)(?: {4}.*\n)+", text)


def scripts(page):
    """Lines of scripts for a shell; a line that is continued as one."""
    text = re.sub(r" *\\\n *", " ", page.read_text())
    for script in re.findall(r"^```bash$(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from script.split("\n")


def shown(page):
    """Commands of a page: lines of its blocks and scripts, and what stands as code in its text."""
    yield from (line for line in scripts(page) if COMMAND.match(line))
    for block in blocks(page):
        if not block.strip().startswith(tuple(OTHER_BLOCKS)):
            for line in block.splitlines():
                yield from re.sub(r"  +#.*|(?<=\S) # .*", "", line.strip()).split(" && ")
    text = re.sub(r"^ {4}.*$", "", unfenced(page), flags=re.MULTILINE)
    if page.name == "trouble.md":
        text = re.sub(r"^\| `.+?(?= \| )", "", text, flags=re.MULTILINE)  # messages
    for span in re.findall(r"`([^`]+)`", text):
        span = " ".join(span.split())
        found = COMMAND.match(span)
        if found and (span != found[0] or "/" in found[0]):
            yield span
        if span.startswith("--"):
            yield f"{page.name}: {span}"


COMMANDS = sorted({command for page in PAGES for command in shown(page)})


# What is done with them


class Parsed(Exception):
    """The parser of a program took its arguments."""


@pytest.fixture
def parses(monkeypatch, capsys):
    """parses(words): runs a Python program up to where it has parsed them."""
    parse = argparse.ArgumentParser.parse_args

    def parsed(self, *arguments, **named):
        parse(self, *arguments, **named)
        raise Parsed

    def run(words):
        module, *arguments = ["farfield.command", *words[1:]] if words[0] == "farfield" else words[1:]
        if module == "-m":
            module, *arguments = arguments
        run_it = runpy.run_path if module.endswith(".py") else functools.partial(runpy.run_module, alter_sys=True)
        with monkeypatch.context() as patch:
            patch.setattr(argparse.ArgumentParser, "parse_args", parsed)
            patch.setattr(sys, "argv", [module, *arguments])
            patch.delitem(sys.modules, module, raising=False)  # it is run anew
            try:
                run_it(str(ROOT / module) if module.endswith(".py") else module, run_name="__main__")
            except Parsed:
                return
            except SystemExit as end:
                assert end.code == 0 and "--help" in arguments, capsys.readouterr().err
                return
        pytest.fail(f"{module} has parsed nothing")

    return run


def is_a_target(name):
    lists = [ROOT / "CMakeLists.txt", *(ROOT / "tests").rglob("CMakeLists.txt")]
    return any(re.search(rf"\b{name}\b", path.read_text()) for path in lists)


def built(name):
    """A program of the build, or a reason to skip: not all machines have what it needs."""
    program = ROOT / "build/bin" / name
    if not program.exists():
        pytest.skip(f"{name} is not built")
    return program


def run(words, folder=ROOT, **options):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@functools.cache
def usage():
    return run([ROOT / "quickstart.sh", "help"])


# Each takes the words of a command, those of its environment included, and the fixtures that it may need.


def of_python(words, parses, **_):
    placeholders = {"N": "2", "...": ""}
    words = [placeholders.get(word, word) for word in words]
    if words[-1] in ("tune", "report"):
        words = [*words, "--help"]
    parses([word for word in words if word])


def of_quickstart(words, **_):
    """The command and the variables are those of its help."""
    at = words.index("./quickstart.sh")
    variables, (command, *folder) = words[:at], words[at + 1 :]
    assert len(folder) == (command == "install")
    assert re.search(rf"^  {command} ", usage(), re.MULTILINE) or command == "help"
    for variable in variables:
        name, value = variable.split("=")
        text = re.search(rf"^  {name} (.*\n(?:   .*\n)*)", usage(), re.MULTILINE)
        assert text and value in text[1]


def of_pip(words, **_):
    """Extras are those of pyproject.toml; installing takes the network, and quickstart.sh does it."""
    text = (ROOT / "pyproject.toml").read_text()
    extras = re.findall(r"^(\w+) = \[", text.split("[project.optional-dependencies]")[1], re.MULTILINE)
    wanted = re.fullmatch(r"\.(?:\[(\w+)\])?", words[2])
    assert wanted and (wanted[1] is None or wanted[1] in extras)


def of_cmake(words, **_):
    """Presets, targets and variables are there; quickstart.sh configures and builds by the same preset."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    if "--preset" in words:
        kind = "testPresets" if words[0] == "ctest" else "buildPresets" if "--build" in words else "configurePresets"
        assert words[words.index("--preset") + 1] in [preset["name"] for preset in presets[kind]]
    if "--target" in words:
        assert is_a_target(words[words.index("--target") + 1])
    texts = [path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").iterdir()] if path.is_file()]
    texts += [path.read_text() for path in (ROOT / "gromacs_patch").glob("*.patch")]
    for word in words:
        if variable := re.match(r"-D(\w+)=", word):
            # farfield_DIR is where find_package(farfield) looks
            name = variable[1].replace("farfield_DIR", "find_package(farfield")
            known = name in ("CMAKE_INSTALL_PREFIX", "CMAKE_CXX_COMPILER", "CMAKE_TOOLCHAIN_FILE")
            assert known or any(name in text for text in texts), name
            if name == "CMAKE_TOOLCHAIN_FILE":
                assert (ROOT / word.split("$PWD/")[1]).is_file()
    if words[0] == "ctest" and "--test-dir" in words:
        shown_folders = [re.search(r"(?<= -B )\S+", command) for command in COMMANDS]
        assert words[-1] in ["build", *(found[0] for found in shown_folders if found)], "no command makes this folder"


@functools.cache
def help_of(command):
    """Hidden options included, as -resetstep is."""
    done = subprocess.run(
        [environment.gmx().program, "-quiet", command, "-h", "-hidden"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"gmx has no command {command}"
    return done.stdout + done.stderr


def of_gmx(words, **_):
    """gmx knows the command and its options, and of those with names as values, the value."""
    words = words[next(i for i, word in enumerate(words) if re.search(r"gmx|mdrun", word)) :]
    command, *words = words if words[0] == "mdrun" else words[1:]
    if command == "help":
        command, words = words[0], []
    text = help_of(command)
    for i, word in enumerate(words):
        if re.match(r"-[a-z]", word):
            names = rf"(?:\[no\])?{word[1:]}|\[no\]{word[1:].removeprefix('no')}"
            entry = re.search(rf"^ +-(?:{names}) .*\n(?:(?: {{6}}.*)?\n)*", text, re.MULTILINE)
            assert entry, f"gmx {command} has no {word}"
            if "<enum>" in entry[0]:
                assert re.search(rf"\b{words[i + 1]}\b", entry[0]), f"{word} of gmx {command} is never {words[i + 1]}"


def of_sed(words, tmp_path, **_):
    """Makes an mdp file for FMM of one for PME, as GROMACS may read it, and leaves one for FMM alone."""
    file = tmp_path / "step5_production.mdp"
    for line in ("  coulombtype   = PME ; electrostatics", "coulomb-type\t= pme", "Coulomb_Type=PME"):
        file.write_text(f"dt = 0.002\n{line}\nrcoulomb = 1.2\n")
        for _ in range(2):
            run([*words[:-1], file.name], tmp_path)
        assert file.read_text() == "dt = 0.002\ncoulombtype = FMM\nfmm-backend = farfield\nrcoulomb = 1.2\n"


def of_grep(words, tmp_path, **_):
    """Prints the files that have no FMM."""
    for name, text in (("fmm.mdp", "coulombtype = FMM\nfmm-backend = farfield\n"), ("pme.mdp", "coulombtype = PME\n")):
        (tmp_path / name).write_text(text)
    assert run([*words[:-1], "fmm.mdp", "pme.mdp"], tmp_path).split() == ["pme.mdp"]


def of_venv(words, tmp_path, **_):
    """As written, without pip, which takes seconds."""
    run([*words[:-1], "--without-pip", "new"], tmp_path)
    assert (tmp_path / "new/bin/activate").is_file()


def of_source(words, **_):
    """Of an installation, or of a virtual environment."""
    assert re.search(r"/bin/(?:GMXRC|activate)$", words[1])


def of_apply(words, tmp_path, **_):
    """As written, on the files that the patches change."""
    source = environment.folder_from_environment("GROMACS_SOURCE_DIR")
    patches = "\n".join(path.read_text() for path in (ROOT / "gromacs_patch").glob("*.patch"))
    names = {"CMakeLists.txt", *re.findall(r"^\+\+\+ b/(\S+)", patches, re.MULTILINE)}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, tmp_path / name)
    shutil.copytree(source / ".farfield", tmp_path / ".farfield")
    assert "has the FMM backend farfield" in run([ROOT / words[0], tmp_path])


def of_summary(words, tmp_path, **_):
    """As written, on two cases."""
    cases = (
        "ion pair in 30 nm   2 30x30x30  float  1e-03 1.0e-05 9.0e-06 9.5e-06 0.009 1.11  4 1 1 3.0 0.1 0.001 met\n"
        "one ion in 3 nm     1 3x3x3     float  1e-05 refused: The accuracy\n"
    )
    (tmp_path / "accuracy.txt").write_text(cases)
    said = run([sys.executable, *words[1:]], tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "2 cases: 1 met, 1 refused, 0 missed." in said
    written = results.read(tmp_path / words[-1])["cases"]
    found = {case["system"]: case["verdict"] for case in written}
    assert found == {"ion pair in 30 nm": "met", "one ion in 3 nm": "refused"}


def of_pytest(words, **_):
    """The tests are found, not run: some of them are this one."""
    python = sys.executable if words[0] == "python3" else ROOT / words[0]
    if not shutil.which(python):
        pytest.skip("the Python package is not built")
    folder = words[-1]
    assert "no tests" not in run([python, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", folder])


def smaller(*arguments):
    """Runs a program of the build with these arguments in place of the long ones."""

    def check(words, tmp_path, **_):
        name = words[0].rpartition("/")[2]
        assert is_a_target(name)
        assert run([built(name), *arguments], tmp_path)

    return check


def with_help_of(words, **_):
    """A GPU is needed to run it: its help has the options."""
    name = words[0].rpartition("/")[2]
    assert is_a_target(name)
    text = run([built(name), *words[1:2], "--help"])
    for word in words[2:]:
        if word.startswith("--"):
            assert re.search(rf"{word}\b", text), f"{name} {words[1]} has no {word}"


def calls_what_is_built(words, **_):
    """Of exceptions: the programs and libraries of the build are there."""
    for word in words:
        if found := re.search(r"build/(?:\w+/)?(?:bin|lib)/(?:lib)?(\w+)", word):
            assert found[1] in ("gmx", "gmx_mpi") or is_a_target(found[1]), found[1]


# Neither run nor parsed, and why.
EXCEPTIONS = {
    rf"{VARIABLES}\S*python3 -m pip install .*": "takes packages from the network, with which farfield is compared",
    r"\S*python3 -m (?:pytest tests/python/test_torch\.py|tests\.bench\.(?:batch_training|peers) .*)": (
        "needs PyTorch, of which wheels are too large for tests"
    ),
    r"python3 -m sphinx -b linkcheck .*": "needs the network",
    r"(?:rattler-build|spack|eb|docker|apptainer) .*|cibuildwheel": "needs the network, and containers or packages",
    r"pip (?:wheel|install auditwheel) .*|auditwheel .*": "takes packages from the network",
    r"(?:dpkg|apt-get) .*": "changes the machine",
    r"cmake --install .*": "a test of ctest does it, cmake/consumer/test.cmake",
    r"perf .*": "needs a kernel that counts for its users",
    r"nvidia-cuda-mps-control .*": "needs a GPU, and starts a service",
    r"build/bin/farfield_helpers_benchmark .*": "needs a GPU for each helper",
    r"build/bin/farfield_kernel_benchmark .*": "needs a GPU",
    r"(?:ncu|compute-sanitizer|CUDA_INJECTION64_PATH=\S+) .*": "needs a GPU, and tools of CUDA",
    r"build/\S+": "is a name, not a command",
}
# What a command begins with, and what is done with it; the first counts.
CLASSES = [
    (r"python3 -m tests\.accuracy\.summary", of_summary),
    (r"python3 (?:-m (?:tests|regressiontests|examples)\.|examples/)|farfield ", of_python),
    (r"build/python-package/bin/python3 -m tests\.", lambda words, **f: of_python(["python3", *words[1:]], **f)),
    (r"\S*python3 -m pytest ", of_pytest),
    (r"(?:\w+=\S+ )*\./quickstart", of_quickstart),
    (r"pip install", of_pip),
    (r"cmake|ctest", of_cmake),
    (r"gmx|mdrun|mpirun|srun|build/bin/gmx \S", of_gmx),
    (r"gromacs_patch/apply\.sh", of_apply),
    (r"sed ", of_sed),
    (r"grep ", of_grep),
    (r"python3 -m venv ", of_venv),
    (r"source ", of_source),
    (r"build/bin/farfield_accuracy_suite", smaller("--system", "ion pair in 30 nm", "--request", "1e-3")),
    (r"build/bin/farfield_cpu_benchmark", smaller("--threads", "1", "--water", "300", "--protein", "600")),
    (r"build/bin/farfield_fuzz", smaller("--seconds", "1")),
    (r"build/bin/farfield_ranks_benchmark", smaller("600", "2")),
    (r"build/bin/farfield_result_bits", smaller("ion pair in 30 nm")),
    (r"build/bin/farfield_gpu_benchmark", with_help_of),
]


def words_of(command):
    """Without what a shell does with the output."""
    return shlex.split(re.sub(r" > \S+$", "", command))


def check_of(command):
    if any(re.fullmatch(pattern, command) for pattern in EXCEPTIONS):
        return calls_what_is_built
    return next((check for pattern, check in CLASSES if re.match(pattern, command)), None)


def test_all_blocks_are_commands_or_known_as_something_else():
    for page in PAGES:
        for block in blocks(page):
            if not block.strip().startswith(tuple(OTHER_BLOCKS)):
                for line in block.splitlines():
                    assert COMMAND.match(line.strip()), f"{page.name} shows '{line.strip()}'"


def test_there_are_commands_of_each_class():
    assert len(COMMANDS) > 100
    for pattern in [*EXCEPTIONS, *(pattern for pattern, _ in CLASSES)]:
        assert any(re.match(pattern, command) for command in COMMANDS), f"no page shows {pattern}"


@pytest.mark.parametrize("command", [command for command in COMMANDS if ": --" not in command])
def test_a_command_does_what_its_class_says(command, parses, tmp_path):
    check = check_of(command)
    assert check, f"'{command}' is neither in CLASSES nor in EXCEPTIONS"
    check(words_of(command), parses=parses, tmp_path=tmp_path)


@pytest.mark.parametrize("command", [command for command in COMMANDS if ": --" in command])
def test_options_by_themselves_are_those_of_a_program(command, parses, tmp_path, capsys):
    page, _, shown_options = command.partition(": ")
    programs = next((p for (name, start), p in OPTIONS.items() if name == page and shown_options.startswith(start)), ())
    assert programs, f"{command}: OPTIONS does not say of which program"
    words = words_of(shown_options)
    if len(words) == 1:
        helps = []
        for program in programs:
            name, *arguments = words_of(program)
            if name.startswith("build/"):
                helps.append(run([built(name.rpartition("/")[2]), *arguments, "--help"]))
            else:
                parses([name, *arguments, "--help"])
                helps.append(capsys.readouterr().out)
        assert any(re.search(rf"{words[0]}\b", text) for text in helps), f"no {words[0]}"
    else:
        check_of(programs[-1])([*words_of(programs[-1]), *words], parses=parses, tmp_path=tmp_path)


def test_suites_and_tests_that_pages_and_presets_name_are_there():
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.cpp"))
    found = re.findall(r"\b(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", sources)
    there = {f"{suite}.{name}" for suite, name in found}
    named = {f"^{name}$" for page in PAGES for name in re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", page.read_text())}
    named |= {f"^{name}" for page in PAGES for name in re.findall(r"`([A-Z]\w+)\*`", page.read_text())}
    for preset in json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]:
        if "filter" in preset:
            named.add(preset["filter"]["include"]["name"])
    assert named
    for pattern in named:
        assert any(re.search(pattern, name) for name in there), f"no test is called {pattern}"
