"""Tests of the package's structure. Imports must go in one direction, private names must stay within their module, and
expensive imports must be made only where they are used."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.helpers import public
from tests.together import together
from tools import architecture
from tools.imports import statements

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "code"
FILES = {
    ".".join(path.relative_to(CODE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((CODE / "ropebook").rglob("*.py"))
}
# Each module may import modules that come before it in this list, and other modules from its own package.
ORDER = [
    "shapes", "colours", "checks", "memory", "results", "device", "show", "figures", "rope", "triton_kernel",
    "attention", "sinusoidal", "derivation", "complex_plane", "complex_figures", "efficient", "timings", "precision",
    "mistakes", "diagnose", "models", "rotary_attention", "decay", "extrapolation", "explain", "exercises",
    "relatives", "beyond", "lab", "real", "proofs", "explorers",
]  # fmt: skip
# What each part of the package may import in addition to torch and the standard library. (torch doesn't install NumPy.)
HEAVY = {
    "shapes": {"jaxtyping"},
    "rope": {"numpy"},
    "device": {"numpy"},
    "triton_kernel": {"triton"},
    "figures": {"matplotlib", "numpy", "IPython", "cycler"},
    "complex_figures": {"matplotlib"},
    "show": {"IPython"},
    "proofs": {"sympy", "IPython"},
    "lab": {"numpy"},
    "explorers": {"anywidget", "traitlets", "numpy"},
}


def part(name: str) -> str:
    """Return the part of the package to which a dotted name belongs: "lab" for "ropebook.lab.model"."""
    return (name.split(".") + [""])[1]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def test_every_part_has_its_place():
    assert {part(name) for name in FILES} - {""} == set(ORDER), "give it a place in ORDER, after what it imports"


@together("name", FILES)
def test_arrows_run_one_way(name):
    rank = ORDER.index(part(name)) if part(name) else 0
    for _, imported in statements(tree(name)):
        top = imported.split(".")[0]
        assert top not in {"book", "tests", "benchmarks", "tools"}, imported
        if top == "ropebook":
            other = part(imported)
            assert other in ORDER, imported
            assert ORDER.index(other) < rank or other == part(name), f"{name} imports {imported}"


def test_the_ground_stands_on_nothing_else():
    imports = [imported for _, imported in statements(tree("ropebook.rope")) if imported.startswith("ropebook")]
    assert {part(imported) for imported in imports} == {"checks", "shapes"}


def foreign_private_names(tree: ast.AST) -> list[str]:
    """Return the private names that a module uses but that belong to other modules."""
    bound, found = set(), []
    for node, name in statements(tree):
        if name.startswith("ropebook."):
            found += [name] if name.split(".")[-1].startswith("_") else []
            bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            found += [f"{node.value.id}.{node.attr}"] if private else []
    return found


@together(
    ("source", "found"),
    [
        ("from ropebook import rope\nrope._tables(1)", ["rope._tables"]),
        ("from ropebook.rope import _tables, cos_sin", ["ropebook.rope._tables"]),
        ("from ropebook import rope as r\nr._tables", ["r._tables"]),
        ("def f():\n    from ropebook.rope import Positions\n    Positions._x", ["Positions._x"]),
        ("from ropebook import rope\nrope.tables(1)\nself._x\nrope.__name__\n_x = 1", []),
        ("import torch\ntorch._dynamo", []),
    ],
)
def test_private_names_of_others_are_seen(source, found):
    assert foreign_private_names(ast.parse(source)) == found


@together("name", FILES)
def test_no_module_uses_anothers_private_names(name):
    assert foreign_private_names(tree(name)) == []


@together("name", FILES)
def test_heavy_imports_stand_where_they_are_used(name):
    """This test checks only imports at the top of a file. A function may import optional packages."""
    allowed = {"torch", "ropebook"} | HEAVY.get(part(name), set()) | set(sys.stdlib_module_names)
    heads = ast.Module([node for node in tree(name).body if not is_type_checking(node)], [])
    inside = {
        inner for function in ast.walk(heads) if isinstance(function, ast.FunctionDef) for inner in ast.walk(function)
    }
    assert {imported.split(".")[0] for node, imported in statements(heads) if node not in inside} <= allowed


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@together("name", [name for name in FILES if name != "ropebook.triton_kernel"])
def test_public_names_exist_and_are_described(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    missing = [one for one in public(module) if not inspect.getdoc(getattr(module, one))]
    assert missing == []
    listed = getattr(module, "__all__", [])
    assert len(listed) == len(set(listed))


def test_the_drawing_of_the_house_is_as_the_imports_are():
    text = architecture.PAGE.read_text(encoding="utf-8")
    assert architecture.drawn(text) == text, "python -m tools.architecture draws it anew"
    assert "  lab --> extrapolation\n" in text
    assert "  lab --> rope\n" not in text, "that follows from others"


def test_a_circle_cannot_be_drawn(tmp_path):
    (tmp_path / "ropebook").mkdir()
    (tmp_path / "ropebook" / "one.py").write_text("from ropebook import two")
    (tmp_path / "ropebook" / "two.py").write_text("def late():\n    from ropebook.one import something")
    with pytest.raises(ValueError, match="cycle one → two"):
        architecture.drawing(architecture.arrows(tmp_path))
