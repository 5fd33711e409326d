"""Fit code and tables to the page.

Lines of code that are too long for the text column continue on the next line, with more indentation, instead of running
off the page. Tables that are too wide for the text column extend into the empty column beside it.

Output printed in columns would be unreadable with wrapped lines. It scrolls instead, and its edge indicates that there
is more.
"""

from __future__ import annotations

import re
from html import unescape

from docutils import nodes
from sphinx.application import Sphinx

BLOCK = re.compile(r'(<div class="highlight"><pre)(>(?:<span></span>)?)(.*?)(</pre></div>)', re.DOTALL)
MARKUP = re.compile(r"<[^>]*>")
COLUMNS = re.compile(r"\S {2,}\S")
PRINTED = re.compile(r'<div class="output [^"]*highlight-[^"]*">\s*$')
FITS = 36  # the number of characters in a line that fits on every screen
DEEPEST = 16  # the deepest indentation that is kept (`code.css` has a rule for each)
ROWS = 3  # the smallest number of lines with columns that count as a table

TABLE = re.compile(r'<div class="table-box">(<table class="book-table">.*?</table>)</div>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<t[hd]\b([^>]*)>(.*?)</t[hd]>", re.DOTALL)
NARROW, LETTER, PADDING = 684, 8, 29  # in pixels: the widths of the text column, a letter, and a cell's padding


def wrap(block: re.Match) -> str:
    """Return a code block whose long lines are separate elements. Each of them has its indentation as a class, since
    a style attribute would need an exception from the site's Content-Security-Policy.

    >>> print(wrap(BLOCK.search('<div class="highlight"><pre><span></span>a\\n    ' + 50 * "b" + '\\nc</pre></div>')))
    <div class="highlight"><pre><span></span>a
    <span class="long in-4">    bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    </span>c</pre></div>
    """
    opening, head, lines, end = block.groups()
    before = block.string[max(0, block.start() - 200) : block.start()]
    text = unescape(MARKUP.sub("", lines))
    if PRINTED.search(before) and sum(bool(COLUMNS.search(line.strip())) for line in text.splitlines()) >= ROWS:
        return f'{opening} class="in-columns"{head}{lines}{end}'
    return "".join([opening, head, *map(_line, lines.splitlines(keepends=True)), end])


def _line(line: str) -> str:
    """Put a line into its own element if it is long.

    This is possible because Pygments closes its elements at the end of each line.
    """
    text = unescape(MARKUP.sub("", line)).rstrip("\n")
    if len(text) <= FITS:
        return line
    return f'<span class="long in-{min(len(text) - len(text.lstrip()), DEEPEST)}">{line}</span>'


def widen(box: re.Match) -> str:
    """Return a table's box, made wider if necessary.

    If the table's longest words don't fit in the text column, the box extends into the column beside it.
    """
    return box[0].replace('"table-box"', '"table-box full-width"', 1) if least_width(box[1]) > NARROW else box[0]


def least_width(table: str) -> int:
    """Estimate how many pixels wide a table must be.

    Numbers are never wrapped, and sentences are wrapped only between words.

    >>> least_width("<tr><th>a long name</th><td class='number'>1 000</td></tr>")
    130
    """
    widths: dict[int, int] = {}
    for row in ROW.findall(table):
        is_head = "</thead>" in table and table.index(row) < table.index("</thead>")
        for place, (look, content) in enumerate(CELL.findall(row)):
            text = unescape(MARKUP.sub("", re.sub(r"<strong>(.*?)<span.*?</strong>", r"\1", content)))
            words = [text] if "number" in look and not is_head else text.split()
            widths[place] = max(widths.get(place, 0), *map(len, words), 0)
    return LETTER * sum(widths.values()) + PADDING * len(widths)


def on_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    if context.get("body"):
        context["body"] = TABLE.sub(widen, BLOCK.sub(wrap, context["body"]))


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", on_page, priority=910)
    app.add_css_file("code.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
