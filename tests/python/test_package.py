# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is installed besides code: types for editors and type checkers."""

import ast
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


@pytest.mark.parametrize("name", ["SingleSolver", "DoubleSolver"])
def test_stubs_have_the_methods_of_the_solvers(name):
    (solver,) = (node for node in stub().body if getattr(node, "name", None) == name)
    assert public(defined(solver.body)) == public(vars(getattr(_core, name)))
