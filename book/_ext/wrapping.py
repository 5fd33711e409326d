"""Code that is too long for its column goes on in the next line, further in, rather than off the page's edge; a table
that is too wide for the column takes the empty one beside it too.

What was printed in columns would be unreadable in broken lines: it scrolls, and its edge shows that there is more.
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
FITS = 36  # characters in a line that fits everywhere
ROWS = 3  # from so many lines on, columns are a table

TABLE = re.compile(r'<div class="table-box">(<table class="book-table">.*?</table>)</div>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<t[hd]\b([^>]*)>(.*?)</t[hd]>", re.DOTALL)
NARROW, LETTER, PADDING = 684, 8, 29  # pixels: the column, a letter, a cell's padding


def wrap(block: re.Match) -> str:
    """A block of code whose long lines are elements of their own, each knowing how far in it begins.

    >>> print(wrap(BLOCK.search('<div class="highlight"><pre><span></span>a\\n    ' + 50 * "b" + '\\nc</pre></div>')))
    <div class="highlight"><pre><span></span>a
    <span class="long" style="--in:4">    bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    </span>c</pre></div>
    """
    opening, head, lines, end = block.groups()
    before = block.string[max(0, block.start() - 200) : block.start()]
    text = unescape(MARKUP.sub("", lines))
    if PRINTED.search(before) and sum(bool(COLUMNS.search(line.strip())) for line in text.splitlines()) >= ROWS:
        return f'{opening} class="in-columns"{head}{lines}{end}'
    return "".join([opening, head, *map(_line, lines.splitlines(keepends=True)), end])


def _line(line: str) -> str:
    """Pygments closes its elements at a line's end, so that a line can be put into one."""
    text = unescape(MARKUP.sub("", line)).rstrip("\n")
    if len(text) <= FITS:
        return line
    return f'<span class="long" style="--in:{len(text) - len(text.lstrip())}">{line}</span>'


def widen(box: re.Match) -> str:
    """A table's box; it takes the column beside the text, too, if its longest words ask for more than the text's."""
    return box[0].replace('"table-box"', '"table-box full-width"', 1) if least_width(box[1]) > NARROW else box[0]


def least_width(table: str) -> int:
    """About how many pixels a table needs: numbers are not broken, and sentences only between words.

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
