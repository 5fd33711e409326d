"""Fit code and tables to the page.

Lines of code that are too long for the text column continue on the next line, with more indentation, instead of running
off the page. Tables that are too wide for the text column extend into the empty column beside it.

On a phone, the rows of a table of sentences become paragraphs if it has more columns than fit there.

Output printed in columns would be unreadable with wrapped lines. It scrolls instead, and its edge indicates that there
is more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TextIO

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from pygments.formatters import HtmlFormatter
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge
from sphinx.transforms.post_transforms import SphinxPostTransform

COLUMNS = re.compile(r"\S {2,}\S")
FITS = 36  # the number of characters in a line that fits on every screen
WORD = 26  # the number of characters without a space from which code may be broken inside such a run
# A number printed as in 2e-16, and an option as in --rope-scale, which must not break at a hyphen.
SMALL = re.compile(r"(?<![\w.>])\d[\d.]*e-\d+(?![\w<])|(?<![^\s>])--[a-z][a-z-]*(?![\w<])")
WHOLE = r'<span class="whole">\g<0></span>'
KEPT = 32  # the number of characters in a name that fits into a line of every screen
BEFORE, AFTER = [*"([“‘"], [*".,;:!?)]’”"]  # the signs that must stay in one line with the formula beside them
JOINER = "\u2060"  # has no width, and forbids a line break
NO_BREAK = "\u00a0"
POWER = re.compile(r"(?<=\d) · (?=10)")  # as in 5 · 10⁵
HELD_POWER = f"{NO_BREAK}·{NO_BREAK}"
SIGNS = set("=≠≈≤≥<>×·+−↔→↦")  # between two terms
TERM, FORMULA = 9, 24  # the numbers of characters in a term and in a formula that are kept in one line
LIST = re.compile(r"\((?:[^()\s]{1,6},\s){1,4}[^()\s]{1,6}\)")  # as in (1, 0, 1, 0)
COUNT = re.compile(r"(?<![\w.,])\d[\d,]*\sof\s\d[\d,]*(?!\w)")  # as in 41 of 64
TIMES = re.compile(r"(?<!\S)\d[\d.]*\s[b-zα-ωA-HJ-Z](?!\w)")  # as in 3.5 d
UNIT = re.compile(r"(?<![\w.,])\d[\d,.]*\s(?:[nµm]?s|[kMG]i?B|bits?|bytes?)(?!\w)")
# After these, a line must not end: the year and the month of a date, and the first number of a range.
DATE = re.compile(r"(?<![\d-])\d{4}-(?=\d\d-\d\d(?![\d-]))|(?<=\d{4}-)\d\d-(?=\d\d(?![\d-]))|\d–(?=\d)")
CAPTION = re.compile(r"(<figcaption[^>]*>|<caption><span>)([^<]*)")
AS_TYPED = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, addnodes.desc_signature)
BLOCKS = (nodes.paragraph, nodes.title, nodes.term, nodes.caption)
DEEPEST = 16  # the deepest indentation that is kept (`code.css` has a rule for each)
ROWS = 3  # the smallest number of lines with columns that count as a table

BOX = '<div class="table-box"><table class="book-table">'
PROSE = 4, 8  # in a table of sentences: the least number of columns, and of letters in each column's mean cell
NARROW, LETTER, PADDING = 684, 8, 29  # in pixels: the widths of the text column, a letter, and a cell's padding


class Wrapping(HtmlFormatter):
    """Formatter in whose code blocks long lines are separate elements. Each of them has its indentation as a class,
    since a style attribute would need an exception from the site's Content-Security-Policy. With the option
    ``in_columns``, lines stay as they are, and the block has this class instead.

    >>> from pygments import highlight, lexers
    >>> print(highlight("a\\n    " + 50 * "b" + "\\nc", lexers.TextLexer(), Wrapping()))
    <div class="highlight"><pre><span></span>a
    <span class="long in-4">    bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    </span>c
    </pre></div>
    <BLANKLINE>
    """

    def format_unencoded(self, tokensource: Iterable[tuple], outfile: TextIO) -> None:
        tokens = list(tokensource)
        self.texts = iter("".join(text for _, text in tokens).split("\n"))
        super().format_unencoded(tokens, outfile)

    def wrap(self, source: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        if self.options.get("in_columns"):
            for is_line, text in super().wrap(source):
                yield is_line, text.replace("<pre>", '<pre class="in-columns">') if not is_line else text
        else:
            yield from super().wrap((is_line, self._line(text) if is_line else text) for is_line, text in source)

    def _line(self, line: str) -> str:
        text = next(self.texts)
        if len(text) <= FITS:
            return line
        depth = min(len(text) - len(text.lstrip()), DEEPEST)
        if max(map(len, text.split()), default=0) > WORD:
            line = with_breaks(line)
        return f'<span class="long in-{depth}">{SMALL.sub(WHOLE, line)}</span>'


def with_breaks(line: str) -> str:
    """Let a line of highlighted code break before a dot and after a bracket, so that it need not break inside a name.

    >>> with_breaks('<span class="n">a</span><span class="o">.</span><span class="n">b</span>')
    '<span class="n">a</span><wbr><span class="o">.</span><span class="n">b</span>'
    """
    line = line.replace('<span class="o">.</span>', '<wbr><span class="o">.</span>')
    return re.sub(r'<span class="p">[^<]*[(\[{]</span>', r"\g<0><wbr>", line)


class WholeNames(SphinxPostTransform):
    """Keep the names, keys and flags in running text whole. Only those that are too long for a phone, and those in the
    narrow columns of tables, may break after an underscore or a hyphen."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for code in self.document.findall(nodes.literal):
            text = code.astext()
            if len(text) <= KEPT and not re.search(r"\s", text) and not is_in(code, nodes.table):
                code["classes"].append("whole")


