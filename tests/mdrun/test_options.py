# SPDX-License-Identifier: LGPL-2.1-or-later
"""The .mdp options: gmx and the documentation have what src/farfield/options.h says."""

import json
import os
import re
import subprocess

import pytest

from tests.support.gmx import mdp, patches, simulation
from tests.support.gmx.environment import ROOT
from tests.support.gmx.mdp import FMM, settings

PAGES = {
    "mdp-options.md": ROOT / "gromacs_patch" / "mdp-options.md",
    "mdp-options.rst": patches.named("farfield"),
    "README.md": ROOT / "README.md",
}


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """The tables of options.h, printed by a program that includes it."""
    program = tmp_path_factory.mktemp("options") / "print_options"
    source = ROOT / "tests" / "mdrun" / "print_options.cpp"
    compiler = os.environ.get("CXX") or "g++"
    command = [compiler, "-std=c++17", f"-I{ROOT / 'src'}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True)
    return json.loads(printed.stdout)


def names_of(table, option):
    """The values of an option that has names, in the order of options.h."""
    return {
        "engine": [engine["name"] for engine in table["engines"]],
        "device": table["devices"],
        "answer": ["no", "yes"],
        "number": [],
    }[option["kind"]]


def default_of(table, option):
    """The default as it is written: a name, or a number."""
    names = names_of(table, option)
    return names[int(option["default"])] if names else option["default"]


def value(text):
    """A number if it is one; answers as grompp writes them are those that one gives."""
    text = {"true": "yes", "false": "no"}.get(text.lower(), text)
    try:
        return float(text)
    except ValueError:
        return text


def limits_of(option):
    """The numbers that a description of the option has to name."""
    open_value = [option["open"]] if "open" in option else []
    return {*option["smallest"], option["largest"], *open_value}


def numbers(text, pattern):
    return {float(number) for number in re.findall(pattern, text)}


def one_line(text):
    return " ".join(text.split())


def markdown_entries():
    """{option: (default, unit, text)} of mdp-options.md."""
    text = PAGES["mdp-options.md"].read_text()
    entry = r"^\*\*(fmm-farfield-\S+)\*\* \(`(.*?)`\)(?: \[(.*?)\])?$(.*?)(?=^\*\*|\Z)"
    found = re.findall(entry, text, re.MULTILINE | re.DOTALL)
    return {name: (default, unit, body) for name, default, unit, body in found}


def manual_entries():
    """The same of the manual of GROMACS, from the lines that the patch adds."""
    lines = PAGES["mdp-options.rst"].read_text().splitlines()
    text = "\n".join(line[1:] for line in lines if line.startswith("+"))
    entry = r"^\.\. mdp:: (fmm-farfield-\S+)\s+\((.*?)\)(?: \[(.*?)\])?(.*?)(?=^\S|\Z)"
    found = re.findall(entry, text, re.MULTILINE | re.DOTALL)
    return {name: (default, unit, body) for name, default, unit, body in found}


def readme_rows():
    """{option: (default, unit, values)} of the table in README.md."""
    row = r"^\| `(fmm-farfield-\S+)` \| `?([^` |]+)`?(?: (\w+))? \| (.*?) \| .*\|$"
    found = re.findall(row, PAGES["README.md"].read_text(), re.MULTILINE)
    return {name: (default, unit, values) for name, default, unit, values in found}


def test_every_page_lists_every_option_in_order(table):
    names = [option["name"] for option in table["options"]]
    assert list(markdown_entries()) == names
    assert list(manual_entries()) == names
    assert list(readme_rows()) == names


@pytest.mark.parametrize("entries", [markdown_entries, manual_entries, readme_rows])
def test_defaults_and_units_are_those_of_the_table(table, entries):
    for option in table["options"]:
        default, unit, _ = entries()[option["name"]]
        assert value(default) == default_of(table, option), option["name"]
        assert unit == option["unit"], option["name"]


@pytest.mark.parametrize(
    "entries, pattern",
    [
        (markdown_entries, r"`(-?\d[\d.e-]*)`"),
        (manual_entries, r"``(-?\d[\d.e-]*)``"),
        (readme_rows, r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?"),
    ],
)
def test_ranges_are_those_of_the_table(table, entries, pattern):
    """All numbers of a description are limits, and all limits are there."""
    for option in table["options"]:
        if option["kind"] == "number":
            text = entries()[option["name"]][2]
            assert numbers(text, pattern) == limits_of(option), option["name"]


@pytest.mark.parametrize(
    "entries, pattern",
    [
        (markdown_entries, r"^- `(\w+)`:"),
        (manual_entries, r"^ +\.\. mdp-value:: (\w+)$"),
        (readme_rows, r"\b(\w+)\b(?=`|, |$)"),
    ],
)
def test_values_with_names_are_those_of_the_table(table, entries, pattern):
    for option in table["options"]:
        names = names_of(table, option)
        if option["kind"] in ("engine", "device"):
            found = re.findall(pattern, entries()[option["name"]][2], re.MULTILINE)
            assert found == names, option["name"]


def test_texts_begin_as_in_the_table(table):
    entries = markdown_entries()
    for option in table["options"]:
        text = one_line(entries[option["name"]][2])
        assert text.startswith(option["text"].rstrip(".")), option["name"]
        if option["kind"] == "number" and "open" in option:
            assert f"With `{option['open']:g}` {option['whenOpen']}" in text


@pytest.mark.parametrize("entries", [markdown_entries, manual_entries])
def test_engines_are_described_as_in_the_table(table, entries):
    """Those for a GPU only say so."""
    text = one_line(re.sub(r"`|\.\. mdp-value:: ", "", entries()["fmm-farfield-m2l"][2]))
    starts = [re.search(rf"\b{e['name']}(?=:| (?:Use|As))", text).start() for e in table["engines"]]
    for engine, start, end in zip(table["engines"], starts, [*starts[1:], None]):
        described = text[start:end].lower()
        assert engine["text"] in described, engine["name"]
        assert ("on a gpu only" in described) == engine["isForGpuOnly"], engine["name"]


def test_the_readme_tells_engines_for_a_gpu_only(table):
    anywhere, on_a_gpu = readme_rows()["fmm-farfield-m2l"][2].split("on a GPU:")
    for engine in table["engines"]:
        assert (f"`{engine['name']}`" in on_a_gpu) == engine["isForGpuOnly"]
        assert (f"`{engine['name']}`" in anywhere) != engine["isForGpuOnly"]


def test_grompp_has_the_options_and_defaults_of_the_table(work, water, table):
    """As it writes them to the mdp file of what it has used."""
    simulation.grompp(work, "run", settings(FMM), water.conf, water.top).ok()
    used = mdp.read(work / "run-out.mdp")
    own = {name: value(text) for name, text in used.items() if name.startswith("fmm-farfield-")}
    assert own == {option["name"]: default_of(table, option) for option in table["options"]}


def too_small(option):
    """Below the value that leaves the option open, where there is one."""
    return option["open"] - 1 if "open" in option else option["smallest"][0] / 2


def too_large(option):
    return option["largest"] * 2


@pytest.mark.parametrize("beyond", [too_small, too_large])
def test_grompp_refuses_what_is_beyond_the_limits_of_the_table(work, water, table, beyond):
    """All numbers at once: each gives an error of its own, which names the limits."""
    options = [option for option in table["options"] if option["kind"] == "number"]
    wrong = {option["name"]: f"{beyond(option):g}" for option in options}
    done = simulation.grompp(work, "bad", settings(FMM, wrong), water.conf, water.top)
    assert done.status != 0
    words = one_line(done.text)
    for option in options:
        name, smallest, largest = option["name"], option["smallest"][0], option["largest"]
        limits = f"set it to a value from {smallest:g} to {largest:g}"
        assert f"{name} is {beyond(option):g}, {limits}" in words


@pytest.mark.parametrize(
    "entries, words",
    [
        ({}, False),
        ({"fourierspacing": 0.16}, True),
        ({"pme-order": 6}, True),
        ({"ewald-rtol": 1e-6}, True),
        ({"fourier-nx": 40, "fourier-ny": 40, "fourier-nz": 40}, True),
        ({"pme-order": 6, "vdwtype": "PME"}, False),  # of Lennard-Jones
    ],
)
def test_options_of_a_mesh_have_no_effect(work, water, entries, words):
    done = simulation.grompp(work, "run", settings(mdp.ONE_STEP, FMM, entries), water.conf, water.top).ok()
    assert ("there is no mesh" in one_line(done.text)) == words


def test_rcoulomb_has_no_effect(work, water):
    """FMM has no cut-off, and GROMACS has no kernels for two: a note, and the run with equal ones."""
    done = simulation.grompp(
        work, "run", settings(mdp.ONE_STEP, FMM, {"rcoulomb": 0.7}), water.conf, water.top
    ).ok()
    assert "rcoulomb has no effect" in " ".join(done.text.split())
    simulation.mdrun(work, "run").ok()
    assert re.search(r"^ +rcoulomb += 0\.9$", simulation.Run(work, "run").log, re.MULTILINE)
