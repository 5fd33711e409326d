"""Keep what belongs together in one line of running text: names in code, a formula and the sign beside it, and short
formulas, numbers with their units, dates and ranges that are written as text.

In the narrow columns of tables, only powers of ten and numbers such as 2e-16 are kept. Otherwise, the tables would
become wider than a phone.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from wrapping import SMALL, WHOLE

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
TIMES = re.compile(r"(?<!\S)\d[\d.]*(?<!\.)\s[b-zα-ωA-HJ-Z](?!\w)")  # as in 3.5 d
UNIT = re.compile(r"(?<![\w.,])\d[\d,.]*\s(?:[nµm]?s|[kMG]i?B|bits?|bytes?)(?!\w)")
# After these, a line must not end: the year and the month of a date, and the first number of a range.
DATE = re.compile(r"(?<![\d-])\d{4}-(?=\d\d-\d\d(?![\d-]))|(?<=\d{4}-)\d\d-(?=\d\d(?![\d-]))|\d–(?=\d)")
CELL = re.compile(r'(<(?:(?:td|th|dd)\b(?! class="number")[^>]*|br)>)([^<]+)')
CAPTION = re.compile(r"(<figcaption[^>]*>|<caption><span>)([^<]*)")
AS_TYPED = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, addnodes.desc_signature)
BLOCKS = (nodes.paragraph, nodes.title, nodes.term, nodes.caption)


class WholeNames(SphinxPostTransform):
    """Keep the names, keys and flags in running text whole, and numbers such as 2e-16 that come from a cell. Only names
    that are too long for a phone, and those in the narrow columns of tables, may break after an underscore or a
    hyphen."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for code in self.document.findall(nodes.literal):
            text = code.astext()
            if len(text) <= KEPT and not re.search(r"\s", text) and not is_in(code, nodes.table):
                code["classes"].append("whole")
        for pasted in self.document.findall(nodes.inline):
            if "pasted-text" in pasted["classes"] and SMALL.fullmatch(pasted.astext()):
                pasted["classes"].append("whole")


class HeldSigns(SphinxPostTransform):
    """Keep a formula in one line with the sign before or after it, such as a comma. Browsers may break a line on both
    sides of an inline block, as formulas are, even where the sign could not begin a line after a word. A long formula
    may have to be broken itself, so it is only joined to its signs."""

    default_priority = 202
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            # not parent.index(formula), since equal nodes count as the same
            place = next(place for place, node in enumerate(parent.children) if node is formula)
            beside = [None, *parent.children, None][place : place + 3 : 2]
            before, after = (str(node) if isinstance(node, nodes.Text) else "" for node in beside)
            sign, end = before[-1:] if before[-1:] in BEFORE else "", after[:1] if after[:1] in AFTER else ""
            if len(formula.astext()) <= FORMULA and (sign or end):
                parent[place] = whole = nodes.inline(classes=["held"])
                whole += [nodes.Text(sign), formula, nodes.Text(end)]
                before, after = before.removesuffix(sign), after.removeprefix(end)
            else:
                before, after = before + JOINER, JOINER + after
            if sign:
                parent[place - 1] = nodes.Text(before)
            if end:
                parent[place + 1] = nodes.Text(after)


class HeldFormulas(SphinxPostTransform):
    """Keep short formulas that are written as text in one line. In the narrow columns of tables, only powers of ten
    are kept."""

    default_priority = 203
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for raw in self.document.findall(nodes.raw):
            text = POWER.sub(HELD_POWER, raw.astext())
            # a span, not a joiner, because readers copy these numbers
            text = CELL.sub(lambda found: found[1] + SMALL.sub(WHOLE, found[2]), text)
            text = CAPTION.sub(lambda found: found[1] + DATE.sub(rf"\g<0>{JOINER}", held(found[2])), text)
            if text != raw.astext():
                raw[0] = nodes.Text(text)
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


def is_in(node: nodes.Node, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a node has an ancestor of one of these kinds."""
    while (node := node.parent) is not None:
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Sphinx) -> dict:
    app.add_post_transform(WholeNames)
    app.add_post_transform(HeldSigns)
    app.add_post_transform(HeldFormulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
