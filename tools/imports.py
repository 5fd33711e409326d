"""Reads from the sources what imports what, without running anything. A text is parsed once, however many notebooks
carry it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MODULE = re.compile(r"ropebook(\.\w+)+")


def statements(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The dotted names that a tree imports, anywhere in it, each with its statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def names(text: str) -> frozenset[str]:
    """The dotted names that a Python text imports, anywhere in it."""
    return frozenset(name for _, name in statements(ast.parse(text)))


@cache
def imported(code: Path, text: str) -> frozenset[Path]:
    """The package's files that a Python text imports, or names in a string, as the checks of definitions do."""
    said = {string for string in strings(text) if MODULE.fullmatch(string)}
    return frozenset(path for name in names(text) | said for path in _files(code, name))


def _files(code: Path, name: str) -> Iterator[Path]:
    """The files of a dotted name: its module's, and those of the packages around it."""
    parts = name.split(".")
    if parts[0] != "ropebook":
        return
    for length in range(1, len(parts) + 1):
        place = code.joinpath(*parts[:length])
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                yield path


@cache
def strings(text: str) -> frozenset[str]:
    """Every string in a Python text."""
    return frozenset(
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
