# SPDX-License-Identifier: LGPL-2.1-or-later
"""What "farfield report" and "farfield tune" refuse before anything is run, and how they end where gmx fails or the
user interrupts: with a gmx that is a script."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farfield import options
from farfield.command import main
from farfield.gromacs import program, tpr
from farfield.gromacs.program import Gmx, GmxError
from farfield.report import jobs

ROOT = Path(__file__).resolve().parents[2]
VERSION = "echo 'GROMACS version:    2026.3'; echo 'Precision:          mixed'"
PATCHED = "echo '  -f      [<.mdp>]           (Opt.)'"
PARAMETERS = """cat <<TEXT
   integrator                     = md
   dt                             = 0.002
   init-step                      = 0
   coulombtype                    = PME
   fourierspacing                 = 0.12
   pme-order                      = 4
   ewald-rtol                     = 1e-05
   rcoulomb                       = 1
   rvdw                           = 1
   vdw-type                       = Cut-off
   pbc                            = xyz
   nstcalcenergy                  = 10
   natoms                         = 2652
topology:
TEXT"""


def fake(folder, mdrun="exit 0", version=VERSION, help_text=PATCHED):
    """A gmx that knows its version, dumps parameters, and does this as mdrun."""
    path = folder / "gmx"
    path.write_text(
        f"#!/bin/sh\ncase $2-$3 in\n-version*) {version} ;;\nhelp-*) {help_text} ;;\n"
        f"dump-*) {PARAMETERS}\n;;\n*-mdrun) {mdrun} ;;\nesac\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def gmx(tmp_path):
    """Of the script, and a run input file in the working folder, as words."""

    def words(command, *arguments, **behaviour):
        (tmp_path / "run.tpr").write_bytes(b"tpr")
        return [command, str(tmp_path / "run.tpr"), "--gmx", str(fake(tmp_path, **behaviour)), *arguments]

    return words


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))


def kept():
    return list(Path("temporary").iterdir())


@pytest.mark.parametrize(
    "words",
    [
        *("report --length -5", "report --length nan", "report --length inf", "report --accuracy 0", "report --jobs 0"),
        *("report --accuracy 0.5", "report --orders 4 21", "report --orders -1"),
        *("tune --rounds 0", "tune --seconds -1", "tune --seconds 0"),
    ],
)
def test_numbers_outside_their_ranges_are_refused_by_name(words, gmx, capsys):
    command, option, *values = words.split()
    with pytest.raises(SystemExit) as ended:
        main(gmx(command, option, *values))
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert f"argument {option}: {values[-1]} is out of range: " in message and "Traceback" not in message


@pytest.mark.parametrize("command", ["report", "tune"])
@pytest.mark.parametrize(
    "flags, said",
    [
        ("-deffnm other", "-deffnm"),
        ("-ntomp 2 -nsteps 10", "-nsteps"),
        ("-multidir a b", "-multidir"),
        ("ntomp 2", "begin"),
    ],
)
def test_options_of_mdrun_that_commands_set_themselves_are_refused(command, flags, said, gmx, capsys):
    with pytest.raises(SystemExit):
        main(gmx(command, f"--mdrun={flags}"))
    message = capsys.readouterr().err
    assert "argument --mdrun: " in message and said in message


@pytest.mark.parametrize(
    "words, said",
    [
        ("report --output nowhere/report.html", "there is no folder nowhere"),
        ("report --output there.html", "--output there.html is there already; name another file, or add --overwrite"),
        ("report --json nowhere/report.json", "there is no folder nowhere"),
        ("report --pdf nowhere/report.pdf", "there is no folder nowhere"),
        ("report --output same --json same", "--output and --json name one file"),
        ("report --output temporary", "--output temporary is a folder"),
        ("report --keep there.html", "--keep there.html is no folder"),
        ("report --orders 4 --length 0", "--orders needs runs"),
        ("report --mdrun=-maxh", "--keep names a folder"),
        ("report other.tpr", "there is no file other.tpr"),
        ("report run.tpr", "run.tpr is given twice"),
        ("report --length 0.1", "too short"),
        ("tune --json nowhere/tune.json", "there is no folder nowhere"),
        ("tune --json there.html", "--overwrite"),
        ("tune --keep there.html", "--keep there.html is no folder"),
    ],
)
def test_files_and_options_that_cannot_be_are_refused_before_mdrun_is_called(words, said, gmx, tmp_path, capsys):
    Path("there.html").write_text("a page")
    command, *rest = words.split()
    arguments = gmx(command, mdrun=f"touch {tmp_path}/called; exit 1")
    # Files of input come first
    arguments[2:2] = [word for word in rest[:1] if word.endswith(".tpr")]
    assert main([*arguments, *(rest if not rest[0].endswith(".tpr") else [])]) == 1
    assert said in capsys.readouterr().err
    assert not Path("called").exists() and Path("there.html").read_text() == "a page"


def test_print_is_refused_before_mdrun_is_called(gmx, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    assert main(gmx("report", "--pdf", "report.pdf", mdrun=f"touch {tmp_path}/called; exit 1")) == 1
    assert "--pdf needs weasyprint" in capsys.readouterr().err
    assert not Path("called").exists()


@pytest.mark.parametrize("command", ["report", "tune"])
@pytest.mark.parametrize(
    "behaviour, said",
    [
        (
            {"version": "echo 'GROMACS version:    2022.5'", "help_text": "echo -s"},
            "is GROMACS 2022.5 without the patches",
        ),
        ({"help_text": "echo -s"}, "is GROMACS 2026.3 without the patches"),
        ({"version": "echo something"}, "is not a gmx program"),
    ],
)
def test_a_program_without_the_patches_is_named_with_its_version(command, behaviour, said, gmx, capsys):
    assert main(gmx(command, **behaviour)) == 1
    message = capsys.readouterr().err
    assert said in message and "--gmx" in message and str(Path("gmx").resolve()) in message


def test_runs_of_before_are_not_run_over(gmx, capsys):
    Path("kept/1-run").mkdir(parents=True)
    Path("kept/1-run/run-FMM.edr").write_bytes(b"energies")
    assert main(gmx("report", "--keep", "kept")) == 1
    assert "--resume goes on with them, --overwrite" in capsys.readouterr().err
    assert Path("kept/1-run/run-FMM.edr").read_bytes() == b"energies"


@pytest.mark.parametrize("command", ["report", "tune"])
def test_what_gmx_says_of_an_error_is_left_for_a_look(command, gmx, capsys):
    assert main(gmx(command, mdrun="echo the cause; exit 1")) == 1
    message = capsys.readouterr().err
    path = Path(re.search(r"messages in (\S+)\)", message)[1])
    assert path.read_text() == "the cause\n" and str(path).startswith(str(kept()[0].resolve()))
    assert "files are kept in" in message


def test_a_killed_mdrun_is_called_that(gmx, capsys):
    assert main(gmx("tune", mdrun="kill -KILL $$")) == 1
    message = capsys.readouterr().err
    assert "gmx mdrun failed, ended by the signal SIGKILL" in message and "memory" in message


def test_a_full_disk_is_called_that(gmx, capsys, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    # gmx msd, for one, then leaves nothing, and says that all is well
    assert main(gmx("tune", mdrun="exit 0")) == 1
    assert "is full" in capsys.readouterr().err
    # 200 frames of 2652 atoms with each method
    usage.free = 12 * 2652 * 200
    assert main(gmx("report", mdrun="exit 1")) == 1
    assert "the runs write 13 MB, but the disk of" in capsys.readouterr().err


def test_results_that_find_no_room_are_an_error_not_a_traceback(capsys, monkeypatch):
    def full(arguments):
        with open("/dev/full", "w", encoding="utf-8") as file:
            file.write("results")

    monkeypatch.setattr("farfield.tune.tune.run", full)
    assert main(["tune", "run.tpr"]) == 1
    assert capsys.readouterr().err.startswith("farfield: No space left on device")


@pytest.mark.parametrize(
    "command, how, status",
    [
        (["tune"], signal.SIGINT, 130),
        (["report"], signal.SIGTERM, 143),  # by which batch systems end a job
        (["report", "--jobs", "2"], signal.SIGINT, 130),
    ],
    ids=["tune", "report", "jobs"],
)
def test_an_interruption_is_one_line_and_ends_mdrun(command, how, status, gmx):
    """mdrun here takes a signal as the real one does: it writes a checkpoint."""
    if "--jobs" in command and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    mdrun = "trap 'touch checkpoint; exit 0' INT; echo $$ > pid; for i in $(seq 600); do sleep 0.05; done"
    words = gmx(command[0], *command[1:], "--keep", "kept", mdrun=mdrun)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "farfield.command", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # a shell has it ignored by what it runs in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    give_up = time.monotonic() + 60
    while not (pids := [path for path in Path().rglob("pid") if path.read_text()]) and process.poll() is None:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    process.send_signal(how)
    message = process.communicate(timeout=60)[1]
    assert process.returncode == status
    assert re.fullmatch(r"farfield: interrupted; .*kept.*\n", message), message
    assert (pids[0].parent / "checkpoint").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids[0].read_text()), 0)


@pytest.fixture
def interruptible():
    """Interruptions raise, whoever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def wait_for_files(*paths):
    give_up = time.monotonic() + 30
    while not all(map(os.path.exists, paths)):
        assert time.monotonic() < give_up
        time.sleep(0.01)


