# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands "farfield tune" and "farfield report", with a gmx."""

import hashlib
import html
import json
import re

import numpy as np
import pytest

from farfield.command import main
from farfield.gromacs import mdp as files
from farfield.gromacs import tpr
from farfield.gromacs.machine import usable_cores
from farfield.report import forces as report_forces
from farfield.tune import fmm_search, pme_search
from tests.support.gmx import environment, simulation
from tests.support.gmx.mdp import STANDARD_PME, TIGHT_PME, settings

GMX = ["--gmx", str(environment.gmx().program)]
MDRUN = ["--mdrun", f"-ntmpi 1 -ntomp {environment.threads()} -nb cpu"]
# Of TIGHT_PME, see mdp.py
TIGHT_ERROR = 1e-5
# Lines that even 4 ps suffice for. Shear stresses of water have a memory of eta kT / (V <P^2>), 0.05 ps, which blocks
# of 0.36 ps do not share; others, as energies and structure, have some of a ps
SUFFICIENT = ("error of the forces", "pressure, xy", "pressure, xz", "pressure, yz")
DYNAMICS = {
    "nsteps": 1000,
    "gen-vel": "yes",
    "tcoupl": "v-rescale",
    "tc-grps": "System",
    "tau-t": 0.5,
    "ref-t": 300,
    "nstlist": 20,
    "nstcalcenergy": 10,
    "nstenergy": 100,
}


def run_input(work, system, *changes):
    entries = settings(STANDARD_PME, DYNAMICS, *changes)
    simulation.grompp(work, "run", entries, system.conf, system.top).ok()
    return work / "run.tpr"


def forces(work, name, system, *changes):
    """Of the same start as run_input()."""
    start = {"nsteps": 0, "nstfout": 1, "nstxout": 1}
    simulation.grompp(work, name, settings(DYNAMICS, *changes, start), system.conf, system.top).ok()
    simulation.mdrun(work, name, ["-nb", "cpu"]).ok()
    return simulation.Run(work, name).forces


@pytest.mark.parametrize("kind", [pytest.param("salt_water", marks=pytest.mark.long), "four_site_water"])
def test_tune_finds_settings_that_are_as_accurate_as_it_says(work, request, kind, capsys):
    system = request.getfixturevalue(kind)
    path = run_input(work, system)
    quick = ["--rounds", "1", "--seconds", "0.1", "--accuracy", "1e-3", "--no-pme"]
    assert main(["tune", str(path), *GMX, *MDRUN, *quick, "--json", str(work / "tune.json")]) == 0
    record = json.loads((work / "tune.json").read_text())
    best = next(s for s in record["final"] if s["mdp"]["coulombtype"] == "FMM")
    assert best["meets_accuracy"] and 0 < best["error"] <= 1e-3
    assert all(len(s["ns_per_day"]) == 1 for s in record["final"])

    # The lines to paste are a valid mdp file, and its forces are as far off as was said
    printed = capsys.readouterr().out
    pasted = re.search(r"The fastest FMM.*?\n((?:[\w-]+ += .*\n)+)", printed)[1]
    (work / "pasted.mdp").write_text(pasted)
    lines = files.read(work / "pasted.mdp")
    assert lines["fmm-farfield-order"] == str(best["mdp"]["fmm-farfield-order"])
    exact = forces(work, "exact", system, TIGHT_PME)
    _, coulomb = tpr.RunInput(environment.gmx(), path, work, ("-nb", "cpu")).reference()
    scale = coulomb * np.sqrt(len(exact))
    # One of the positions of the cells that tune has looked at, whose largest error it tells
    error = np.linalg.norm(forces(work, "found", system, lines) - exact) / scale
    assert 0.2 * best["error"] <= error <= best["error"] + TIGHT_ERROR
    standard = next(s for s in record["final"] if s["name"] == "PME, as standard")
    error = np.linalg.norm(forces(work, "standard", system, STANDARD_PME) - exact) / scale
    assert standard["error"] == pytest.approx(error, abs=2 * TIGHT_ERROR)


