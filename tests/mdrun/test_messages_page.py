# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/trouble.md explains the messages of the sources: all that users may see, and no others."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/trouble.md"

# A text of the sources stands in the page by its beginning or by its middle; "..." is what differs.
GAP = " ... "
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
# What reports: errors of the library, of GROMACS, of grompp and convert-tpr, warnings of mdrun, and the
# functions and constants that make texts for these.
REPORTS = re.compile(
    r"\b(?:(?:throw|return) (?:(?:farfield::)?Error|inSystem)|GMX_THROW|add(?:Error|Warning|Note)|appendIf|"
    r"applyConstraint|refuse|c_outOfMemory|GMX_LOG(?=\(\w+\.warning))\("
    r"|^std::string (?:\w+Message|messageStart)\("
    r"|^std::string Excess::text\(",
    re.MULTILINE,
)

# Messages that are not in the page: the beginning of the text, and why.
PROGRAMS = "of programs that call the library: it names the argument, its value and what is legal"
INSIDE = "shows a mistake in farfield itself: nothing that a user does leads there"
ALLOWED = {
    "The number of  ... ,  ... , is outside its range, 0 to ": PROGRAMS,
    "The charge of particle ": PROGRAMS,
    "A charge of particle ": PROGRAMS,
    "Sums of other kernels than 1/r have no slabs: boundary must be": PROGRAMS,
    "The kernel ... has no sum over periodic images here: use ": PROGRAMS,
    "The exclusions are for ": PROGRAMS,
    "This is no state of sums of a kernel": PROGRAMS,
    "The first offset of the exclusions": PROGRAMS,
    "The offsets of the exclusions must ascend": PROGRAMS,
    "The excluded partner ": PROGRAMS,
    "The widths are for ": PROGRAMS,
    "The width of particle ": PROGRAMS,
    "The near function differs from 1/r within ": PROGRAMS,
    "Near functions are not available on several ranks": PROGRAMS,
    "The number of groups, ": PROGRAMS,
    "The group ": PROGRAMS,
    "Potentials at points need charges of one state": PROGRAMS,
    "Dipoles and quadrupoles are not available on several ranks": PROGRAMS,
    "Quadrupoles do not go with near functions": PROGRAMS,
    "The  ...  of particle  ...  has a component of": PROGRAMS,
    "The quadrupole of particle  ...  has the trace": PROGRAMS,
    "The polarisability of particle ": PROGRAMS,
    "There are  ... s of  ...  particles, but charges of": PROGRAMS,
    "need charges of one state: call setCharges()": PROGRAMS,
    "do not go with soft cores": PROGRAMS,
    "with near functions have no virial": PROGRAMS,
    "are not available with dipoles": PROGRAMS,
    "Excluded particles are in two layers of a slab": PROGRAMS,
    "Layers of a slab are far from each other": PROGRAMS,
    "Arrays in device memory need a solver": PROGRAMS,
    "With the boundary 'open' the virial of device arrays": PROGRAMS,
    "Evaluations with the boundary 'open' or 'slab' cannot be recorded": PROGRAMS,
    "Atoms in device memory need a sum": PROGRAMS,
    "There must be charges, in one set or more": PROGRAMS,
    "setSites() must be called before": PROGRAMS,
    "A periodic sum, and no other one, needs a box": PROGRAMS,
    "This evaluation waits for the device, and cannot be recorded": PROGRAMS,
    "The grid offset, ": PROGRAMS,
    "Lambda, ": PROGRAMS,
    "There are  ...  ... , but  ...  particles: set the charges": PROGRAMS,
    "... has no value ' ... ', but must be one of": PROGRAMS,
    "There is no option ' ... ', but there are": PROGRAMS,
    "The  ...  are on the GPU  ... , but the solver has the GPU": PROGRAMS,
    "A message between GPUs has more bytes than reserve() has reserved.": PROGRAMS,
    "FarfieldOptions requires a WarningHandler": INSIDE,
    "No cells fit the box that they were chosen for, which is a mistake in farfield": INSIDE,
    "The GPU has no M2L engine ' ... ' for interaction lists, but it has": INSIDE,
    "an external FMM library": "GROMACS's own warning of other backends, which the patch keeps from this one",
    " ... (atom  ...  of molecule type  ... ).": "follows a text that is in the page",
    "... farfield: files are kept in ...": "follows a text that is in the page",
    # Python: arguments of functions and classes, where a traceback shows the call
    "The quadrupole of particle ... is not symmetric": PROGRAMS,
    "... must be in the memory of the GPU, as x is.": PROGRAMS,
    " ... follows from the tensors, leave it out.": PROGRAMS,
    " ... follows from the arrays, leave it out.": PROGRAMS,
    "ptr must begin with 0, and ascend.": PROGRAMS,
    "is a slab whose particles are spread over": PROGRAMS,
    "... must be an array of real numbers, but is of": PROGRAMS,
    "... , but is ... of the shape ... .": PROGRAMS,
    "... , and cannot be made of this": PROGRAMS,
    "... must be ... , but is ... .": PROGRAMS,
    "... must be between ... and ... .": PROGRAMS,
    "widths must be given with ' ... '.": PROGRAMS,
    "boundary follows from the periodic directions": PROGRAMS,
    "The cell vectors  ... have no": PROGRAMS,
    "... on the GPU has the type": PROGRAMS,
    "Particles  ... and  ... are at one place": PROGRAMS,
    "This  ...  has worked on a GPU before fork()": PROGRAMS,
    "... must be a torch.Tensor": PROGRAMS,
    "positions are  ... , but must be float32 or float64.": PROGRAMS,
    "dtype is  ... , but must be float32 or float64.": PROGRAMS,
    "An index of  ... is outside the range": PROGRAMS,
    "Positions and points must both be on a GPU": PROGRAMS,
    "FarfieldCoulomb needs atoms periodic": PROGRAMS,
    "Either offsets or index must be given.": PROGRAMS,
    "There are  ...  systems, but  ...  boxes.": PROGRAMS,
    "boxes are missing": PROGRAMS,
    "index must ascend": PROGRAMS,
    "offsets must begin with 0": PROGRAMS,
    "The first offset of the systems": PROGRAMS,
    "The last offset of the systems": PROGRAMS,
    "The option  ...  =  ...   ...  must be finite and not negative.": PROGRAMS,
    "The option waveCutoff is for Gaussian charges": PROGRAMS,
    "has its particle  ...  too far away": PROGRAMS,
    "has a position that is not finite": PROGRAMS,
    "has a charge that is not finite or above": PROGRAMS,
    "has the box vectors": PROGRAMS,
    "ends at particle  ...  and begins at particle": PROGRAMS,
    "has its particles  ...  and  ...  at one place": PROGRAMS,
    "module  ... has no attribute": PROGRAMS,
    "... holds no forces": INSIDE,
    "the numbers of atoms differ": INSIDE,
    "the log does not say which cells FMM uses": INSIDE,
    "a series of  ... values is too short": INSIDE,
    "... has no line with the performance": INSIDE,
    "... : not a trr file, or a damaged one": INSIDE,
}


