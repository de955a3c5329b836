# SPDX-License-Identifier: LGPL-2.1-or-later
"""What can be told of the pages without the network: papers are listed, addresses well-formed, tables agree.

Whether addresses still lead somewhere: python3 -m sphinx -b linkcheck docs build/linkcheck.
"""

import re
import shlex
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.bench import page_tables, results

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cmake", "docs", "examples", "gromacs_patch", "kernels", "python", "regressiontests", "src", "tests")
SUFFIXES = {".cff", ".cmake", ".cpp", ".cu", ".cuh", ".h", ".html", ".md", ".patch", ".py", ".sh", ".toml", ".txt"}
REFERENCES = (ROOT / "docs/references.md").read_text()
LISTED = set(re.findall(r"\[doi:(\S+)\]", REFERENCES))


def files():
    paths = [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    return sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file())


def trimmed(text):
    """Without what ends a sentence, and without a parenthesis that was opened before."""
    text = text.rstrip(".,;:")
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip(".,;:")
    return text


TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in files() if path != Path(__file__).resolve()}
END = r"[^\s\"'<>`\]{}|\\]+"


def of_texts(pattern):
    """(name of a text, what it has of a pattern), each once."""
    return sorted({(name, trimmed(found)) for name, text in TEXTS.items() for found in re.findall(pattern, text)})


DOIS = of_texts(rf"\b10\.\d{{4,}}/{END}")
ADDRESSES = of_texts(rf"https?://{END}")


def test_there_are_papers_and_addresses():
    assert len(LISTED) > 20 and len(DOIS) > 40 and len(ADDRESSES) > 20


@pytest.mark.parametrize("name, doi", [pair for pair in DOIS if pair[0] != "docs/references.md"])
def test_a_paper_that_is_cited_is_listed(name, doi):
    assert unquote(doi) in LISTED, f"docs/references.md lacks the doi of {name}"


def test_the_address_of_a_paper_is_that_of_its_doi():
    links = re.findall(r"\[doi:(\S+?)\]\(https://doi\.org/(\S+)\)", REFERENCES)
    assert len(links) == len(LISTED)
    for doi, address in links:
        assert doi == unquote(address)
        assert not set("()") & set(address), f"Markdown wants %28 and %29 in the address of {doi}"


@pytest.mark.parametrize("name, address", ADDRESSES)
def test_an_address_is_well_formed(name, address):
    """Secure, of a host with a domain, without leftovers of the text around it."""
    # licences, as GROMACS has them; what shells and programs fill in
    if re.match(r"https?://(?:www\.(?:gnu|gromacs)\.org|\$)", address):
        return
    parts = urlsplit(address)
    assert parts.scheme == "https", f"{name}: {address}"
    assert re.fullmatch(r"[\w-]+(?:\.[\w-]+)+", parts.netloc), f"{name}: {address}"
    assert re.fullmatch(r"[\w\-./%~+=&?#@:$]*", address), f"{name}: {address}"


def test_what_the_readme_quotes_is_what_its_pages_say():
    """Every number of its tables of accuracy and speed, with its uncertainty, is in a page with more."""
    section = (ROOT / "README.md").read_text().split("## Accuracy")[1].split("## Options")[0]
    page = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    numbers = re.findall(r"\| (\d[\d.e-]*(?: ± [\d.]+)?)(?= )", section)
    assert len(numbers) > 20
    assert [number for number in numbers if f"| {number} " not in page] == []


EACH_PAGE = pytest.mark.parametrize("page", page_tables.PAGES, ids=lambda path: path.stem)


@EACH_PAGE
def test_tables_are_those_of_their_files_of_results(page):
    """Else: python3 -m tests.bench.page_tables."""
    assert page.read_text() == page_tables.with_tables(page)


RESULTS = pytest.mark.parametrize("path", sorted(results.FOLDER.glob("*.json")), ids=lambda path: path.stem)
PROGRAMS = r"(build/(python-package/)?bin/|farfield_)\w+|gmx|ncu|nvidia-smi|perf|python3"


def entries(path):
    """Each table of a file of results, or the file."""
    content = results.read(path)
    return content.get("tables", {"": content}).values()


@RESULTS
def test_results_name_date_revision_machine_and_command(path):
    for entry in entries(path):
        assert all(entry[key] for key in ("date", "revision", "machine", "command"))


@RESULTS
def test_the_command_of_results_can_be_typed(path):
    """Variables, then a program; "by hand: " before it where figures were read from its output, not written by it."""
    for entry in entries(path):
        words = shlex.split(entry["command"].removeprefix("by hand: "))
        program = next(word for word in words if not re.match(r"[A-Z_\d]+=", word))
        assert re.fullmatch(PROGRAMS, program), entry["command"]


@pytest.fixture(scope="module")
def history():
    """All commits up to this one."""
    git = ["git", "-C", str(ROOT)]
    ask = [*git, "rev-parse", "--show-toplevel", "--is-shallow-repository"]
    try:
        top, *shallow = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no git, or the tree has no history")
    if Path(top).resolve() != ROOT or shallow != ["false"]:
        pytest.skip("the tree has not all of its history")
    return subprocess.run([*git, "rev-list", "HEAD"], capture_output=True, text=True, check=True).stdout.split()


def revisions(text):
    return re.findall(r"\bg?([0-9a-f]{7,40})\b", text)


def unknown(names, history):
    return [name for name in names if not any(commit.startswith(name) for commit in history)]


@RESULTS
def test_revisions_of_results_are_in_the_history(path, history):
    """Those of the file, of its tables, of cases and of rows."""
    found = []
    for entry in entries(path):
        rows = []
        if "revision" in entry.get("columns", ()):
            rows = [row[entry["columns"].index("revision")] for row in entry["rows"]]
        cases = [case["revision"] for case in entry.get("cases", ()) if "revision" in case]
        names = revisions(" ".join([entry["revision"], *rows, *cases]))
        assert names, entry["revision"]
        found += names
    assert unknown(found, history) == []


@EACH_PAGE
def test_revisions_that_a_page_names_are_in_the_history(page, history):
    found = re.findall(r"\b[Rr]evisions? (?:up to )?([0-9a-f]{7,40})\b", page.read_text())
    assert unknown(found, history) == []


def test_the_advice_for_two_gpus_is_what_was_fastest():
    """One rank with a helper, as long as that gains more than two ranks at every size that was measured with both."""
    helped, ranks = {}, {}
    for atoms, alone, one_helper, _ in results.read(results.FOLDER / "helpers.json")["tables"]["mdrun"]["rows"]:
        helped[int(atoms.replace(" ", ""))] = one_helper / alone
    table = results.read(results.FOLDER / "ranks.json")["tables"]["two-gpus"]
    for row in table["rows"]:
        ranks.setdefault(row[0], []).append(float(row[table["columns"].index("two GPUs / one")]))
    large = [atoms for atoms in helped if atoms > 300000]
    assert large
    advice = re.findall(r"^\| two GPUs, .*", (ROOT / "docs/running.md").read_text(), re.MULTILINE)
    assert len(advice) == 1
    assert ("-ntmpi 1" in advice[0]) == all(helped[atoms] > max(ranks[atoms]) for atoms in large)