# A command that takes half a minute unless it is interrupted, and then writes a checkpoint in its own time
SLOW = "trap 'sleep {0}; touch checkpoint-{1}; exit 0' INT; touch begun-{1}; for i in $(seq 600); do sleep 0.05; done"


def test_an_interruption_while_tasks_are_begun_ends_them(tmp_path, interruptible):
    """The thread that begins them learns of a task only when it runs already."""

    class Pool(ThreadPoolExecutor):
        def submit(self, *words):
            future = super().submit(*words)
            wait_for_files("begun-1")
            signal.raise_signal(signal.SIGINT)
            return future

    command = Gmx(fake(tmp_path, mdrun=SLOW.format(0, 1)))

    def task():
        try:
            command("mdrun", folder=tmp_path)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("files are kept") from None

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt, match="files are kept"), Pool(1) as pool:
        program.gathered(pool, [task])
    assert Path("checkpoint-1").exists() and time.monotonic() - start < 20


def test_all_are_ended_where_some_end_others(tmp_path, interruptible):
    """The commands of an inner pool end soon, the other one later: what called it does not go on either."""
    path = fake(tmp_path, mdrun=f"case $4 in -soon) {SLOW.format(0, 1)} ;; *) {SLOW.format(2, 2)} ;; esac")
    command = Gmx(path)

    def inner():
        with ThreadPoolExecutor(1) as pool:
            program.gathered(pool, [lambda: command("mdrun", "-soon", folder=tmp_path)])

    def other():
        command("mdrun", "-late", folder=tmp_path)
        Path("went-on").touch()

    def interrupt():
        wait_for_files("begun-1", "begun-2")
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt), ThreadPoolExecutor(2) as pool:
        program.gathered(pool, [inner, other])
    interrupting.join()
    assert Path("checkpoint-2").exists() and not Path("went-on").exists()
    assert not program._running and not program._endings


