"""Read the source code of a page's cells and code blocks, exactly as it is written on the page."""

from __future__ import annotations

import re

from tests.links import text


def fences(page: str, language: str) -> list[str]:
    """Return the page's plain code blocks in this language. Executed cells are not included."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def cells(page: str) -> list[str]:
    found = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)
    return [
        re.sub(r"\A(?:---\n.*?\n---\n|(?::[^\n]*\n)+)", "", cell, flags=re.DOTALL).strip("\n") + "\n" for cell in found
    ]


def cell_with(page: str, words: str) -> str:
    """Return the one cell of the page that contains these words."""
    [cell] = [cell for cell in cells(page) if words in cell]
    return cell
