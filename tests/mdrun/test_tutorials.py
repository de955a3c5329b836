# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tutorials work as they are shown: files and commands of a page, in its order, in one folder.

Systems are smaller and runs are shorter. What a page says the reader sees is there in the end.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest

from examples import charmm_gui, membrane
from farfield.gromacs.program import clean_environment
from tests.support.gmx import environment, mdp, simulation
from tests.support.gmx.environment import ROOT

# A file behind its name, or a script
PIECES = re.compile(r"^(?:`([\w.-]+)`:\n\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# gmx as in the page, on as many threads as tests have
GMX = """
gmx() {
    local more=
    [ "$1" != mdrun ] || more="-ntmpi 1 -ntomp %d -pin off"
    command gmx -quiet -nobackup "$@" $more
}
"""


def work_through(page, folder, shorter):
    """Writes the files and runs the scripts of a page, with replacements {pattern: text}; returns what they print.

    Each replacement is needed.
    """
    text = (ROOT / "docs" / page).read_text()
    for pattern, replacement in shorter.items():
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count, f"{page} has no {pattern}"
    path = f"{environment.gmx().program.parent}:{clean_environment()['PATH']}"
    printed = ""
    for name, language, content in PIECES.findall(text):
        if name:
            (folder / name).write_text(content)
        elif language == "bash":
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", GMX % environment.threads() + content],
                cwd=folder,
                env={**clean_environment(), "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=environment.TIME_LIMIT,
                check=False,
            )
            assert done.returncode == 0, f"{content}\n{done.stdout[-4000:]}"
            printed += done.stdout
    return printed


def test_a_protein_from_pdb_to_production(work):
    """Ten residues of lysozyme."""
    source = environment.folder_from_environment("GROMACS_SOURCE_DIR")
    shutil.copy(source / "src/testutils/simulationdatabase/lysozyme.pdb", work / "protein.pdb")
    shorter = {r"-d 1\.0": "-d 0.6", r"^nsteps( +)= \d+": r"nsteps\1= 60", r"^(rvdw +)= 1\.0": r"\1= 0.9"}
    printed = work_through("tutorial-protein.md", work, {**shorter, r"^nstenergy( +)= \d+": r"nstenergy\1= 10"})
    for term in ("Coul. recip.", "Temperature", "Pressure", "Density"):
        assert re.search(rf"^{term} +-?\d", printed, re.MULTILINE)
    for name in ("em", "npt", "md"):
        assert "FMM electrostatics with farfield" in (work / f"{name}.log").read_text()


def test_a_membrane_of_charmm_gui(work, monkeypatch):
    """32 lipids that have hardly moved from where they were put."""
    monkeypatch.setattr(membrane, "PER_EDGE", 4)
    monkeypatch.setattr(membrane, "EDGE", membrane.EDGE * 4 / 6)
    monkeypatch.setattr(membrane, "NUM_CONFORMERS", 20)
    monkeypatch.setattr(membrane, "NUM_TRIES", 30)
    steps = {"soft": 40, "stiffer": 20, "stiff": 20, "minimise": 40, "patch": 5}
    monkeypatch.setattr(membrane, "STAGES", {n: {**membrane.STAGES[n], "nsteps": s} for n, s in steps.items()})
    charmm_gui.main(
        ["--gmx", str(environment.gmx().program), "--output", str(work), "--patch", str(work / "patch"),
         "--threads", str(environment.threads())]
    )  # fmt: skip
    for path in work.glob("step*.mdp"):
        text = re.sub(r"^nsteps( +)= \d+", r"nsteps\1= 10", path.read_text(), flags=re.MULTILINE)
        path.write_text(re.sub(r"^nstenergy( +)= \d+", r"nstenergy\1= 5", text, flags=re.MULTILINE))
    printed = work_through("tutorial-membrane.md", work, {})
    assert re.search(r"^Box-X +3\.\d", printed, re.MULTILINE)
    assert "the pair list holds all atoms" in (work / "step7_1.log").read_text()


def test_free_energy_of_hydration(work):
    """With five of the twelve states."""
    shorter = {
        r"^coul-lambdas( +)= 0 .*": r"coul-lambdas\1= 0 0.5 1 1 1",
        r"^vdw-lambdas( +)= 0 .*": r"vdw-lambdas\1= 0 0 0 0.5 1",
        r"seq 0 11": "seq 0 4",
        r" run\?\?\.xvg": "",
        r"^2\.5 2\.5 2\.5$": "2.2 2.2 2.2",
        r"^nsteps( +)= \d+": r"nsteps\1= 100",
        r"^(nstdhdl|nstcalcenergy)( +)= \d+": r"\1\2= 5",
        r" -b \d+": " -b 0.05",
    }
    printed = work_through("tutorial-hydration.md", work, shorter)
    assert re.search(r"^total +0 - +4, +DG +-?\d", printed, re.MULTILINE)


def test_a_slab_with_a_net_charge(work):
    shorter = {r"^nsteps( +)= \d+": r"nsteps\1= 100", r"^(nstxout-compressed|nstenergy)( +)= \d+": r"\1\2= 20"}
    work_through("tutorial-slab.md", work, {**shorter, r" -b \d+": ""})
    edge, height = 3, 8
    densities = np.loadtxt(work / "density.xvg", comments=["#", "@"])[:, 1:3]
    assert densities.mean(axis=0) * edge**2 * height == pytest.approx([5, 4], rel=0.02)


def test_a_droplet(work):
    shorter = {r"-shell 1\.5": "-shell 1.0", r"^nsteps( +)= \d+": r"nsteps\1= 200"}
    work_through("tutorial-droplet.md", work, {**shorter, r"^(nstxout-compressed|nstenergy)( +)= \d+": r"\1\2= 20"})
    assert 3 <= np.loadtxt(work / "near.xvg", comments=["#", "@"])[-1, 1] <= 8


def test_a_run_continues_with_other_options(work, water):
    """A set-up with PME becomes one with FMM, is extended, and ends with PME again."""
    before = mdp.settings(mdp.STANDARD_PME, mdp.MOTION, mdp.THERMOSTAT, {"nsteps": 50, "nstenergy": 10})
    simulation.simulate(work, "npt", {**before, "gen-vel": "yes"}, water)
    shutil.copy(water.top, work / "topol.top")
    mdp.write(work / "md.mdp", {**before, "gen-vel": "no", "continuation": "yes"})
    changes = r"(^`changes.mdp`:\n\n```ini\n)coulombtype = FMM\nfmm-backend = farfield"
    shorter = {r"step\*\.mdp": "*.mdp", r"-extend 1000": "-extend 0.1"}
    work_through("tutorial.md", work, {changes: r"\1coulombtype = PME", **shorter})
    logs = [(work / name).read_text() for name in ("md.log", "md.part0002.log")]
    assert ["FMM electrostatics with farfield" in log for log in logs] == [True, False]
    assert "Restarting from checkpoint" in logs[0] and "Started mdrun" in logs[1]


SCRIPTS = [text for _, _, text in PIECES.findall((ROOT / "docs/running.md").read_text()) if "#SBATCH" in text]


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"script {i}" for i in range(len(SCRIPTS))])
def test_a_script_for_slurm_starts_one_simulation(tmp_path, script):
    """In the folder of the job, with its cores; programs that write down their arguments stand in for the real ones."""
    programs = tmp_path / "farfield/bin"
    programs.mkdir(parents=True)
    (programs / "GMXRC").write_text(f'export PATH="{programs}:$PATH"\n')
    for name in ("gmx", "gmx_mpi"):
        (programs / name).write_text(f'#!/bin/sh\necho "$PWD {name} $*" >> "{tmp_path}/calls"\n')
        (programs / name).chmod(0o755)
    (programs / "srun").write_text('#!/bin/sh\n[ "${1#--cpus-per-task=}" = 16 ] && shift && exec "$@"\n')
    (programs / "srun").chmod(0o755)
    (tmp_path / "run3").mkdir()
    of_job = {"SLURM_CPUS_PER_TASK": "16", "SLURM_ARRAY_TASK_ID": "3"}
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **of_job}
    done = subprocess.run(
        ["bash", "-eu", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [call] = (tmp_path / "calls").read_text().splitlines()
    folder, program, what, *options = call.split()
    assert folder == str(tmp_path / "run3" if "--array" in script else tmp_path) and what == "mdrun"
    assert {"-cpi", "-maxh"} <= set(options)
    assert ("-ntomp 16" in call) == (program == "gmx") and ("-multidir" in options) <= (program == "gmx_mpi")
