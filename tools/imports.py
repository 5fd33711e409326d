"""Find the imports in Python sources without running them. Each source is parsed only once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache


def statements(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield every import statement in a syntax tree together with each dotted name that it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def names(text: str) -> frozenset[str]:
    """Return the dotted names that are imported anywhere in this Python source."""
    return frozenset(name for _, name in statements(ast.parse(text)))
