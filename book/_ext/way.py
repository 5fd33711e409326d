"""The way through the book: a map of the chapters, shown on the front page and at the end of each chapter.

On the front page, `{way}` is replaced with the whole map: each chapter with its question, a path for one weekend, and
the pages for readers who have a model to fix. Each chapter ends with a small map that shows where the reader is, what
comes next, and what is optional. If a chapter's first figure comes late, the chapter opens with its picture from the
map. The contents of the map are in `book/_way.yml`. Reading times are estimated from the finished pages
(`tools.minutes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import PurePosixPath

import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tools import thumbnails
from tools.minutes import place
from tools.paths import BOOK

FOLDER = "way"  # the folder of the thumbnails, under _static
GOALS = "After this chapter you can"  # the opening picture comes before these words
LAST = "extrapolation"  # the last page of the story, whose readers may have a model to fix


@dataclass(frozen=True)
class Chapter:
    """A page on the map. Pages for practitioners have no question and no picture."""

    page: str
    name: str
    question: str = ""
    picture: str = ""
    opening: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Way:
    chapters: tuple[Chapter, ...]
    weekend: tuple[dict, ...]
    practice: tuple[Chapter, ...]

    @property
    def story(self) -> list[Chapter]:
        return [one for one in self.chapters if not one.optional]

    def after(self, page: str) -> Chapter | None:
        """Return the page to read next, or None if there is none.

        A page of the story is followed by the next page of the story. An optional page is followed by whatever page
        comes next, so readers find their way back to the story.

        >>> way = Way((Chapter("a", "A"), Chapter("b", "B", optional=True), Chapter("c", "C")), (), ())
        >>> [next and next.page for next in map(way.after, "abc")]
        ['c', 'c', None]
        """
        names = [one.page for one in self.chapters]
        at = names.index(page)
        rest = self.chapters[at + 1 :]
        if not self.chapters[at].optional:
            rest = [one for one in rest if not one.optional]
        return next(iter(rest), None)

    def named(self, page: str) -> Chapter:
        return next(one for one in (*self.chapters, *self.practice) if one.page == page)


@cache
def read() -> Way:
    """Return the contents of `_way.yml`. The file is read once per build."""
    told = yaml.safe_load((BOOK / "_way.yml").read_text(encoding="utf-8"))
    chapters, practice = (tuple(Chapter(**one) for one in told[name]) for name in ("chapters", "practice"))
    return Way(chapters, tuple(told["weekend"]), practice)


# -- the map ----------------------------------------------------------------------------------------------------------


def link(one: Chapter, text: str = "", minutes: bool = True) -> str:
    """Return a link to a page of the book, followed by the minutes it takes to read that page.

    >>> link(Chapter("decay", "Decay"))
    '<a href="decay.html">Decay</a> <small><span class="minutes" data-of="decay">…</span> min</small>'
    """
    shown = f'<a href="{one.page}.html">{escape(text or one.name)}</a>'
    return f"{shown} <small>{place(one.page)} min</small>" if minutes else shown


def picture(one: Chapter) -> str:
    return (
        f'<span class="way-picture"><img src="../_static/{FOLDER}/{one.page}.svg" alt="" loading="lazy"'
        f' width="{thumbnails.WIDTH}" height="{thumbnails.HEIGHT}" decoding="async"/></span>'
    )


def tile(one: Chapter, here: str, following: Chapter | None, whole: bool) -> str:
    """Return the HTML of a chapter's tile on the map."""
    at, comes = one.page == here, one == following
    marks = ["you are here"] * at + ["next"] * comes + ["optional"] * (one.optional and not at and not comes)
    look = [name for name, so in (("way-here", at), ("way-next", comes), ("way-optional", one.optional)) if so]
    question = f'<span class="way-question">{escape(one.question)}</span>' if whole else ""
    marked = f' <em class="way-mark">{marks[0]}</em>' if marks else ""
    current = ' aria-current="page"' if at else ""
    return (
        f'<li class="{" ".join(look)}"><a href="{one.page}.html"{current}>{picture(one)}'
        f'<span class="way-name">{escape(one.name)}</span>{question}'
        f'<small class="way-told">{place(one.page)} min{marked}</small></a></li>'
    )


def opening(one: Chapter) -> str:
    """Return the HTML of the picture with which a chapter opens, and of its caption."""
    return f'<div class="opening">{picture(one)}<p>{escape(one.opening)}</p></div>'


def tiles(way: Way, here: str, whole: bool) -> str:
    following = way.after(here)
    return f"<ol>{''.join(tile(one, here, following, whole) for one in way.chapters)}</ol>"


