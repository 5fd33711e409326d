"""The role `{bring}`: a button that brings a figure from further up the page to the reader and sets its dials.

    {bring}`ladder ntk=on: NTK-aware scaling in the figure`

The part before the colon contains the explorer's name and its dials, written as in a link to the figure. The part after
the colon is the label of the button. `bring.js` moves the figure below the button's paragraph, and back again. There is
no button on pages without that script, on paper, or in notebooks.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx


def parts_of(text: str) -> tuple[str, str, str]:
    """Return the explorer, its dials and the button's label.

    >>> parts_of("ladder factor=4&ntk=on: See it")
    ('ladder', 'factor=4&ntk=on', 'See it')
    """
    where, colon, words = text.partition(":")
    explorer, _, dials = where.strip().partition(" ")
    if not (explorer and dials.strip() and colon and words.strip()):
        raise ValueError(f"bring needs an explorer, dials, a colon and words, got {text!r}")
    return explorer, dials.strip(), words.strip()


class Bring(nodes.inline):
    """The button. Its node contains no text, so it leaves no trace in any format other than the site's."""


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
