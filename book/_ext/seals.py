"""Seals: below each equation, a word says how the equation was checked. Clicking the word shows the outcome.

A cell tagged `seal` contains a single call of `verify` and comes after the equations that the call names. On the site,
the cell is removed from the page, and the seals show its outcomes instead. The build fails if an equation has no seal.
"""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from formulas import with_minus
from ledger import LEDGER, entry_id, equation_number, equations
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from ropebook.proofs import OUTCOMES

LOGGER = logging.getLogger(__name__)
TAG = "seal"


def seals(env: BuildEnvironment) -> dict[str, dict]:
    """Return the outcomes and the problems of every page.

    The outcomes of a page's checks are keyed by label. The problems with its cells are a list of (line, sentence).
    """
    if not hasattr(env, "ropebook_seals"):
        env.ropebook_seals = {}
    return env.ropebook_seals


def take(env: BuildEnvironment, notebook: NotebookNode) -> None:
    """Move the outcomes out of the cells of the page that is being read. Tagged cells are left without output."""
    outcomes, wrong = {}, []
    lines = notebook.metadata.get("source_map", [0] * len(notebook.cells))
    for cell, line in zip(notebook.cells, lines, strict=True):
        if cell.cell_type != "code":
            continue
        found = [one for output in cell.outputs for one in output.get("data", {}).pop(OUTCOMES, [])]
        outcomes |= {one["label"]: one for one in found}
        wrong += [(line, sentence) for sentence in cell_problems(cell, bool(found))]
        if TAG in cell.metadata.get("tags", []):
            cell.outputs = []
    seals(env)[env.docname] = {"outcomes": outcomes, "wrong": wrong}


def cell_problems(cell: NotebookNode, verifies: bool) -> list[str]:
    """Return the problems with a cell.

    Either it calls verify but has no tag, or it has the tag but is not a single call of verify.
    """
    tagged = TAG in cell.metadata.get("tags", [])
    if verifies and not tagged:
        return [f"a cell that calls verify must have the tag `{TAG}`"]
    if tagged and not re.fullmatch(r"verify\([^()]*\)", cell.source.strip()):
        return [f"a cell with the tag `{TAG}` must hold one call of verify and nothing else, got {cell.source!r}"]
    return []


def problems(blocks: list[dict], page: dict) -> list[tuple[int | None, str]]:
    """Return the mismatches between a page's equations and its seals, as (line, sentence)."""
    shown = {block["label"]: block["line"] for block in blocks if block["label"]}
    missing = [
        (line, f'equation {label} has no seal: a cell tagged `{TAG}` with verify("{label}")')
        for label, line in shown.items()
        if label not in page["outcomes"]
    ]
    strange = [
        (None, f"{label} is verified on a page that does not show it")
        for label in page["outcomes"]
        if label not in shown
    ]
    return [*page["wrong"], *missing, *strange]


def balance(app: Sphinx, env: BuildEnvironment) -> None:
    if app.builder.name == "lab":  # copies are not executed, so they have no outcomes
        return
    for docname, blocks in equations(env).items():
        for line, sentence in problems(blocks, seals(env).get(docname, {"outcomes": {}, "wrong": []})):
            LOGGER.warning(sentence, location=(docname, line), type="seals")


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    seals(env).pop(docname, None)


class Seals(SphinxPostTransform):
    """On the site, remove the tagged cells and put a seal below each equation that they verify."""

    default_priority = 150
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        outcomes = seals(self.env).get(self.env.docname, {}).get("outcomes", {})
        for cell in list(self.document.findall(nodes.container)):
            if TAG in cell.get("cell_metadata", {}).get("tags", []):
                cell.parent.remove(cell)
        for block in list(self.document.findall(nodes.math_block)):
            if block.get("label") in outcomes:
                seal = nodes.raw("", self.html(outcomes[block["label"]]), format="html")
                block.parent.insert(block.parent.index(block) + 1, seal)

    def html(self, outcome: dict) -> str:
        """Return the HTML of a seal: a labelled button, and the popover that it opens.

        The popover works without a script.
        """
        label, docname = outcome["label"], self.env.docname
        name = f"Equation ({equation_number(self.env, docname, label)})"
        article = "an" if outcome["kind"][0] in "aeiou" else "a"
        link = f"{self.app.builder.get_relative_uri(docname, LEDGER)}#{entry_id(label)}"
        rows = [
            ("What is checked", _words(outcome["says"])),
            ("Outcome", "<br>".join(map(_words, outcome["held"]))),
            ("Wrong twin, refused", f"{_words(outcome['twin'])}<br>{'<br>'.join(map(_words, outcome['refused']))}"),
        ]
        listed = "".join(f"<dt>{head}</dt><dd>{text}</dd>" for head, text in rows)
        return (
            f'<div class="seal"><button type="button" class="seal-button" popovertarget="seal-{label}">'
            f'<span class="visually-hidden">{name}: </span>{outcome["seal"]}</button>'
            f'<div class="seal-text" id="seal-{label}" popover>'
            f'<p class="seal-head">{name}, {article} {outcome["kind"]}: {outcome["seal"]}</p><dl>{listed}</dl>'
            f'<p><a href="{link}">In the ledger of equations</a></p></div></div>'
        )


def _words(text: str) -> str:
    """Convert text to HTML. Hyphens before numbers become minus signs, and text between backticks becomes code."""
    parts = re.split(r"`+([^`]+)`+", escape(text))
    return "".join(f"<code>{part}</code>" if k % 2 else with_minus(part) for k, part in enumerate(parts))


def setup(app: Sphinx) -> dict:
    app.add_post_transform(Seals)
    app.connect("env-purge-doc", forget)
    app.connect("env-check-consistency", balance)
    app.add_css_file("seals.css")
    return {"parallel_read_safe": False, "parallel_write_safe": True}