def without_comments(text):
    return re.sub(r"^\s*(?://|/?\*).*$", "", text, flags=re.MULTILINE)


def cpp_sources():
    """{file: its text}; of patches the lines that they add."""
    texts = {}
    for folder in ("src", "kernels", "gromacs_patch/fmm", "python/bindings"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".cpp", ".h", ".cu", ".cuh"}:
                texts[path.relative_to(ROOT)] = without_comments(path.read_text())
    for path in sorted((ROOT / "gromacs_patch").glob("*.patch")):
        lines = path.read_text().splitlines()
        added = (line[1:] if line.startswith("+") else "" for line in lines)
        texts[path.relative_to(ROOT)] = without_comments("\n".join(added))
    return texts


def statement(text, start):
    """What follows, to the end of the statement, or of the function, that begins there."""
    depth = 0
    for token in re.finditer(LITERAL + r"|'.'|[(){};]", text[start:]):
        if token[0] in ("(", "{"):
            depth += 1
        elif token[0] in (")", "}"):
            depth -= 1
            if depth < 0 or (depth == 0 and token[0] == "}"):
                return text[start : start + token.end()]
        elif token[0] == ";" and depth == 0:
            return text[start : start + token.end()]
    return text[start:]


def function_around(text, start):
    begin = text.rfind("\n{", 0, start)
    return text[begin : text.find("\n}", start)]


