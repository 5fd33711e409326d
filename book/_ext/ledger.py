"""Ledger of equations.

It ensures that every displayed equation has a label, a kind and a check, and that every check has an equation.

The kind is the equation's class on the page (`definition`, `identity` or `statement`). The check is in
`ropebook.proofs`, under the same label. If an equation or its check is missing, the build fails and names the label.
The directive `{ledger}` prints the whole list.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "code"))

from ropebook import proofs  # noqa: E402  (the path must be set first)

LOGGER = logging.getLogger(__name__)
LEDGER = "book/ledger"
KINDS = ("definition", "identity", "statement")
# In the checks' own words, an index follows `_`, an exponent follows `^`, and code stands between backticks.
MARKED = re.compile(
    r"`+(?P<code>[^`]+)`+"
    r"|_(?:\{(?P<low>[^{}]+)\}|(?P<index>2i\+1|−?[0-9A-Za-zΑ-Ωα-ω]+))"
    r"|\^(?:\{(?P<high>[^{}]+)\}|\((?P<power>(?:[^()]|\([^()]*\))+)\)|(?P<name>[A-Za-z]+))"
)
# A sentence with one of these signs states the equation itself. With other sentences, the ledger shows the equation. It
# doesn't show all of them, because together they would make the page too heavy.
RELATION = re.compile("[=≈<>≤≥]")
ARROW = re.compile(r"\\(iff|implies|Rightarrow|Longrightarrow|Leftrightarrow|Longleftrightarrow)\b")


def equations(env: BuildEnvironment) -> dict[str, list[dict]]:
    """Return the displayed equations of every page, in order. Each entry has a label, kinds, LaTeX and a line."""
    if not hasattr(env, "ropebook_equations"):
        env.ropebook_equations = {}
    return env.ropebook_equations


def collect(app: Sphinx, doctree: nodes.document) -> None:
    equations(app.env)[app.env.docname] = [
        {
            "label": block.get("label"),
            "kinds": [name for name in block.get("classes", []) if name in KINDS],
            "latex": block.astext(),
            "line": block.line,
        }
        for block in doctree.findall(nodes.math_block)
    ]


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    equations(env).pop(docname, None)


def problems(found: dict[str, list[dict]], checks: dict[str, proofs.Proof]) -> list[tuple[str, int | None, str]]:
    """Return everything that is wrong with the ledger, as a list of (page, line, sentence)."""
    wrong = []
    seen = {}
    for docname, blocks in sorted(found.items()):
        for block in blocks:
            label, where = block["label"], (docname, block["line"])
            start = block["latex"].strip().replace("\n", " ")[:60]
            if not label:
                wrong.append((*where, f"displayed equation without a label: {start}"))
                continue
            if not label.startswith("eq-"):
                wrong.append((*where, f"equation label must begin with 'eq-': {label}"))
            seen[label] = docname
            if len(block["kinds"]) != 1:
                wrong.append(
                    (*where, f"equation {label} must have one kind of {', '.join(KINDS)}; got {block['kinds']}")
                )
            elif label in checks and checks[label].kind != block["kinds"][0]:
                kinds = f"a {block['kinds'][0]} on the page, but its check {checks[label].source} is of kind"
                wrong.append((*where, f"equation {label} is {kinds} {checks[label].kind}"))
            if label in checks and ARROW.search(block["latex"]) and not set("⇒⇐⇔") & set(checks[label].says):
                wrong.append((*where, f"equation {label} follows an arrow; its check must say which way: ⇒, ⇐ or ⇔"))
            if label not in checks:
                wrong.append((*where, f"nothing checks equation {label}: its check stands in code/ropebook/proofs"))
    for label, check in checks.items():
        if label not in seen:
            wrong.append((LEDGER, None, f"the check {check.source} claims equation {label}, which no page shows"))
    return wrong


def balance(app: Sphinx, env: BuildEnvironment) -> None:
    for docname, line, sentence in problems(equations(env), proofs.registry()):
        LOGGER.warning(sentence, location=(docname, line), type="ledger")


# -- the page ---------------------------------------------------------------------------------------------------------


class Placeholder(nodes.General, nodes.Element):
    """A placeholder for the ledger, which is filled in after all pages have been read."""


class Ledger(Directive):
    """The directive `{ledger}`. It lists all equations page by page."""

    def run(self) -> list[nodes.Node]:
        return [Placeholder()]


def ledger_is_outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Return the ledger's page.

    It shows the equations of other pages, so Sphinx must read it again whenever it reads any page.
    """
    return [name for name in env.found_docs if name == LEDGER]


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for placeholder in list(doctree.findall(Placeholder)):
        sections = _sections(app, docname)
        placeholder.replace_self([*_contents(app, sections), *sections])