def test_report_tells_of_both_methods(work, salt_water, capsys):
    path = run_input(work, salt_water)
    page = work / "report.html"
    # Side by side, each on its share of the cores. Verdicts on averages fail by chance now and then: with the seeds of
    # settings(), one thread and -reprod the runs are the same each time
    together = ["--jobs", str(min(2, usable_cores())), "--mdrun", "-ntmpi 1 -ntomp 1 -reprod -nb cpu"]
    words = ["report", str(path), *GMX, *together, "--length", "4", "--output", str(page)]
    words += ["--json", str(work / "report.json")]
    assert main([*words, "--keep", str(work / "kept")]) == 0
    text = page.read_text()
    assert "src=" not in text and "href=\"http" not in text  # it needs no network
    assert len(re.findall(r"<svg", text)) == 5  # errors twice, conserved energy, two structures
    rows = dict(re.findall(r"<tr><td>(PME|FMM)</td><td>([^<]+)</td>", text))
    exact = forces(work, "exact", salt_water, TIGHT_PME)
    _, coulomb = tpr.RunInput(environment.gmx(), path, work, ("-nb", "cpu")).reference()
    found = forces(work, "found", salt_water, STANDARD_PME)
    error = np.linalg.norm(found - exact) / (coulomb * np.sqrt(len(exact)))
    assert float(rows["PME"]) == pytest.approx(error, rel=0.05, abs=2 * TIGHT_ERROR)
    assert float(rows["FMM"]) <= 3e-4
    for quantity in ("temperature", "Coulomb energy", "sodium and chloride", "diffusion of water"):
        assert quantity in text
    assert not re.search(r"\bnan\b", text)
    # Averages are those of the energy file
    terms = simulation.read_edr(work / "kept/1-run/run-FMM.edr")
    mean = np.mean(terms["Temperature"][len(terms["Time"]) // 10 :])
    line = re.search(r"<td>temperature .*?<td>([\d.]+) ±\s([\d.]+)</td><td>([\d.]+) ±\s", text, re.DOTALL)
    assert float(line[3]) == pytest.approx(mean, abs=float(line[2]))

    # Every line of the page has a verdict, that of the file, which says what it was made from and by
    row = r"<tr><td>([^<]+) <span class=\"faint\">.*?<td class=\"verdict \w+\">([\w ]+)</td></tr>"
    shown = re.findall(row, text, re.DOTALL)
    found = json.loads((work / "report.json").read_text())
    assert shown == [(html.unescape(line["title"]), line["verdict"]) for line in found["lines"]]
    assert {verdict for _, verdict in shown} <= {"within", "beyond", "too short to tell"}
    assert found["systems"]["run"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["versions"]["GROMACS version"] and found["command"].startswith("farfield report ")
    verdicts = {line["title"]: line["verdict"] for line in found["lines"]}
    assert "beyond" not in {verdicts[title] for title in SUFFICIENT} and verdicts[SUFFICIENT[0]] == "within"
    # 4 ps leave errors of 100 bar
    assert verdicts["pressure"] == "too short to tell" and "too short to tell" in capsys.readouterr().out


def test_report_has_the_drift_of_orders_at_constant_energy(work, water):
    """Order 2 errs by some 5e-2, which heats by 100 kT/ns: by 0.3 kT in 3 ps, a hundred times what the energy
    scatters by."""
    at_constant_energy = {"tcoupl": "no", "verlet-buffer-tolerance": -1, "rlist": 1.05}
    path = run_input(work, water, at_constant_energy)
    words = ["report", str(path), *GMX, *MDRUN, "--length", "3", "--orders", "2", "9"]
    assert main([*words, "--output", str(work / "report.html"), "--json", str(work / "report.json")]) == 0
    coarse, fine = json.loads((work / "report.json").read_text())["drifts"]
    assert (coarse["order"], fine["order"]) == (2, 9)
    assert coarse["verdict"] == "not asked for" and coarse["force_error"] > 3e-4
    assert fine["verdict"] in ("within", "beyond", "too short to tell") and fine["force_error"] <= 3e-4
    assert coarse["standard_errors_apart"] > 4 and coarse["FMM"][0] > fine["FMM"][0]
    assert coarse["dt_fs"] == 2
    assert "against order and time step" in (work / "report.html").read_text()


def test_report_compares_runs_of_several_ranks(work, water):
    """Forces of reference are those of one rank."""
    path = run_input(work, water)
    flags = ["--mdrun", "-ntmpi 2 -ntomp 1 -nb cpu"]
    words = ["report", str(path), *GMX, *flags, "--length", "0", "--output", str(work / "report.html")]
    assert main([*words, "--json", str(work / "report.json")]) == 0
    (line,) = json.loads((work / "report.json").read_text())["lines"]
    assert line["verdict"] == "within" and 0 < line["FMM"][0] <= 3e-4 < line["PME"][0] < 2e-3


@pytest.mark.long
def test_report_goes_on_with_runs_that_were_ended(work, salt_water, monkeypatch, capsys):
    """Of one position of the cells, to save time: errors of the forces are measured in each of several reports."""
    monkeypatch.setattr(report_forces, "STEPS", range(1))
    path = run_input(work, salt_water)
    words = ["report", str(path), *GMX, "--length", "0.4", "--output", str(work / "report.html")]
    assert main([*words, *MDRUN, "--resume"]) != 0
    assert "--keep" in capsys.readouterr().err
    words += ["--keep", str(work / "kept")]
    assert main([*words, "--mdrun", f"{MDRUN[1]} -maxh 2e-5"]) != 0
    assert "--resume" in capsys.readouterr().err
    assert not (work / "report.html").exists()
    before = simulation.read_edr(work / "kept/1-run/run-PME.edr")
    assert main([*words, *MDRUN, "--resume"]) == 0
    after = simulation.read_edr(work / "kept/1-run/run-PME.edr")
    assert before["Time"][-1] < after["Time"][-1] == pytest.approx(0.4)
    # The last frame of a part is at its end, wherever that is
    later = dict(zip(after["Time"], after["Potential"]))
    first = dict(list(zip(before["Time"], before["Potential"]))[:-1])
    assert first and {time: later[time] for time in first} == first
    # What is complete is not run again, and the page is written over where that is asked for
    assert main([*words, *MDRUN, "--resume"]) != 0
    assert "--overwrite" in capsys.readouterr().err
    words += ["--overwrite"]
    path = work / "kept/1-run/run-FMM.log"
    before = path.read_bytes()
    assert main([*words, *MDRUN, "--resume"]) == 0
    assert path.read_bytes() == before
    # nor taken for another
    assert main([*words, *MDRUN, "--resume", "--accuracy", "1e-4"]) != 0
    assert "run-FMM.json" in capsys.readouterr().err
    # What was killed before it wrote anything begins again
    (work / "kept/1-run/run-FMM.edr").write_bytes(b"")
    (work / "kept/1-run/run-FMM.cpt").unlink(missing_ok=True)
    assert main([*words, *MDRUN, "--resume"]) == 0


def test_tune_compares_with_settings_of_pme(work, salt_water, monkeypatch, capsys):
    """Of one cut-off, to save time; a box of 2.8 nm has no room for the others' pair lists."""
    monkeypatch.setattr(pme_search, "CUTOFFS", (1.0, 1.6))
    monkeypatch.setattr(fmm_search, "RANGES", (1,))
    path = run_input(work, salt_water)
    quick = ["--rounds", "2", "--seconds", "0.1", "--accuracy", "1e-3"]
    assert main(["tune", str(path), *GMX, *MDRUN, *quick, "--json", str(work / "tune.json")]) == 0
    final = json.loads((work / "tune.json").read_text())["final"]
    tuned = [s for s in final if s["name"] == "PME"]
    assert tuned and all(s["meets_accuracy"] and s["error"] <= 1e-3 for s in tuned)
    assert {s["mdp"]["rcoulomb"] for s in tuned} == {0.9}
    exact = forces(work, "exact", salt_water, TIGHT_PME)
    _, coulomb = tpr.RunInput(environment.gmx(), path, work, ("-nb", "cpu")).reference()
    error = np.linalg.norm(forces(work, "found", salt_water, tuned[0]["mdp"]) - exact)
    assert tuned[0]["error"] == pytest.approx(error / (coulomb * np.sqrt(len(exact))), abs=2 * TIGHT_ERROR)
    printed = capsys.readouterr().out
    assert "cut-off of 1.44 nm: refused" in printed
    assert "The fastest PME with that accuracy" in printed


UNUSABLE = {
    "a minimisation": ({"integrator": "steep"}, "integrator = steep"),
    "reaction field": ({"coulombtype": "Reaction-Field", "epsilon-rf": 0}, "coulombtype = Reaction-Field"),
}


@pytest.mark.parametrize("command", ["tune", "report"])
@pytest.mark.parametrize("case", UNUSABLE)
def test_what_cannot_be_compared_is_refused(work, salt_water, command, case, capsys):
    changes, word = UNUSABLE[case]
    entries = settings(STANDARD_PME, changes)
    simulation.grompp(work, "run", entries, salt_water.conf, salt_water.top, ["-maxwarn", 3]).ok()
    assert main([command, str(work / "run.tpr"), *GMX]) == 1
    assert word in capsys.readouterr().err


def test_a_gromacs_without_the_patches_is_named(work, capsys):
    if not environment.gmx_double():
        pytest.skip("no GROMACS without the patches")
    (work / "run.tpr").write_text("nothing")
    program = environment.gmx_double().program
    assert main(["report", str(work / "run.tpr"), "--gmx", str(program)]) == 1
    message = capsys.readouterr().err
    assert f"{program} is GROMACS 20" in message and "without the patches" in message


def test_files_that_are_no_run_input_are_named(work, capsys):
    (work / "other.tpr").write_text("nothing")
    assert main(["tune", str(work / "other.tpr"), *GMX]) == 1
    assert "other.tpr is not a run input file" in capsys.readouterr().err
    assert main(["tune", str(work / "other.tpr"), "--gmx", str(work / "gmx")]) == 1
    assert "no program at" in capsys.readouterr().err


def test_a_system_without_charges_has_nothing_to_tune(work, capsys):
    """Neon-like atoms: the water of mdrun's benchmarks without charges would do as well."""
    top = """[ defaults ]
1 2 yes 0.5 0.5
[ atomtypes ]
NE 20.18 0.0 A 0.275 0.3
[ moleculetype ]
NE 1
[ atoms ]
1 NE 1 NE NE 1 0.0
[ system ]
neon
[ molecules ]
NE 216
"""
    (work / "topol.top").write_text(top)
    corners = np.array(list(np.ndindex(6, 6, 6)), dtype=float) * 0.5 + 0.2
    rows = "".join(
        f"{i % 99999 + 1:5d}NE      NE{i + 1:5d}{x:8.3f}{y:8.3f}{z:8.3f}\n" for i, (x, y, z) in enumerate(corners)
    )
    (work / "conf.gro").write_text(f"neon\n  216\n{rows}   3.0   3.0   3.0\n")
    entries = settings(STANDARD_PME, {"constraints": "none"})
    simulation.grompp(work, "run", entries, "conf.gro", "topol.top", ["-maxwarn", 1]).ok()
    assert main(["tune", str(work / "run.tpr"), *GMX, *MDRUN]) == 1
    assert "no Coulomb forces" in capsys.readouterr().err
