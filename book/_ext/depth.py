"""Number the depth pages: those under chapter 6 are 6.1, 6.2, …, and their equations are (6.1.1), (6.1.2), …

Sphinx itself can number to this depth, but it would number the headings inside a chapter before the pages under it. In
this book, only pages are numbered.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles as Collector


def number_depth_pages(env: BuildEnvironment) -> list[str]:
    """Number the pages under each numbered page. Returns the names of the pages that were given a number."""
    pages = []
    for chapter, numbers in list(env.toc_secnumbers.items()):
        for count, page in enumerate(env.toctree_includes.get(chapter, []), start=1):
            number = (*numbers[""], count)
            anchors = [link["anchorname"] for link in env.tocs[page].findall(nodes.reference)]
            env.toc_secnumbers[page] = {**dict.fromkeys(anchors), "": number}  # None: no number for headings inside
            env.titles[page]["secnumber"] = list(number)
            env.tocs[page][0][0][0]["secnumber"] = list(number)  # the page's entry in tables of contents
            pages.append(page)
    return pages


def install(app: Sphinx) -> None:
    """Make Sphinx number the depth pages right after the chapters.

    This needs a patch, because equations take their numbers from the pages immediately afterwards, and Sphinx emits no
    event in between.
    """
    numbered_before = Collector.assign_section_numbers
    if numbered_before.__module__ == __name__:
        return

    def assign_section_numbers(self: Collector, env: BuildEnvironment) -> list[str]:
        old = env.toc_secnumbers
        for title in env.titles.values():
            if len(title.get("secnumber") or ()) > 1:
                del title["secnumber"]  # left over from the last build; Sphinx can't handle it
        changed = numbered_before(self, env)
        return changed + [page for page in number_depth_pages(env) if old.get(page) != env.toc_secnumbers[page]]

    Collector.assign_section_numbers = assign_section_numbers


def one_entry_for_exercises(app: Sphinx, doctree: nodes.document) -> None:
    """Show "Exercises" as a single entry, without subentries, in a page's table of contents."""
    for item in list(app.env.tocs[app.env.docname].findall(nodes.list_item)):
        if item[0].astext() == "Exercises":
            del item[1:]


def number_no_other_headings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark headings that are missing from the table of contents as unnumbered.

    Otherwise Sphinx would write the page's number before each of them.
    """
    numbers = app.env.toc_secnumbers.get(docname, {})
    for section in doctree.findall(nodes.section):
        if isinstance(section.parent, nodes.section):
            numbers.setdefault(f"#{section['ids'][0]}", None)


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", install)
    app.connect("doctree-read", one_entry_for_exercises, priority=900)  # after Sphinx has built the list
    app.connect("doctree-resolved", number_no_other_headings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
