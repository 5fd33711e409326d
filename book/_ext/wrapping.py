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
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge
from sphinx.transforms.post_transforms import SphinxPostTransform

COLUMNS = re.compile(r"\S {2,}\S")
FITS = 36  # the number of characters in a line that fits on every screen
WORD = 26  # the number of characters without a space from which code may be broken inside such a run
# A number printed as in 2e-16, and an option as in --rope-scale, which must not break at a hyphen.
SMALL = re.compile(r"(?<![\w.>])\d[\d.]*e-\d+(?![\w<])|(?<![^\s>])--[a-z][a-z-]*(?![\w<])")
WHOLE = r'<span class="whole">\g<0></span>'
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


def setup(app: Sphinx) -> dict:
    PygmentsBridge.html_formatter = Wrapping
    app.add_post_transform(PrintedColumns)
    app.add_post_transform(ProseTables)
    app.add_post_transform(WideTables)
    app.add_css_file("code.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
