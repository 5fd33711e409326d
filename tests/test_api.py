"""Tests of the package reference. Each import line must work, and must import what is described below it, module by
module."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re

import ropebook
from ropebook.extrapolation import METHODS
from tests.helpers import public
from tests.scripts import extension
from tests.together import together
from tools.paths import BOOK

PAGE = (BOOK / "api.md").read_text(encoding="utf-8")
FORMS = [("ropebook.extrapolation", method.form.__name__) for method in METHODS.values()]
DESCRIBED = re.compile(r"^\.\. auto(?:class|function):: (ropebook\.\w+)\.(\w+)$", re.M)


def parts() -> list[tuple[str, str]]:
    """Return each import line together with the text that follows it."""
    blocks = re.split(r"```python\n(.*?)```\n", PAGE, flags=re.S)
    return list(zip(blocks[1::2], blocks[2::2], strict=True))


@together(("line", "text"), parts(), ids=range(len(parts())))
def test_an_import_line_names_what_its_part_describes(line, text):
    imports = ast.parse(line).body
    named = [(node.module, alias.name) for node in imports for alias in node.names]
    for module, name in named:
        assert hasattr(importlib.import_module(module), name)
        assert name in getattr(importlib.import_module(module), "__all__", [name])
    if named[0][0] == "ropebook":
        assert {name for _, name in named} == set(ropebook._HOMES)
    else:
        assert named == DESCRIBED.findall(text)


def test_everything_described_has_an_import_line_and_stands_under_its_module():
    under = re.split(r"^## `(ropebook\.\w+)`.*$", PAGE, flags=re.M)
    for module, text in zip(under[1::2], under[2::2], strict=True):
        assert {found for found, _ in DESCRIBED.findall(text)} == {module}
    named = [text for line, text in parts() if not line.startswith("from ropebook import")]
    assert sum(len(DESCRIBED.findall(text)) for text in named) == len(DESCRIBED.findall(PAGE))
    assert len(set(DESCRIBED.findall(PAGE))) == len(DESCRIBED.findall(PAGE))


@together("name", sorted(ropebook._HOMES))
def test_every_main_name_is_described(name):
    assert (f"ropebook.{ropebook._HOMES[name]}", name) in [*DESCRIBED.findall(PAGE), *FORMS]


def test_every_method_is_described_in_the_order_of_the_registry():
    assert "\n### The methods\n\n```{methods}\n```\n" in PAGE
    written = "\n".join(extension("methods").lines())
    assert DESCRIBED.findall(written) == FORMS
    line = re.search(r"```python\n(.*?)```", written, re.S)[1]
    assert [("ropebook.extrapolation", alias.name) for alias in ast.parse(line).body[0].names] == FORMS


def test_a_base_that_need_not_be_given_is_the_one_in_the_paper():
    """Only a configuration that was read from a file has a base of its own."""
    chapters = ["rope", "sinusoidal", "derivation", "complex_plane", "efficient", "decay", "extrapolation", "precision"]
    modules = {chapter: importlib.import_module(f"ropebook.{chapter}") for chapter in chapters}
    options = {
        f"{chapter}.{name}": inspect.signature(getattr(module, name)).parameters
        for chapter, module in modules.items()
        for name in public(module)
    }
    bases = {name: found["base"].default for name, found in options.items() if "base" in found}
    given = {name: base for name, base in bases.items() if base not in (inspect.Parameter.empty, None)}
    assert len(given) > 40
    assert {name: base for name, base in given.items() if base != 10_000} == {}
