"""Terms: each page contains the definitions of the terms to which it links.

Its script shows a definition beside the link.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

GLOSSARY = "book/glossary"


def depend(app: Sphinx, doctree: nodes.document) -> None:
    """Make a page that links to terms depend on the glossary, so that it is rebuilt when the glossary changes."""
    if any(xref["reftype"] == "term" for xref in doctree.findall(addnodes.pending_xref)):
        app.env.note_dependency(app.env.doc2path(GLOSSARY))


def meanings(glossary: nodes.document) -> dict[str, list[nodes.Node]]:
    """Return the first paragraph of each term's definition, without links.

    The keys are the ids used by links to the terms.
    """
    found = {}
    for item in glossary.findall(nodes.definition_list_item):
        paragraph = next(iter(item.findall(nodes.paragraph)), None)
        if paragraph is None:
            continue
        plain = paragraph.deepcopy()
        for link in list(plain.findall(addnodes.pending_xref)):
            link.replace_self(nodes.inline("", link.astext()))
        for term in item.findall(nodes.term):
            found |= dict.fromkeys(term["ids"], plain)
    return found


def add_meanings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html" or docname == GLOSSARY:
        return
    linked = [link for link in doctree.findall(nodes.reference) if _is_term(link)]
    ids = dict.fromkeys(link.get("refuri", "").partition("#")[2] for link in linked)
    known = meanings(app.env.get_doctree(GLOSSARY)) if ids else {}
    for name in ids:
        if name in known:
            opened = nodes.raw("", f'<div class="meaning" id="meaning-{name}" popover>', format="html")
            doctree += [opened, known[name].deepcopy(), nodes.raw("", "</div>", format="html")]


def _is_term(link: nodes.reference) -> bool:
    return any("std-term" in child.get("classes", ()) for child in link.findall(nodes.inline))


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", depend)
    app.connect("doctree-resolved", add_meanings, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
