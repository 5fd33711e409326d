"""`{try}`: a few steps to try with a figure.

Each step begins with a question. Once the reader has tried it, the reason is shown.

    ```{try} lock
    Slide both tokens by 50. Will RoPE's score move?
    answers: It rises | It falls | *It stays the same
    start: shift=0
    show: shift=50
    goal: shift>=50
    why: Both arrows turn by the same angle, so the angle between them stays.
    ```

The question of a step is a sentence or two. The following fields each start on a new line, and may continue on the next
lines:

- `answers:` two to four answers, with an asterisk before the right one;
- `start:` the dial settings at the start, written as in a link to the figure (by default, the figure's initial
  settings);
- `show:` the settings of the dials that "just show me" moves;
- `goal:` the conditions on the dials and the figure's numbers under which the step is done, joined by `&`;
- `hides:` the part of the figure that would give the answer away, `words` or `curves`, which is hidden until the reader
  moves a dial (by default, nothing is hidden);
- `why:` the reason.

An empty line ends a step.

Without the page's script, the question, the answers and the reason are plain text. With the script, the figure asks the
question in a separate card.
"""

from __future__ import annotations

from typing import NamedTuple

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MOST = 3
FEWEST_ANSWERS, MOST_ANSWERS = 2, 4
FIELDS = ("answers", "start", "show", "goal", "hides", "why")
HIDDEN = ("", "words", "curves")


class Step(NamedTuple):
    """One step: the question, the answers and the index of the right one, the figure's settings, and the reason.

    `line` and `why_line` are counted from the start of the block.
    """

    sentence: str
    line: int
    answers: tuple[str, ...]
    right: int
    start: str
    show: str
    goal: str
    hides: str
    why: str
    why_line: int


def steps_of(lines: list[str]) -> list[Step]:
    """Return the steps of a `{try}` block. Raises `ValueError` if there are none or too many, or if one is incomplete.

    >>> block = ["Does it move?", "answers: Yes | *No", "start: m=0", "show: m=5", "goal: m>=5", "why: It is fixed."]
    >>> steps_of(block)[0].answers, steps_of(block)[0].right
    (('Yes', 'No'), 1)
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
    told: dict[str, list[str]] = {"": []}
    places: dict[str, int] = {}
    name = ""
    for at, text in enumerate(block):
        field, colon, rest = text.partition(":")
        if colon and field in FIELDS:
            if field in told:
                raise ValueError(f"a step has one {field}:, got two in {block[0]!r}")
            name, text = field, rest.strip()
            places[name] = line + at
        told.setdefault(name, []).append(text)
    sentence = "\n".join(told[""])
    for field in ("answers", "show", "goal", "why"):
        if not "".join(told.get(field, [])).strip():
            raise ValueError(f"a step needs {field}:, missing from {sentence or block[0]!r}")
    if not sentence:
        raise ValueError(f"a step begins with its question, got {block[0]!r}")
    answers, right = answers_of(" ".join(told["answers"]))
    one = {field: "".join(told.get(field, [])) for field in ("start", "show", "goal", "hides")}
    if one["hides"] not in HIDDEN:
        raise ValueError(f"hides: must be {' or '.join(filter(None, HIDDEN))}, got {one['hides']!r}")
    return Step(sentence, line, answers, right, **one, why="\n".join(told["why"]), why_line=places["why"])


def answers_of(text: str) -> tuple[tuple[str, ...], int]:
    """Return the answers, and the index of the right one.

    The right answer begins with an asterisk, and its number of asterisks is odd.

    >>> answers_of("It falls | *It rises | *m* stays")
    (('It falls', 'It rises', '*m* stays'), 1)
    """
    parts = [part.strip() for part in text.split("|")]
    marked = [k for k, part in enumerate(parts) if part.startswith("*") and part.count("*") % 2]
    if not FEWEST_ANSWERS <= len(parts) <= MOST_ANSWERS or not all(part.strip("*") for part in parts):
        raise ValueError(f"a step has {FEWEST_ANSWERS} to {MOST_ANSWERS} answers, got {text!r}")
    if len(marked) != 1:
        raise ValueError(f"one answer is right and has an asterisk before it, got {len(marked)} in {text!r}")
    return tuple(part[1:] if k in marked else part for k, part in enumerate(parts)), marked[0]


class Item(nodes.list_item):
    """A step in the page's list of steps."""


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
        listed.extend(self._item(step) for step in steps)
        title = nodes.paragraph("", "", nodes.strong("", "Try this"), classes=["try-title"])
        return [nodes.container("", title, listed, classes=["try"], is_div=True)]

    def _item(self, step: Step) -> Item:
        told = {"start": step.start, "show": step.show, "goal": step.goal, "hides": step.hides}
        item = Item(
            "", *self._parsed(step.sentence, step.line), explorer=self.arguments[0], right=str(step.right), **told
        )
        answers = nodes.bullet_list(classes=["try-answers"])
        answers.extend(nodes.list_item("", *self._parsed(answer, step.line)) for answer in step.answers)
        # Repeat the right answer before the reason, to make clear what the reason explains.
        lead = self._parsed(step.answers[step.right], step.line)[0].children
        stop = "" if step.answers[step.right].endswith((".", "?", "!")) else "."
        reason, *more = self._parsed(step.why, step.why_line)
        reason[:0] = [nodes.strong("", "", *lead, nodes.Text(stop), classes=["try-right"]), nodes.Text(" ")]
        item.extend([answers, nodes.container("", reason, *more, classes=["try-why"], is_div=True)])
        return item

    def _parsed(self, text: str, line: int) -> list[nodes.Node]:
        around = nodes.Element()
        self.state.nested_parse(
            StringList(text.split("\n"), self.content.source(0)), self.content_offset + line, around
        )
        return around.children


def visit_item(writer, item: Item) -> None:
    told = {f"data-{name}": item[name] for name in ("explorer", "start", "show", "goal", "right")}
    if item["hides"]:
        told["data-hides"] = item["hides"]
    writer.body.append(writer.starttag(item, "li", "", CLASS="try-step", **told))


def depart_item(writer, item: Item) -> None:
    writer.body.append("</li>\n")


def setup(app: Sphinx) -> dict:
    app.add_node(Item, html=(visit_item, depart_item))
    app.add_directive("try", Try)
    app.add_css_file("steps.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
