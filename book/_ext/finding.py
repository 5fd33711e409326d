"""What the search page knows: every section, term and function of the book, and the field's words for one another.

It is a script, `sections.js`, since a browser refuses to fetch a file's neighbours over file://; no other page loads
it. The search itself is `book/_static/search.js`. Sphinx's own index, of whole pages, is not made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from docutils import nodes
from myst_nb.ext.glue.utils import PendingGlueReference
from sphinx import addnodes
from sphinx.application import Sphinx

SYNONYMS = Path(__file__).resolve().parent.parent / "_synonyms.yml"
# They list what stands elsewhere.
LISTS = {"book/ledger", "book/references"}
# Functions count less than what is said of them.
WEIGHTS = {"book/api": 0.6}
NAME = re.compile(r"[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w*")
EQUATION = "\ue000"  # stands for a reference
Entry = tuple[str, str, str, str]


def entries(doctree: nodes.document) -> Iterator[Entry]:
    """Of each section, term and function: its anchor, its title, its prose, the names in its code."""
    top = next(iter(doctree.findall(nodes.section)), None)
    for section in doctree.findall(nodes.section):
        own = [
            child
            for child in section.children[1:]
            if not isinstance(child, nodes.section | addnodes.desc | addnodes.glossary)
        ]
        anchor = "" if section is top else section["ids"][0]
        yield anchor, _prose([section[0]]), _prose(own), _names(own)
    for item in doctree.findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            for anchor in term["ids"][:1]:
                yield anchor, term.astext(), _prose(item.children[1:]), ""
    for described in doctree.findall(addnodes.desc):
        for signature in described.findall(addnodes.desc_signature):
            for anchor in signature["ids"][:1]:
                yield anchor, signature.get("fullname", anchor), _prose(described.children[1:]), ""


def _prose(children: list[nodes.Node]) -> str:
    """What is read there: no code, no formula, no number of another page, no name of an equation."""
    found = []
    for child in children:
        for text in child.findall(nodes.TextElement, include_self=True):
            if isinstance(text, nodes.paragraph | nodes.title | nodes.term):
                copy = text.deepcopy()
                for link in list(copy.findall(addnodes.pending_xref)):
                    if link.get("reftype") == "eq":
                        link.replace_self(nodes.Text(EQUATION))
                for unread in [*copy.findall(nodes.math), *copy.findall(PendingGlueReference)]:
                    unread.replace_self(nodes.Text("…"))
                found.append(copy.astext())
    text = re.sub(rf"[,(]\s*{EQUATION}\)?(?=[\s.,;:])", "", " ".join(found))
    return " ".join(text.replace(EQUATION, "the equation").split())


def _names(children: list[nodes.Node]) -> str:
    blocks = [block.astext() for child in children for block in child.findall(nodes.literal_block)]
    return " ".join(sorted(set(NAME.findall("\n".join(blocks)))))


def synonyms(path: Path = SYNONYMS) -> list[tuple[str, str]]:
    """What readers write, and what stands in the book for it. Raises ValueError for a line that is none."""
    pairs = []
    for written, meant in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        if not isinstance(written, str) or not isinstance(meant, str):
            raise ValueError(f"{path.name}: a line is words: words, got {written!r}: {meant!r}")
        pairs += [(one.strip().lower(), meant.lower()) for one in written.split(",")]
    return pairs


def index(app: Sphinx) -> dict:
    """Pages as [address, title, weight], sections as [page, anchor, title, prose, names]."""
    pages, sections = [], []
    for docname in sorted(app.env.found_docs):
        if not docname.startswith("book/") or docname in LISTS:
            continue
        number = ".".join(map(str, app.env.toc_secnumbers.get(docname, {}).get("", ())))
        title = f"{number}. {app.env.titles[docname].astext()}".removeprefix(". ")
        of_page = {entry[0]: [len(pages), *entry] for entry in entries(app.env.get_doctree(docname))}
        sections += of_page.values()
        pages.append([app.builder.get_target_uri(docname), title, WEIGHTS.get(docname, 1)])
    return {"pages": pages, "sections": sections, "synonyms": synonyms()}


def leave_out_whole_pages(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.builder.search = False


def search_page(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    yield "search", {}, "search.html"


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        text = json.dumps(index(app), ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / "sections.js").write_text(f"globalThis.sections = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_css_file("search.css")
    app.connect("builder-inited", leave_out_whole_pages)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
