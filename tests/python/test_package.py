# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is installed besides code: types for editors and type checkers; and how the library is loaded."""

import ast
import os
import re
import subprocess
import sys
from importlib import resources

import pytest

from farfield import _core


def public(names):
    return {name for name in names if not name.startswith("_")}


def stub():
    return ast.parse((resources.files("farfield") / "_core.pyi").read_text())


def defined(body):
    """Names of classes and functions."""
    return {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def test_the_package_says_that_it_has_types():
    assert (resources.files("farfield") / "py.typed").is_file()


def test_stubs_have_the_names_of_the_module():
    assert public(defined(stub().body)) == public(vars(_core))


@pytest.mark.parametrize("name", ["SingleSolver", "DoubleSolver", "SingleBatch", "DoubleBatch"])
def test_stubs_have_the_methods_of_the_classes(name):
    (found,) = (node for node in stub().body if getattr(node, "name", None) == name)
    assert public(defined(found.body)) == public(vars(getattr(_core, name)))


@pytest.mark.parametrize(
    "given, found",
    [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
    ids=["nothing given", "rounds given", "a policy given"],
)
def test_threads_wait_briefly_unless_the_user_says_how(given, found):
    """libgomp says what it has read; what follows from this process inherits nothing."""
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    code = "import os, farfield.solver; print(sorted(os.environ.keys() & {'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, **given, "OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
    )
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("the OpenMP library is not libgomp")
    assert set(re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)) == {found}
    assert done.stdout.strip() == str(sorted(given))
