"""`{answer}`: a form under an exercise.

It tells readers whether their answer is right and, if not, what the mistake is.

    ```{answer} attention: without the scale
    ```

The exercise must be one in `ropebook.exercises` whose answer is a choice or numbers. The page contains the rules of the
exercise as data, and `answers.js` applies them. There is no form on paper, in notebooks, or without scripts.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from html import escape

import executed  # noqa: F401  (puts the repository's code on the path)
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ropebook.exercises import EXERCISES, Chosen, Numbers
from ropebook.exercises.by_hand import BY_HAND

CHOOSE = "choose one of the answers."
SIZES = (9, 22)  # the widths, in characters, of fields for a single number and for several numbers


def rules(exercise: Chosen | Numbers) -> dict:
    """Return the rules of an exercise as data.

    >>> rules(Chosen("a", {"a": "yes.", "b": "no."}))["right"]
    'a'
    """
    if isinstance(exercise, Numbers):
        return exercise.rules()
    return {"options": dict(exercise.options), "right": exercise.right, "words": {"choose": CHOOSE}}


def form(name: str) -> str:
    """Return the HTML form for the exercise with this name."""
    exercise = EXERCISES[name]
    if isinstance(exercise, Numbers):
        entries = [
            f'<label>{escape(field.label)} <input type="text" autocomplete="off" size="{SIZES[len(field.values) > 1]}">'
            "</label>"
            for field in exercise.fields
        ]
    else:
        written = "{}" if name in BY_HAND else "<code>{}</code>"  # other options are names in code
        group = re.sub(r"\W+", "-", name)
        entries = [
            f'<label><input type="radio" name="{group}" value="{option}"> {written.format(option)}</label>'
            for option in map(escape, exercise.options)
        ]
    data = json.dumps(rules(exercise), ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<form class="answer noprint" data-exercise="{escape(name)}" hidden>'
        f"<fieldset><legend>Your answer</legend>{''.join(entries)} "
        f'<button type="submit">Check</button></fieldset><output></output>'
        f'<script type="application/json">{data}</script></form>'
    )


class Answer(SphinxDirective):
    """The directive `{answer} exercise`, described above."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in EXERCISES or not isinstance(EXERCISES[name], Chosen | Numbers):
            raise self.error(f"{name!r} is no exercise whose answer is a choice or numbers")
        for module in [name for name in sys.modules if name.startswith("ropebook.exercises")]:
            self.env.note_dependency(inspect.getfile(sys.modules[module]))
        return [nodes.raw("", form(name), format="html")]


def setup(app: Sphinx) -> dict:
    app.add_directive("answer", Answer)
    app.add_js_file("answers.js", defer="defer")
    app.add_css_file("answers.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
