"""Data for the search page: sections, terms and functions of the book, technical terms by page, and synonyms.

The data are written as a script, `sections.js`, because browsers refuse to fetch neighbouring files over file://. Only
the search page loads this script. The search itself is in `book/_search`. Sphinx's own index is not built, because it
finds only whole pages.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import formulas
import yaml
from docutils import nodes
from myst_nb.ext.glue.crossref import generate_text_nodes, read_glue_cache
from myst_nb.ext.glue.utils import PendingGlueReference
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

BOOK = Path(__file__).resolve().parent.parent
SYNONYMS = BOOK / "_synonyms.yml"
KEYWORDS = BOOK / "_keywords.yml"
# This page only lists things that are explained elsewhere, so the search finds the page itself but none of its
# sections.
LISTS = {"book/ledger"}
# Functions and papers have a lower weight than prose about them. A chapter's page has a slightly higher weight than the
# pages under it.
WEIGHTS = {"book/api": 0.5, "book/references": 0.25}
CHAPTER = 1.1
NAME = re.compile(r"[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w*")
PLUMBING = {"set_num_threads", "manual_seed", "display_figure", "at_most", "at_least"}
"""Names that stand in the code of many pages without being what a page is about."""
EQUATION = "\ue000"  # marks a reference to an equation
SOURCE = re.compile(r"\S+ · ropebook/\S+, line\s\d+")  # the line below a function's source code
LINKS = re.compile(r"Shown here(?:\s·\s.+)?|Explained under .*", re.DOTALL)  # the links below an answer or a method
Entry = tuple[str, str, str, str]
Value = Callable[[PendingGlueReference], str]
Prose = Callable[[list[nodes.Node]], str]


def entries(doctree: nodes.document, prose: Prose) -> Iterator[Entry]:
    """Yield an entry for each section, term and function: its anchor, title and prose, and the names in its code."""
    top = next(iter(doctree.findall(nodes.section)), None)
    for section in doctree.findall(nodes.section):
        own = [
            child
            for child in section.children[1:]
            if not isinstance(child, nodes.section | addnodes.desc | addnodes.glossary)
        ]
        anchor = "" if section is top else section["ids"][0]
        yield anchor, prose([section[0]]), prose(own), _names(own)
    for item in doctree.findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            for anchor in term["ids"][:1]:
                yield anchor, term.astext(), prose(item.children[1:]), ""
    for described in doctree.findall(addnodes.desc):
        for signature in described.findall(addnodes.desc_signature):
            for anchor in signature["ids"][:1]:
                yield anchor, signature.get("fullname", anchor), prose(described.children[1:]), ""


def _citations(env: BuildEnvironment) -> list:
    return env.domaindata.get("cite", {}).get("citations", [])


def authors(env: BuildEnvironment) -> dict[str, str]:
    """Return the text by which pages cite each paper, such as "Su et al., 2021", keyed by its bibliography key."""
    found = {}
    for cited in _citations(env):
        first, *others = cited.entry.persons["author"]
        name = re.sub("[{}]", "", " ".join([*first.prelast_names, *first.last_names]))
        found[cited.key] = f"{name}{' et al.' if others else ''}, {cited.entry.fields['year']}"
    return found


def papers(env: BuildEnvironment, docname: str) -> Iterator[Entry]:
    """Yield an entry for each paper that a page lists: its anchor and title, and the formatted reference as text."""
    for cited in _citations(env):
        if cited.bibliography_key.docname == docname:
            title = re.sub("[{}]", "", cited.entry.fields["title"])
            reference = cited.formatted_entry.text.render_as("text")
            yield cited.citation_id, title, _without(reference, title), ""


def _without(reference: str, title: str) -> str:
    """Return a reference without its title, its proceedings and web addresses.

    The entry already contains the title, and nobody types the others into a search.
    """
    start = reference.lower().find(title.lower())
    if start >= 0:
        reference = reference[:start] + reference[start + len(title) :].lstrip(". ")
    return re.sub(r"\s*URL: \S+|\bIn [A-Z][^.]*\.\s*|, and others(?=\.)", "", reference)


def _prose(children: list[nodes.Node], value: Value, cited: dict[str, str]) -> str:
    """Return the text that a reader sees, including formulas, numbers that `value` looks up, and `cited` papers.

    Code, equation labels, lines of links and the answers offered by a figure's questions are left out.
    """
    found = []
    for child in children:
        for text in child.findall(nodes.TextElement, include_self=True):
            if isinstance(text, nodes.math_block):
                found.append(formulas.as_text(text.astext()))
            if isinstance(text, nodes.paragraph | nodes.title | nodes.term):
                if SOURCE.fullmatch(text.astext()) or LINKS.fullmatch(text.astext()) or _offered(text):
                    continue
                copy = text.deepcopy()
                for link in list(copy.findall(addnodes.pending_xref)):
                    if link.get("reftype") == "eq":
                        link.replace_self(nodes.Text(EQUATION))
                    elif link.get("refdomain") == "cite":
                        keys = [key.strip() for key in link["reftarget"].split(",")]
                        link.parent.replace(link, nodes.Text("; ".join(cited.get(key, key) for key in keys)))
                for formula in list(copy.findall(nodes.math)):
                    formula.replace_self(nodes.Text(formulas.as_text(formula.astext())))
                for glued in list(copy.findall(PendingGlueReference)):
                    glued.replace_self(nodes.Text(value(glued)))
                found.append(copy.astext())
    text = re.sub(rf"\s*(?:; see|,(?: as in)?|\((?:see)?)\s*{EQUATION}\)?(?=[\s.,;:])", "", " ".join(found))
    return " ".join(text.replace(EQUATION, "the equation").split())


def _offered(text: nodes.TextElement) -> bool:
    """Return whether this text is one of the answers that a figure's question offers (see `steps`).

    Most of them are wrong, and the right one is repeated together with its reason.
    """
    return isinstance(text.parent, nodes.list_item) and "try-answers" in text.parent.parent["classes"]


def _names(children: list[nodes.Node]) -> str:
    """Return the names in the code (except for `PLUMBING`) and the labels of the equations, as one string."""
    blocks = [block.astext() for child in children for block in child.findall(nodes.literal_block)]
    labels = {block["label"] for child in children for block in child.findall(nodes.math_block) if block.get("label")}
    return " ".join(sorted({*NAME.findall("\n".join(blocks)), *labels} - PLUMBING))


def numbers(folder: str) -> Value:
    """Return a function that looks up a number taken from another page's cells.

    MyST-NB stores these numbers in `folder`.
    """

    def value(glued: PendingGlueReference) -> str:
        output = read_glue_cache(folder, glued.refdoc).get(glued.key)
        found = generate_text_nodes(glued, output) if output and glued.gtype == "text" else []
        return "".join(node.astext() for node in found) or "…"

    return value


def _lines(path: Path) -> dict[str, str]:
    """Return the lines of a file as a dictionary. Raises ValueError unless each line has the form "words: words"."""
    lines = yaml.safe_load(path.read_text(encoding="utf-8"))
    for first, second in lines.items():
        if not isinstance(first, str) or not isinstance(second, str):
            raise ValueError(f"{path.name}: a line is words: words, got {first!r}: {second!r}")
    return lines


def synonyms(path: Path = SYNONYMS) -> list[tuple[str, str]]:
    """Return pairs of an expression that readers may type and the book's words for it.

    Raises ValueError for lines of any other form.
    """
    return [(one.strip().lower(), meant.lower()) for said, meant in _lines(path).items() for one in said.split(",")]


def keywords(path: Path = KEYWORDS) -> dict[str, str]:
    """Return the technical terms for each page's subject, keyed by the page's name.

    Raises ValueError for lines of any other form.
    """
    return {f"book/{page}": words for page, words in _lines(path).items()}


def index(app: Sphinx) -> dict:
    """Return the whole index.

    Pages are [address, title, weight, keywords], and sections are [page, anchor, title, prose, names]. The last item is
    omitted for sections without names, and the anchor is 0 if it follows from the title (see `slug`).
    """
    pages, sections, words = [], [], keywords()
    value, cited = numbers(app.env.mystnb_config.output_folder), authors(app.env)
    prose = functools.partial(_prose, value=value, cited=cited)
    for docname in sorted(app.env.found_docs):
        if not docname.startswith("book/"):
            continue
        number = ".".join(map(str, app.env.toc_secnumbers.get(docname, {}).get("", ())))
        title = f"{number}. {app.env.titles[docname].astext()}".removeprefix(". ")
        weight = WEIGHTS.get(docname, CHAPTER if number.isdigit() else 1)
        of_page = {entry[0]: [len(pages), *entry] for entry in entries(app.env.get_doctree(docname), prose)}
        of_page |= {paper[0]: [len(pages), *paper] for paper in papers(app.env, docname)}
        sections += list(of_page.values())[: 1 if docname in LISTS else None]
        pages.append([app.builder.get_target_uri(docname), title, weight, words.get(docname, "")])
    for section in sections:
        if section[1] and section[1] == slug(section[2]):
            section[1] = 0
    sections = [section if section[-1] else section[:-1] for section in sections]
    return {"pages": pages, "sections": sections, "synonyms": synonyms()}


def slug(title: str) -> str:
    """Return the anchor that most sections with this title have. The search page's script computes it in the same way.

    >>> slug("Is it 1/√d?")
    'is-it-1-d'
    """
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")


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
