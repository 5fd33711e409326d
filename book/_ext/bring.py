"""`{bring}`: a button that brings a figure from further up to where the reader is, with its dials set.

    {bring}`ladder ntk=on: NTK-aware scaling in the figure`

Before the colon come the explorer's name and its dials, as a link to the figure has them; after it, what the button
says. `bring.js` moves the figure to below the button's paragraph, and back. Without that script, on paper and in
notebooks there is no button.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx


def parts_of(text: str) -> tuple[str, str, str]:
    """The explorer, its dials and the words on the button.

    >>> parts_of("ladder factor=4&ntk=on: See it")
    ('ladder', 'factor=4&ntk=on', 'See it')
    """
    where, colon, words = text.partition(":")
    explorer, _, dials = where.strip().partition(" ")
    if not (explorer and dials.strip() and colon and words.strip()):
        raise ValueError(f"bring needs an explorer, dials, a colon and words, got {text!r}")
    return explorer, dials.strip(), words.strip()


class Bring(nodes.inline):
    """The button. It has no text of its own, so writers other than the site's write nothing."""


def role(name: str, rawtext: str, text: str, lineno: int, inliner: Inliner, options=None, content=None):
    try:
        explorer, dials, words = parts_of(text)
    except ValueError as error:
        message = inliner.reporter.error(str(error), line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [Bring(explorer=explorer, dials=dials, words=words)], []


def visit_bring(writer, node: Bring) -> None:
    told = {"data-explorer": node["explorer"], "data-dials": node["dials"], "type": "button", "hidden": "hidden"}
    writer.body.append(
        writer.starttag(node, "button", "", CLASS="bring noprint", **told) + writer.encode(node["words"])
    )


def depart_bring(writer, node: Bring) -> None:
    writer.body.append("</button>")


def setup(app: Sphinx) -> dict:
    app.add_node(Bring, html=(visit_bring, depart_bring))
    app.add_role("bring", role)
    app.add_js_file("bring.js", defer="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