def _contents(app: Sphinx, sections: list[nodes.Node]) -> list[nodes.Node]:
    """Return a line of links to the chapters. The theme lists only headings that are in the page's source."""
    root = app.config.root_doc
    chapters = {_section_id(page) for page in (root, *app.env.toctree_includes.get(root, []))}
    links: list[nodes.Node] = []
    for section in sections:
        [name] = section["ids"]
        if name in chapters:
            title = section.next_node(nodes.title).astext()
            links += [nodes.Text(" · "), nodes.reference("", title, refuri=f"#{name}", internal=True)]
    return [nodes.paragraph("", "", *links[1:])] if links else []


def _section_id(docname: str) -> str:
    return nodes.make_id(f"ledger-{PurePosixPath(docname).name}")


def _sections(app: Sphinx, here: str) -> list[nodes.Node]:
    found, checks = equations(app.env), proofs.registry()
    sections = []
    for docname in _in_order(app):
        blocks = [block for block in found.get(docname, []) if block["label"] in checks]
        if not blocks:
            continue
        title = app.env.titles[docname].astext()
        section = nodes.section(ids=[_section_id(docname)])
        section += nodes.title("", title)
        for block in blocks:
            section += _entry(app, here, docname, block, checks[block["label"]])
        sections.append(section)
    return sections


def _in_order(app: Sphinx) -> list[str]:
    """Return the pages in the order of the book, with depth pages right after their chapters."""

    def under(page: str) -> list[str]:
        return [page, *(one for child in app.env.toctree_includes.get(page, []) for one in under(child))]

    return under(app.config.root_doc)


def equation_number(env: BuildEnvironment, docname: str, label: str) -> str:
    """Return the number shown in brackets beside an equation, or its label if it has no number."""
    number = env.toc_fignumbers.get(docname, {}).get("displaymath", {}).get(f"equation-{label}", ())
    return ".".join(map(str, number)) or label


def entry_id(label: str) -> str:
    """Return the id of an equation's entry in the ledger."""
    return f"ledger-{label}"


def said(text: str) -> list[nodes.Node]:
    """Return a sentence about a check with its indices lowered, its exponents raised and its code marked as such.

    >>> [str(part) for part in said("b^(−2i/d) and `run`")]
    ['b', '<superscript>−2i/d</superscript>', ' and ', '<literal>run</literal>']
    >>> [str(part) for part in said("e^{S_mn}")]
    ['e', '<superscript>S<subscript>mn</subscript></superscript>']
    """
    parts, start = [], 0
    for mark in MARKED.finditer(text):
        if mark.start() > start:
            parts.append(nodes.Text(text[start : mark.start()]))
        kind, words = mark.lastgroup, mark[mark.lastgroup]
        if kind == "code":
            parts.append(nodes.literal("", words))
        else:
            level = nodes.subscript if kind in ("low", "index") else nodes.superscript
            parts.append(level("", "", *said(words)))
        start = mark.end()
    if start < len(text):
        parts.append(nodes.Text(text[start:]))
    return parts


def _entry(app: Sphinx, here: str, docname: str, block: dict, check: proofs.Proof) -> nodes.Node:
    label = block["label"]
    target = f"{app.builder.get_relative_uri(here, docname)}#equation-{label}"
    rows = [("What is checked", nodes.inline("", "", *said(check.says)))]
    if not RELATION.search(check.says):
        latex = " ".join(block["latex"].split())
        rows.insert(0, ("Equation", nodes.math("", rf"\begin{{aligned}}{latex}\end{{aligned}}")))
    if check.implements:
        rows.append(("Implemented by", nodes.literal("", check.implements)))
    rows.append(("Checked in", nodes.literal("", check.source)))
    rows.append(("Wrong twin, refused", nodes.inline("", "", *said(check.twin))))
    entry = nodes.container(ids=[entry_id(label)], classes=["ledger-entry"])
    heading = nodes.paragraph(classes=["ledger-heading"])
    heading += nodes.reference(
        "", f"Equation ({equation_number(app.env, docname, label)})", refuri=target, internal=True
    )
    heading += nodes.Text(" ")
    heading += nodes.literal("", label)
    heading += nodes.Text(f" · {check.kind}")
    entry += heading
    fields = nodes.definition_list()
    for name, content in rows:
        item = nodes.definition_list_item()
        item += nodes.term("", name)
        item += nodes.definition("", nodes.paragraph("", "", content))
        fields += item
    entry += fields
    return entry


def setup(app: Sphinx) -> dict:
    app.add_node(Placeholder)
    app.add_directive("ledger", Ledger)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-get-outdated", ledger_is_outdated)
    app.connect("env-check-consistency", balance)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
