"""Checks for pages that refer to other pages (questions, corrections, …): every link must resolve, and every number
must come from a cell."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from myst_parser.mdit_to_docutils.base import default_slugify

from tools.paths import BOOK

LINK = re.compile(r"\[(?:[^\]]|\](?=\())*?\]\(([^)\s]+)\)")
ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
MARKDOWN = MarkdownIt("commonmark").use(dollarmath_plugin)


@cache
def text(name: str) -> str:
    return (BOOK / name).read_text(encoding="utf-8")


@cache
def prose(name: str) -> str:
    """Return the page without its front matter and its cells."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text(name), flags=re.S)
    return re.sub(r"^(`{3,})\{code-cell\}.*?^\1", "", body, flags=re.S | re.M)


def slug(section: str) -> str:
    """Return the anchor of a section, given its text, which begins with the heading.

    >>> slug("Which base?\\nNone.")
    'which-base'
    """
    return default_slugify(section.split("\n")[0])


@cache
def headings(name: str) -> set[str]:
    """Return the anchors that MyST creates for a page's headings."""
    found: set[str] = set()
    tokens = MARKDOWN.parse(prose(name))
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            title = "".join(one.content for one in inline.children if one.type in ("text", "code_inline"))
            anchor, count = default_slugify(title), 1
            while anchor in found:
                anchor, count = f"{anchor}-{count}", count + 1
            found.add(anchor)
    return found


@cache
def labels() -> set[str]:
    """Return the labels of all labelled elements of the book, equations included."""
    pages = "\n".join(text(path.name) for path in BOOK.glob("*.md"))
    return {
        name for pattern in (r"^:(?:label|name): (\S+)", r"^\(([\w-]+)\)=") for name in re.findall(pattern, pages, re.M)
    }


@cache
def glued(name: str) -> set[str]:
    """Return the names that the page's cells pass to `glue`. If part of a name is computed, that part is replaced by
    `*`."""
    calls = [_call(part) for part in text(name).split("glue(")[1:]]
    names = {key for call in calls for key in re.findall(r"(?<![\w.=])(\w+)=(?!=)", call)}
    return names | {re.sub(r"\{[^}]*\}", "*", key) for call in calls for key in re.findall(r'f?"([^"]+)":', call)}


def _call(rest: str) -> str:
    """Return the arguments of a call, which is the text up to the bracket that closes the call. The opening bracket has
    already been removed."""
    depth = 1
    for place, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return rest[:place]
    return rest


def has_glue(name: str, key: str) -> bool:
    known = glued(name)
    return (
        key in known
        or f'"{key}"' in text(name)
        or any("*" in one and re.fullmatch(one.replace("*", ".+"), key) for one in known)
    )


def lands(target: str, name: str) -> bool:
    """Return whether a link on the page can be resolved. Links to other sites always count as resolved."""
    if target.startswith(("https://", "http://")):
        return True
    page, _, anchor = target.partition("#")
    if not anchor and not page.endswith((".md", ".py")):
        return page in labels()
    page = page or name
    return (BOOK / page).resolve().is_file() and (not anchor or anchor in headings(page) or anchor in labels())


def lost(name: str) -> list[str]:
    """Return the page's links, references and numbers that can't be resolved."""
    wrong = [target for target in LINK.findall(prose(name)) if not lands(target, name)]
    for role, content in ROLE.findall(prose(name)):
        if role in ("eq", "ref"):
            target = re.sub(r".*<(.*)>", r"\1", content, flags=re.S)
            wrong += [target] * (target not in labels())
        if role.startswith("glue"):
            page, _, key = content.rpartition("::")
            key, _, form = key.partition(":")
            # A number from another page needs a format.
            wrong += [content] * (not has_glue(page or name, key) or bool(page and not form))
    return wrong


def typed_numbers(passage: str) -> list[str]:
    """Return the numbers that are typed into a passage by hand. Numbers in code, formulas, links and the names of types
    and models don't count."""
    passage = ROLE.sub("", passage)
    passage = re.sub(
        r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|^#.*$|\bb?float\d+|[A-Z][\w-]* ?\d(?:\.\d)?\b|-V\d", "", passage, flags=re.M
    )
    return re.findall(r"\d[\d,.]*\d[kM]?|\d[kM]?", passage)