class HeldSigns(SphinxPostTransform):
    """Keep a formula in one line with the sign before or after it, such as a comma. Browsers may break a line on both
    sides of an inline block, as formulas are, even where the sign could not begin a line after a word."""

    default_priority = 202
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for formula in self.document.findall(nodes.math):
            siblings = formula.parent.children
            # not siblings.index(formula), since equal nodes count as the same
            place = next(place for place, node in enumerate(siblings) if node is formula)
            before, after = siblings[max(0, place - 1) : place], siblings[place + 1 : place + 2]
            if before and isinstance(before[0], nodes.Text) and before[0][-1:] in BEFORE:
                formula.parent[place - 1] = nodes.Text(before[0] + JOINER)
            if after and isinstance(after[0], nodes.Text) and after[0][:1] in AFTER:
                formula.parent[place + 1] = nodes.Text(JOINER + after[0])


class HeldFormulas(SphinxPostTransform):
    """Keep short formulas that are written as text in one line. In the narrow columns of tables, only powers of ten
    are kept."""

    default_priority = 203
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for raw in self.document.findall(nodes.raw):
            text = POWER.sub(HELD_POWER, raw.astext())
            if CAPTION.search(text):
                raw[0] = nodes.Text(CAPTION.sub(lambda found: found[1] + held(found[2]), text))
        for block in list(self.document.findall(lambda node: isinstance(node, BLOCKS))):
            leaves = [leaf for leaf in block.findall(nodes.Text) if not is_in(leaf, nodes.raw)]
            # Code and formulas have their own rules for line breaks. Here, each is a long word.
            texts = ["\ufffc" * len(leaf) if is_in(leaf, AS_TYPED) else str(leaf) for leaf in leaves]
            whole = "".join(texts)
            whole = POWER.sub(HELD_POWER, whole) if is_in(block, nodes.table) else held(whole)
            for leaf, text in zip(leaves, texts, strict=True):
                now, whole = whole[: len(text)], whole[len(text) :]
                now = DATE.sub(rf"\g<0>{JOINER}", now)
                if now != text:
                    place = next(place for place, node in enumerate(leaf.parent) if node is leaf)
                    leaf.parent[place] = nodes.Text(now)


