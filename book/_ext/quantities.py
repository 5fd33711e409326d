"""Require that every measured quantity in the prose comes from a cell, so that the text can't disagree with a new
measurement.

The check looks for times, memory sizes, percentages and phrases such as "twice as fast". A quantity may be typed if it
follows from arithmetic on the page, or if an assert on the page checks it. The few such cases are listed in
`_given.yml`. In addition, no space may precede a percent sign, and numbers from 1,000 on need commas.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import executed  # noqa: F401  (puts the repository's root on the path before tools is imported)
import yaml
from sphinx.application import Sphinx
from sphinx.util import logging

from tools.paths import BOOK, pages

LOGGER = logging.getLogger(__name__)
GIVEN = BOOK / "_given.yml"

COUNT = r"(?:half|two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand|some|few|several)"
UNIT = r"(?:ms|µs|ns|s|milliseconds?|seconds?|minutes?|hours?|[KMGT]i?B|%|per cent)"
LARGER = r"(?:fast|slow|long|large|small|high|much|many)"
QUANTITY = re.compile(
    rf"(?<![\w.])\d[\d,.]*\s?{UNIT}(?!\w)"
    rf"|\b{COUNT} (?:milliseconds?|seconds?|minutes?|hours?|per cent)\b"
    rf"|\b(?:twice|thrice|half|\d[\d,.]* times|{COUNT} times) as {LARGER}\b"
    r"|\bhalf as long again\b"
)
CODE = r"^(`{3,})\{code-cell.*?^\1\s*$|(?<!\})`[^`]*`"
SPACED = re.compile(r"[\d`}][ \u00a0\u202f]%(?!\w)")
# Four digits or more that aren't part of a name, a date or a longer number, and don't number an issue or a seed.
LONG = re.compile(r"(?<![\w.,:#-])(?<!issue )(?<!request )(?<!seed )[1-9]\d{3,}(?![A-Za-z0-9_]|[.,:-]\d)")
YEAR = re.compile(r"19\d\d|20(?!00)[0-2]\d")
CELL = re.compile(
    r"^(`{3,})\{code-cell\}[^\n]*\n(?:---\n.*?^---\n|(?::[^\n]*\n)*)(.*?)^\1\s*$", re.DOTALL | re.MULTILINE
)
# Directives whose contents are checked for commas, although they are left out otherwise.
INSIDE = re.compile(r"^(`{3,}|:{3,})\{(?:try|figure|glossary)[^\n]*(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)
# What keeps its form: headings, because addresses contain them, quotations, and the settings of a figure.
EXACT = re.compile(r'^#.*$|"(?:[^"\n]|\n(?!\n))*"|^ *(?:start|show|goal):.*$', re.MULTILINE)


def prose(text: str) -> str:
    """Return the text without its front matter, cells, formulas, code, roles, link addresses, questions and
    quotations."""
    for form in (
        r"\A---.*?\n---\n",
        r"^(`{3,}|:{3,})\{(?:code-cell|math|try|figure|glossary|eval-rst|bibliography).*?^\1\s*$",
        r"^```.*?^```\s*$",
        r"\$\$.*?\$\$",
        r"\$[^$]*\$",
        r"\{[\w:]+\}`[^`]*`",
        r"`[^`]*`",
        r"\]\([^)]*\)",
        r"“[^”]*”",
    ):
        text = re.sub(form, " … ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def typed(text: str) -> list[str]:
    words = " ".join(prose(text).split())  # a quantity may go on in the next line
    return [match[0] for match in QUANTITY.finditer(words)]


def ungrouped(text: str) -> list[str]:
    """Return the numbers from 1,000 on without commas, in the page's prose and in the sentences that its cells show."""
    words = [EXACT.sub(" … ", prose(INSIDE.sub(r"\2", text)))]
    for _, code in CELL.findall(text):
        strings = (node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant))
        words += [one for one in strings if isinstance(one, str) and re.search(r"[a-z]{3}", one)]
    return [one for text in words for one in LONG.findall(text) if not YEAR.fullmatch(one)]


def problems(text: str, given: Sequence[str]) -> list[str]:
    """Describe how the quantities typed on a page differ from ``given``, those that the page is allowed to type."""
    found = typed(text)
    spaced = SPACED.search(re.sub(CODE, "", text, flags=re.DOTALL | re.MULTILINE))
    return [
        *([f"writes {spaced[0]!r}: no space, so that the sign can't begin a line"] if spaced else []),
        *(f"writes {one} without a comma: {int(one):,}" for one in ungrouped(text)),
        *(f"types {one!r}: take it from a cell, or list it in {GIVEN.name}" for one in found if one not in given),
        *(f"doesn't type {one!r}, which {GIVEN.name} lists" for one in given if one not in found),
    ]


def check(app: Sphinx) -> None:
    """Check every page in every build, because a page may become wrong when only `_given.yml` changes."""
    given: Mapping[str, list[str]] = yaml.safe_load(GIVEN.read_text(encoding="utf-8"))
    paths: dict[str, Path] = {path.stem: path for path in pages()}
    for name in given.keys() - paths.keys():
        LOGGER.warning(f"{GIVEN.name} names {name}, which is no page", type="quantity")
    for name, path in paths.items():
        for problem in problems(path.read_text(encoding="utf-8"), given.get(name, ())):
            LOGGER.warning(f"the page {problem}", location=f"book/{name}", type="quantity")


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