def practice(way: Way) -> str:
    listed = "".join(f"<li>{link(one)}</li>" for one in way.practice)
    return f'<p class="way-heading">For your own model</p><ul class="way-practice">{listed}</ul>'


def weekend(way: Way) -> str:
    days = []
    for day in way.weekend:
        pages = " → ".join(link(way.named(page), minutes=False) for page in day["pages"])
        days.append(
            f"<dt>{escape(day['when'])} <small>{place(*day['pages'])} min</small></dt>"
            f"<dd>{escape(day['what'].capitalize())}: {pages}</dd>"
        )
    return f'<p class="way-heading">In a weekend</p><dl class="way-weekend">{"".join(days)}</dl>'


def front_map(way: Way) -> str:
    story = place(*(one.page for one in way.story))
    more = place(*(one.page for one in way.chapters if one.optional))
    told = f"The story takes {story} min, exercises not counted; the optional chapters {more} more."
    inside = f'<p class="way-total">{told}</p>' + tiles(way, "intro", whole=True) + weekend(way) + practice(way)
    return f'<nav class="way way-whole" aria-label="The way through the book">{inside}</nav>'


def end_map(way: Way, here: str) -> str:
    """Return the HTML of the map with which a chapter ends."""
    following, first = way.after(here), ""
    if here == LAST:
        first = '<p class="way-heading way-first">That was the story. The rest is optional.</p>' + practice(way)
    elif following is not None:
        back = way.named(here).optional and not following.optional
        what = "Back to the story" if back else "Next chapter"
        first = f'<p class="way-heading way-first">{what}: {link(following)}</p>'
    return f'<nav class="way" aria-label="The way through the book">{first}{tiles(way, here, whole=False)}</nav>'


# -- on the pages -----------------------------------------------------------------------------------------------------


class WholeWay(SphinxDirective):
    """The directive `{way}`, described above."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(BOOK / "_way.yml"))
        listed = nodes.bullet_list()
        for one in read().chapters[1:]:
            refers = addnodes.pending_xref(
                "", nodes.inline("", one.name), refdomain="std", reftype="doc", reftarget=f"/book/{one.page}",
                refdoc=self.env.docname, refexplicit=True, refwarn=True,
            )  # fmt: skip
            why = " (optional)" if one.optional else ""
            listed += nodes.list_item("", nodes.paragraph("", "", refers, nodes.Text(f"{why}: {one.question}")))
        return [nodes.container("", listed, classes=["way-list"], is_div=True)]


def put(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Insert the maps into a page when building the site."""
    if app.builder.format != "html":
        return
    way, page = read(), PurePosixPath(docname).name
    for listed in list(doctree.findall(nodes.container)):
        if "way-list" in listed["classes"]:
            listed.replace_self(nodes.raw("", front_map(way), format="html"))
    if page in {one.page for one in way.chapters[1:]}:
        section = next(iter(doctree.findall(nodes.section)))
        one = way.named(page)
        if one.opening:
            at = next(k for k, part in enumerate(section.children) if part.astext().startswith(GOALS))
            section.insert(at, nodes.raw("", opening(one), format="html"))
        section += nodes.raw("", end_map(way, page), format="html")


# -- in the list of contents ------------------------------------------------------------------------------------------


def mark(listed: BeautifulSoup, way: Way, here: str) -> BeautifulSoup:
    """Mark each chapter in the table of contents as part of the story or as optional."""
    chapters = {one.page: one for one in way.chapters}
    for item in listed.select("li.toctree-l1"):
        href = item.a["href"]
        one = chapters.get(here if href == "#" else PurePosixPath(href).stem)
        # The theme reuses its table of contents, so an entry may already be marked.
        if one is None or {"way-story", "way-optional"} & set(item["class"]):
            continue
        item["class"] = [*item["class"], "way-optional" if one.optional else "way-story"]
        if one.optional:
            told = listed.new_tag("small")
            told.string = "optional"
            item.a.append(" ")
            item.a.append(told)
    return listed


def mark_contents(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    made = context.get("generate_toctree_html")
    if made is None:
        return
    way, here = read(), PurePosixPath(pagename).name

    context["generate_toctree_html"] = lambda kind, **how: mark(made(kind, **how), way, here)


def prepare_thumbnails(app: Sphinx, config: object) -> None:
    read.cache_clear()
    config.html_static_path += [str(thumbnails.ensure({one.page: one.picture for one in read().chapters}))]


def setup(app: Sphinx) -> dict:
    app.add_directive("way", WholeWay)
    app.connect("config-inited", prepare_thumbnails)
    app.connect("doctree-resolved", put)
    app.connect("html-page-context", mark_contents, priority=901)  # after the theme has built its list
    app.add_css_file("way.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