def said(code):
    """The literals of a piece of C++ as one text."""
    parts, end = [], None
    for literal in re.finditer(LITERAL, code):
        if end is not None and code[end : literal.start()].strip():
            parts.append(GAP)
        parts.append(literal[0][1:-1])
        end = literal.end()
    return re.sub(r"%[-\d.]*l*[a-z]", GAP, "".join(parts))


def has_words(text):
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 2


def cpp_messages():
    for name, text in cpp_sources().items():
        for report in REPORTS.finditer(text):
            found = said(statement(text, report.start()))
            if not has_words(found):
                # the text is put together before, in the same function
                found = said(function_around(text, report.start()))
            if has_words(found):
                yield f"{name}: {report[0].strip()}", found


def python_messages():
    """Of the package; programs of examples and benchmarks stop with those of what they call."""
    for path in sorted((ROOT / "python/farfield").rglob("*.py")):
        module = ast.parse(path.read_text())
        for node in module.body:
            # texts that a function is given and raises later
            text = getattr(getattr(node, "value", None), "value", None)
            if isinstance(node, ast.Assign) and isinstance(text, str) and text.endswith("."):
                yield str(path.relative_to(ROOT)), text
        for node in ast.walk(module):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                parts = []
                for value in ast.walk(node.exc):
                    if isinstance(value, ast.JoinedStr):
                        parts = [v.value if isinstance(v, ast.Constant) else GAP for v in value.values]
                        break
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        parts = [value.value]
                        break
                if parts:
                    yield str(path.relative_to(ROOT)), "".join(parts)


def plain(text):
    """Spaces and quotes aside."""
    return re.sub(r"[\s'\"`\\]+", " ", text).strip()


MESSAGES = sorted({(name, plain(text)) for name, text in [*cpp_messages(), *python_messages()]})


def rows():
    """What the first column of the tables shows as code, and what all library errors have around them."""
    page = PAGE.read_text().split("## Refused")[1].split("\n## ")[0]
    cells = "\n".join(re.findall(r"^\| (`.+?) \| ", page, flags=re.MULTILINE))
    around = " ".join(page.split("Errors of the library begin")[1].split("\n\n")[0].split())
    return re.findall("`(.+?)`", cells + around)


def pattern(row):
    """Matches the messages that a row of the page, or a line of ALLOWED, is about."""
    parts = [plain(part) for part in re.split(r"\.\.\.|fmm-farfield-[\w-]*|GMX_FMM_[A-Z]+", row)]
    return re.compile(".*?".join(re.escape(part) for part in parts if part))


def test_there_are_messages():
    assert len(MESSAGES) > 100
    assert len(rows()) > 60


@pytest.mark.parametrize("row", [*rows(), *ALLOWED])
def test_a_message_of_the_page_is_one_of_the_sources(row):
    assert len(re.sub("[^A-Za-z]", "", row)) > 5
    assert any(pattern(row).search(text) for _, text in MESSAGES), f"no source says '{row}'"


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message[1][:60])
def test_a_message_of_the_sources_is_in_the_page(message):
    known = [pattern(row) for row in rows()] + [pattern(row) for row in ALLOWED]
    assert any(row.search(message[1]) for row in known), (
        f"{message[0]} says '{message[1]}': what to do belongs into docs/trouble.md"
    )


@pytest.mark.parametrize("page", ["log", "tutorial"])
def test_lines_of_logs_that_pages_show_are_those_of_the_sources(page):
    text = (ROOT / f"docs/{page}.md").read_text()
    source = (ROOT / "gromacs_patch/fmm/farfieldreport.cpp").read_text()
    report = text.split("FMM electrostatics with farfield")[1].split("```")[0]
    labels = re.findall(r"^  (\w.*?)  ", report, re.MULTILINE)
    assert len(labels) > 5
    assert [label for label in labels if f'"  {label}  ' not in source] == []
