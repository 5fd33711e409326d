"""Estimate how many minutes it takes to read each of the built pages.

The estimate is based on the finished HTML: 200 words per minute, 20 seconds per displayed formula, 40 seconds per
figure, and 15 seconds per visible code cell. Folded text, exercises and the frame of the page don't count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from tools.paths import write_whole

WORDS, FORMULAS, FIGURES, CELLS = 200, 3, 3 / 2, 4  # per minute
PLACE = re.compile(r'(<span class="minutes" data-of="([\w ]+)">)[^<]*(</span>)')
ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr", "source", "col"})
SILENT = frozenset({"script", "style", "template", "pre"})


class _Reader(HTMLParser):
    """Parser that counts the words, formulas, figures and code cells that a reader reads. Each open tag has a mark from
    0 to 3. Mark 0: everything inside the tag counts. Mark 1: words don't count. Mark 2: the tag is folded, and only
    figures and formulas count. Mark 3: nothing counts."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[int] = []
        self.looks: list[set[str]] = []
        self.words = self.formulas = self.figures = self.cells = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        told = dict(attributes)
        look = set((told.get("class") or "").split())
        outside = self.marks[-1] if self.marks else 0
        mark = max(outside, self._mark(tag, look, told.get("id")))
        if outside < 3 and mark < 3:
            self.figures += tag == "figure" or "explorer" in look
            self.formulas += tag == "div" and "math" in look
        if outside < 2 and mark < 2:
            self.cells += "cell_input" in look
        self.marks.append(mark)
        self.looks.append(look)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass  # such tags occur only in drawings and formulas

    def _mark(self, tag: str, look: set[str], name: str | None) -> int:
        if tag == "nav" or (tag == "section" and name == "exercises"):
            return 3
        cell_is_folded = "cell_input" in look and any("tag_hide-input" in around for around in self.looks)
        if tag == "details" or look & {"seal", "tag_hide-cell"} or cell_is_folded:
            return 2
        is_formula = tag == "div" and "math" in look
        return int(tag in SILENT or is_formula or bool(look & {"cell_input", "cell_output", "headerlink"}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self.marks:
            self.marks.pop()
            self.looks.pop()

    def handle_data(self, text: str) -> None:
        if not self.marks or not self.marks[-1]:
            self.words += len(text.split())


def of(page: str) -> float:
    """Return how many minutes it takes to read a page, given its whole HTML or just its article.

    >>> of("<article><p>" + "word " * 100 + "</p><div class='math'>x</div></article>")
    0.8333333333333333
    >>> of("<article><details>" + "word " * 100 + "</details><nav>" + "word " * 100 + "</nav></article>")
    0.0
    """
    found = ARTICLE.search(page)
    reader = _Reader()
    reader.feed((found[0] if found else page).replace("<wbr>", ""))  # a name counts as one word
    return reader.words / WORDS + reader.formulas / FORMULAS + reader.figures / FIGURES + reader.cells / CELLS


def place(*names: str) -> str:
    """Return a placeholder for the total minutes of these pages.

    >>> place("intro", "attention")
    '<span class="minutes" data-of="intro attention">…</span>'
    """
    return f'<span class="minutes" data-of="{" ".join(names)}">…</span>'


def filled(page: str, minutes: Callable[[str], int]) -> str:
    """Return the page with its placeholders filled in.

    >>> filled(place("a", "b") + " min", {"a": 2, "b": 3}.get)
    '<span class="minutes" data-of="a b">5</span> min'
    """
    return PLACE.sub(lambda found: f"{found[1]}{sum(map(minutes, found[2].split()))}{found[3]}", page)


def fill(folder: Path) -> None:
    """Fill in the placeholders of every page in the folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html"))}
    known = {path.stem: max(1, round(of(text))) for path, text in texts.items()}
    for path, text in texts.items():
        new = filled(text, known.__getitem__)
        if new != text:
            write_whole(path, new)