def test_an_interrupted_report_says_how_to_go_on(capsys, monkeypatch):
    with pytest.raises(KeyboardInterrupt, match=r"the same command with --keep \S+ --resume goes on"):
        with options.work_folder(None, "run-*.edr", "--resume") as folder:
            (folder / "1-run").mkdir()
            (folder / "1-run/run-PME.edr").write_bytes(b"energies")
            raise KeyboardInterrupt
    assert (kept()[0] / "1-run/run-PME.edr").exists()
    with pytest.raises(KeyboardInterrupt, match="nothing is kept"):
        with options.work_folder(None) as folder:
            (folder / "mdrun.out").write_text("messages")
            raise KeyboardInterrupt
    with options.work_folder(None) as folder:
        (folder / "mdrun.out").write_text("messages")
    assert len(kept()) == 1


def test_an_error_of_one_job_ends_the_others(tmp_path):
    """And none is begun: the second would sleep for a minute, the third leave a file."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    path = fake(
        tmp_path, mdrun="case $4 in -fail) sleep 0.2; exit 1 ;; -begun) touch begun ;; *) exec sleep 60 ;; esac"
    )
    start = time.monotonic()
    tasks = [lambda word=word: Gmx(path)("mdrun", word, folder=tmp_path) for word in ("-fail", "-sleep", "-begun")]
    # The one that fails may be any
    with pytest.raises(GmxError):
        jobs.do_all([tasks[1], tasks[0], tasks[1], tasks[2]], 2)
    assert time.monotonic() - start < 30 and not program._running
    assert not Path("begun").exists()


@pytest.mark.parametrize("command", ["report", "tune"])
@pytest.mark.parametrize("load, said", [(3.0, True), (0.5, False)])
def test_a_busy_machine_is_named(command, load, said, gmx, capsys, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert main(gmx(command, mdrun="exit 1")) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert ("Other programs want 3.0 cores of this machine, which has 4" in told) == said


def test_references_are_evaluated_on_one_rank():
    assert tpr.one_rank(("-ntmpi", "2", "-ntomp", "4", "-dd", "2", "1", "1", "-nb", "cpu")) == (
        *("-ntmpi", "1", "-ntomp", "4", "-nb", "cpu"),
    )
    assert tpr.one_rank(("-npme", "0", "-nb", "gpu", "-pin", "on")) == ("-nb", "gpu", "-pin", "on")
    assert tpr.one_rank(()) == ()
