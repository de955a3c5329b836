# SPDX-License-Identifier: LGPL-2.1-or-later
"""The documentation as pages: ./quickstart.sh docs leaves them in build/docs."""

import re
import subprocess
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import farfield

project = "farfield"
author = copyright = "the farfield developers"
version = release = farfield.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "breathe"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nitpicky = True
highlight_language = "none"  # of what is indented: commands, for the most part
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["torch"]  # large, and not needed for its page

# Publishers turn programs away: of a doi the registry is asked for what it knows of the paper instead.
linkcheck_request_headers = {"https://doi.org/": {"Accept": "application/vnd.citationstyles.csl+json"}}
linkcheck_timeout = 30
linkcheck_retries = 3

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"farfield {version}"

# Files that stand elsewhere in the repository, where readers of it look for them, and their pages here.
DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PAGES = {
    ROOT / "README.md": "readme",
    ROOT / "CONTRIBUTING.md": "contributing",
    ROOT / "gromacs_patch/README.md": "patch",
    ROOT / "gromacs_patch/mdp-options.md": "mdp",
    **{path: path.stem for path in DOCS.glob("*.md")},
}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


# The C++ interface: Doxygen reads the headers, Breathe makes pages of what it found.
DOXYGEN = ROOT / "build/doxygen"
breathe_projects = {"farfield": str(DOXYGEN / "xml")}
breathe_default_project = "farfield"
breathe_show_include = False
# The namespace, and types of the standard library, of CUDA and of MPI
nitpick_ignore_regex = [("cpp:identifier", r"farfield|size_t|(std|cuda|MPI_).*"), ("py:exc", r"jax\..*")]


def run_doxygen():
    """Leaves XML in DOXYGEN; whatever Doxygen warns of is an error."""
    DOXYGEN.mkdir(parents=True, exist_ok=True)
    settings = {
        "INPUT": f'"{ROOT / "src/farfield"}"',
        "OUTPUT_DIRECTORY": f'"{DOXYGEN}"',
        "GENERATE_HTML": "NO",
        "GENERATE_LATEX": "NO",
        "GENERATE_XML": "YES",
        "XML_PROGRAMLISTING": "NO",
        "MACRO_EXPANSION": "YES",
        "EXPAND_ONLY_PREDEF": "YES",
        "PREDEFINED": "FARFIELD_EXPORT=",
        "WARN_IF_UNDOCUMENTED": "NO",
        "WARN_AS_ERROR": "FAIL_ON_WARNINGS",
        "QUIET": "YES",
    }
    text = "\n".join(f"{name} = {value}" for name, value in settings.items())
    subprocess.run(["doxygen", "-"], input=text, text=True, check=True)


def with_pages(text, folder):
    """Links to files of the repository as links to their pages; those to other files as text."""

    def replaced(link):
        label, target, anchor = link[1], link[2], link[3] or ""
        if not target or "://" in target:
            return link[0]
        path = (folder / target).resolve()
        if not path.exists():
            raise ValueError(f"{folder} has no {target}, to which '{label}' leads.")
        if path in PAGES:
            return f"[{label}]({PAGES[path]}.md{anchor})"
        return link[0] if path.suffix == ".svg" else label

    return LINK.sub(replaced, text)


def formula(display):
    """What browsers draw themselves, without a script from the network."""

    def visit(translator, node):
        drawn = convert(node.astext(), display=display)
        translator.body.append(f'<div class="formula">{drawn}</div>' if display == "block" else drawn)
        raise SkipNode

    return visit, None


def setup(app):
    run_doxygen()

    def read(app, name, content):
        content[0] = with_pages(content[0], DOCS)

    def include(app, path, parent, content):
        if path.suffix == ".md":
            content[0] = with_pages(content[0], (DOCS / path).resolve().parent)

    app.add_html_math_renderer("mathml", formula("inline"), formula("block"))
    app.connect("source-read", read)
    app.connect("include-read", include)