def held(text: str) -> str:
    """Replace the spaces inside short formulas, lists of numbers and counts with no-break spaces.

    >>> held("At d = 8, (1, 0, 1, 0) are 2 of 4 cases.").replace(NO_BREAK, "~")
    'At d~=~8, (1,~0,~1,~0) are 2~of~4 cases.'
    >>> held("a = b, where the amplitude = 1").replace(NO_BREAK, "~")
    'a~=~b, where the amplitude~=~1'
    """
    parts = re.split(r"([ \n])", text)  # words and the spaces between them, in turn
    start = 0  # where the current formula begins
    for k in range(2, len(parts) - 2, 2):
        if parts[k] not in SIGNS or max(len(parts[k - 2]), len(parts[k + 2])) > TERM or not parts[k - 2]:
            continue
        if k - 2 > start and parts[k - 3] != NO_BREAK:
            start = k - 2
        if len("".join(parts[start : k + 3])) <= FORMULA:
            parts[k - 1] = parts[k + 1] = NO_BREAK
    text = "".join(parts)
    for kind in (LIST, COUNT, TIMES, UNIT):
        text = kind.sub(lambda found: re.sub(r"\s", NO_BREAK, found[0]) if len(found[0]) <= FORMULA else found[0], text)
    return text


class PrintedColumns(SphinxPostTransform):
    """Mark output that was printed in columns, for `Wrapping`."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for block in self.document.findall(nodes.literal_block):
            lines = block.astext().splitlines()
            if "output" in block["classes"] and sum(bool(COLUMNS.search(line.strip())) for line in lines) >= ROWS:
                block["highlight_args"] = {**block.get("highlight_args", {}), "in_columns": True}


class ProseTables(SphinxPostTransform):
    """Mark the tables that contain sentences in many columns, so that `tables.css` can lay them out for phones."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        columns, letters = PROSE
        for table in self.document.findall(nodes.table):
            rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
            means = [sum(len(cell.astext()) for cell in column) / len(rows) for column in zip(*rows, strict=False)]
            if len(means) >= columns and min(means) >= letters:
                table["classes"].append("prose")


class WideTables(SphinxPostTransform):
    """Widen the boxes of tables whose longest words don't fit in the text column. Such a box extends into the column
    beside it."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for raw in self.document.findall(nodes.raw):
            if BOX in raw.astext():
                raw[0] = nodes.Text(widened(raw.astext()))


def widened(html: str) -> str:
    """Return a table in its box, made wider if necessary."""
    table = BeautifulSoup(html, "html.parser").table
    return html.replace('"table-box"', '"table-box full-width"', 1) if least_width(table) > NARROW else html


def least_width(table: Tag) -> int:
    """Estimate how many pixels wide a table must be.

    Numbers are never wrapped, and sentences are wrapped only between words.

    >>> least_width(BeautifulSoup("<tr><th>a long name</th><td class='number'>1 000</td></tr>", "html.parser"))
    130
    """
    for spoken in table.select("strong span"):
        spoken.decompose()
    widths: dict[int, int] = {}
    for row in table.find_all("tr"):
        for place, cell in enumerate(row.find_all(["th", "td"])):
            text = cell.get_text()
            is_number = "number" in cell.get("class", ()) and row.find_parent("thead") is None
            words = [text] if is_number else text.split()
            widths[place] = max(widths.get(place, 0), *map(len, words), 0)
    return LETTER * sum(widths.values()) + PADDING * len(widths)


def is_in(node: nodes.Node, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a node has an ancestor of one of these kinds."""
    while (node := node.parent) is not None:
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Sphinx) -> dict:
    PygmentsBridge.html_formatter = Wrapping
    app.add_post_transform(WholeNames)
    app.add_post_transform(HeldSigns)
    app.add_post_transform(HeldFormulas)
    app.add_post_transform(PrintedColumns)
    app.add_post_transform(ProseTables)
    app.add_post_transform(WideTables)
    app.add_css_file("code.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
