"""`{try}`: what to try with a figure, in a few steps. For each step the page's script adds a button that
sets the figure up.

    ```{try} lock
    Slide both tokens by 50. Which curve will move?
    start: shift=0
    goal: shift>=50
    ```

A step has one or two sentences. Then comes `start:` with the dials, written as in a link to the figure; without it, the
figure starts as it opens. Then comes `goal:`, which says when the step is done: conditions on dials and on the figure's
numbers, joined by `&`. An empty line ends the step.
"""

from __future__ import annotations

from typing import NamedTuple

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MOST = 3


class Step(NamedTuple):
    """One step: its sentence, the line of the block where it begins, and the settings at its start and for its goal."""

    sentence: str
    line: int
    start: str
    goal: str


def steps_of(lines: list[str]) -> list[Step]:
    """The steps of a `{try}` block. Raises `ValueError` if a step has no sentence or no goal, or if there are no steps
    or too many.

    >>> steps_of(["Slide both.", "Which moves?", "start: shift=0", "goal: shift>=50"])
    [Step(sentence='Slide both.\\nWhich moves?', line=0, start='shift=0', goal='shift>=50')]
    """
    steps, first = [], 0
    for end in [*(i for i, line in enumerate(lines) if not line.strip()), len(lines)]:
        block, line, first = lines[first:end], first, end + 1
        if block:
            steps.append(_step(block, line))
    if not 1 <= len(steps) <= MOST:
        raise ValueError(f"a figure has 1 to {MOST} steps, got {len(steps)}")
    return steps


def _step(block: list[str], line: int) -> Step:
    said = [one for one in block if not one.startswith(("start:", "goal:"))]
    told = dict(one.split(":", 1) for one in block[len(said) :] if ":" in one)
    if not said or block[: len(said)] != said or "goal" not in told:
        raise ValueError(f"a step is a sentence, start: and goal:, in this order; got {' '.join(block)!r}")
    return Step("\n".join(said), line, told.get("start", "").strip(), told["goal"].strip())


class Item(nodes.list_item):
    """A step in the list on the page."""


class Try(SphinxDirective):
    """The directive `{try} explorer`, described above."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            steps = steps_of(list(self.content))
        except ValueError as error:
            raise self.error(str(error)) from None
        listed = nodes.enumerated_list() if len(steps) > 1 else nodes.bullet_list()
        for step in steps:
            item = Item(explorer=self.arguments[0], start=step.start, goal=step.goal)
            source = StringList(step.sentence.split("\n"), self.content.source(0))
            self.state.nested_parse(source, self.content_offset + step.line, item)
            listed += item
        title = nodes.paragraph("", "", nodes.strong("", "Try this"), classes=["try-title"])
        return [nodes.container("", title, listed, classes=["try"], is_div=True)]


def visit_item(writer, item: Item) -> None:
    told = {f"data-{name}": item[name] for name in ("explorer", "start", "goal")}
    writer.body.append(writer.starttag(item, "li", "", CLASS="try-step", **told))


def depart_item(writer, item: Item) -> None:
    writer.body.append("</li>\n")


def setup(app: Sphinx) -> dict:
    app.add_node(Item, html=(visit_item, depart_item))
    app.add_directive("try", Try)
    app.add_css_file("steps.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
