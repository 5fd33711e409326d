"""Read from the sources what imports what, without running anything. Each text is parsed only once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache


def statements(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The dotted names that are imported anywhere in a tree, each with its statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def names(text: str) -> frozenset[str]:
    """The dotted names that are imported anywhere in a Python text."""
    return frozenset(name for _, name in statements(ast.parse(text)))
